//! The structs that the program and user space share, as `qjump.bpf.c` has them.

use bytemuck::{Pod, Zeroable};
use shallows_core::host::qjump::{EpochClock, Excess, MAX_LEVELS};
use shallows_core::units::{Bytes, Time};

use super::qdisc::Priorities;
use crate::qjump::{Allotment, LevelStatus, Limits, Side};

pub(super) const UNLIMITED: u64 = u64::MAX;

/// `struct limits`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RawLimits {
    epoch_ns: u64,
    /// End of a trial on the program's clock, 0 if it is none.
    pub(super) until_ns: u64,
    levels: u32,
    reanchored: u32,
    held: u32,
    priority_tag: u32,
    priority_of_level: [u32; MAX_LEVELS],
    level_of_dscp: [u8; 64],
}

/// `struct bucket`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RawBucket {
    lock: u32,
    dscp: u32,
    allotment: u64,
    pub(super) epoch_end: u64,
    tokens: u64,
    epochs: u64,
    passed_packets: u64,
    passed_bytes: u64,
    dropped_packets: u64,
    dropped_bytes: u64,
}

/// `struct installation`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RawInstallation {
    device: [u8; 16],
    pub(super) ifindex: u32,
    pub(super) created_clsact: u32,
    pub(super) created_root: u32,
    pub(super) ingress: u32,
    /// Bytes that may wait at a level of the root that is ours.
    pub(super) hold_limit: u32,
}

/// `struct automatic`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RawAutomatic {
    pub(super) until_ns: u64,
    pub(super) round: u64,
}

/// `struct application`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RawApplication {
    lock: u32,
    padding: u32,
    round: u64,
    epoch: u64,
    epoch_bytes: u64,
    peak: u64,
    peak_before: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) lowered_packets: u64,
}

impl RawApplication {
    /// The most bytes that the application sent in an epoch of a round, which has just ended; none
    /// if it sent nothing.
    pub(super) fn peak_of(&self, round: u64) -> Option<u64> {
        let peak = match self.round.checked_sub(round)? {
            0 => self.peak,
            // It has sent in the round that follows already.
            1 => self.peak_before,
            _ => 0,
        };
        (peak > 0).then_some(peak)
    }
}

impl RawLimits {
    pub(super) fn new(limits: &Limits, priority_of_level: Priorities, until_ns: u64) -> Self {
        Self {
            epoch_ns: limits.epoch.ps() / Time::from_ns(1).ps(),
            until_ns,
            levels: limits.levels.len() as u32,
            reanchored: u32::from(limits.clock == EpochClock::Reanchored),
            held: u32::from(limits.excess == Excess::Hold),
            priority_tag: u32::from(limits.priority_tag),
            priority_of_level,
            level_of_dscp: limits.level_of_dscp(),
        }
    }

    /// The levels that it has.
    pub(super) fn levels(&self) -> u32 {
        self.levels
    }

    /// The limits that it was made from.
    pub(super) fn limits(&self, buckets: &[RawBucket], hold_limit: u32) -> Limits {
        let allotment = |bucket: &RawBucket| match bucket.allotment {
            UNLIMITED => Allotment::Unlimited,
            bytes => Allotment::Bytes(Bytes::new(bytes)),
        };
        Limits {
            epoch: Time::from_ns(self.epoch_ns),
            levels: buckets.iter().map(allotment).collect(),
            clock: match self.reanchored {
                0 => EpochClock::Grid,
                _ => EpochClock::Reanchored,
            },
            excess: match self.held {
                0 => Excess::Drop,
                _ => Excess::Hold,
            },
            hold_limit: (hold_limit > 0).then(|| Bytes::new(hold_limit.into())),
            dscp: Some(buckets.iter().map(|bucket| bucket.dscp as u8).collect()),
            priority_tag: self.priority_tag == 1,
        }
    }
}

impl RawBucket {
    /// A level whose first epoch begins at `start_ns`.
    pub(super) fn new(limits: &Limits, level: usize, start_ns: u64) -> Self {
        let allotment = match limits.levels[level] {
            Allotment::Bytes(bytes) => bytes.get(),
            Allotment::Unlimited => UNLIMITED,
        };
        Self {
            dscp: limits.dscp_of(level).into(),
            allotment,
            epoch_end: start_ns,
            ..Self::zeroed()
        }
    }

    /// The same level with other limits, and what it has counted.
    pub(super) fn changed(&self, limits: &Limits, level: usize, start_ns: u64) -> Self {
        let new = Self::new(limits, level, start_ns);
        Self {
            dscp: new.dscp,
            allotment: new.allotment,
            // The epoch goes on with no more than is left of it.
            tokens: self.tokens.min(new.allotment),
            ..*self
        }
    }

    /// Counters, at a time of the clock that measures epochs.
    pub(super) fn status(&self, now_ns: u64) -> LevelStatus {
        let tokens = match self.allotment {
            UNLIMITED => None,
            // The next packet will find the bucket filled anew.
            allotment if now_ns >= self.epoch_end => Some(allotment),
            _ => Some(self.tokens),
        };
        LevelStatus {
            passed_packets: self.passed_packets,
            passed_bytes: self.passed_bytes,
            dropped_packets: self.dropped_packets,
            dropped_bytes: self.dropped_bytes,
            epochs: self.epochs,
            tokens,
            waiting_bytes: None,
        }
    }
}

impl RawInstallation {
    /// Names of devices have at most 15 bytes.
    pub(super) fn new(device: &str, ifindex: u32) -> Self {
        let mut name = [0; 16];
        for (to, from) in name.iter_mut().zip(device.bytes()) {
            *to = from;
        }
        Self {
            device: name,
            ifindex,
            ..Self::zeroed()
        }
    }

    pub(super) fn side(&self) -> Side {
        match self.ingress {
            0 => Side::Egress,
            _ => Side::Guest,
        }
    }

    pub(super) fn device(&self) -> String {
        let name = self.device.split(|&byte| byte == 0).next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }
}
