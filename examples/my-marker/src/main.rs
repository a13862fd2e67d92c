//! The whole command line with the marker: `cargo run -p my-marker -- run examples/my-marker/scenario.toml`.

use std::process::ExitCode;

fn main() -> ExitCode {
    shallows::main_with(&my_marker::registry())
}
