//! Runs Shallows scenarios, simulated or live, and records them.
//!
//! A [`Loaded`] scenario is built into its parts, run in one of the two worlds, and leaves records
//! of its flows, a summary and the files of its probes in a directory.
//!
//! The live world needs Linux and the feature `live`; without either, the crate simulates only.

#![forbid(unsafe_code)]

mod failure;
mod ideal;
#[cfg(all(feature = "live", target_os = "linux"))]
pub mod live;
mod platform;
mod probes;
pub mod report;
mod run;
pub mod scenario;
#[cfg(all(feature = "live", target_os = "linux"))]
pub mod sights;

pub use failure::Failure;
pub use run::{Finished, Options, ideal_fcts, run};
pub use scenario::{Built, Diagnostic, Loaded, Scenario, Setting};

/// JSON schema of scenario files, for editors. Kept by hand beside their types; tests compare the
/// two.
pub const SCHEMA: &str = include_str!("../scenario.schema.json");
