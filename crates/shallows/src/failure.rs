//! What ends a command early, and what scripts see of it.

use std::process::ExitCode;

use thiserror::Error;

use crate::scenario::Diagnostic;

/// Why a command did not do all that it was asked for.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] Diagnostic),
    /// The run, or writing its results, went wrong.
    #[error("error: {0:#}")]
    Run(#[from] anyhow::Error),
    /// Ctrl-C; what was complete has been kept.
    #[error("interrupted: the results are partial")]
    Interrupted,
}

impl Failure {
    /// 2 for a bad scenario, as for a bad command line; 130 is what shells say of Ctrl-C.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Run(_) => 1,
            Self::Scenario(_) => 2,
            Self::Interrupted => 130,
        })
    }
}
