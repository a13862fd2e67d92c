//! Runs the scenario with the marker: `cargo run -p my-marker`.

use std::path::Path;

use shallows_run::{Failure, Scenario, run};

fn main() -> Result<(), Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenario.toml");
    let scenario = Scenario::read_with(&path, &[], &my_marker::registry())?;
    let record = run(&scenario, &mut [])?;
    if let Some(summary) = record.summary {
        print!("{summary}");
    }
    Ok(())
}
