//! Gates that hold a host's frames back before its uplink.

use shallows_core::host::gate::{Gate as _, Refusal, Release, Verdict};
use shallows_core::host::qjump::QjumpGate;
use shallows_core::units::Time;

use super::{Engine, left_host};
use crate::frame::Frame;
use crate::switch::{GatePlan, SwitchError};

/// The gate of a host whose uplink is modelled.
#[derive(Debug)]
pub(super) struct HostGate {
    gate: QjumpGate<Frame>,
    uplink: usize,
    /// The time at which the agenda has it asked again.
    due: Option<Time>,
    /// Frames that it dropped, by [`Refusal::ALL`].
    dropped: [u64; Refusal::ALL.len()],
}

impl HostGate {
    pub(super) fn new(name: &str, plan: &GatePlan, uplink: usize) -> Result<Self, SwitchError> {
        let GatePlan {
            limits,
            start,
            hold_limit,
            automatic,
        } = plan;
        let gate = QjumpGate::new(limits, *start, *hold_limit);
        let mut gate = gate.map_err(|error| SwitchError::Gate {
            of: name.to_owned(),
            error,
        })?;
        if let Some(automatic) = automatic {
            let levels = automatic.build(limits, *hold_limit);
            let levels = levels.map_err(|error| SwitchError::Automatic {
                of: name.to_owned(),
                error,
            })?;
            gate = gate.with_automatic_levels(levels);
        }
        Ok(Self {
            gate,
            uplink,
            due: None,
            dropped: [0; Refusal::ALL.len()],
        })
    }
}

impl Engine {
    /// Lets a host's frame pass its gate, now or later.
    pub(super) fn enter(&mut self, now: Time, number: usize, mut frame: Frame) {
        let HostGate { gate, uplink, .. } = &mut self.gates[number];
        gate.label(now, &mut frame);
        // Limits are those of the sender, whoever it sends to.
        match gate.offer(now, frame, 0) {
            Verdict::Pass => {
                let uplink = *uplink;
                self.submit(now, uplink, frame);
            }
            Verdict::Drop(reason) => {
                let host = self.links[*uplink].host;
                left_host(self.streams.as_ref(), host, &frame);
                self.gates[number].dropped[reason as usize] += 1;
                self.store.remove(frame.slot);
            }
            Verdict::Held => self.open_gate(now, number),
        }
    }

    /// Lets out what may leave, and plans when to ask again.
    pub(super) fn open_gate(&mut self, now: Time, number: usize) {
        let due = &mut self.gates[number].due;
        if due.is_some_and(|due| due <= now) {
            *due = None;
        }
        loop {
            let HostGate {
                gate, uplink, due, ..
            } = &mut self.gates[number];
            match gate.release(now) {
                Release::Packet { packet, .. } => {
                    let uplink = *uplink;
                    self.submit(now, uplink, packet);
                }
                Release::At(at) => {
                    if due.is_none_or(|due| at < due) {
                        *due = Some(at);
                        self.ask_gate_again(at, number);
                    }
                    return;
                }
                Release::Idle => return,
            }
        }
    }

    /// Frames that the gates of hosts dropped, by reason.
    pub fn gate_drops(&self) -> [(Refusal, u64); Refusal::ALL.len()] {
        let sum = |reason: Refusal| {
            let gates = self.gates.iter();
            let of_gates: u64 = gates.map(|gate| gate.dropped[reason as usize]).sum();
            of_gates + self.coordinator_drops(reason)
        };
        Refusal::ALL.map(|reason| (reason, sum(reason)))
    }
}
