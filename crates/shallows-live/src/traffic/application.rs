//! Applications between the hosts of a lab: the state machines of the core over real sockets.
//!
//! A message carries what it is in its first bytes ([`HEADER`]), so that none is shorter than that.
//! Each member of an application has a thread, and each connection of two members a pair of sockets,
//! which are open before the run begins. A short connection is opened by its client when the
//! application says so, and ends when the next one is.

mod codec;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use shallows_core::application::{Connection, Message, Protocol};
use shallows_core::host::stack::{self, HostStack, Seat, Step, Turn};
use shallows_core::packet::Descriptor;
use shallows_core::units::Time;
use shallows_model::{ApplicationSetup, Id as _};
use socket2::{Domain, SockRef, Type};

use codec::{HEADER, decode, encode, wire_length};

use super::{TrafficError, dscp, give_up_root};
use crate::lab::{self, Lab, Namespace};
use crate::since;

/// Bytes read at once, as many as the largest datagram has.
const CHUNK: usize = 1 << 16;

/// The longest time between two looks at whether to go on.
const ATTENTION: Duration = Duration::from_millis(50);

/// The one member of each stack.
const SEAT: Seat = Seat {
    application: 0,
    member: 0,
};

/// Time limit of a handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// An operation that an application did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationTime {
    /// Name of the application.
    pub application: String,
    /// The host that did it.
    pub host: usize,
    /// Name of the operation.
    pub name: &'static str,
    /// Start time.
    pub start: Time,
    /// Latency of the operation.
    pub latency: Time,
}

/// The part of an application at a host, with its sockets.
#[derive(Debug)]
pub(crate) struct Member {
    application: String,
    host: usize,
    namespace: Namespace,
    dscp: u8,
    /// A host with this member alone: its packets are the kernel's.
    stack: HostStack<Descriptor>,
    /// Time at which the stack wants to act.
    wake: Option<Time>,
    ends: BTreeMap<u32, End>,
    /// Servers of this member's short connections.
    servers: BTreeMap<u32, SocketAddr>,
    /// Listeners for short connections, each at a port of its own.
    listeners: BTreeMap<u32, TcpListener>,
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    socket: Socket,
    /// Messages still to be written.
    outbox: VecDeque<Vec<u8>>,
    /// Written bytes of the first one.
    written: usize,
    /// Received part of the next message's header.
    header: Vec<u8>,
    /// The message whose header has come, and how many bytes it still lacks.
    coming: Option<(Message, u64)>,
    /// True if the other end hangs up when it is done.
    is_short: bool,
}

#[derive(Debug)]
enum Socket {
    Stream(TcpStream),
    Datagram(UdpSocket),
}

/// Opens the connections of applications.
pub(crate) fn prepare(lab: &Lab, plans: &[ApplicationSetup]) -> Result<Vec<Member>, TrafficError> {
    let mut members = Vec::new();
    for plan in plans {
        let failed = |error| TrafficError::new(format!("preparing {}", plan.name), error);
        let built = plan
            .plan()
            .map_err(|error| failed(io::Error::other(error)))?;
        let parts = plan.hosts.iter().zip(built.parts);
        let mut of_plan: Vec<Member> = parts
            .map(|(&host, part)| {
                let mut stack = HostStack::default();
                stack.add_member(SEAT, part);
                Member {
                    application: plan.name.clone(),
                    host: host.index(),
                    namespace: lab.host(host.index()).clone(),
                    dscp: dscp(plan.service),
                    stack,
                    wake: None,
                    ends: BTreeMap::new(),
                    servers: BTreeMap::new(),
                    listeners: BTreeMap::new(),
                }
            })
            .collect();
        for (number, connection) in (0..).zip(&built.connections) {
            let (from, to) = (connection.from as usize, connection.to as usize);
            if connection.protocol == Protocol::ShortStream {
                let (listener, address) = listen(lab, plan.hosts[to].index())?;
                of_plan[to].listeners.insert(number, listener);
                of_plan[from].servers.insert(number, address);
            } else {
                let ends = connect(lab, plan, *connection)?;
                of_plan[from].ends.insert(number, ends.0);
                of_plan[to].ends.insert(number, ends.1);
            }
        }
        members.extend(of_plan);
    }
    Ok(members)
}

/// A listener at a host, which never blocks, and its address.
fn listen(lab: &Lab, host: usize) -> Result<(TcpListener, SocketAddr), TrafficError> {
    let address = lab::address(host);
    let bind = || TcpListener::bind((address, 0));
    let listener = lab.host(host).enter(bind)?.and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    listener.map_err(|error| TrafficError::new(format!("listening at {address}"), error))
}

/// A connection between two members that is kept: its ends, in the order of the members.
fn connect(
    lab: &Lab,
    plan: &ApplicationSetup,
    connection: Connection,
) -> Result<(End, End), TrafficError> {
    let host = |member: u32| plan.hosts[member as usize].index();
    let (from, to) = (host(connection.from), host(connection.to));
    let (from_address, to_address) = (lab::address(from), lab::address(to));
    let failed = |error| {
        let what = format!(
            "connecting {} from {from_address} to {to_address}",
            plan.name
        );
        TrafficError::new(what, error)
    };
    let (from, to) = (lab.host(from), lab.host(to));
    let ends = match connection.protocol {
        Protocol::Datagram => {
            let bind = |address| move || UdpSocket::bind((address, 0));
            let from = from.enter(bind(from_address))?.map_err(failed)?;
            let to = to.enter(bind(to_address))?.map_err(failed)?;
            let join = || {
                from.connect(to.local_addr()?)?;
                to.connect(from.local_addr()?)
            };
            join().map_err(failed)?;
            (Socket::Datagram(from), Socket::Datagram(to))
        }
        Protocol::Stream | Protocol::ShortStream => {
            let (listener, address) = listen(lab, host(connection.to))?;
            listener.set_nonblocking(false).map_err(failed)?;
            let from = from.enter(|| TcpStream::connect_timeout(&address, CONNECT))?;
            let from = from.map_err(failed)?;
            let (to, _) = listener.accept().map_err(failed)?;
            (Socket::Stream(from), Socket::Stream(to))
        }
    };
    let end = |socket| End::new(socket, dscp(plan.service)).map_err(failed);
    Ok((end(ends.0)?, end(ends.1)?))
}

impl Member {
    /// Does what the application wants until `stop` says so, and tells what it saw.
    pub(crate) fn run(
        mut self,
        epoch: Instant,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<OperationTime>, TrafficError> {
        if !self.servers.is_empty() {
            // Its sockets are made while it runs.
            self.namespace.join()?;
        }
        give_up_root();
        let mut buffer = vec![0; CHUNK];
        let mut result = self.begin(epoch);
        while result.is_ok() && !stop() {
            result = self.turn(epoch, &mut buffer);
        }
        // At the end of a run the others hang up one after the other.
        if let Err(error) = result
            && !stop()
        {
            let what = format!("{} at host {}", self.application, self.host);
            return Err(TrafficError::new(what, error));
        }
        let samples = self.stack.members().iter().flat_map(stack::Member::samples);
        let seen = samples.map(|sample| OperationTime {
            application: self.application.clone(),
            host: self.host,
            name: sample.name,
            start: sample.start,
            latency: sample.latency,
        });
        Ok(seen.collect())
    }

    fn begin(&mut self, epoch: Instant) -> io::Result<()> {
        let turn = self.stack.start();
        self.drive(since(epoch), turn)
    }

    /// Sends what is to be sent now, waits for sockets or the application's next time, and delivers
    /// what has come.
    fn turn(&mut self, epoch: Instant, buffer: &mut [u8]) -> io::Result<()> {
        let now = since(epoch);
        if self.wake.is_some_and(|at| at <= now) {
            self.wake = None;
            let turn = self.stack.handle_timeout(now);
            self.drive(now, turn)?;
        }
        for end in self.ends.values_mut() {
            match end.flush() {
                // The other end has hung up, as reading will tell.
                Err(_) if end.is_short => {}
                flushed => flushed?,
            }
        }
        let wait = self
            .wake
            .map(|at| at.saturating_sub(now).ps().div_ceil(1_000));
        let wait = wait.map_or(ATTENTION, Duration::from_nanos);
        let (readable, called) = self.wait(wait.min(ATTENTION));
        for number in readable {
            let Some(end) = self.ends.get_mut(&number) else {
                continue;
            };
            let mut arrived = Vec::new();
            let read = end.read(buffer, |message| arrived.push((since(epoch), message)));
            match read {
                Err(_) if end.is_short => {
                    self.ends.remove(&number);
                }
                read => read?,
            }
            for (now, message) in arrived {
                let turn = self.stack.deliver(now, SEAT, number, message);
                self.drive(now, turn)?;
            }
        }
        for number in called {
            if let Ok((stream, _)) = self.listeners[&number].accept() {
                let end = End::new(Socket::Stream(stream), self.dscp)?.short();
                self.ends.insert(number, end);
            }
        }
        Ok(())
    }

    /// Opens a short connection, in place of the one before.
    fn open(&mut self, number: u32) -> io::Result<()> {
        let Some(&server) = self.servers.get(&number) else {
            return Ok(());
        };
        let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&server.into()) {
            // It is under way, and what is written waits for it.
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let end = End::new(Socket::Stream(socket.into()), self.dscp)?.short();
        self.ends.insert(number, end);
        Ok(())
    }

    /// Does what follows from a call of the stack.
    fn drive(&mut self, now: Time, mut turn: Turn<Descriptor>) -> io::Result<()> {
        while let Some(step) = self.stack.step(now, &mut turn) {
            match step {
                Step::Open { connection, .. } => self.open(connection)?,
                Step::Write {
                    connection,
                    message,
                    ..
                } => {
                    if let Some(end) = self.ends.get_mut(&connection) {
                        end.outbox.push_back(encode(message));
                    }
                }
                Step::Wake(at) => self.wake = Some(at),
                // Packets are the kernel's, agents are elsewhere, and broadcasts are refused.
                Step::Send(_)
                | Step::Drop { .. }
                | Step::Message { .. }
                | Step::Resume(_)
                | Step::Broadcast { .. } => {}
            }
        }
        Ok(())
    }

    /// The connections on which something has come within `longest`, and those that are to be taken.
    fn wait(&self, longest: Duration) -> (Vec<u32>, Vec<u32>) {
        let interest = |end: &End| {
            if end.outbox.is_empty() {
                PollFlags::POLLIN
            } else {
                PollFlags::POLLIN | PollFlags::POLLOUT
            }
        };
        let mut files: Vec<PollFd<'_>> = self
            .ends
            .values()
            .map(|end| match &end.socket {
                Socket::Stream(stream) => PollFd::new(stream.as_fd(), interest(end)),
                Socket::Datagram(socket) => PollFd::new(socket.as_fd(), interest(end)),
            })
            .collect();
        let listeners = self.listeners.values();
        files.extend(listeners.map(|of| PollFd::new(of.as_fd(), PollFlags::POLLIN)));
        // A signal only ends the wait.
        let _ = ppoll(&mut files, Some(TimeSpec::from_duration(longest)), None);
        let (ends, listeners) = files.split_at(self.ends.len());
        (
            ready(self.ends.keys(), ends),
            ready(self.listeners.keys(), listeners),
        )
    }
}

/// The numbers of those files on which something has happened.
fn ready<'a>(numbers: impl Iterator<Item = &'a u32>, files: &[PollFd<'_>]) -> Vec<u32> {
    let came = |file: &PollFd<'_>| file.any().unwrap_or_default();
    let numbers = numbers.zip(files);
    numbers
        .filter_map(|(&number, file)| came(file).then_some(number))
        .collect()
}

impl End {
    /// One that the other side may end.
    fn short(self) -> Self {
        Self {
            is_short: true,
            ..self
        }
    }

    fn new(socket: Socket, dscp: u8) -> io::Result<Self> {
        let tos = u32::from(dscp) << 2;
        match &socket {
            Socket::Stream(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                SockRef::from(stream).set_tos_v4(tos)?;
            }
            Socket::Datagram(socket) => {
                socket.set_nonblocking(true)?;
                SockRef::from(socket).set_tos_v4(tos)?;
            }
        }
        Ok(Self {
            socket,
            outbox: VecDeque::new(),
            written: 0,
            header: Vec::with_capacity(HEADER),
            coming: None,
            is_short: false,
        })
    }

    /// Writes as much as goes.
    fn flush(&mut self) -> io::Result<()> {
        while let Some(first) = self.outbox.front() {
            let written = match &mut self.socket {
                Socket::Stream(stream) => stream.write(&first[self.written..]),
                // What does not go is lost, as any datagram may be.
                Socket::Datagram(socket) => {
                    let _ = socket.send(first);
                    Ok(first.len())
                }
            };
            match written {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.written == first.len() {
                self.outbox.pop_front();
                self.written = 0;
            }
        }
        Ok(())
    }

    /// Takes what has come, and tells of messages that are complete.
    fn read(&mut self, buffer: &mut [u8], mut deliver: impl FnMut(Message)) -> io::Result<()> {
        loop {
            let read = match &mut self.socket {
                Socket::Stream(stream) => stream.read(buffer),
                Socket::Datagram(socket) => socket.recv(buffer),
            };
            let read = match (read, &self.socket) {
                (Ok(0), Socket::Stream(_)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (Ok(read), _) => read,
                (Err(error), _) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Nobody listened to an earlier datagram, which is lost then.
                (Err(_), Socket::Datagram(_)) => continue,
                (Err(error), Socket::Stream(_)) => return Err(error),
            };
            self.take(&buffer[..read], &mut deliver);
        }
    }

    fn take(&mut self, mut bytes: &[u8], mut deliver: impl FnMut(Message)) {
        while !bytes.is_empty() {
            if self.coming.is_none() {
                let lacking = (HEADER - self.header.len()).min(bytes.len());
                let (of_header, rest) = bytes.split_at(lacking);
                self.header.extend_from_slice(of_header);
                bytes = rest;
                let Some(message) = decode(&self.header) else {
                    return;
                };
                self.header.clear();
                self.coming = Some((message, wire_length(message) - HEADER as u64));
            }
            if let Some((message, lacking)) = &mut self.coming {
                let of_message = (*lacking).min(bytes.len() as u64);
                bytes = &bytes[of_message as usize..];
                *lacking -= of_message;
                if *lacking == 0 {
                    deliver(*message);
                    self.coming = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However a stream is cut, the same messages come out of it.
    #[test]
    fn messages_survive_any_cut_of_their_stream() {
        let message = |bytes, tag| Message {
            bytes,
            kind: 3,
            tag,
            reply: 700,
        };
        // The second is shorter than a header.
        let sent = [message(100, 1), message(4, 2), message(25, u64::MAX)];
        let stream: Vec<u8> = sent.iter().flat_map(|of| encode(*of)).collect();
        assert_eq!(stream.len(), 100 + 25 + 25);
        for step in 1..=stream.len() {
            let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
            let mut end = End::new(Socket::Datagram(socket), 0).unwrap();
            let mut received = Vec::new();
            for bytes in stream.chunks(step) {
                end.take(bytes, |message| received.push(message));
            }
            assert_eq!(received, sent, "in steps of {step}");
        }
    }
}
