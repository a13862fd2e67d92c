use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::io::IoError;

/// The right to switch a device: two switches on one would duplicate its frames.
///
/// It is a Unix socket with an abstract name, which exists once in a network namespace, as the
/// device does, needs no file, and goes with the process, however that ends.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: UnixListener,
}

impl Claim {
    /// Claims the device with this name and number in the namespace of the calling thread.
    pub(super) fn take(device: &str, index: i32) -> Result<Self, IoError> {
        let failed = |error| IoError::new(format!("claiming the device {device}"), error);
        let name = format!("shallows/switch/{index}");
        let address = SocketAddr::from_abstract_name(name).map_err(failed)?;
        match UnixListener::bind_addr(&address) {
            Ok(socket) => Ok(Self { _socket: socket }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(IoError::Claimed {
                device: device.to_owned(),
                process: holder(&address).unwrap_or_default(),
            }),
            Err(error) => Err(failed(error)),
        }
    }
}

/// The process that has the claim, if it can be seen from here.
fn holder(address: &SocketAddr) -> Option<i32> {
    let stream = UnixStream::connect_addr(address).ok()?;
    let credentials = getsockopt(&stream, PeerCredentials).ok()?;
    Some(credentials.pid())
}
