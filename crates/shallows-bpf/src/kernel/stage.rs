//! Loads the tagger of `stage.bpf.c` and attaches it to devices.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use shallows_core::host::stage::{MAX_STAGES, StageCount, StageTagger};
use shallows_core::units::Bytes;

use super::{check_readable, kernel, objects};
use crate::Error;
use crate::loader::{Link, Object};

const MOST_THRESHOLDS: usize = MAX_STAGES - 1;

/// `struct stages`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RawStages {
    count: u32,
    thresholds: u32,
    threshold: [u64; MOST_THRESHOLDS],
    acks: [u8; MOST_THRESHOLDS + 2],
}

impl From<&StageTagger> for RawStages {
    fn from(tagger: &StageTagger) -> Self {
        let thresholds = tagger.thresholds();
        let bytes = |number| thresholds.get(number).map_or(0, |of: &Bytes| of.get());
        // An ACK of as many bytes as begin a stage.
        let first_of_stage = |stage: usize| match stage {
            0 | 1 => Bytes::ZERO,
            _ => Bytes::new(thresholds.get(stage - 2).map_or(u64::MAX, |of| of.get())),
        };
        Self {
            count: match tagger.count() {
                StageCount::Flow => 0,
                StageCount::Connection => 1,
            },
            thresholds: thresholds.len() as u32,
            threshold: std::array::from_fn(bytes),
            acks: std::array::from_fn(|stage| tagger.of_ack(first_of_stage(stage))),
        }
    }
}

/// Tags the packets that leave devices with the stage of their flow (ML-ECN §III-B.1), until it is
/// dropped or the process ends.
///
/// TCP packets carry the stage of their flow or connection, pure ACKs the tag of ACKs, and ICMP the
/// first stage; all others, IPv6 among them, are left alone. On a connection that carries one flow
/// after the other, a flow begins when the peer has sent data since the last one, as a response
/// follows its request. A packet of several segments (GSO) has the stage of its first byte.
pub struct StageTags {
    object: Object,
    links: Vec<Link>,
}

impl StageTags {
    /// Loads the tagger.
    ///
    /// # Errors
    /// If this is not root, or the kernel refuses it.
    pub fn load(tagger: &StageTagger) -> Result<Self, Error> {
        check_readable()?;
        let object = objects::open_stage()?;
        let written = object.map("stages").set(0u32, &RawStages::from(tagger));
        written.map_err(kernel("set the stages"))?;
        Ok(Self {
            object,
            links: Vec::new(),
        })
    }

    /// Attaches it to the device with this number in the network namespace of the thread.
    ///
    /// # Errors
    /// If the kernel has no tcx (Linux 6.6), or no such device.
    pub fn attach(&mut self, device: u32) -> Result<(), Error> {
        let link = self.object.programs()[0].attach_to_egress(device);
        self.links
            .push(link.map_err(kernel("attach the stage tagger"))?);
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn object(&self) -> &Object {
        &self.object
    }
}

impl fmt::Debug for StageTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageTags")
            .field("devices", &self.links.len())
            .finish_non_exhaustive()
    }
}
