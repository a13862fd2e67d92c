//! Frames in and out of network devices.
//!
//! [`Device`] hides how: an AF_PACKET socket with a receive ring works on any Ethernet device, an
//! AF_XDP socket goes around the kernel's stack, a TAP device is a cable end made of a file. None
//! ever waits.

#![allow(unsafe_code)]

mod device;
mod packet;
mod tap;
mod xdp;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use device::{Offload, set_offload};
pub(crate) use device::{address as device_address, index as device_index, is_up as device_is_up};
pub use packet::PacketSocket;
pub use tap::Tap;
pub use xdp::Xsk;

/// Kind of I/O of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoKind {
    /// An AF_PACKET socket with a TPACKET_V2 receive ring: any Ethernet device.
    #[default]
    Packet,
    /// A TAP device, which is made if there is none of that name.
    Tap,
    /// An AF_XDP socket: before the kernel's stack, where the kernel and the device can.
    Xdp,
}

/// A device that is open for frames.
#[derive(Debug)]
pub enum Device {
    /// See [`PacketSocket`].
    Packet(PacketSocket),
    /// See [`Tap`].
    Tap(Tap),
    /// See [`Xsk`].
    Xdp(Box<Xsk>),
}

/// A frame that came in. Its bytes are valid until the next one is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The frame, as far as the kernel kept it.
    pub bytes: &'a [u8],
    /// The VLAN tag that the kernel took out of it: its type and control information.
    pub tag: Option<(u16, u16)>,
    /// True if the kernel cut it off: it is longer than the device's MTU allows.
    pub cut: bool,
    /// True if its transport checksum has still to be computed: the sender's offloads are on.
    pub unfinished: bool,
}

/// Outcome of frames to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that the kernel took.
    pub sent: u64,
    /// Frames that it refused: the device is down, or its queue is full.
    pub refused: u64,
}

/// The reason why a device cannot be used.
#[derive(Debug, Error)]
pub enum IoError {
    /// There is no device of this name.
    #[error("there is no network device {0} here: `ip link` lists those that there are")]
    NoDevice(String),
    /// The device is down.
    #[error("the device {0} is down: ip link set {0} up")]
    Down(String),
    /// The device leads to this machine alone.
    #[error("the device {0} is the loopback, which leads nowhere: choose a network device")]
    Loopback(String),
    /// Frames of several queues would need as many sockets.
    #[error(
        "the device {device} has {queues} receive queues, and io = \"xdp\" serves one: \
         ethtool -L {device} combined 1, or io = \"packet\""
    )]
    Queues {
        /// The device.
        device: String,
        /// Number of its queues.
        queues: u32,
    },
    /// Frames do not fit the memory that is shared with the kernel.
    #[error(
        "the frames of {device} are too long for io = \"xdp\", which takes {most} bytes: lower \
         its MTU, or io = \"packet\""
    )]
    TooLong {
        /// The device.
        device: String,
        /// The longest frame that fits.
        most: usize,
    },
    /// Another socket has the device.
    #[error("another AF_XDP socket has the device {0}: end its program, or io = \"packet\"")]
    Busy(String),
    /// Another switch has the device.
    #[error(
        "another switch{} has the device {device}: two would duplicate its frames",
        named(*.process)
    )]
    Claimed {
        /// The device.
        device: String,
        /// Its process; 0 if it cannot be seen from here.
        process: i32,
    },
    /// No AF_XDP.
    #[error(
        "this kernel or device has no AF_XDP ({0}): CONFIG_XDP_SOCKETS has it; io = \"packet\" \
         works everywhere"
    )]
    NoXdp(io::Error),
    /// Not allowed.
    #[error("{what} needs root (CAP_NET_ADMIN and CAP_NET_RAW)")]
    Privilege {
        /// Attempted operation.
        what: String,
    },
    /// Anything else that the kernel said.
    #[error("{what}: {error}")]
    Kernel {
        /// Attempted operation.
        what: String,
        /// The answer.
        error: io::Error,
    },
}

fn named(process: i32) -> String {
    match process {
        0 => String::new(),
        process => format!(" (process {process})"),
    }
}

impl IoError {
    pub(crate) fn new(what: impl Into<String>, error: io::Error) -> Self {
        let what = what.into();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege { what },
            _ => Self::Kernel { what, error },
        }
    }

    /// Error from `errno` of the call that just failed.
    pub(crate) fn last(what: impl Into<String>) -> Self {
        Self::new(what, io::Error::last_os_error())
    }
}

impl Device {
    /// Opens the device called `name`.
    pub fn open(name: &str, kind: IoKind) -> Result<Self, IoError> {
        Ok(match kind {
            IoKind::Packet => Self::Packet(PacketSocket::open(name)?),
            IoKind::Tap => Self::Tap(Tap::open(name)?),
            IoKind::Xdp => Self::Xdp(Box::new(Xsk::open(name)?)),
        })
    }

    /// The next frame, if one has come in.
    #[inline]
    pub fn receive(&mut self) -> Option<Received<'_>> {
        match self {
            Self::Packet(socket) => socket.receive(),
            Self::Tap(tap) => tap.receive(),
            Self::Xdp(socket) => socket.receive(),
        }
    }

    /// Sends frames in one go where the kernel can.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> Sent {
        match self {
            Self::Packet(socket) => socket.send(frames),
            Self::Tap(tap) => tap.send(frames),
            Self::Xdp(socket) => socket.send(frames),
        }
    }

    /// Frames that the kernel had to drop since the last call because nobody took them.
    pub fn take_missed(&mut self) -> u64 {
        match self {
            Self::Packet(socket) => socket.take_missed(),
            Self::Xdp(socket) => socket.take_missed(),
            Self::Tap(_) => 0,
        }
    }

    /// The longest frame that the device is meant to carry, without tag.
    pub fn longest(&self) -> usize {
        match self {
            Self::Packet(socket) => socket.longest(),
            Self::Tap(tap) => tap.longest(),
            Self::Xdp(socket) => socket.longest(),
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Packet(socket) => socket.as_fd(),
            Self::Tap(tap) => tap.as_fd(),
            Self::Xdp(socket) => socket.as_fd(),
        }
    }
}
