use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use shallows_core::units::Time;
use socket2::{Domain, Protocol, Socket, Type};

use super::{TrafficError, give_up_root};
use crate::lab::Namespace;
use crate::since;

/// An answer that takes longer is lost.
const LONGEST: Duration = Duration::from_secs(1);

/// The longest time until a prober finds that it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Number of the next prober of this process.
static NEXT: AtomicU16 = AtomicU16::new(0);

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// A ping, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// Destination.
    pub to: Ipv4Addr,
    /// DSCP of the requests, which answers have as well.
    pub dscp: u8,
    /// Time of the first request.
    pub start: Duration,
    /// Interval between requests.
    pub every: Duration,
}

/// One request and what came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Send time.
    pub sent: Time,
    /// Round-trip time, by the kernel's stamp of the answer's arrival; `None` if it was lost.
    pub rtt: Option<Time>,
}

/// ICMP echo requests from a host, one at a time.
#[derive(Debug)]
pub struct Prober {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Ping>>,
}

impl Prober {
    /// Starts to ping from `host`; times count from `epoch`. A ping whose answer takes longer than the
    /// interval delays the next one.
    pub fn start(host: &Namespace, plan: ProbePlan, epoch: Instant) -> Result<Self, TrafficError> {
        let failed = |error| TrafficError::new("opening a socket for ping", error);
        let socket = host.enter(|| open(plan))?.map_err(failed)?;
        // Every socket of a host gets all its answers.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let identifier = (std::process::id() as u16).wrapping_add(number);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let ping = move || {
            give_up_root();
            let mut pings = Vec::new();
            let mut next = Instant::now().max(epoch + plan.start);
            while !seen.load(Ordering::Relaxed) {
                let wait = next.saturating_duration_since(Instant::now());
                if !wait.is_zero() {
                    thread::sleep(wait.min(LOOK_EVERY));
                    continue;
                }
                let sent = since(epoch);
                let rtt = echo(&socket, identifier, pings.len() as u16).unwrap_or(None);
                pings.push(Ping { sent, rtt });
                next = (next + plan.every).max(Instant::now());
            }
            pings
        };
        let thread = thread::Builder::new().name("ping".to_owned()).spawn(ping);
        let thread = thread.map_err(|error| TrafficError::new("starting a ping", error))?;
        Ok(Self { stop, thread })
    }

    /// Ends it; what it has seen.
    pub fn finish(self) -> Vec<Ping> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// A socket that gets answers of the destination only.
fn open(plan: ProbePlan) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
    socket.set_tos_v4(u32::from(plan.dscp) << 2)?;
    socket.connect(&SocketAddrV4::new(plan.to, 0).into())?;
    socket.set_read_timeout(Some(LONGEST))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

/// Sends a request and waits for its answer.
fn echo(socket: &Socket, identifier: u16, sequence: u16) -> io::Result<Option<Time>> {
    let request = request(identifier, sequence);
    let sent = since_1970(SystemTime::now());
    socket.send(&request)?;
    let deadline = Instant::now() + LONGEST;
    let mut buffer = [0; 256];
    while Instant::now() < deadline {
        let (length, arrived) = receive(socket, &mut buffer)?;
        let packet = &buffer[..length];
        let header = usize::from(packet.first().copied().unwrap_or_default() & 0xf) * 4;
        let Some(icmp) = packet.get(header..).filter(|icmp| icmp.len() >= 8) else {
            continue;
        };
        if icmp[0] == ECHO_REPLY && icmp[4..8] == request[4..8] {
            let arrived = arrived.unwrap_or_else(|| since_1970(SystemTime::now()));
            let rtt = arrived.saturating_sub(sent);
            return Ok(Some(Time::from_duration(rtt)));
        }
    }
    Ok(None)
}

/// The next packet, and when the kernel got it.
fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<(usize, Option<Duration>)> {
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let fd = socket.as_raw_fd();
    let message = recvmsg::<()>(fd, &mut parts, Some(&mut control), MsgFlags::empty())?;
    let stamp = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
        _ => None,
    });
    Ok((message.bytes, stamp))
}

fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// An echo request of 64 bytes with its checksum.
fn request(identifier: u16, sequence: u16) -> [u8; 64] {
    let mut packet = [0; 64];
    packet[0] = ECHO_REQUEST;
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    let words = packet
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[2..4].copy_from_slice(&checksum.to_be_bytes());
    packet
}
