//! Result records, statistics and files of Shallows.
//!
//! Both worlds, simulated and live, end in the same [flow records](record::FlowRecord); every table
//! and comparison is made from those.
//!
//! | module | what it holds |
//! |---|---|
//! | [`record`] | what became of one flow, and the columns of `flows.parquet` and `flows.csv` |
//! | [`size_class`] | small, medium and large flows |
//! | [`flows`] | writing and reading flow records |
//! | [`run_record`] | everything that a run left, as a directory |
//! | [`directory`] | how that directory comes into being, and what the next run may replace |
//! | [`ports`] | what the numbers of ports stand for |
//! | [`probes`] | queues, throughput, windows, round-trip and sojourn times: file by file |
//! | [`latencies`] | how long operations of applications took |
//! | [`series`] | columns of numbers, as Parquet or CSV |
//! | [`pcapng`] | packets on links, for Wireshark |
//! | [`statistics`] | exact percentiles, means, Jain's index |
//! | [`summary`] | a run in one value: for machines as JSON, for people as a table |
//! | [`interval`] | means over seeds with confidence intervals |
//! | [`frame`] | many runs as one table |
//! | [`reason`] | why packets were marked or dropped, in words |
//! | [`compare`] | two summaries, difference by difference |
//! | [`figure`] | curves with error bars, as SVG, CSV and PNG |
//! | [`report`] | a reproduction as one page: figures, claims, verdicts, deviations |
//!
//! Equal input gives equal bytes in every file: no clock, host name or map order gets into one.
//! A file appears under its name when it is complete and not before.
//!
//! ```
//! use shallows_core::units::Time;
//! use shallows_results::record::{Completeness, FlowRecord};
//! use shallows_results::size_class::SizeClasses;
//! use shallows_results::statistics::PercentileRule;
//! use shallows_results::summary::{RunFacts, Summary};
//!
//! let flow = FlowRecord {
//!     id: 1,
//!     start: Time::from_secs(1),
//!     src: 0,
//!     dst: 5,
//!     bytes: 1460,
//!     service: 0,
//!     fct: Some(Time::from_ns(86_528)),
//!     ideal_fct: Time::from_ns(86_528),
//!     retransmits: 0,
//!     timeouts: 0,
//!     marks: 0,
//!     sent: Some(1),
//!     dropped: Some(0),
//! };
//! let classes = SizeClasses::default();
//! let rule = PercentileRule::NearestRank;
//! let facts = RunFacts::default();
//! let summary = Summary::new(&[flow], Completeness::Complete, classes, rule, facts)?;
//! assert_eq!(summary.classes.small.slowdown.unwrap().p99, 1.0);
//! # Ok::<(), shallows_results::ResultsError>(())
//! ```

#![forbid(unsafe_code)]

mod columns;
pub mod compare;
mod decimal;
pub mod directory;
mod error;
pub mod figure;
mod file;
pub mod flows;
pub mod frame;
pub mod interval;
pub mod latencies;
pub mod long_lived;
mod number;
pub mod pcapng;
pub mod perfetto;
pub mod ports;
pub mod probes;
pub mod reason;
pub mod record;
pub mod report;
pub mod run_record;
pub mod series;
pub mod size_class;
pub mod statistics;
pub mod summary;
mod table;

pub use directory::ResultDirectory;
pub use error::ResultsError;
pub use file::{Format, read_text, write_bytes, write_text};
pub use run_record::RunRecord;
