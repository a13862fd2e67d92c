//! Many Shallows runs at once.
//!
//! [`sweep`] varies the keys of a scenario over seeds; [`tune`] searches for better values of keys;
//! [`overview`] shows one run; [`repro`] makes the figures of papers and compares their claims with what comes out; [`compare`] shows a
//! scenario simulated and live, side by side; [`artifact`] bundles results so that others can make
//! them again.

#![forbid(unsafe_code)]
// They panic when nobody reads the pipe or the disk of a log is full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod artifact;
#[cfg(live)]
pub mod compare;
mod diff;
mod executor;
pub mod explain;
mod measured;
mod metric;
mod operations;
pub mod overview;
pub mod plot;
pub mod repro;
pub mod slurm;
mod study;
pub mod sweep;
mod table;
pub mod trace;
pub mod tune;
pub mod validate;

pub use diff::diff;
pub use executor::Observer;
pub use measured::Keep;
pub use metric::{Row as MetricRow, metrics};
