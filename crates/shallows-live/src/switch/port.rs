use std::fmt::{self, Display, Formatter};
use std::os::fd::{AsFd as _, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::claim::Claim;
use super::{IngressCounters, PortPlan};
use crate::frame::Mac;
use crate::io::{self, Device, IoError, IoKind};

/// A port of a running switch. Its device may go away and come back.
#[derive(Debug)]
pub(super) struct Port {
    name: String,
    io: IoKind,
    /// While it is there. Dropped before the claim.
    pub(super) device: Option<Device>,
    claim: Option<Claim>,
    /// The device's address, if frames to it are the machine's own and not to be switched.
    own: Option<Mac>,
    keeps_own: bool,
    /// The number that the kernel gave the device.
    index: i32,
    /// The longest frame without tags. The switch's memory is made for it, so it never grows.
    longest: usize,
    pub(super) counters: IngressCounters,
}

/// An event of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortEvent {
    /// Its device was removed or set down.
    Lost {
        /// The device.
        device: String,
    },
    /// A device of that name is there again, and up.
    Back {
        /// The device.
        device: String,
    },
    /// A device of that name is there again but cannot be used.
    Refused {
        /// The device.
        device: String,
        /// Reason.
        reason: String,
    },
}

impl Display for PortEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { device } => write!(
                f,
                "port {device} is lost: its device is gone or down; frames for it are dropped \
                 until it is back"
            ),
            Self::Back { device } => write!(f, "port {device} is back"),
            Self::Refused { device, reason } => {
                write!(f, "port {device} stays lost: {reason}")
            }
        }
    }
}

impl Port {
    pub(super) fn open(plan: &PortPlan) -> Result<Self, IoError> {
        let mut port = Self {
            name: plan.device.clone(),
            io: plan.io,
            device: None,
            claim: None,
            own: None,
            keeps_own: false,
            index: 0,
            longest: usize::MAX,
            counters: IngressCounters::default(),
        };
        port.attach()?;
        Ok(port)
    }

    fn attach(&mut self) -> Result<(), IoError> {
        // A TAP device may have to be made first; the kernel gives it to one program only.
        let made = match self.io {
            IoKind::Tap => Some(Device::open(&self.name, self.io)?),
            IoKind::Packet | IoKind::Xdp => None,
        };
        let index = io::device_index(&self.name)?;
        let claim = Claim::take(&self.name, index)?;
        let device = match made {
            Some(device) => device,
            None => Device::open(&self.name, self.io)?,
        };
        self.longest = self.longest.min(device.longest());
        self.index = index;
        self.device = Some(device);
        self.claim = Some(claim);
        self.note_own()
    }

    /// Leaves frames to the device's own address to the machine, which gets them anyway.
    pub(super) fn keep_own(&mut self) -> Result<(), IoError> {
        self.keeps_own = true;
        self.note_own()
    }

    fn note_own(&mut self) -> Result<(), IoError> {
        let address = self.keeps_own.then(|| io::device_address(&self.name));
        self.own = address.transpose()?;
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// See [`keep_own`](Self::keep_own).
    pub(super) fn own(&self) -> Option<Mac> {
        self.own
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// File descriptor to wait for.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.device.as_ref().map(Device::as_fd)
    }

    #[inline]
    pub(super) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) {
        match &mut self.device {
            Some(device) => {
                let sent = device.send(frames);
                self.counters.sent += sent.sent;
                self.counters.refused += sent.refused;
            }
            None => self.counters.refused += frames.count() as u64,
        }
    }

    pub(super) fn count_missed(&mut self) {
        let missed = self.device.as_mut().map(Device::take_missed);
        self.counters.missed += missed.unwrap_or(0);
    }

    /// Lets go of a device that is gone, and takes it when it is back.
    pub(super) fn look_after(&mut self) -> Option<PortEvent> {
        let device = self.name.clone();
        if self.device.is_some() {
            if !self.is_lost() {
                return None;
            }
            self.count_missed();
            self.device = None;
            self.claim = None;
            self.counters.losses += 1;
            self.counters.lost = true;
            return Some(PortEvent::Lost { device });
        }
        let index = io::device_index(&self.name).ok()?;
        if self.io != IoKind::Tap && !io::device_is_up(&self.name) {
            return None;
        }
        match self.attach() {
            Ok(()) => {
                self.counters.lost = false;
                Some(PortEvent::Back { device })
            }
            // Said once for each device of that name.
            Err(_) if self.index == index => None,
            Err(error) => {
                self.index = index;
                let reason = error.to_string();
                Some(PortEvent::Refused { device, reason })
            }
        }
    }

    fn is_lost(&self) -> bool {
        let Some(file) = self.file() else {
            return false;
        };
        let mut files = [PollFd::new(file, PollFlags::empty())];
        let failed = poll(&mut files, PollTimeout::ZERO).is_ok() && has_failed(&files[0]);
        // The file of a TAP device works wherever the device is; an AF_XDP socket reports nothing.
        failed
            || (self.io != IoKind::Tap
                && (io::device_index(&self.name).ok() != Some(self.index)
                    || !io::device_is_up(&self.name)))
    }
}

/// Returns whether a file says that its device is gone.
pub(super) fn has_failed(file: &PollFd<'_>) -> bool {
    let failures = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    file.revents()
        .is_some_and(|events| events.intersects(failures))
}
