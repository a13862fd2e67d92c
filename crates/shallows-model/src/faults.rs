//! Links that lose packets, and links that go down.

use shallows_core::control::LinkState;
use shallows_core::units::Time;

use crate::ids::LinkId;

/// A fault of a link, to test TCP's recovery. Affected packets occupy the link for their time and
/// do not arrive.
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
    /// Time of the change.
    pub at: Time,
    /// Link that changes; the other direction of the cable is a separate link.
    pub link: LinkId,
    /// New state of the link.
    pub state: LinkState,
}
