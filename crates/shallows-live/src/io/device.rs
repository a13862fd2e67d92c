//! Properties of a device that the kernel reports by name, in the namespace of the calling thread.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::IoError;
use crate::frame::{ETHERNET_HEADER, Mac};

/// Something that a device does for the stack and that a switch must not be lied to about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Transmit checksums: frames between namespaces would carry none.
    TransmitChecksum,
    /// Receive checksums.
    ReceiveChecksum,
    /// Segmentation of TCP: frames would be longer than the MTU.
    TcpSegmentation,
    /// Segmentation in software.
    GenericSegmentation,
    /// Gluing of received segments.
    GenericReceive,
}

impl Offload {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::TransmitChecksum,
        Self::ReceiveChecksum,
        Self::TcpSegmentation,
        Self::GenericSegmentation,
        Self::GenericReceive,
    ];

    /// The command of linux/ethtool.h that sets it.
    fn command(self) -> u32 {
        match self {
            Self::ReceiveChecksum => 0x15,
            Self::TransmitChecksum => 0x17,
            Self::TcpSegmentation => 0x1f,
            Self::GenericSegmentation => 0x24,
            Self::GenericReceive => 0x2c,
        }
    }
}

/// A socket to ask the kernel about devices.
fn query() -> Result<OwnedFd, IoError> {
    // SAFETY: plain arguments; the descriptor is checked and then owned by no one else.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(IoError::last("opening a socket"));
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A request about the device called `name`.
pub(super) fn request(name: &str) -> Result<libc::ifreq, IoError> {
    // SAFETY: ifreq is plain data, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(IoError::NoDevice(name.to_owned()));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

/// Something that the kernel tells of a device in the request itself.
#[derive(Clone, Copy, Debug)]
enum Property {
    Mtu,
    Index,
    Address,
    Flags,
}

/// Asks for a property of the device called `name`.
fn ask(name: &str, property: Property) -> Result<libc::ifreq, IoError> {
    let what = match property {
        Property::Mtu => libc::SIOCGIFMTU,
        Property::Index => libc::SIOCGIFINDEX,
        Property::Address => libc::SIOCGIFHWADDR,
        Property::Flags => libc::SIOCGIFFLAGS,
    };
    let mut request = request(name)?;
    // SAFETY: these read the name and write into the request.
    unsafe { ioctl(name, what as libc::Ioctl, &mut request) }?;
    Ok(request)
}

/// Runs an ethtool command.
///
/// # Safety
/// `command` is the structure of the command in its first word.
unsafe fn ethtool<T>(name: &str, command: &mut T) -> Result<(), IoError> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
    // SAFETY: the request points to a structure that the caller vouches for.
    unsafe { ioctl(name, libc::SIOCETHTOOL as libc::Ioctl, &mut request) }
}

/// # Safety
/// The request has what the ioctl reads, and room for what it writes.
unsafe fn ioctl(name: &str, what: libc::Ioctl, request: &mut libc::ifreq) -> Result<(), IoError> {
    let socket = query()?;
    // SAFETY: the caller vouches for it.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), what, request) };
    if answer == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::ENODEV) => IoError::NoDevice(name.to_owned()),
        _ => IoError::new(format!("asking about the device {name}"), error),
    })
}

/// The longest frame that a device carries, without tag.
pub(super) fn longest(name: &str) -> Result<usize, IoError> {
    let request = ask(name, Property::Mtu)?;
    // SAFETY: SIOCGIFMTU fills this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(mtu.max(0) as usize + ETHERNET_HEADER)
}

/// The device's number.
pub(crate) fn index(name: &str) -> Result<i32, IoError> {
    let request = ask(name, Property::Index)?;
    // SAFETY: SIOCGIFINDEX fills this member.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex })
}

/// The device's own Ethernet address.
pub(crate) fn address(name: &str) -> Result<Mac, IoError> {
    let request = ask(name, Property::Address)?;
    // SAFETY: SIOCGIFHWADDR fills this member.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    let byte = |at: usize| u8::from_ne_bytes(address[at].to_ne_bytes());
    Ok(Mac(std::array::from_fn(byte)))
}

/// Refuses a device that is down, and one that leads nowhere.
pub(super) fn check_up(name: &str) -> Result<(), IoError> {
    let flags = flags(name)?;
    if flags & libc::IFF_LOOPBACK != 0 {
        return Err(IoError::Loopback(name.to_owned()));
    }
    if flags & libc::IFF_UP == 0 {
        return Err(IoError::Down(name.to_owned()));
    }
    Ok(())
}

/// Returns whether the device is there and up.
pub(crate) fn is_up(name: &str) -> bool {
    flags(name).is_ok_and(|flags| flags & libc::IFF_UP != 0)
}

fn flags(name: &str) -> Result<libc::c_int, IoError> {
    let request = ask(name, Property::Flags)?;
    // SAFETY: SIOCGIFFLAGS fills this member.
    Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
}

/// Number of receive queues; 1 if the driver does not say.
pub(super) fn receive_queues(name: &str) -> Result<u32, IoError> {
    /// struct ethtool_channels
    #[repr(C)]
    #[derive(Default)]
    struct Channels {
        command: u32,
        most: [u32; 4],
        receive: u32,
        transmit: u32,
        other: u32,
        combined: u32,
    }
    let mut channels = Channels {
        command: 0x3c,
        ..Channels::default()
    };
    // SAFETY: 0x3c is ETHTOOL_GCHANNELS, which fills this structure.
    match unsafe { ethtool(name, &mut channels) } {
        Err(IoError::Kernel { .. }) => Ok(1),
        Err(error) => Err(error),
        Ok(()) => Ok((channels.receive + channels.combined).max(1)),
    }
}

/// Switches an offload off or on, as `ethtool -K` does.
pub fn set_offload(name: &str, offload: Offload, on: bool) -> Result<(), IoError> {
    /// struct ethtool_value
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let mut value = Value {
        command: offload.command(),
        data: u32::from(on),
    };
    // SAFETY: the commands of offloads take this structure.
    unsafe { ethtool(name, &mut value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_no_port() {
        let refused = check_up("lo");
        assert!(matches!(refused, Err(IoError::Loopback(_))), "{refused:?}");
    }
}
