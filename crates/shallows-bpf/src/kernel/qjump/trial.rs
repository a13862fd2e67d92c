//! Limiters that end unless they are confirmed, so that an operator who cuts himself off comes back.

use std::thread;
use std::time::Duration;

use shallows_core::units::Time;

use super::layout::RawLimits;
use super::{
    apply_alone, check_readable, lock, now_ns, pins_of, remove_alone, sweep, value, write,
};
use crate::qjump::{Device, Error, Limits, Options};

/// The end of a trial on the program's clock.
pub(super) fn deadline(trial: Time) -> Result<u64, Error> {
    Ok(now_ns()? + (trial.ps() / Time::from_ns(1).ps()).max(1))
}

/// Ends the trial of a limiter: it stays.
pub fn confirm(device: &Device) -> Result<(), Error> {
    check_readable()?;
    // Nobody undoes it meanwhile.
    let _lock = lock::exclusive()?;
    let pins = pins_of(device)?;
    let map = pins.open("limits")?;
    let mut limits: RawLimits = value(&map, 0, 0)?;
    match limits.until_ns {
        0 => Err(Error::NotOnTrial(device.clone())),
        until if now_ns()? >= until => Err(Error::TrialEnded(device.clone())),
        _ => {
            limits.until_ns = 0;
            write(&map, 0, &limits)
        }
    }
}

/// Waits for the end of a trial, and undoes what was applied until then unless it has been
/// confirmed or replaced meanwhile: `before` are the limits before it, applied with `options`.
/// `until_ns` is that of the report ([`Report::until_ns`](crate::qjump::Report::until_ns)).
///
/// This is for a process of its own, which nothing that happens to the caller's terminal ends. If
/// it is killed, the program itself lets everything pass from the end of the trial on.
pub fn guard(
    device: &Device,
    until_ns: u64,
    before: Option<&Limits>,
    options: &Options,
) -> Result<(), Error> {
    // It fails for a leader of a process group, which has a session of its own or is of no terminal.
    let _ = rustix::process::setsid();
    thread::sleep(Duration::from_nanos(until_ns.saturating_sub(now_ns()?)));
    let _lock = lock::exclusive()?;
    let pins = match pins_of(device) {
        Ok(pins) => pins,
        // The kernel has removed the limiter with its device; its maps are left.
        Err(Error::NoDevice(_) | Error::NoNamespace { .. } | Error::NotThere(_)) => {
            return sweep().map(drop);
        }
        Err(error) => return Err(error),
    };
    let limits: RawLimits = value(&pins.open("limits")?, 0, 0)?;
    if limits.until_ns != until_ns {
        return Ok(());
    }
    match before {
        Some(before) => apply_alone(device, before, options).map(drop),
        None => remove_alone(device),
    }
}
