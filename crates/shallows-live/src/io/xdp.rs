use std::fmt::{self, Formatter};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use shallows_bpf::Redirect;
use xdp::nic::NicIndex;
use xdp::slab::{HeapSlab, Slab as _};
use xdp::socket::{SocketError, XdpSocketBuilder};
use xdp::umem::{FrameSize, UmemCfgBuilder};
use xdp::{CompletionRing, FillRing, Packet, RingConfigBuilder, RxRing, TxRing, Umem};

use super::{IoError, Received, Sent, device};

/// Frames that may wait for the switch, and as many on their way out.
const FRAMES: u32 = 2048;

/// Entries of each ring. The fill ring must have more than the frames that it can get.
const ENTRIES: u32 = 2 * FRAMES;

/// Frames taken from the receive ring, given back to the kernel, or handed over in one go.
const BATCH: usize = 64;

/// System calls for one batch. Each sends at least one frame where the device takes any.
const MOST_KICKS: usize = 2 * BATCH;

/// The kernel lets go of a device some time after a socket is closed.
const LONGEST_RELEASE: Duration = Duration::from_secs(1);

/// Bytes of a frame's memory that the kernel reserves.
const HEADROOM: usize = 256;

/// An AF_XDP socket at queue 0 of a device: frames come in before the kernel's stack sees them, in
/// memory that is shared with it.
pub struct Xsk {
    // In the order in which they must go: the memory after all that points to it.
    _redirect: Redirect,
    socket: xdp::socket::XdpSocket,
    fill: FillRing,
    rx: RxRing,
    tx: TxRing,
    completion: CompletionRing,
    received: HeapSlab,
    outgoing: HeapSlab,
    /// The frame that was received last, whose bytes are in use.
    current: Option<Packet>,
    /// Frames to give back to the kernel.
    owed: usize,
    missed: u64,
    longest: usize,
    memory: Umem,
}

impl fmt::Debug for Xsk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xsk")
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

// SAFETY: memory and rings belong to this value alone and may be used from any one thread.
unsafe impl Send for Xsk {}

impl Xsk {
    /// Opens a socket on the device called `name` and takes every frame that arrives there.
    pub fn open(name: &str) -> Result<Self, IoError> {
        let deadline = Instant::now() + LONGEST_RELEASE;
        loop {
            match Self::try_open(name) {
                Err(IoError::Busy(_)) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(20));
                }
                result => return result,
            }
        }
    }

    fn try_open(name: &str) -> Result<Self, IoError> {
        device::check_up(name)?;
        let longest = device::longest(name)?;
        let index = device::index(name)?.cast_unsigned();
        let queues = device::receive_queues(name)?;
        if queues > 1 {
            return Err(IoError::Queues {
                device: name.to_owned(),
                queues,
            });
        }
        let mut memory = memory(name, longest)?;
        let mut builder = XdpSocketBuilder::new().map_err(unavailable)?;
        let rings = RingConfigBuilder {
            rx_count: ENTRIES,
            tx_count: ENTRIES,
            fill_count: ENTRIES,
            completion_count: ENTRIES,
        };
        let rings = rings.build().map_err(|error| impossible(&error))?;
        let (mut rings, flags) = builder.build_rings(&memory, rings).map_err(unavailable)?;
        // SAFETY: the memory outlives the socket in `Self`, and here as well.
        unsafe { rings.fill_ring.enqueue(&mut memory, FRAMES as usize) };
        let socket = builder.bind(NicIndex(index), 0, flags);
        let socket = socket.map_err(|error| match error {
            SocketError::Bind(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                IoError::Busy(name.to_owned())
            }
            error => unavailable(error),
        })?;
        // SAFETY: the socket is open.
        let fd = unsafe { BorrowedFd::borrow_raw(socket.raw_fd()) };
        let redirect = Redirect::attach(index, fd)
            .map_err(|error| IoError::new("attaching an XDP program", error))?;
        let (Some(rx), Some(tx)) = (rings.rx_ring, rings.tx_ring) else {
            unreachable!("both have entries");
        };
        Ok(Self {
            _redirect: redirect,
            socket,
            fill: rings.fill_ring,
            rx,
            tx,
            completion: rings.completion_ring,
            received: HeapSlab::with_capacity(BATCH),
            outgoing: HeapSlab::with_capacity(BATCH),
            current: None,
            owed: 0,
            missed: 0,
            longest,
            memory,
        })
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    #[inline]
    pub(super) fn receive(&mut self) -> Option<Received<'_>> {
        if let Some(packet) = self.current.take() {
            self.memory.free_packet(packet);
            self.owed += 1;
        }
        if self.received.is_empty() {
            self.give_back();
            // SAFETY: the packets stay in `self`, whose memory goes last.
            unsafe { self.rx.recv(&self.memory, &mut self.received) };
        }
        let packet = self.current.insert(self.received.pop_back()?);
        Some(Received {
            bytes: packet,
            tag: None,
            cut: false,
            unfinished: false,
        })
    }

    /// Lets the kernel fill frames again.
    #[inline]
    fn give_back(&mut self) {
        if self.owed >= BATCH {
            // SAFETY: the memory goes after the socket.
            self.owed -= unsafe { self.fill.enqueue(&mut self.memory, self.owed) };
        }
    }

    pub(super) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> Sent {
        let mut result = Sent::default();
        for frame in frames {
            if self.outgoing.available() == 0 {
                self.flush(&mut result);
            }
            match self.packet(frame) {
                Some(packet) => {
                    self.outgoing.push_front(packet);
                }
                None => result.refused += 1,
            }
        }
        self.flush(&mut result);
        result
    }

    /// A frame in shared memory, if there is room for it.
    fn packet(&mut self, frame: &[u8]) -> Option<Packet> {
        // What is owed to the kernel is not for sending.
        if self.memory.allocatable() <= self.owed {
            self.completion.dequeue(&mut self.memory, ENTRIES as usize);
        }
        if self.memory.allocatable() <= self.owed {
            return None;
        }
        // SAFETY: packets stay in `self` or go to the kernel; the memory goes last.
        let mut packet = unsafe { self.memory.alloc()? };
        if packet.append(frame).is_ok() {
            return Some(packet);
        }
        self.memory.free_packet(packet);
        None
    }

    fn flush(&mut self, result: &mut Sent) {
        if self.outgoing.is_empty() {
            return;
        }
        // SAFETY: the memory goes after the socket.
        result.sent += unsafe { self.tx.send(&mut self.outgoing) } as u64;
        while let Some(packet) = self.outgoing.pop_back() {
            self.memory.free_packet(packet);
            result.refused += 1;
        }
        for _ in 0..MOST_KICKS {
            if !self.kick() {
                break;
            }
        }
        self.completion.dequeue(&mut self.memory, ENTRIES as usize);
    }

    /// Tells the kernel that there are frames to send; whether it wants to be told again.
    fn kick(&mut self) -> bool {
        let (fd, none) = (self.socket.raw_fd(), std::ptr::null());
        // SAFETY: no bytes and no address.
        let answer = unsafe { libc::sendto(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
        if answer >= 0 {
            return false;
        }
        let error = io::Error::last_os_error().raw_os_error();
        self.completion.dequeue(&mut self.memory, ENTRIES as usize);
        matches!(error, Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS))
    }

    pub(super) fn take_missed(&mut self) -> u64 {
        let Ok(statistics) = self.socket.statistics() else {
            return 0;
        };
        let all =
            statistics.rx_dropped + statistics.rx_ring_full + statistics.rx_fill_ring_empty_descs;
        all - std::mem::replace(&mut self.missed, all)
    }
}

impl AsFd for Xsk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.socket.raw_fd()) }
    }
}

fn memory(name: &str, longest: usize) -> Result<Umem, IoError> {
    // Two tags more, and a byte.
    let needed = longest + 9 + HEADROOM;
    let frame_size = match needed {
        0..=2048 => FrameSize::TwoK,
        2049..=4096 => FrameSize::FourK,
        _ => {
            return Err(IoError::TooLong {
                device: name.to_owned(),
                most: 4096 - HEADROOM - 9,
            });
        }
    };
    let config = UmemCfgBuilder {
        frame_size,
        frame_count: 2 * FRAMES,
        ..UmemCfgBuilder::default()
    };
    let config = config.build().map_err(|error| impossible(&error))?;
    Umem::map(config).map_err(|error| IoError::new("mapping memory for AF_XDP", error))
}

fn impossible(error: &xdp::error::Error) -> IoError {
    IoError::new("setting up AF_XDP", io::Error::other(error.to_string()))
}

fn unavailable(error: SocketError) -> IoError {
    let error = match error {
        SocketError::SocketCreation(error)
        | SocketError::SetSockOpt { inner: error, .. }
        | SocketError::GetSockOpt { inner: error, .. }
        | SocketError::RingMap { inner: error, .. }
        | SocketError::Bind(error) => error,
    };
    match error.kind() {
        io::ErrorKind::PermissionDenied => IoError::new("opening an AF_XDP socket", error),
        _ => IoError::NoXdp(error),
    }
}
