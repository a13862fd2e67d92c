//! Drops, and the packets that shared the buffer with them.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use shallows_core::units::Time;
use shallows_model::LinkId;
use shallows_results::reason::drop_name;
use shallows_sim::{CapturedPacket, DroppedPacket};

/// Drops that are kept, so that memory stays bounded; the others are counted.
const MOST_DROPS: usize = 20_000;

/// A drop of a data packet.
#[derive(Clone, Debug, Serialize)]
pub struct Drop {
    /// Flow of the packet.
    pub flow: u32,
    /// Time of the drop.
    pub time_us: f64,
    /// Port that dropped it.
    pub port: String,
    /// Reason of the drop.
    pub reason: String,
    /// Packets queued at the port then, by flow; ACKs count for the flow that they acknowledge.
    pub queued: BTreeMap<u32, u32>,
    #[serde(skip)]
    pub(super) time: Time,
    #[serde(skip)]
    waiting: u32,
}

/// Collects the drops of a run.
#[derive(Debug, Default)]
pub(super) struct Losses {
    drops: Vec<Drop>,
    left_out: u64,
    /// Drops of each link for which not all packets queued then have left.
    open: HashMap<LinkId, Vec<usize>>,
}

impl Losses {
    pub(super) fn drop(&mut self, dropped: &DroppedPacket, name: impl FnOnce() -> String) {
        let Some(flow) = dropped.flow else { return };
        if self.drops.len() == MOST_DROPS {
            self.left_out += 1;
            return;
        }
        let open = self.open.entry(dropped.link).or_default();
        open.push(self.drops.len());
        self.drops.push(Drop {
            flow: flow.0,
            time_us: dropped.time.ps() as f64 / 1e6,
            port: name(),
            reason: drop_name(dropped.reason).to_owned(),
            queued: BTreeMap::new(),
            time: dropped.time,
            waiting: dropped.waiting,
        });
    }

    /// Counts a packet that leaves a port for the drops during which it waited there; `start` is the
    /// start of its transmission.
    pub(super) fn depart(&mut self, packet: &CapturedPacket, start: Time) {
        let Some(open) = self.open.get_mut(&packet.link) else {
            return;
        };
        let queued = start.saturating_sub(packet.sojourn);
        let drops = &mut self.drops;
        open.retain(|&number| {
            let drop = &mut drops[number];
            if queued <= drop.time && start > drop.time {
                let flow = packet.flow.unwrap_or(packet.connection);
                *drop.queued.entry(flow.0).or_default() += 1;
                drop.waiting = drop.waiting.saturating_sub(1);
            }
            drop.waiting > 0
        });
        if open.is_empty() {
            self.open.remove(&packet.link);
        }
    }

    /// The drops, and the number of those that were not kept.
    pub(super) fn finish(self) -> (Vec<Drop>, u64) {
        (self.drops, self.left_out)
    }
}
