//! QJUMP's rate limiter in the kernel's egress path (NSDI 2015, §4).
//!
//! [`apply`] puts a BPF program at the egress of a device (tcx, or clsact before Linux 6.6) that
//! gives each of up to eight levels its bytes in each epoch and drops what exceeds them. The level
//! of a packet is its priority (`SO_PRIORITY`); a packet of priority 0 that carries the DSCP of a
//! level belongs to that level. The program writes the level's DSCP, or its number into the PCP bits
//! of a VLAN tag, for the switches' strict priorities. It stays when the process ends, until
//! [`remove`].
//!
//! While a [`Chooser`] is at work, packets without a level have the level of their application, a
//! cgroup, by what it sends (§8).
//!
//! # Differences from the paper
//! | paper | here |
//! |---|---|
//! | a qdisc that owns the device's queues (§4) | a program before the qdisc, which keeps its queues |
//! | cycles | nanoseconds of the kernel's monotonic clock |
//! | Listing 1's one timer for all levels | an epoch end for each level, as in the published module |
//! | `skb->len` | the length on the link of all segments of a GSO packet, without preamble and FCS |
//! | VLAN priority only | DSCP too, since most networks of today have no tags at their edge |
//! | the excess is dropped | dropped where the level was given by hand; where it was chosen, sent at the next level that has tokens |

mod error;
mod status;

use std::path::PathBuf;

pub use error::Error;
pub use shallows_core::host::qjump::{Allotment, Limits, LimitsError};
pub use status::{ApplicationStatus, Cost, Device, Hook, LevelStatus, Report, Status, prometheus};

pub use crate::kernel::qjump::automatic::Chooser;
pub use crate::kernel::qjump::{apply, remove, status};

/// The level that an application has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its cgroup.
    pub cgroup: PathBuf,
    /// Its level, from 0, the lowest.
    pub level: u8,
}
