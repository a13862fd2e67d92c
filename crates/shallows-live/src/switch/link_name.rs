//! Names of links.

use std::fmt::{self, Display, Formatter};

/// A link of a switch; displayed, it is its name in snapshots and samples.
#[derive(Clone, Copy, Debug)]
pub enum LinkName<'a> {
    /// From the switch to a device.
    Port(&'a str),
    /// From a device to the switch.
    Uplink(&'a str),
    /// From one bridge to another.
    Trunk {
        /// Bridge that sends.
        from: usize,
        /// Bridge that receives.
        to: usize,
    },
}

impl Display for LinkName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(device) => f.write_str(device),
            Self::Uplink(device) => write!(f, "{device} uplink"),
            Self::Trunk { from, to } => write!(f, "trunk {from}-{to}"),
        }
    }
}
