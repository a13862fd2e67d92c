use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use shallows_model::FlowId;

use super::server::{Senders, set_dscp, socket};
use super::tcp_info::TcpInfo;
use super::{Outcome, REQUEST, TrafficError, give_up_root};
use crate::lab::Namespace;
use crate::since;

/// Bytes read at once.
const CHUNK: usize = 1 << 17;

/// Time limit of a handshake: five SYNs.
const LONGEST_CONNECT: Duration = Duration::from_secs(31);

/// Data that a client is to fetch.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) flow: FlowId,
    pub(super) bytes: Option<u64>,
    pub(super) dscp: u8,
    /// Zero of its times.
    pub(super) epoch: Instant,
    /// Counter of arrived bytes while the flow runs.
    pub(super) received: Arc<AtomicU64>,
}

/// A flow that has ended on some connection.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) flow: FlowId,
    pub(super) connection: usize,
    pub(super) outcome: Outcome,
    /// True if the connection can carry another flow.
    pub(super) reusable: bool,
}

/// The client's end of a connection, with a thread that fetches.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Arc<TcpStream>,
    tasks: Sender<Task>,
}

impl Connection {
    /// Connects `host` to the server at `server`, with a congestion controller or the host's.
    pub(super) fn open(
        number: usize,
        host: &Namespace,
        server: SocketAddrV4,
        controller: Option<&str>,
        senders: &Senders,
        done: Sender<Done>,
    ) -> Result<Self, TrafficError> {
        let failed = |error| TrafficError::new(format!("connecting to {server}"), error);
        let connect = || {
            let socket = socket(controller)?;
            socket.connect_timeout(&server.into(), LONGEST_CONNECT)?;
            io::Result::Ok(TcpStream::from(socket))
        };
        let stream = host.enter(connect)?.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let stream = Arc::new(stream);
        let (tasks, queue) = channel();
        let fetcher = Fetcher {
            number,
            stream: Arc::clone(&stream),
            senders: senders.clone(),
            buffer: vec![0; CHUNK],
        };
        let spawned = thread::Builder::new()
            .name("client".to_owned())
            .spawn(move || fetcher.run(&queue, &done));
        spawned.map_err(|error| TrafficError::new("starting a client", error))?;
        Ok(Self { stream, tasks })
    }

    /// Hands it a flow.
    pub(super) fn fetch(&self, task: Task) {
        // Its thread lives as long as this end of the channel.
        let _ = self.tasks.send(task);
    }

    /// Ends whatever it carries.
    pub(super) fn abort(&self) {
        // It may have been closed from the other side.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

struct Fetcher {
    number: usize,
    stream: Arc<TcpStream>,
    senders: Senders,
    buffer: Vec<u8>,
}

impl Fetcher {
    fn run(mut self, tasks: &Receiver<Task>, done: &Sender<Done>) {
        give_up_root();
        while let Ok(task) = tasks.recv() {
            let (outcome, result) = self.fetch(&task);
            let told = done.send(Done {
                flow: task.flow,
                connection: self.number,
                outcome,
                reusable: result.is_ok(),
            });
            if told.is_err() || result.is_err() {
                return;
            }
        }
    }

    fn fetch(&mut self, task: &Task) -> (Outcome, io::Result<()>) {
        let before = self.sender_info();
        let start = since(task.epoch);
        let mut outcome = Outcome {
            start: Some(start),
            ..Outcome::default()
        };
        let result = self.transfer(task, &mut outcome);
        if result.is_ok() {
            outcome.fct = Some(since(task.epoch) - start);
        }
        let counted = self.sender_info().since(before);
        outcome.retransmits = counted.retransmits;
        outcome.timeouts = counted.timeouts;
        outcome.marks = counted.marks;
        (outcome, result)
    }

    fn transfer(&mut self, task: &Task, outcome: &mut Outcome) -> io::Result<()> {
        // ACKs travel in the class of their data.
        set_dscp(&self.stream, task.dscp)?;
        let wanted = task.bytes.unwrap_or(u64::MAX);
        let mut request = [0; REQUEST];
        request[0] = task.dscp;
        request[1..].copy_from_slice(&wanted.to_be_bytes());
        (&*self.stream).write_all(&request)?;
        while outcome.received < wanted {
            let most = (wanted - outcome.received).min(CHUNK as u64) as usize;
            match (&*self.stream).read(&mut self.buffer[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => outcome.received += read as u64,
            }
            task.received.store(outcome.received, Ordering::Relaxed);
        }
        Ok(())
    }

    fn sender_info(&self) -> TcpInfo {
        let ends = self
            .stream
            .local_addr()
            .and_then(|client| Ok((client, self.stream.peer_addr()?)));
        let sender = ends
            .ok()
            .and_then(|(client, server)| self.senders.of(client, server));
        sender
            .map(|stream| TcpInfo::of(&stream))
            .unwrap_or_default()
    }
}
