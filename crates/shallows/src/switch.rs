//! `shallows switch`: the live switch on devices of this machine.

use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;

use anyhow::Context as _;
use shallows_live::switch::{Control, Engine, Snapshot, Switch, SwitchConfig, fetch_status};

use shallows_run::read_file;

use crate::cli::{SwitchArgs, SwitchCommand};
use crate::failure::Failure;
use crate::{interrupt, output, service};

pub(crate) fn switch(args: &SwitchArgs) -> Result<(), Failure> {
    match (&args.command, &args.config) {
        (Some(SwitchCommand::Status { at, json }), _) => {
            let snapshot: Snapshot = fetch_status(*at).with_context(|| {
                format!("no switch answers at {at}; does its file say metrics = \"{at}\"?")
            })?;
            if *json {
                let text = serde_json::to_string_pretty(&snapshot).context("cannot write JSON")?;
                output::print(&(text + "\n"))?;
            } else {
                output::print(&snapshot.to_string())?;
            }
            Ok(())
        }
        (None, Some(path)) => run(path),
        (None, None) => unreachable!("the command line asks for one of them"),
    }
}

fn run(path: &Path) -> Result<(), Failure> {
    let config = read(path).map_err(Failure::File)?;
    let switch = Switch::open(&config).map_err(anyhow::Error::from)?;
    let (events, happened) = channel();
    let control = Control::with_events(events);
    service::serve_metrics(config.metrics, &control)?;
    let stop = control.clone();
    interrupt::on_ctrl_c(move || stop.stop())?;
    thread::spawn(move || happened.iter().for_each(output::note));
    output::note(format!(
        "switching {} ports; Ctrl-C ends it",
        config.ports.len()
    ));
    service::ready();
    let report = switch.run(&control).map_err(anyhow::Error::from)?;
    output::print(&report.snapshot.to_string())?;
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<SwitchConfig> {
    let name = path.display();
    let text = read_file(path).with_context(|| format!("cannot read {name}"))?;
    let config = SwitchConfig::parse(&text).with_context(|| format!("in {name}"))?;
    // All but the devices, which are the machine's and not the file's.
    Engine::new(&config, 0).with_context(|| format!("in {name}"))?;
    Ok(config)
}
