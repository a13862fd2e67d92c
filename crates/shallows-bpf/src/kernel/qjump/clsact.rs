//! Filters of the clsact qdisc, where there is no tcx; `tc` makes and finds them. All of this in the
//! network namespace of the thread.

use std::path::Path;

use nix::net::if_::if_indextoname;
use serde::Deserialize;

use super::device::run;
use crate::qjump::Error;

/// Ours among a device's filters.
const HANDLE: &str = "0x5147";
const PRIORITY: &str = "20807";

/// A filter as `tc -json` shows it.
#[derive(Deserialize)]
struct Filter {
    options: Option<Options>,
}

#[derive(Deserialize)]
struct Options {
    handle: Option<String>,
    prog: Option<Program>,
}

#[derive(Deserialize)]
struct Program {
    id: u32,
}

/// Attaches a pinned program to the device, after its qdisc if that is missing.
pub(super) fn attach(index: u32, program: &Path, with_qdisc: bool) -> Result<(), Error> {
    let name = name(index).unwrap_or_default();
    if with_qdisc {
        run(None, "tc", &["qdisc", "add", "dev", &name, "clsact"])?;
    }
    let program = program.to_string_lossy();
    let attached = filter("add", &name, &["direct-action", "object-pinned", &program]);
    if attached.is_err() && with_qdisc {
        destroy(index)?;
    }
    attached
}

/// The number of the program at the device, if ours is there.
pub(super) fn query(index: u32) -> Option<u32> {
    let name = name(index)?;
    let shown = run(
        None,
        "tc",
        &["-json", "filter", "show", "dev", &name, "egress"],
    )
    .ok()?;
    let filters: Vec<Filter> = serde_json::from_str(&shown).ok()?;
    let mut options = filters.into_iter().filter_map(|filter| filter.options);
    let ours = options.find(|options| options.handle.as_deref() == Some(HANDLE))?;
    Some(ours.prog?.id)
}

pub(super) fn detach(index: u32) -> Result<(), Error> {
    filter("del", &name(index).unwrap_or_default(), &[])
}

/// Removes the qdisc.
pub(super) fn destroy(index: u32) -> Result<(), Error> {
    let name = name(index).unwrap_or_default();
    run(None, "tc", &["qdisc", "del", "dev", &name, "clsact"]).map(drop)
}

fn filter(verb: &str, device: &str, options: &[&str]) -> Result<(), Error> {
    let place = ["filter", verb, "dev", device, "egress", "protocol", "all"];
    let ours = ["prio", PRIORITY, "handle", HANDLE, "bpf"];
    run(None, "tc", &[&place[..], &ours, options].concat()).map(drop)
}

/// A device may have been renamed.
fn name(index: u32) -> Option<String> {
    if_indextoname(index).ok()?.into_string().ok()
}
