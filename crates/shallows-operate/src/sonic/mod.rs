//! SONiC's `config_db.json`: the tables about queues.

mod check;
mod database;
mod export;
mod import;
mod json;
mod names;
mod port;
mod read;
mod tables;
mod words;

pub use check::{Context, Finding, Rule, Severity, check};
pub use database::ConfigDb;
pub use export::{ExportError, ExportOptions, Exported, Fidelity, Operation, Statement, export};
pub use import::{ImportError, ImportOptions, Imported, Note, import};
pub use names::PortName;
pub use port::{PortGroup, QueueView};
pub use read::{ConfigPlace, Problem, ReadError};
pub use tables::{
    BufferPool, BufferProfile, Curve, EcnColors, PortQosMap, QueueRow, Scheduler, SchedulerKind,
    Threshold, WredProfile,
};
