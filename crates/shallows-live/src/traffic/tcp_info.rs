//! The kernel's counters of a connection.

#![allow(unsafe_code)]

use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

/// The kernel's counters for one end of a connection. Later fields of struct tcp_info are zero on
/// kernels that do not have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpInfo {
    pub(super) retransmits: u32,
    pub(super) marks: u32,
    pub(super) timeouts: u32,
}

/// Offsets in struct tcp_info of linux/tcp.h, which only ever grows at its end.
const TOTAL_RETRANS: usize = 100;
const DELIVERED_CE: usize = 196;
const TOTAL_RTO: usize = 240;

impl TcpInfo {
    /// Of this end; nothing if the kernel does not say.
    pub(super) fn of(stream: &TcpStream) -> Self {
        let mut info = [0u8; 248];
        let mut length = info.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `info`.
        let answer = unsafe {
            let to = info.as_mut_ptr().cast();
            let fd = stream.as_raw_fd();
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length)
        };
        if answer != 0 {
            return Self::default();
        }
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| info[at + i]));
        Self {
            retransmits: word(TOTAL_RETRANS),
            marks: word(DELIVERED_CE),
            timeouts: u32::from(u16::from_ne_bytes([info[TOTAL_RTO], info[TOTAL_RTO + 1]])),
        }
    }

    /// Difference to `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            retransmits: self.retransmits.saturating_sub(earlier.retransmits),
            marks: self.marks.saturating_sub(earlier.marks),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
        }
    }
}
