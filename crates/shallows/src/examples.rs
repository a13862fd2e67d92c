//! `shallows examples` and `shallows new`.

use std::fmt::Write as _;

use shallows_run::Diagnostic;
use shallows_run::examples::{Example, ExampleKind};

use crate::failure::Failure;
use crate::output;

/// Lists the scenarios and studies that are built in.
pub(crate) fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for (kind, heading) in [
        (ExampleKind::Scenario, "scenarios, for `shallows run NAME`:"),
        (ExampleKind::Study, "studies, for `shallows sweep NAME`:"),
        (
            ExampleKind::Knobs,
            "knobs, for `shallows tune --knobs NAME`:",
        ),
    ] {
        writeln!(text, "{heading}").expect("a text takes any line");
        for example in Example::ALL.iter().filter(|example| example.kind == kind) {
            let (name, summary) = (example.name, example.summary());
            writeln!(text, "  {name:<20} {summary}").expect("a text takes any line");
        }
    }
    text += "`shallows new NAME > my.toml` writes one to a file, to change it\n";
    Ok(output::print(&text)?)
}

/// Prints an example.
pub(crate) fn write(name: &str) -> Result<(), Failure> {
    let Some(example) = Example::find(name) else {
        let names = Example::ALL.map(|example| example.name).join(", ");
        let problem = format!("there is no example {name:?}; there are: {names}");
        return Err(Failure::Scenario(Diagnostic::new(problem)));
    };
    Ok(output::print(example.text)?)
}
