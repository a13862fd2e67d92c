use serde::{Deserialize, Serialize};

use crate::frame::Malformed;

/// Counters of the frames that one device received, up to their forwarding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IngressCounters {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames to the machine itself, which an agent leaves to it; not among the others.
    #[serde(default)]
    pub own: u64,
    /// Frames that are not IP, such as ARP; forwarded.
    pub not_ip: u64,
    /// Broken IP by [`Malformed::ALL`]; forwarded, never marked.
    pub malformed: [u64; Malformed::ALL.len()],
    /// Frames too short for a header; dropped.
    pub runts: u64,
    /// Frames longer than the device's MTU allows; dropped. The sender's segmentation offload is
    /// the usual reason.
    pub oversized: u64,
    /// Frames without a transport checksum, which receivers will drop: the sender's checksum
    /// offload is on; forwarded.
    pub unfinished: u64,
    /// Frames that found no memory; dropped.
    pub no_memory: u64,
    /// Frames that the kernel dropped because the switch did not take them in time.
    pub missed: u64,
    /// Frames handed to the device.
    pub sent: u64,
    /// Frames that the device refused, or that found it away.
    pub refused: u64,
    /// Number of times that the device disappeared or went down.
    pub losses: u64,
    /// True if it is away now.
    pub lost: bool,
}
