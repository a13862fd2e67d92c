//! The page of `shallows --help`: commands in groups, and examples.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use crate::cli::Cli;

/// Commands by what a user wants to do.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Simulate",
        &[
            "run", "explain", "plot", "sweep", "tune", "import", "diff", "artifact", "examples",
            "metrics", "new", "schema",
        ],
    ),
    ("Papers", &["repro", "report", "validate"]),
    (
        "Switches and hosts",
        &[
            "sonic",
            "linux",
            "qjump",
            "exec",
            "cc",
            "compare",
            "switch",
            "controller",
            "agent",
            "lab",
        ],
    ),
    ("Housekeeping", &["bench", "completions", "man", "help"]),
];

const EXAMPLES: &str = "Examples:
  shallows run quickstart                        one scenario, with a summary of its flows
  shallows run quickstart --vary workload.poisson.load=0.3,0.6,0.9
                                                 one key varied, with a table and a figure
  shallows sweep thresholds                      a study of schemes, loads and seeds
  shallows repro mq-ecn --quick                  a paper's figures and claims, in small
  shallows new quickstart > my.toml              a scenario to change
";

/// The command line, with commands in groups on the page of help.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(groups, "{heading}:");
        for name in names {
            // Some are of Linux only.
            let Some(found) = command.find_subcommand(name) else {
                continue;
            };
            let about = found.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let _ = writeln!(groups, "  {name:<12} {}", about.trim_end_matches('.'));
        }
        groups.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n\n{EXAMPLES}\n\
         `shallows COMMAND --help` explains a command; docs/ has tutorials and the reference.\n"
    );
    Cli::command().help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = Cli::command();
        command.build();
        for of in command.get_subcommands().filter(|of| !of.is_hide_set()) {
            let groups = GROUPS
                .iter()
                .filter(|(_, names)| names.contains(&of.get_name()));
            assert_eq!(groups.count(), 1, "{}", of.get_name());
        }
    }
}
