//! Effects and mistakes of a configuration, in sentences.

mod depth;
mod ports;
mod profiles;
mod references;

use serde::Serialize;
use shallows_core::units::{Rate, Time};

use super::database::ConfigDb;
use super::port::PortGroup;
use super::read::ConfigPlace;

/// Facts about the fabric besides the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The base round-trip time.
    pub rtt: Option<Time>,
    /// The speed of ports whose speed the file does not give.
    pub speed: Option<Rate>,
    /// The DSCP of each of QJUMP's levels, from the lowest priority.
    pub qjump: Vec<u8>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration does not do what it says.
    Error,
    /// It works, and probably not as intended.
    Warning,
    /// A fact.
    Note,
}

impl Severity {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Each kind of finding, with a code that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A name refers to nothing.
    DanglingReference,
    /// A minimum is above its maximum.
    MinAboveMax,
    /// WRED is not switched on, so that nothing is marked.
    NotEnabled,
    /// Packets are dropped where others would be marked.
    DropsInsteadOfMarks,
    /// Thresholds are missing, or too small to be meant.
    NoThreshold,
    /// A profile that no queue has.
    UnusedProfile,
    /// Depth at which a queue begins to mark.
    Depth,
    /// That depth is far above the bandwidth-delay product.
    TooDeep,
    /// That depth is too small for full throughput.
    TooShallow,
    /// Packets that cannot be marked are dropped.
    NotEctDropped,
    /// Traffic joins a queue that is not marked.
    Uncovered,
    /// A weight of zero or beyond the range.
    Weight,
    /// A strict queue can starve others.
    Starvation,
    /// A buffer that is full before its queue is marked.
    SmallBuffer,
    /// One profile for ports of several speeds.
    SeveralSpeeds,
    /// QJUMP's levels are not in strict priority.
    QjumpNotStrict,
    /// A field that SONiC's models do not have.
    UnknownField,
    /// A queue that two rows name.
    GivenTwice,
    /// Packets whose class has no queue, or ports without a classifier.
    Unclassified,
    /// The speed of a port is not known.
    NoSpeed,
}

impl Rule {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 20] = [
        Self::DanglingReference,
        Self::MinAboveMax,
        Self::NotEnabled,
        Self::DropsInsteadOfMarks,
        Self::NoThreshold,
        Self::UnusedProfile,
        Self::Depth,
        Self::TooDeep,
        Self::TooShallow,
        Self::NotEctDropped,
        Self::Uncovered,
        Self::Weight,
        Self::Starvation,
        Self::SmallBuffer,
        Self::SeveralSpeeds,
        Self::QjumpNotStrict,
        Self::UnknownField,
        Self::GivenTwice,
        Self::Unclassified,
        Self::NoSpeed,
    ];

    /// Its code, such as `S03`.
    pub fn code(self) -> String {
        format!("S{:02}", self as usize + 1)
    }
}

/// Something to know about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Rule that it breaks.
    pub rule: Rule,
    /// Its severity.
    pub severity: Severity,
    /// Its place.
    pub place: ConfigPlace,
    /// The line of that, from 1.
    pub line: Option<usize>,
    /// The finding, in a sentence.
    pub says: String,
    /// Advice.
    pub fix: Option<String>,
}

/// Checks a configuration: findings from errors to notes.
pub fn check(db: &ConfigDb, context: &Context) -> Vec<Finding> {
    let groups = db.groups();
    let mut report = Report::default();
    references::check(db, &mut report);
    profiles::check(db, &groups, &mut report);
    depth::check(db, &groups, context, &mut report);
    ports::check(&db.groups_of_any_speed(), context, &mut report);
    let mut findings = report.0;
    for finding in &mut findings {
        finding.line = finding.place.line(&db.text);
    }
    findings.sort_by(|a, b| {
        let order = |finding: &Finding| (finding.severity, finding.rule);
        order(a).cmp(&order(b))
    });
    findings
}

/// Findings so far.
#[derive(Debug, Default)]
struct Report(Vec<Finding>);

impl Report {
    fn add(&mut self, rule: Rule, severity: Severity, place: ConfigPlace, says: String, fix: &str) {
        self.0.push(Finding {
            rule,
            severity,
            place,
            line: None,
            says,
            fix: (!fix.is_empty()).then(|| fix.to_owned()),
        });
    }
}

/// The row of a queue, or of its port where it has none.
fn place_of(group: &PortGroup<'_>, queue: usize) -> ConfigPlace {
    match group.queues.get(queue).and_then(|view| view.row) {
        Some(row) => ConfigPlace::row("QUEUE", row),
        None => ConfigPlace::row("QUEUE", &format!("{}|{queue}", group.ports[0])),
    }
}
