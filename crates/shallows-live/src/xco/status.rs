use std::fmt::{self, Display, Formatter};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};

use crate::switch::{Buckets, Family, Labels, Status, encode, write_counts};

/// All that a controller knows and has counted, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerSnapshot {
    /// Its name.
    pub name: String,
    /// Seconds since it began.
    pub uptime_s: f64,
    /// Leader, candidate or standby.
    pub mode: String,
    /// Its term, or the newest that it knows.
    pub epoch: u32,
    /// The protocol's address of the leader in that term.
    pub leader: u32,
    /// Hosts in its file.
    pub hosts: u64,
    /// Hosts that have joined.
    pub joined: u64,
    /// Pairs that are backlogged.
    pub pairs: u64,
    /// Slots in force.
    pub slots: u64,
    /// Slots and rate limits given.
    pub grants: u64,
    /// Slots that were given back before they ended.
    pub returned: u64,
    /// Slots that ended by the clock.
    pub expired: u64,
    /// Times it became the leader.
    pub terms: u64,
    /// Reports of hosts whose clock had jumped.
    pub clock_jumps: u64,
    /// Messages acted on.
    pub accepted: u64,
    /// Messages refused, by reason.
    pub refused: Vec<(String, u64)>,
    /// Messages that the kernel did not take.
    pub unsent: u64,
    /// Events that led to directives.
    pub events: u64,
    /// From such an event to its last directive: median, in us.
    pub latency_p50_us: f64,
    /// Its 99th percentile.
    pub latency_p99_us: f64,
    /// The longest.
    pub latency_max_us: f64,
    /// All of them.
    #[serde(default)]
    pub latency_buckets: Buckets,
}

impl Display for ControllerSnapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            uptime_s,
            mode,
            epoch,
            leader,
            ..
        } = self;
        writeln!(
            f,
            "{name} is {mode}, up {uptime_s:.1} s; term {epoch} of controller {leader}, \
             led {} terms",
            self.terms
        )?;
        writeln!(
            f,
            "{} of {} hosts joined, {} backlogged pairs, {} slots in force",
            self.joined, self.hosts, self.pairs, self.slots
        )?;
        writeln!(
            f,
            "slots: {} given, {} returned early, {} ended by the clock",
            self.grants, self.returned, self.expired
        )?;
        writeln!(
            f,
            "event to last directive: p50 {:.1}, p99 {:.1}, at most {:.1} us over {} events",
            self.latency_p50_us, self.latency_p99_us, self.latency_max_us, self.events
        )?;
        if self.unsent > 0 {
            writeln!(f, "{} messages were not taken by the kernel", self.unsent)?;
        }
        if self.clock_jumps > 0 {
            writeln!(f, "clocks of hosts jumped {} times", self.clock_jumps)?;
        }
        write!(f, "messages: {} accepted, refused:", self.accepted)?;
        write_counts(f, &self.refused)
    }
}

impl Status for ControllerSnapshot {
    fn prometheus(&self) -> String {
        encode(Metrics(self.clone()))
    }
}

#[derive(Debug)]
struct Metrics(ControllerSnapshot);

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Family { encoder };
        let Self(of) = self;
        to.gauge("xco_uptime_seconds", "Time since it began", of.uptime_s)?;
        let modes = ["leader", "candidate", "standby"];
        let modes = modes.map(|mode| {
            let is = f64::from(u8::from(of.mode == mode));
            (vec![("mode", mode)], is)
        });
        to.gauges("xco_controller_mode", "1 for its mode", modes)?;
        for (name, help, value) in [
            (
                "xco_controller_term",
                "Its term of leadership",
                of.epoch.into(),
            ),
            ("xco_hosts", "Hosts in its file", of.hosts),
            ("xco_joined_hosts", "Hosts that have joined", of.joined),
            ("xco_backlogged_pairs", "Pairs that want to send", of.pairs),
            ("xco_slots_in_force", "Slots in force", of.slots),
        ] {
            to.gauge(name, help, value as f64)?;
        }
        let help = "From an event to its last directive";
        to.histogram("xco_directive_latency_seconds", help, &of.latency_buckets)?;
        let slots = [
            ("given", of.grants),
            ("returned", of.returned),
            ("expired", of.expired),
        ];
        let slots = slots.map(|(fate, count)| (vec![("fate", fate)], count));
        to.counters(
            "xco_controller_slots",
            "Slots by what became of them",
            slots,
        )?;
        to.counter("xco_terms", "Times it became the leader", of.terms)?;
        to.counter("xco_events", "Events that led to directives", of.events)?;
        to.counter(
            "xco_clock_jumps",
            "Clocks of hosts that jumped",
            of.clock_jumps,
        )?;
        to.counter("xco_unsent_messages", "Messages not taken", of.unsent)?;
        to.counter("xco_accepted_messages", "Messages acted on", of.accepted)?;
        let refused = of.refused.iter();
        let refused = refused.map(|(reason, count)| -> (Labels<'_>, u64) {
            (vec![("reason", reason.as_str())], *count)
        });
        to.counters("xco_refused_messages", "Messages refused", refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_shows_what_is_exported() {
        let snapshot = r#"{ "name": "c0", "uptime-s": 1.0, "mode": "leader", "epoch": 1, "leader": 0,
            "hosts": 2, "joined": 2, "pairs": 0, "slots": 0, "grants": 0, "returned": 0,
            "expired": 0, "terms": 1, "clock-jumps": 0, "accepted": 0, "refused": [], "unsent": 0,
            "events": 0, "latency-p50-us": 0.0, "latency-p99-us": 0.0, "latency-max-us": 0.0 }"#;
        let snapshot: ControllerSnapshot = serde_json::from_str(snapshot).unwrap();
        let text = snapshot.prometheus();
        let unknown = shallows_testing::unknown_to_dashboard("controller", &text);
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
