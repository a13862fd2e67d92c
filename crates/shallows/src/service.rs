//! Code shared by all daemons: they serve metrics, and notify the service manager that started them
//! that they are ready (`sd_notify(3)` without its library).

use std::env;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{self as unix, UnixDatagram};

use anyhow::Context as _;
use shallows_live::switch::{Control, Monitor, Status};

use crate::output;

/// Serves metrics at the address of the daemon's file, if it has one.
pub(crate) fn serve_metrics<S: Status>(
    address: Option<SocketAddr>,
    control: &Control<S>,
) -> anyhow::Result<()> {
    let Some(address) = address else {
        return Ok(());
    };
    let monitor = Monitor::start(address, control.clone())
        .with_context(|| format!("cannot serve metrics at {address}"))?;
    output::note(format!("metrics at http://{}/metrics", monitor.address()));
    if !address.ip().is_loopback() {
        output::note(
            "warning: other machines can read the metrics there, without a password: counters and \
             the names of devices and hosts",
        );
    }
    Ok(())
}

/// Says that the daemon is up. A manager that cannot be told lets the start time out and says so.
pub(crate) fn ready() {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    // A name that begins with @ is in no directory.
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(abstract_name) => unix::SocketAddr::from_abstract_name(abstract_name),
        None => unix::SocketAddr::from_pathname(&name),
    };
    let sent =
        UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(b"READY=1", &address?));
    if let Err(error) = sent {
        output::note(format!(
            "cannot tell the service manager that all is up: {error}"
        ));
    }
}
