//! Links that lose packets, and links that go down.

use shallows_core::control::LinkState;
use shallows_core::units::Time;

/// What is wrong with a link, for tests of what TCP does about it. The packets take their time on
/// the link and do not arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Fault {
    /// Fraction of packets that are lost.
    pub loss: f64,
    /// Fraction of the remaining packets that arrive corrupted and are dropped.
    pub corruption: f64,
}

/// A link goes down or comes back. What is sent on a link that is down is lost; connections take
/// other paths if there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// When.
    pub at: Time,
    /// Which; the other direction of the cable is another link.
    pub link: u32,
    /// What it is from then on.
    pub state: LinkState,
}
