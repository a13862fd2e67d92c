//! Exit codes and messages of a command that failed.

pub(crate) use shallows_run::Failure;

/// 2 for a bad scenario or another bad file, as for a bad command line; 130 is what shells say of Ctrl-C.
pub(crate) fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Run(_) => 1,
        Failure::Scenario(_) | Failure::File(_) => 2,
        Failure::Interrupted | Failure::NotBegun => 130,
    }
}
