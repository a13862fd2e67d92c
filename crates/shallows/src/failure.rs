//! Exit codes and messages of a command that failed.

use std::path::Path;

use anyhow::anyhow;
pub(crate) use shallows_run::Failure;

/// Refuses a path that is not a directory of results.
pub(crate) fn check_results(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let shown = path.display();
    let problem = anyhow!("there is no directory {shown}; `shallows run SCENARIO` writes out/NAME");
    Err(Failure::File(problem))
}

/// 2 for a bad scenario or another bad file, as for a bad command line; 130 is what shells say of Ctrl-C.
pub(crate) fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Run(_) => 1,
        Failure::Scenario(_) | Failure::File(_) => 2,
        Failure::Interrupted | Failure::NotBegun => 130,
    }
}
