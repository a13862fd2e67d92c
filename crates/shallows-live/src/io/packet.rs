use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{IoError, Received, Sent, device};

/// Frames that may wait in the ring for the switch: 60 ms of full frames at 200 Mbps.
const RING_FRAMES: usize = 1024;

/// Bytes that the kernel puts before a frame in the ring, generously.
const RING_HEADROOM: usize = 128;

/// The kernel allocates the ring in blocks of this many bytes.
const BLOCK: usize = 1 << 16;

/// Frames handed over in one system call.
const MOST_AT_ONCE: usize = 64;

/// Bytes on their way to the device. A full batch of long frames must fit.
const SEND_BUFFER: libc::c_int = 4 << 20;

/// An AF_PACKET socket bound to one device: frames come in by a ring shared with the kernel
/// (TPACKET_V2; version 3 holds frames back for a millisecond) and go out past the device's qdisc.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    ring: Ring,
    longest: usize,
    iovecs: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// True if the slot before `ring.next` is still ours.
    holding: bool,
}

/// The receive ring. The kernel fills slots in order and sets their status last.
#[derive(Debug)]
struct Ring {
    memory: NonNull<libc::c_void>,
    bytes: usize,
    slot: usize,
    slots_per_block: usize,
    count: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone and may be used from any one thread.
unsafe impl Send for PacketSocket {}

impl PacketSocket {
    /// Opens a socket on the device called `name` and takes every frame that arrives there.
    pub fn open(name: &str) -> Result<Self, IoError> {
        device::check_up(name)?;
        let longest = device::longest(name)?;
        let index = device::index(name)?;
        // Protocol 0: nothing comes in before the socket is bound to its device.
        // SAFETY: plain arguments; the descriptor is checked and then owned by no one else.
        let socket = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            let fd = libc::socket(libc::AF_PACKET, kind, 0);
            if fd < 0 {
                return Err(IoError::last("opening an AF_PACKET socket"));
            }
            OwnedFd::from_raw_fd(fd)
        };
        SocketOption::Version2.set(&socket)?;
        SocketOption::IgnoreOutgoing.set(&socket)?;
        SocketOption::BypassQdisc.set(&socket)?;
        SocketOption::SendBuffer(SEND_BUFFER).set(&socket)?;
        let ring = Ring::map(&socket, longest)?;
        bind(&socket, name, index)?;
        // SAFETY: packet_mreq is plain data, for which zero is a value.
        let mut membership: libc::packet_mreq = unsafe { zeroed() };
        membership.mr_ifindex = index;
        membership.mr_type = libc::PACKET_MR_PROMISC as libc::c_ushort;
        SocketOption::Membership(membership).set(&socket)?;
        Ok(Self {
            socket,
            ring,
            longest,
            iovecs: Vec::with_capacity(MOST_AT_ONCE),
            messages: Vec::with_capacity(MOST_AT_ONCE),
            holding: false,
        })
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    #[inline]
    pub(super) fn receive(&mut self) -> Option<Received<'_>> {
        if self.holding {
            self.ring.release();
            self.holding = false;
        }
        let received = self.ring.peek()?;
        self.holding = true;
        Some(received)
    }

    pub(super) fn send<'a>(&mut self, mut frames: impl Iterator<Item = &'a [u8]>) -> Sent {
        let mut result = Sent::default();
        loop {
            self.iovecs.clear();
            self.iovecs
                .extend(frames.by_ref().take(MOST_AT_ONCE).map(|frame| libc::iovec {
                    iov_base: frame.as_ptr().cast_mut().cast(),
                    iov_len: frame.len(),
                }));
            if self.iovecs.is_empty() {
                return result;
            }
            self.send_batch(&mut result);
        }
    }

    fn send_batch(&mut self, result: &mut Sent) {
        self.messages.clear();
        for iovec in &mut self.iovecs {
            // SAFETY: mmsghdr is plain data, for which zero is a value.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = iovec;
            message.msg_hdr.msg_iovlen = 1;
            self.messages.push(message);
        }
        let mut rest = &mut self.messages[..];
        while !rest.is_empty() {
            let fd = self.socket.as_raw_fd();
            // SAFETY: every message points to one iovec of a frame that outlives this call.
            let taken = unsafe {
                libc::sendmmsg(fd, rest.as_mut_ptr(), rest.len() as u32, libc::MSG_DONTWAIT)
            };
            let done = if taken > 0 {
                result.sent += taken as u64;
                taken as usize
            } else {
                result.refused += 1;
                1
            };
            rest = &mut rest[done..];
        }
    }

    pub(super) fn take_missed(&mut self) -> u64 {
        // SAFETY: tpacket_stats is plain data that the kernel fills, up to `length` bytes.
        let (mut stats, answer) = unsafe {
            let mut stats: libc::tpacket_stats = zeroed();
            let mut length = size_of_val(&stats) as libc::socklen_t;
            let fd = self.socket.as_raw_fd();
            let to = (&raw mut stats).cast();
            let name = libc::PACKET_STATISTICS;
            let answer = libc::getsockopt(fd, libc::SOL_PACKET, name, to, &raw mut length);
            (stats, answer)
        };
        if answer != 0 {
            stats.tp_drops = 0;
        }
        u64::from(stats.tp_drops)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Ring {
    fn map(socket: &OwnedFd, longest: usize) -> Result<Self, IoError> {
        let slot = (longest + RING_HEADROOM).next_power_of_two();
        let block = BLOCK.max(slot);
        let slots_per_block = block / slot;
        let blocks = RING_FRAMES.div_ceil(slots_per_block);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: (blocks * slots_per_block) as u32,
        };
        SocketOption::ReceiveRing(request).set(socket)?;
        let bytes = block * blocks;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the ring that was just requested, of its very length.
        let memory = unsafe {
            let fd = socket.as_raw_fd();
            libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(IoError::last("mapping the receive ring"));
        }
        Ok(Self {
            memory: NonNull::new(memory).expect("a mapping is not at zero"),
            bytes,
            slot,
            slots_per_block,
            count: blocks * slots_per_block,
            next: 0,
        })
    }

    /// Start of slot `index`. Blocks lie one after the other and slots fill them.
    #[inline]
    fn at(&self, index: usize) -> *mut libc::c_void {
        debug_assert!(index < self.count && self.slots_per_block > 0);
        // SAFETY: within the mapping, which holds `count` slots.
        unsafe { self.memory.as_ptr().byte_add(index * self.slot) }
    }

    #[inline]
    fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: a slot begins with tpacket2_hdr, and that with the status, which the kernel and
        // this thread hand to each other; slots are aligned to their power-of-two size.
        unsafe { &*self.at(index).cast::<AtomicU32>() }
    }

    #[inline]
    fn peek(&mut self) -> Option<Received<'_>> {
        let index = self.next;
        let status = self.status(index).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.next = if index + 1 == self.count {
            0
        } else {
            index + 1
        };
        // SAFETY: the status says that the slot is ours, so its header is written; it says where
        // the frame is, and the kernel keeps that within the slot.
        let (header, bytes) = unsafe {
            let start = self.at(index);
            let header = start.cast::<libc::tpacket2_hdr>().read();
            let length = (header.tp_snaplen as usize).min(self.slot);
            let offset = usize::from(header.tp_mac).min(self.slot - length);
            (
                header,
                std::slice::from_raw_parts(start.byte_add(offset).cast(), length),
            )
        };
        let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
            header.tp_vlan_tpid
        } else {
            0x8100
        };
        Some(Received {
            bytes,
            tag: tagged.then_some((kind, header.tp_vlan_tci)),
            cut: header.tp_snaplen < header.tp_len,
            unfinished: status & libc::TP_STATUS_CSUMNOTREADY != 0,
        })
    }

    /// Gives the slot that was last looked at back to the kernel.
    #[inline]
    fn release(&mut self) {
        let index = self.next.checked_sub(1).unwrap_or(self.count - 1);
        self.status(index)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, which no reference outlives.
        unsafe {
            libc::munmap(self.memory.as_ptr(), self.bytes);
        }
    }
}

fn bind(socket: &OwnedFd, name: &str, index: i32) -> Result<(), IoError> {
    // SAFETY: sockaddr_ll is plain data, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    // SAFETY: address and length belong together.
    let answer = unsafe {
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
    };
    if answer != 0 {
        return Err(IoError::last(format!("binding a socket to {name}")));
    }
    Ok(())
}

/// An option of a packet socket, with a value of the type that it has.
enum SocketOption {
    Version2,
    IgnoreOutgoing,
    BypassQdisc,
    SendBuffer(libc::c_int),
    ReceiveRing(libc::tpacket_req),
    Membership(libc::packet_mreq),
}

impl SocketOption {
    fn set(&self, socket: &OwnedFd) -> Result<(), IoError> {
        const ON: libc::c_int = 1;
        const VERSION_2: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        let packet = libc::SOL_PACKET;
        let (level, name, (value, length)) = match self {
            Self::Version2 => (packet, libc::PACKET_VERSION, bytes(&VERSION_2)),
            Self::IgnoreOutgoing => (packet, libc::PACKET_IGNORE_OUTGOING, bytes(&ON)),
            Self::BypassQdisc => (packet, libc::PACKET_QDISC_BYPASS, bytes(&ON)),
            Self::SendBuffer(size) => (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes(size)),
            Self::ReceiveRing(ring) => (packet, libc::PACKET_RX_RING, bytes(ring)),
            Self::Membership(of) => (packet, libc::PACKET_ADD_MEMBERSHIP, bytes(of)),
        };
        let fd = socket.as_raw_fd();
        // SAFETY: the value has the type of the option and outlives the call.
        let answer = unsafe { libc::setsockopt(fd, level, name, value, length) };
        if answer != 0 {
            let what = format!("setting packet socket option {name}");
            return Err(IoError::last(what));
        }
        Ok(())
    }
}

/// Address and length of a value.
fn bytes<T>(value: &T) -> (*const libc::c_void, libc::socklen_t) {
    let length = size_of::<T>() as libc::socklen_t;
    (ptr::from_ref(value).cast(), length)
}
