//! Bytes that a packet occupies on the wire beyond its own.

use serde::{Deserialize, Serialize};

use super::notation::TextOrTable;
use super::{Accounting, ConfigError};
use crate::units::Bytes;

/// Layer-2 overhead of a port: `max(size + header, minimum) + gap` bytes cross the wire.
///
/// Written `"none"`, `"ethernet"` or `{ header = 4, minimum = 64, gap = 20 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Notation", into = "Notation")]
pub struct Framing {
    /// Header and trailer added to every packet.
    pub header: u32,
    /// Shortest frame; shorter ones are padded.
    pub minimum: u32,
    /// Preamble and inter-frame gap.
    pub gap: u32,
}

impl Framing {
    /// No overhead: a packet's size is what crosses the wire, as in ns-2.
    pub const NONE: Self = Self {
        header: 0,
        minimum: 0,
        gap: 0,
    };

    /// Ethernet around an IP packet: 14 B header, 4 B check sequence, at least 64 B, then 8 B of
    /// preamble and 12 B of gap.
    pub const ETHERNET: Self = Self {
        header: 18,
        minimum: 64,
        gap: 20,
    };

    /// Refuses what no link has, and what would overflow a size.
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        const MOST: u32 = 65_535;
        if self.header.max(self.minimum).max(self.gap) > MOST {
            return Err(ConfigError::TooLarge(
                "framing",
                Bytes::new(u64::from(MOST)),
            ));
        }
        Ok(())
    }

    /// Bytes that a packet of `size` bytes occupies on the wire.
    #[inline]
    pub fn wire_size(self, size: u32) -> u32 {
        (size + self.header).max(self.minimum) + self.gap
    }
}

impl Default for Framing {
    fn default() -> Self {
        Self::NONE
    }
}

/// The sizes of packets at a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    framing: Framing,
    accounting: Accounting,
    /// A packet's own size is both of them.
    is_bare: bool,
}

impl Sizes {
    pub(super) fn new(framing: Framing, accounting: Accounting) -> Self {
        Self {
            framing,
            accounting,
            is_bare: framing == Framing::NONE,
        }
    }

    /// Bytes that buffer, marker and scheduler count for a packet of `size` bytes.
    #[inline(always)]
    pub(super) fn counted(&self, size: u32) -> u32 {
        self.both(size).0
    }

    /// Bytes that a packet of `size` bytes occupies on the wire.
    #[inline(always)]
    pub(super) fn on_wire(&self, size: u32) -> u32 {
        self.both(size).1
    }

    /// Bytes that count for a packet of `size` bytes, and those that it occupies on the wire.
    #[inline(always)]
    pub(super) fn both(&self, size: u32) -> (u32, u32) {
        if self.is_bare {
            return (size, size);
        }
        let on_wire = self.framing.wire_size(size);
        match self.accounting {
            Accounting::Packet => (size, on_wire),
            Accounting::Wire => (on_wire, on_wire),
        }
    }
}

/// Notation of a [`Framing`] in a file.
type Notation = TextOrTable<Name, Custom>;

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum Name {
    None,
    Ethernet,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Custom {
    header: u32,
    minimum: u32,
    gap: u32,
}

impl From<Notation> for Framing {
    fn from(notation: Notation) -> Self {
        match notation {
            Notation::Text(Name::None) => Self::NONE,
            Notation::Text(Name::Ethernet) => Self::ETHERNET,
            Notation::Table(custom) => Self {
                header: custom.header,
                minimum: custom.minimum,
                gap: custom.gap,
            },
        }
    }
}

impl From<Framing> for Notation {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::NONE => Self::Text(Name::None),
            Framing::ETHERNET => Self::Text(Name::Ethernet),
            Framing {
                header,
                minimum,
                gap,
            } => Self::Table(Custom {
                header,
                minimum,
                gap,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_sizes() {
        assert_eq!(Framing::NONE.wire_size(1500), 1500);
        // 1500 + 18 + 20, the 1538 B of MQ-ECN's prototype.
        assert_eq!(Framing::ETHERNET.wire_size(1500), 1538);
        // A 40 B ACK is padded to the minimum frame.
        assert_eq!(Framing::ETHERNET.wire_size(40), 84);
        // The prototype sees frames with their 14 B header: max(len + 4, 64) + 20.
        let prototype = Framing {
            header: 4,
            minimum: 64,
            gap: 20,
        };
        assert_eq!(prototype.wire_size(1514), 1538);
    }

    #[test]
    fn counted_sizes() {
        let both = |framing, accounting| Sizes::new(framing, accounting).both(40);
        assert_eq!(both(Framing::NONE, Accounting::Packet), (40, 40));
        assert_eq!(both(Framing::NONE, Accounting::Wire), (40, 40));
        assert_eq!(both(Framing::ETHERNET, Accounting::Packet), (40, 84));
        assert_eq!(both(Framing::ETHERNET, Accounting::Wire), (84, 84));
    }
}
