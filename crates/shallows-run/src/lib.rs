//! Runs Shallows scenarios, simulated or live, and records them.
//!
//! ```
//! use std::str::FromStr as _;
//! use shallows_run::Scenario;
//!
//! let mut scenario = Scenario::from_str(r#"
//!     topology.star = { hosts = 4, rate = "10Gbps", delay = "1us" }
//!     ports.switch = { buffer = { shared = { size = "300KB" } }, scheduler = "fifo" }
//!     workload.poisson = { load = 0.5, size = "20KB", flows = 100 }
//! "#)?;
//! scenario.set("transport.controller=dctcp")?;
//! let record = scenario.run()?;
//! let summary = record.summary.expect("there were flows");
//! let fct = summary.classes.small.fct.expect("they are small, and all have finished");
//! println!("99 of 100 small flows took {} at most", fct.p99);
//! # assert_eq!(record.flows.len(), 100);
//! # Ok::<(), shallows_run::Failure>(())
//! ```
//!
//! A [`Scenario`] is [loaded](Scenario::load) from a file or a text and [changed](Scenario::set) key
//! by key; what is wrong with it is told by a [`Diagnostic`] with file, line and advice.
//! [`Scenario::run`] simulates it and answers with a [`RunRecord`]: flows, their summary and the
//! tables of the scenario's probes. A [`Runner`] has threads, an output directory that
//! [`RunRecord::open`] opens again, and [`Observer`]s, who look on while it runs:
//! `scenario.runner().threads(4).output("out").run()`.
//!
//! Between the two is the [`RunPlan`], which owns everything that a run needs. A [`World`] admits a
//! plan and runs it: [`Simulated`], or `live::Live`.
//!
//! The live world needs Linux and the feature `live`; without either, the crate simulates only.

#![forbid(unsafe_code)]
// They panic when nobody reads the pipe or the disk of a log is full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod driver;
pub mod examples;
mod failure;
#[cfg(test)]
mod honoured;
mod ideal;
#[cfg(live)]
pub mod live;
mod measure;
#[cfg(live)]
pub mod measurements;
mod plan;
mod platform;
mod ports;
mod recorder;
pub mod report;
mod run;
pub mod scenario;
mod schema;
mod underway;
mod world;

pub use driver::{Observer, Step, Ticks, drive};
pub use failure::Failure;
pub use measure::Measure;
pub use plan::RunPlan;
pub use platform::{program, read_bytes, read_file};
pub use run::save;
pub use shallows_model::Interrupt;
pub use shallows_results::RunRecord;

pub use scenario::{Diagnostic, Scenario, ScenarioConfig, Setting};
pub use schema::schema;
pub use world::{Admitted, FlowRecords, Options, Run, Runner, Simulated, World};

/// A hash of the code and data that decide the results of a simulated run and their statistics:
/// kept runs are valid for equal ids only.
pub const BUILD_ID: &str = env!("SHALLOWS_BUILD_ID");

/// The same for what decides live runs besides that: the live world and its BPF programs.
pub const LIVE_BUILD_ID: &str = env!("SHALLOWS_LIVE_BUILD_ID");
