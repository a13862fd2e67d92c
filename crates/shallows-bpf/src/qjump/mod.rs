//! QJUMP's rate limiter in the kernel's egress path (NSDI 2015, §4).
//!
//! [`apply`] puts a BPF program at the egress of a device (tcx, or clsact before Linux 6.6), or where
//! the frames of a guest come in, that gives each of up to eight levels its bytes in each epoch. It
//! drops what exceeds them, or leaves it to a queue that holds it. The level of a packet is its
//! priority (`SO_PRIORITY`), if that has our major number ([`priority_of`]), else that of its DSCP.
//! The program writes the level's DSCP, and its number into the PCP bits of a VLAN tag, for the
//! switches' strict priorities, and gives the packet the priority by which the device's own queue
//! serves its level. It stays when the process ends, until [`remove`].
//!
//! While a [`Chooser`] is at work, packets without a level have the level of their application, a
//! cgroup, by what it sends (§8).
//!
//! # Differences from the paper
//! | paper | here |
//! |---|---|
//! | a qdisc that owns the device's queues (§4) | a program before the qdisc, which must serve priorities strictly ([`Queue`]) |
//! | `SO_PRIORITY` is the level | it is our number and the level: the kernel makes small priorities of `IP_TOS`, so that ssh would have a level |
//! | cycles | nanoseconds of the kernel's monotonic clock |
//! | Listing 1's one timer for all levels | an epoch end for each level, as in the published module |
//! | `skb->len` | the bytes on the wire of all frames of a GSO packet, with preamble, FCS and gap |
//! | VLAN priority only | DSCP too, since most networks of today have no tags at their edge |
//! | the excess is dropped | dropped, or held by a token bucket, where the level was given by hand; where it was chosen, sent at the next level that has tokens |

mod error;
mod queue;
mod status;
pub mod verify;

use std::path::PathBuf;

pub use error::Error;
pub use queue::{Queue, QueueChoice};
pub use shallows_core::host::qjump::{Allotment, Limits, LimitsError};
use shallows_core::units::Time;
pub use status::{
    ApplicationStatus, Cost, Device, Hook, LevelStatus, Report, Side, Status, prometheus,
};

pub use crate::kernel::qjump::automatic::Chooser;
pub use crate::kernel::qjump::trial::{confirm, guard};
pub use crate::kernel::qjump::{apply, check, clean, priority_of, remove, status};

/// Options of a limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Only at this hook; the best that the kernel has if not given.
    pub hook: Option<Hook>,
    /// Treatment of the device's queue.
    pub queue: QueueChoice,
    /// Side of the device whose packets it counts.
    pub side: Side,
    /// Duration of the limits unless they are [confirmed](confirm).
    pub trial: Option<Time>,
}

/// The level that an application has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its cgroup.
    pub cgroup: PathBuf,
    /// Its level, from 0, the lowest.
    pub level: u8,
}
