//! Many Shallows runs at once.
//!
//! [`sweep`] varies the keys of a scenario over seeds; [`overview`] shows one run; [`repro`] makes the figures of papers and compares their claims with what comes out;
//! [`compare`] shows a scenario simulated and live, side by side.

#![forbid(unsafe_code)]

#[cfg(all(feature = "live", target_os = "linux"))]
pub mod compare;
mod diff;
mod executor;
mod measured;
mod metric;
mod operations;
pub mod overview;
pub mod repro;
pub mod slurm;
pub mod sweep;
mod table;
pub mod validate;

pub use diff::diff;
pub use executor::Observer;
pub use measured::Keep;
