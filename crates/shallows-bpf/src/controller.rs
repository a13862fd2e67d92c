//! The controllers and their names.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// A congestion controller for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Controller {
    /// DCTCP (RFC 8257).
    Dctcp,
    /// EAR (APNet 2017): marks and delay.
    Ear,
    /// ECN*: a mark halves the window.
    EcnStar,
    /// DCTCP with delay instead of marks.
    DelayDctcp,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dctcp, Self::Ear, Self::EcnStar, Self::DelayDctcp];

    /// The name in scenarios and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dctcp => "dctcp",
            Self::Ear => "ear",
            Self::EcnStar => "ecn-star",
            Self::DelayDctcp => "delay-dctcp",
        }
    }

    /// The name in the kernel, of at most 15 characters and unlike those of its own controllers.
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::Dctcp => "shl_dctcp",
            Self::Ear => "shl_ear",
            Self::EcnStar => "shl_ecn_star",
            Self::DelayDctcp => "shl_delay_dctcp",
        }
    }

    /// Returns whether it listens to marks, and so needs ECN between both ends.
    pub const fn hears_marks(self) -> bool {
        !matches!(self, Self::DelayDctcp)
    }

    /// Returns whether it listens to delay.
    pub const fn hears_delay(self) -> bool {
        matches!(self, Self::Ear | Self::DelayDctcp)
    }

    /// Returns whether it reduces its window by a fraction, alpha, that follows the signals.
    pub const fn has_alpha(self) -> bool {
        !matches!(self, Self::EcnStar)
    }
}

impl Display for Controller {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no controller of this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no controller is called {0:?}; there are dctcp, ear, ecn-star and delay-dctcp")]
pub struct UnknownController(pub String);

impl FromStr for Controller {
    type Err = UnknownController;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|controller| controller.name() == name || controller.kernel_name() == name)
            .ok_or_else(|| UnknownController(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_are_understood() {
        for controller in Controller::ALL {
            assert_eq!(controller.name().parse(), Ok(controller));
            assert_eq!(controller.kernel_name().parse(), Ok(controller));
            assert!(controller.kernel_name().len() <= 15);
        }
        assert!("cubic".parse::<Controller>().is_err());
    }
}
