//! The limiter as a gate, with a queue for each level where the excess waits.

use std::collections::VecDeque;
use std::mem;

use serde::{Deserialize, Serialize};

use super::{
    Admission, AutomaticConfig, AutomaticLevels, Excess, Level, Limiter, LimiterConfig,
    LimiterError, MAX_LEVELS, Scope,
};
use crate::host::GateError;
use crate::host::gate::{Gate, Refusal, Release, Verdict};
use crate::packet::Packet;
use crate::units::{Bytes, Time};

/// The gate of one host: its limits, and the choices that are the host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QjumpGateConfig {
    /// The limits; a packet's level is its DSCP field.
    pub limits: LimiterConfig,
    /// Scope of a level's limit; with [`Scope::Flow`] the excess is dropped, and a flow's first
    /// packet begins its epochs.
    #[serde(default)]
    pub scope: Scope,
    /// Start of the first epoch.
    #[serde(default)]
    pub start: Time,
    /// Bytes that may wait at each level; unlimited if not given.
    #[serde(default)]
    pub hold_limit: Option<Bytes>,
    /// Choice of levels, if the DSCP field is the number of an application.
    #[serde(default)]
    pub automatic: Option<AutomaticConfig>,
}

impl QjumpGateConfig {
    /// A host's gate with these limits from time zero on.
    pub fn new(limits: LimiterConfig) -> Self {
        Self {
            limits,
            scope: Scope::Host,
            start: Time::ZERO,
            hold_limit: None,
            automatic: None,
        }
    }

    /// Builds the gate.
    ///
    /// # Errors
    /// If its limits are not [valid](LimiterConfig::validate) or levels cannot be chosen by them.
    pub fn build<P: Packet>(&self) -> Result<QjumpGate<P>, GateError> {
        if self.scope == Scope::Flow {
            return Ok(QjumpGate::per_flow(&self.limits)?);
        }
        let gate = QjumpGate::new(&self.limits, self.start, self.hold_limit)?;
        Ok(match &self.automatic {
            Some(automatic) => {
                let levels = automatic.build(&self.limits, self.hold_limit)?;
                gate.with_automatic_levels(levels)
            }
            None => gate,
        })
    }
}

/// A host's limiter between its transport and its NIC; a packet's level is its DSCP field.
///
/// With [`AutomaticLevels`] the DSCP field of a packet that comes is the number of its application,
/// and the gate [labels](Gate::label) it with the level that the application has.
///
/// With [`Excess::Hold`](super::Excess::Hold) the excess waits for the next epoch in the queue of
/// its level. A bounded queue stands for the small socket buffers of §4: the gate has no
/// [room](Gate::has_room) once a level holds that much, which a sender that can wait sees as
/// ENOBUFS, and drops what comes nevertheless.
#[derive(Clone, Debug)]
pub struct QjumpGate<P> {
    limiter: Limiter,
    levels: [LevelQueue<P>; MAX_LEVELS],
    /// Bytes that a level may hold.
    hold_limit: u64,
    scope: Scope,
    automatic: Option<Automatic>,
}

#[derive(Clone, Debug)]
struct Automatic {
    levels: AutomaticLevels,
    /// The application of the packet that was labelled last and is about to be offered.
    application: u8,
}

#[derive(Clone, Copy, Debug)]
struct HeldPacket<P> {
    packet: P,
    to: Option<u32>,
    /// Number of the application, where levels are automatic.
    application: u8,
}

#[derive(Clone, Debug)]
struct LevelQueue<P> {
    held: VecDeque<HeldPacket<P>>,
    bytes: u64,
    /// Time at which the limiter must be asked about the first packet again.
    due: Time,
}

impl<P> Default for LevelQueue<P> {
    fn default() -> Self {
        Self {
            held: VecDeque::new(),
            bytes: 0,
            due: Time::ZERO,
        }
    }
}

impl<P: Packet> QjumpGate<P> {
    /// A gate whose first epoch begins at `start`, and of which each level holds at most
    /// `hold_limit`, if that is given.
    ///
    /// # Errors
    /// If the configuration is not [valid](LimiterConfig::validate).
    pub fn new(
        config: &LimiterConfig,
        start: Time,
        hold_limit: Option<Bytes>,
    ) -> Result<Self, LimiterError> {
        Ok(Self {
            limiter: Limiter::new(config, start)?,
            levels: Default::default(),
            hold_limit: hold_limit.map_or(u64::MAX, Bytes::get),
            scope: Scope::Host,
            automatic: None,
        })
    }

    /// The same gate, which chooses the levels of applications.
    #[must_use]
    pub fn with_automatic_levels(self, levels: AutomaticLevels) -> Self {
        Self {
            automatic: Some(Automatic {
                levels,
                application: 0,
            }),
            ..self
        }
    }

    /// A gate that limits each flow by itself ([`Scope::Flow`]), and drops what exceeds the limit.
    ///
    /// # Errors
    /// If the configuration is not [valid](LimiterConfig::validate).
    pub fn per_flow(config: &LimiterConfig) -> Result<Self, LimiterError> {
        let config = LimiterConfig {
            excess: Excess::Drop,
            ..config.clone()
        };
        Ok(Self {
            scope: Scope::Flow,
            ..Self::new(&config, Time::ZERO, None)?
        })
    }

    /// The limiter, for its counters.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// The levels that applications have, where they are automatic.
    pub fn automatic_levels(&self) -> Option<&AutomaticLevels> {
        Some(&self.automatic.as_ref()?.levels)
    }

    /// Lets the packets that wait follow their applications to lower levels.
    fn demote_held(&mut self, now: Time) {
        let Some(Automatic { levels, .. }) = &self.automatic else {
            return;
        };
        for number in 0..MAX_LEVELS {
            let mut held = mem::take(&mut self.levels[number].held);
            held.retain(
                |&HeldPacket {
                     mut packet,
                     to,
                     application,
                 }| {
                    let level = levels.level(u32::from(application), packet.flow());
                    let below = usize::from(level);
                    if below <= number {
                        return true;
                    }
                    self.levels[number].bytes -= u64::from(packet.size());
                    packet.set_dscp(level);
                    self.levels[below].hold(
                        now,
                        HeldPacket {
                            packet,
                            to,
                            application,
                        },
                    );
                    false
                },
            );
            self.levels[number].held = held;
        }
    }
}

impl<P: Packet> LevelQueue<P> {
    /// Appends a packet; if it is the first, the limiter is to be asked at `due`.
    fn hold(&mut self, due: Time, packet: HeldPacket<P>) {
        if self.held.is_empty() {
            self.due = due;
        }
        self.bytes += u64::from(packet.packet.size());
        self.held.push_back(packet);
    }
}

impl<P: Packet> Gate<P> for QjumpGate<P> {
    fn label(&mut self, now: Time, packet: &mut P) {
        let Some(automatic) = &mut self.automatic else {
            return;
        };
        let application = packet.dscp();
        automatic.application = application;
        let (connection, size) = (packet.flow(), self.limiter.cost(packet.size()));
        let levels = &mut automatic.levels;
        let assignment = levels.assign(now, u32::from(application), connection, size);
        packet.set_dscp(assignment.level);
        if assignment.lowered {
            self.demote_held(now);
        }
    }

    fn offer(&mut self, now: Time, packet: P, to: Option<u32>) -> Verdict {
        let Some(level) = Level::new(packet.dscp()) else {
            return Verdict::Drop(Refusal::NeverFits);
        };
        let (size, queue) = (packet.size(), &mut self.levels[level.index()]);
        let mut due = now;
        if queue.held.is_empty() {
            let admission = match self.scope {
                Scope::Host => self.limiter.admit(now, level, size),
                Scope::Flow => self.limiter.admit_of_flow(now, packet.flow(), level, size),
            };
            match admission {
                Admission::Pass => return Verdict::Pass,
                Admission::Drop => return Verdict::Drop(self.limiter.refusal(level, size)),
                Admission::HoldUntil(at) => due = at,
            }
        } else if !self.limiter.can_pass(level, size) {
            return Verdict::Drop(Refusal::NeverFits);
        }
        if queue.bytes.saturating_add(u64::from(size)) > self.hold_limit {
            return Verdict::Drop(Refusal::Full);
        }
        let application = self.automatic.as_ref().map_or(0, |of| of.application);
        queue.hold(
            due,
            HeldPacket {
                packet,
                to,
                application,
            },
        );
        Verdict::Held
    }

    fn release(&mut self, now: Time) -> Release<P> {
        let mut next = None;
        for (number, queue) in (0..).zip(&mut self.levels) {
            let (Some(&HeldPacket { packet, to, .. }), Some(level)) =
                (queue.held.front(), Level::new(number))
            else {
                continue;
            };
            if queue.due <= now {
                if let Admission::HoldUntil(at) = self.limiter.admit(now, level, packet.size()) {
                    queue.due = at;
                } else {
                    queue.held.pop_front();
                    queue.bytes -= u64::from(packet.size());
                    return Release::Packet { packet, to };
                }
            }
            next = Some(next.map_or(queue.due, |at: Time| at.min(queue.due)));
        }
        next.map_or(Release::Idle, Release::At)
    }

    fn has_room(&self, packet: &P) -> bool {
        let level = match &self.automatic {
            Some(of) => of.levels.level(u32::from(packet.dscp()), packet.flow()),
            None => packet.dscp(),
        };
        let queue = Level::new(level).map(|level| &self.levels[level.index()]);
        queue.is_none_or(|queue| {
            queue.held.is_empty() || queue.bytes + u64::from(packet.size()) <= self.hold_limit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::qjump::EpochClock;
    use crate::packet::Descriptor;
    use crate::port::Framing;

    fn gate(excess: Excess, hold_limit: Option<u64>) -> QjumpGate<Descriptor> {
        let config = LimiterConfig {
            epoch: Time::from_us(10),
            levels: vec![Bytes::new(3000), Bytes::new(256)],
            excess,
            clock: EpochClock::Grid,
            ..LimiterConfig::default()
        };
        QjumpGate::new(&config, Time::ZERO, hold_limit.map(Bytes::new)).unwrap()
    }

    fn packet(dscp: u8, size: u32, tag: u64) -> Descriptor {
        Descriptor {
            size,
            dscp,
            tag,
            ..Descriptor::default()
        }
    }

    fn released(gate: &mut QjumpGate<Descriptor>, at: u64) -> (Vec<u64>, Release<Descriptor>) {
        let mut tags = Vec::new();
        loop {
            match gate.release(Time::from_us(at)) {
                Release::Packet { packet, to } => {
                    assert_eq!(to, Some(7));
                    tags.push(packet.tag);
                }
                other => return (tags, other),
            }
        }
    }

    #[test]
    fn the_excess_waits_in_the_order_of_its_level() {
        let mut gate = gate(Excess::Hold, None);
        let offer = |gate: &mut QjumpGate<_>, packet| gate.offer(Time::from_us(2), packet, Some(7));
        assert_eq!(offer(&mut gate, packet(0, 1500, 0)), Verdict::Pass);
        assert_eq!(offer(&mut gate, packet(0, 1500, 1)), Verdict::Pass);
        assert_eq!(offer(&mut gate, packet(0, 1500, 2)), Verdict::Held);
        // It would fit, but must not overtake.
        assert_eq!(offer(&mut gate, packet(0, 40, 3)), Verdict::Held);
        assert_eq!(offer(&mut gate, packet(0, 1500, 4)), Verdict::Held);
        assert_eq!(offer(&mut gate, packet(1, 256, 5)), Verdict::Pass);
        assert_eq!(offer(&mut gate, packet(1, 100, 6)), Verdict::Held);
        let wait = Release::At(Time::from_us(10));
        assert_eq!(released(&mut gate, 2), (vec![], wait));
        // 1500 and 40 leave 1460 of 3000 bytes; then the second level.
        let wait = Release::At(Time::from_us(20));
        assert_eq!(released(&mut gate, 10), (vec![2, 3, 6], wait));
        assert_eq!(released(&mut gate, 20), (vec![4], Release::Idle));
    }

    #[test]
    fn packets_count_for_what_they_take_on_the_link() {
        let config = LimiterConfig {
            epoch: Time::from_us(10),
            levels: vec![Bytes::new(294 + 84)],
            framing: Framing::ETHERNET,
            ..LimiterConfig::default()
        };
        let mut gate = QjumpGate::new(&config, Time::ZERO, None).unwrap();
        // 256 B and 38 B of Ethernet; then the smallest frame; then nothing.
        let sizes = [256, 40, 1];
        let verdicts = sizes.map(|size| gate.offer(Time::ZERO, packet(0, size, 0), Some(7)));
        let over = Verdict::Drop(Refusal::OverLimit);
        assert_eq!(verdicts, [Verdict::Pass, Verdict::Pass, over]);
    }

    #[test]
    fn drops_have_a_reason() {
        let now = Time::ZERO;
        let mut strict = gate(Excess::Drop, None);
        assert_eq!(strict.offer(now, packet(1, 256, 0), Some(7)), Verdict::Pass);
        let over = Verdict::Drop(Refusal::OverLimit);
        assert_eq!(strict.offer(now, packet(1, 256, 1), Some(7)), over);
        let never = Verdict::Drop(Refusal::NeverFits);
        assert_eq!(strict.offer(now, packet(1, 257, 2), Some(7)), never);
        assert_eq!(
            strict.offer(now, packet(2, 40, 3), Some(7)),
            never,
            "no such level"
        );
        assert_eq!(
            strict.offer(now, packet(9, 40, 4), Some(7)),
            never,
            "nor can there be"
        );
    }

    #[test]
    fn each_flow_has_the_allotment_of_its_level_in_epochs_of_its_own() {
        let config = LimiterConfig {
            epoch: Time::from_us(10),
            levels: vec![Bytes::new(3000), Bytes::new(256)],
            ..LimiterConfig::default()
        };
        let mut gate = QjumpGate::per_flow(&config).unwrap();
        let mut offer = |us, flow| {
            let packet = Descriptor {
                flow,
                ..packet(0, 1500, 0)
            };
            gate.offer(Time::from_us(us), packet, Some(7))
        };
        let over = Verdict::Drop(Refusal::OverLimit);
        assert_eq!([offer(3, 1), offer(4, 1)], [Verdict::Pass; 2]);
        assert_eq!(offer(5, 1), over);
        // Another flow has its own bytes, and its own epoch from 9 to 19 us.
        assert_eq!([offer(9, 2), offer(12, 2)], [Verdict::Pass; 2]);
        assert_eq!([offer(12, 1), offer(13, 1)], [over, Verdict::Pass]);
        assert_eq!([offer(18, 2), offer(19, 2)], [over, Verdict::Pass]);
    }

    #[test]
    fn a_full_level_has_no_room() {
        let now = Time::ZERO;
        let mut gate = gate(Excess::Hold, Some(3000));
        for tag in 0..4 {
            assert!(gate.has_room(&packet(0, 1500, tag)));
            let verdict = gate.offer(now, packet(0, 1500, tag), Some(7));
            assert_eq!(
                verdict,
                [Verdict::Pass, Verdict::Held][usize::from(tag > 1)]
            );
        }
        assert!(!gate.has_room(&packet(0, 40, 4)));
        assert!(gate.has_room(&packet(1, 40, 4)), "another level");
        let full = Verdict::Drop(Refusal::Full);
        assert_eq!(gate.offer(now, packet(0, 40, 4), Some(7)), full);
        // Larger than the level may ever send: waiting would block those behind it for good.
        let never = Verdict::Drop(Refusal::NeverFits);
        assert_eq!(gate.offer(now, packet(0, 3001, 5), Some(7)), never);
        assert_eq!(released(&mut gate, 10), (vec![2, 3], Release::Idle));
        assert!(gate.has_room(&packet(0, 1500, 6)));
    }
}
