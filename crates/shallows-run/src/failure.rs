//! Failures: reasons why a run ends early.

use shallows_results::ResultsError;
use thiserror::Error;

use crate::scenario::Diagnostic;

/// The reason why a run, or several, did not come to an end.
#[derive(Debug, Error)]
pub enum Failure {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] Diagnostic),
    /// Another file of the user's, such as a switch's, is wrong.
    #[error("error: {0:#}")]
    File(anyhow::Error),
    /// The run, or writing its results, went wrong.
    #[error("error: {0:#}")]
    Run(#[from] anyhow::Error),
    /// Ctrl-C before the run began.
    #[error("interrupted before the run began; there are no results")]
    NotBegun,
    /// Ctrl-C; what was complete has been kept.
    #[error("interrupted: the results are partial")]
    Interrupted,
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Self::Run(error.into())
    }
}
