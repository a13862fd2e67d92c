//! `shallows qjump auto`.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use clap::Args;
use shallows_bpf::qjump::Chooser;
use shallows_core::units::Time;

use super::device::DeviceArgs;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct AutoArgs {
    #[command(flatten)]
    device: DeviceArgs,
    /// Time for which a program must have fit a level before it is raised to it.
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    settle: Time,
    /// Do not print the levels that change.
    #[arg(long, short)]
    quiet: bool,
}

/// Prints a line, or drops it: levels are chosen even if nobody reads them.
fn print(line: &str) {
    _ = output::print(line);
}

pub(super) fn choose(args: &AutoArgs) -> anyhow::Result<()> {
    let device = args.device.device();
    let mut chooser = Chooser::begin(&device, args.settle)?;
    let interrupted = watch_for_ctrl_c()?;
    if !args.quiet {
        print(&format!("levels are chosen at {device} until Ctrl-C\n"));
    }
    let interval = chooser.interval().to_duration();
    let began = Instant::now();
    let mut next = began;
    while !interrupted.load(Ordering::Relaxed) {
        next = (next + interval).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
        for change in chooser.step()? {
            if !args.quiet {
                print(&format!(
                    "{:9.3} s  level {}  {}\n",
                    began.elapsed().as_secs_f64(),
                    change.level,
                    change.cgroup.display()
                ));
            }
        }
    }
    Ok(())
}
