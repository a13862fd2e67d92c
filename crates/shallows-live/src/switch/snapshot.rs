use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};
use shallows_core::host::gate::Refusal;
use shallows_core::port::{DropReason, EgressPort, MarkReason};
use shallows_core::units::{Rate, Time};
use shallows_core::xco::coordinator::Coordinator;
use shallows_core::xco::message::{MessageCounters, Refused, Standing};

use super::engine::{Engine, Link};
use super::{Buckets, Fidelity, IngressCounters, Lateness, Level, StationCounters, Verdict};
use crate::frame::Frame;

/// All that a switch has counted, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snapshot {
    /// Seconds since the switch began.
    pub uptime_s: f64,
    /// Received frames, by device.
    pub devices: Vec<(String, IngressCounters)>,
    /// Egress ports, uplinks and trunks.
    pub links: Vec<LinkSnapshot>,
    /// Frames in the switch.
    pub frames: u64,
    /// Frames that had nowhere to go.
    pub filtered: u64,
    /// Copies of flooded frames that found no memory.
    pub lost_copies: u64,
    /// Frames that the gates of hosts dropped, by reason.
    pub gate_drops: Vec<(String, u64)>,
    /// XCo's coordinators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coordinators: Vec<CoordinatorSnapshot>,
    /// Their messages that the kernel did not take.
    #[serde(default)]
    pub unsent_messages: u64,
    /// Learned addresses.
    pub stations: StationCounters,
    /// Lateness of sent frames.
    pub lateness: Lateness,
    /// The same as a histogram.
    #[serde(default)]
    pub late_buckets: Buckets,
    /// Duration of the loop.
    pub gaps: Lateness,
    /// Verdict on the timing.
    pub verdict: Verdict,
}

/// One link and the port before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinkSnapshot {
    /// The device, or what the link is.
    pub name: String,
    /// Its rate.
    pub rate_bps: u64,
    /// Its queues.
    pub queues: Vec<QueueSnapshot>,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct QueueSnapshot {
    /// Bytes in it.
    pub bytes: u64,
    /// Packets in it.
    pub packets: u64,
    /// Above this length it is marked, in bytes, if the marker has such a threshold.
    pub threshold: Option<u64>,
    /// Packets that it has accepted.
    pub accepted_packets: u64,
    /// Bytes that it has accepted.
    pub accepted_bytes: u64,
    /// Packets marked, by reason.
    pub marks: Vec<(String, u64)>,
    /// Packets dropped, by reason.
    pub drops: Vec<(String, u64)>,
    /// Packets that should have been marked but are not ECN-capable.
    pub unmarkable: u64,
}

/// One of XCo's coordinators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoordinatorSnapshot {
    /// Its host.
    pub host: u32,
    /// Its part of a hierarchy, where hosts have numbers of their own.
    #[serde(default)]
    pub level: Level,
    /// Coordinated, uncoordinated or leaving.
    pub mode: String,
    /// The term of leadership that it follows.
    pub epoch: u32,
    /// The controller that leads in it.
    pub leader: u32,
    /// Frames held.
    pub held: u64,
    /// Current permits: destinations and bits per second.
    pub permits: Vec<(u32, u64)>,
    /// Messages acted on.
    pub accepted: u64,
    /// Messages refused, by reason.
    pub refused: Vec<(String, u64)>,
    /// Frames that passed without permission, being small.
    pub small: u64,
    /// Small frames that waited for permission, being over the budget.
    #[serde(default)]
    pub over_budget: u64,
    /// Frames that found their queue full.
    pub full: u64,
    /// Frames to nobody that the fabric knows, which passed.
    pub unknown: u64,
    /// Stations of virtual machines whose hosts it has learned.
    #[serde(default)]
    pub stations: u64,
    /// Slots received in time.
    pub slots: u64,
    /// Slots that had ended before they arrived.
    pub late_slots: u64,
    /// Slots given back.
    pub returned: u64,
    /// Times it lost all controllers.
    pub lost_control: u64,
}

impl CoordinatorSnapshot {
    pub(super) fn new((host, level): (u32, Level), of: &Coordinator<Frame>, now: Time) -> Self {
        let counters = of.counters();
        let permits = of.permits(now);
        Self {
            host,
            level,
            mode: standing_name(of.standing()).to_owned(),
            epoch: of.epoch().counter,
            leader: of.epoch().leader,
            held: of.held() as u64,
            permits: permits.map(|(to, rate)| (to, rate.bps())).collect(),
            accepted: counters.messages.accepted,
            refused: refused(&counters.messages),
            small: counters.small,
            over_budget: counters.over_budget,
            full: counters.full,
            unknown: counters.unknown,
            stations: of.known_stations() as u64,
            slots: counters.slots,
            late_slots: counters.late_slots,
            returned: counters.returned,
            lost_control: counters.lost_control,
        }
    }
}

fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Coordinated => "coordinated",
        Standing::Uncoordinated => "uncoordinated",
        Standing::Leaving => "leaving",
    }
}

/// Control messages refused, by reason.
pub(crate) fn refused(counters: &MessageCounters) -> Vec<(String, u64)> {
    let name = |reason| match reason {
        Refused::Malformed => "malformed",
        Refused::Version => "version",
        Refused::Sender => "sender",
        Refused::Addressee => "addressee",
        Refused::Forged => "forged",
        Refused::Replayed => "replayed",
        Refused::Outdated => "outdated",
        Refused::Unwanted => "unwanted",
    };
    let each = |reason| (String::from(name(reason)), counters.refused(reason));
    Refused::ALL.map(each).into()
}

impl Snapshot {
    pub(super) fn new(
        uptime_s: f64,
        devices: Vec<(String, IngressCounters)>,
        engine: &mut Engine,
        fidelity: &Fidelity,
    ) -> Self {
        Self {
            uptime_s,
            devices,
            links: engine.links().iter().map(LinkSnapshot::new).collect(),
            frames: engine.frames() as u64,
            filtered: engine.filtered(),
            lost_copies: engine.lost_copies(),
            gate_drops: engine
                .gate_drops()
                .map(|(reason, count)| (refusal_name(reason).to_owned(), count))
                .into(),
            coordinators: engine.coordinators(Time::from_ns((uptime_s * 1e9) as u64)),
            unsent_messages: 0,
            stations: engine.stations(Time::from_ns((uptime_s * 1e9) as u64)),
            lateness: fidelity.lateness(),
            late_buckets: fidelity.late_buckets(),
            gaps: fidelity.gaps(),
            verdict: fidelity.verdict(),
        }
    }

    /// Packets marked at all ports.
    pub fn marks(&self) -> u64 {
        self.queues()
            .flat_map(|queue| &queue.marks)
            .map(|(_, count)| count)
            .sum()
    }

    /// Packets dropped at all ports.
    pub fn drops(&self) -> u64 {
        self.queues()
            .flat_map(|queue| &queue.drops)
            .map(|(_, count)| count)
            .sum()
    }

    fn queues(&self) -> impl Iterator<Item = &QueueSnapshot> {
        self.links.iter().flat_map(|link| &link.queues)
    }
}

impl LinkSnapshot {
    fn new(link: &Link) -> Self {
        let queues = 0..link.port.queue_count();
        Self {
            name: link.name.clone(),
            rate_bps: link.rate.bps(),
            queues: queues
                .map(|queue| QueueSnapshot::new(&link.port, queue))
                .collect(),
        }
    }
}

impl QueueSnapshot {
    fn new(port: &EgressPort<Frame>, queue: usize) -> Self {
        let counters = port.counters(queue);
        let accepted = port.queued(queue);
        Self {
            bytes: port.queue_bytes(queue).get(),
            packets: u64::from(port.queue_packets(queue)),
            threshold: port
                .threshold(queue)
                .filter(|t| t.is_finite())
                .map(|t| t as u64),
            accepted_packets: accepted.packets,
            accepted_bytes: accepted.bytes,
            marks: MarkReason::ALL
                .map(|reason| (mark_name(reason).to_owned(), counters.marks(reason)))
                .into(),
            drops: DropReason::ALL
                .map(|reason| (drop_name(reason).to_owned(), counters.drops(reason).packets))
                .into(),
            unmarkable: counters.unmarkable,
        }
    }
}

fn mark_name(reason: MarkReason) -> &'static str {
    match reason {
        MarkReason::Queue => "queue",
        MarkReason::Port => "port",
        MarkReason::Pool => "pool",
        MarkReason::Probability => "probability",
        MarkReason::Sojourn => "sojourn",
    }
}

fn refusal_name(reason: Refusal) -> &'static str {
    match reason {
        Refusal::OverLimit => "over-limit",
        Refusal::NeverFits => "never-fits",
        Refusal::Full => "gate-full",
    }
}

fn drop_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::PortFull => "port-full",
        DropReason::QueueFull => "queue-full",
        DropReason::PoolFull => "pool-full",
        DropReason::DynamicThreshold => "dynamic-threshold",
        DropReason::NotEct => "not-ect",
        DropReason::Evicted => "evicted",
    }
}

impl Display for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "up {:.1} s, {} frames in store",
            self.uptime_s, self.frames
        )?;
        writeln!(f, "{}", self.verdict)?;
        let Lateness {
            p50_us,
            p99_us,
            p999_us,
            max_us,
            ..
        } = self.lateness;
        writeln!(
            f,
            "late by p50 {p50_us:.1}, p99 {p99_us:.1}, p99.9 {p999_us:.1}, at most {max_us:.1} us\n"
        )?;
        writeln!(
            f,
            "{:<20} {:>5} {:>12} {:>10} {:>9} {:>9} {:>9} {:>9}",
            "link", "queue", "packets", "MB", "now B", "K B", "marked", "dropped"
        )?;
        for link in &self.links {
            for (number, queue) in link.queues.iter().enumerate() {
                let sum = |counts: &[(String, u64)]| counts.iter().map(|(_, n)| n).sum::<u64>();
                writeln!(
                    f,
                    "{:<20} {number:>5} {:>12} {:>10.3} {:>9} {:>9} {:>9} {:>9}",
                    link.name,
                    queue.accepted_packets,
                    queue.accepted_bytes as f64 / 1e6,
                    queue.bytes,
                    queue.threshold.map_or("-".to_owned(), |k| k.to_string()),
                    sum(&queue.marks),
                    sum(&queue.drops),
                )?;
            }
        }
        for coordinator in &self.coordinators {
            write!(f, "\n{coordinator}")?;
        }
        if self.unsent_messages > 0 {
            let count = self.unsent_messages;
            writeln!(f, "{count} control messages were not taken by the kernel")?;
        }
        self.write_odd(f)
    }
}

impl Display for CoordinatorSnapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            mode,
            epoch,
            leader,
            held,
            slots,
            late_slots,
            returned,
            ..
        } = self;
        let place = match self.level {
            Level::Cluster => "",
            Level::Pod => " of its pod",
            Level::Root => " under the root",
        };
        writeln!(
            f,
            "host {host}{place} is {mode}, term {epoch} of controller {leader}, {held} frames held"
        )?;
        for (to, rate) in &self.permits {
            writeln!(f, "  may send to host {to} at {}", Rate::from_bps(*rate))?;
        }
        writeln!(
            f,
            "  slots: {slots} received, {late_slots} too late, {returned} given back; \
             controllers lost {} times",
            self.lost_control
        )?;
        writeln!(
            f,
            "  frames: {} small and {} to unknown hosts passed, {} small over the budget waited, {} \
             found their queue full",
            self.small, self.unknown, self.over_budget, self.full
        )?;
        if self.stations > 0 {
            writeln!(f, "  places: {} stations learned", self.stations)?;
        }
        write!(f, "  messages: {} accepted, refused:", self.accepted)?;
        write_counts(f, &self.refused)
    }
}

/// Ends a line with the counts that are not zero, each after what it counts.
pub(crate) fn write_counts(f: &mut Formatter<'_>, counts: &[(String, u64)]) -> fmt::Result {
    let mut any = counts.iter().filter(|(_, count)| *count > 0).peekable();
    if any.peek().is_none() {
        write!(f, " none")?;
    }
    for (name, count) in any {
        write!(f, " {name} {count}")?;
    }
    writeln!(f)
}

impl Snapshot {
    /// Lines about what should not have happened.
    fn write_odd(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (device, counters) in &self.devices {
            let IngressCounters {
                oversized,
                unfinished,
                missed,
                refused,
                no_memory,
                runts,
                losses,
                lost,
                ..
            } = counters;
            if *losses > 0 {
                let now = if *lost {
                    "it is away now"
                } else {
                    "it is back"
                };
                writeln!(f, "{device}: the device went away {losses} times; {now}")?;
            }
            for (count, what) in [
                (
                    oversized,
                    "frames were longer than the MTU: ethtool -K DEVICE tso off gso off gro off",
                ),
                (
                    unfinished,
                    "frames had no checksum yet: ethtool -K DEVICE tx off at the sender",
                ),
                (
                    missed,
                    "frames were missed: the switch did not take them in time",
                ),
                (refused, "frames were refused by the device"),
                (no_memory, "frames found no memory"),
                (runts, "frames had no header"),
            ] {
                if *count > 0 {
                    writeln!(f, "{device}: {count} {what}")?;
                }
            }
        }
        match self.stations.evicted {
            0 => Ok(()),
            count => writeln!(
                f,
                "{count} addresses were forgotten: a port had more than stations-per-port"
            ),
        }
    }
}
