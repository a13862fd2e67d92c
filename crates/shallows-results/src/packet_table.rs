//! Packets, marks and drops by reason, for each class of flows.

use std::fmt::{self, Display, Formatter};
use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Serialize, Serializer};
use shallows_core::port::{DropReason, MarkReason};

use crate::size_class::{ClassCounts, SizeClass};
use crate::summary::ReasonCounts;
use crate::table::{Column, grouped, write_columns, write_groups};

/// What ports did to the packets of each class of flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PacketTable {
    /// Of small flows.
    pub small: PacketCounts,
    /// Of medium flows.
    pub medium: PacketCounts,
    /// Of large flows.
    pub large: PacketCounts,
    /// Of traffic that is no flow with a size, and of ACKs.
    pub other: PacketCounts,
}

/// What ports did to some packets. A packet that crosses several ports counts at each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounts {
    /// Packets offered to ports.
    pub packets: u64,
    /// Packets marked, in the order of [`MarkReason::ALL`].
    #[serde(serialize_with = "marks_by_name")]
    pub marks: [u64; MarkReason::ALL.len()],
    /// Packets dropped, in the order of [`DropReason::ALL`].
    #[serde(serialize_with = "drops_by_name")]
    pub drops: [u64; DropReason::ALL.len()],
}

impl PacketCounts {
    /// Counts a packet that was marked.
    #[inline]
    pub fn mark(&mut self, reason: MarkReason) {
        self.marks[reason as usize] += 1;
    }

    /// Counts a packet that was dropped.
    #[inline]
    pub fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}

impl AddAssign for PacketCounts {
    fn add_assign(&mut self, more: Self) {
        let add = |counts: &mut [u64], more: &[u64]| {
            for (count, more) in counts.iter_mut().zip(more) {
                *count += more;
            }
        };
        self.packets += more.packets;
        add(&mut self.marks, &more.marks);
        add(&mut self.drops, &more.drops);
    }
}

impl Sum for PacketCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut sum, next| {
            sum += next;
            sum
        })
    }
}

impl PacketTable {
    /// The counts of a class, to be added to; `None` is what belongs to no flow with a size.
    #[inline]
    pub fn of_mut(&mut self, class: Option<SizeClass>) -> &mut PacketCounts {
        match class {
            Some(SizeClass::Small) => &mut self.small,
            Some(SizeClass::Medium) => &mut self.medium,
            Some(SizeClass::Large) => &mut self.large,
            None => &mut self.other,
        }
    }

    /// Of everything.
    pub fn total(&self) -> PacketCounts {
        [self.small, self.medium, self.large, self.other]
            .into_iter()
            .sum()
    }

    /// Each with its name, everything first.
    pub fn named(&self) -> [(&'static str, PacketCounts); 5] {
        [
            ("all", self.total()),
            ("small", self.small),
            ("medium", self.medium),
            ("large", self.large),
            ("other", self.other),
        ]
    }

    /// The marks as a [summary](crate::summary::RunFacts) has them.
    pub fn marks(&self) -> Vec<ReasonCounts> {
        let counts = |reason| self.by_class(|counts| counts.marks[reason as usize]);
        let reasons = MarkReason::ALL.into_iter();
        let rows = reasons.map(|reason| (mark_name(reason), counts(reason)));
        rows.map(reason_counts).collect()
    }

    /// The drops as a [summary](crate::summary::RunFacts) has them.
    pub fn drops(&self) -> Vec<ReasonCounts> {
        let counts = |reason| self.by_class(|counts| counts.drops[reason as usize]);
        let reasons = DropReason::ALL.into_iter();
        let rows = reasons.map(|reason| (drop_name(reason), counts(reason)));
        rows.map(reason_counts).collect()
    }

    fn by_class(&self, count: impl Fn(&PacketCounts) -> u64) -> ClassCounts {
        ClassCounts {
            small: count(&self.small),
            medium: count(&self.medium),
            large: count(&self.large),
            other: count(&self.other),
        }
    }
}

/// Adds what another part of a run counted.
impl AddAssign for PacketTable {
    fn add_assign(&mut self, more: Self) {
        self.small += more.small;
        self.medium += more.medium;
        self.large += more.large;
        self.other += more.other;
    }
}

/// A row for each class, and columns for the reasons that occurred.
impl Display for PacketTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rows = self.named();
        let column = |name: &str, count: &dyn Fn(&PacketCounts) -> u64| {
            Column::new(
                [name],
                rows.iter().map(|(_, counts)| grouped(count(counts))),
            )
        };
        let mut columns = vec![
            Column::new(["class"], rows.iter().map(|(name, _)| *name)),
            column("packets", &|counts| counts.packets),
        ];
        let first_mark = columns.len();
        for reason in MarkReason::ALL {
            let count = |counts: &PacketCounts| counts.marks[reason as usize];
            if count(&self.total()) > 0 {
                columns.push(column(mark_name(reason), &count));
            }
        }
        let first_drop = columns.len();
        for reason in DropReason::ALL {
            let count = |counts: &PacketCounts| counts.drops[reason as usize];
            if count(&self.total()) > 0 {
                columns.push(column(drop_name(reason), &count));
            }
        }
        let groups = [
            (first_mark..first_drop, "marks"),
            (first_drop..columns.len(), "drops"),
        ];
        let groups: Vec<_> = groups
            .into_iter()
            .filter(|(of, _)| !of.is_empty())
            .collect();
        if !groups.is_empty() {
            write_groups(f, &columns, &groups)?;
        }
        write_columns(f, &columns)
    }
}

/// A reason in a few words.
pub fn mark_name(reason: MarkReason) -> &'static str {
    match reason {
        MarkReason::Queue => "queue above threshold",
        MarkReason::Port => "port above threshold",
        MarkReason::Pool => "pool above threshold",
        MarkReason::Probability => "by probability",
        MarkReason::Sojourn => "waited too long",
    }
}

/// A reason in a few words.
pub fn drop_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::PortFull => "port full",
        DropReason::QueueFull => "queue full",
        DropReason::PoolFull => "pool full",
        DropReason::DynamicThreshold => "dynamic threshold",
        DropReason::NotEct => "not ECN-capable",
        DropReason::Evicted => "evicted",
    }
}

fn reason_counts((reason, counts): (&str, ClassCounts)) -> ReasonCounts {
    ReasonCounts {
        reason: reason.to_owned(),
        counts,
    }
}

fn marks_by_name<S: Serializer>(
    marks: &[u64; MarkReason::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(MarkReason::ALL.map(mark_name).into_iter().zip(marks))
}

fn drops_by_name<S: Serializer>(
    drops: &[u64; DropReason::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(DropReason::ALL.map(drop_name).into_iter().zip(drops))
}
