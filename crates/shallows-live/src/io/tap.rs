use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use super::{IoError, Received, Sent, device};

/// struct ifreq with flags -> _IOW('T', 202, int)
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;

/// The file end of a TAP device. What the stack sends to the device is read here.
#[derive(Debug)]
pub struct Tap {
    file: File,
    buffer: Vec<u8>,
    longest: usize,
}

impl Tap {
    /// Opens the TAP device called `name`, and makes it if there is none. One that was made goes
    /// when the file is closed.
    pub fn open(name: &str) -> Result<Self, IoError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(|error| IoError::new("opening /dev/net/tun", error))?;
        let mut request = device::request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads an ifreq with name and flags.
        if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } != 0 {
            return Err(IoError::last(format!("opening the TAP device {name}")));
        }
        let longest = device::longest(name)?;
        Ok(Self {
            file,
            // Room for two tags, and for a byte more, which shows that a frame was too long.
            buffer: vec![0; longest + 9],
            longest,
        })
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    #[inline]
    pub(super) fn receive(&mut self) -> Option<Received<'_>> {
        let length = self.file.read(&mut self.buffer).ok()?;
        Some(Received {
            bytes: &self.buffer[..length],
            tag: None,
            cut: length == self.buffer.len(),
            unfinished: false,
        })
    }

    pub(super) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> Sent {
        let mut result = Sent::default();
        for frame in frames {
            let written: io::Result<usize> = self.file.write(frame);
            match written {
                Ok(_) => result.sent += 1,
                Err(_) => result.refused += 1,
            }
        }
        result
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
