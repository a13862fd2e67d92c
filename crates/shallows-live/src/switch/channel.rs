//! The control messages of coordinators, as UDP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_core::xco::coordinator::Coordinator;

use super::engine::Outgoing;
use super::{Destinations, Engine};
use crate::frame::Frame;
use crate::io::IoError;

/// Interval at which sockets are polled for messages, in a loop that polls.
const LISTEN_EVERY: Time = Time::from_us(10);

/// Messages taken from a socket before frames have their turn again.
const MESSAGES_AT_A_TURN: usize = 16;

/// The longest message that is read; longer ones are cut and refused.
pub(crate) const LONGEST_MESSAGE: usize = 2048;

/// An address that no agent has: what strangers say is refused and counted.
pub(crate) const STRANGER: u32 = u32::MAX;

/// A coordinator's part of a hierarchy of controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// There is no hierarchy.
    #[default]
    Cluster,
    /// Pairs inside the host's pod.
    Pod,
    /// Pairs between pods.
    Root,
}

impl Level {
    /// Its name in status and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Pod => "pod",
            Self::Root => "root",
        }
    }
}

/// A coordinator, and how it speaks with its controllers.
#[derive(Debug)]
pub struct Coordination {
    /// The coordinator's host.
    pub host: u32,
    /// Its part of a hierarchy.
    pub level: Level,
    /// The coordinator. Its clock is that of the switch, which starts at zero.
    pub coordinator: Coordinator<Frame>,
    /// Its position.
    pub position: Position,
    /// Whom frames are for.
    pub destinations: Arc<Destinations>,
    /// A socket that does not block, in whatever network namespace.
    pub socket: UdpSocket,
    /// The controllers' addresses.
    pub controllers: Vec<(u32, SocketAddr)>,
    /// The UDP port of control messages, if they pass this coordinator as frames.
    pub control_port: Option<u16>,
}

/// Frames that a coordinator holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Those that come in at this port, before its uplink.
    Uplink(usize),
    /// Those that leave by this port.
    Egress(usize),
}

/// The sockets of all coordinators.
#[derive(Debug)]
pub(super) struct Channels {
    epoll: Epoll,
    channels: Vec<Channel>,
    next: Time,
    /// Messages that the kernel did not take.
    pub(super) unsent: u64,
}

#[derive(Debug)]
struct Channel {
    socket: UdpSocket,
    controllers: Vec<(u32, SocketAddr)>,
}

impl Channels {
    pub(super) fn new() -> Result<Self, IoError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        Ok(Self {
            epoll: epoll.map_err(|error| IoError::new("epoll".to_owned(), error.into()))?,
            channels: Vec::new(),
            next: Time::ZERO,
            unsent: 0,
        })
    }

    pub(super) fn add(
        &mut self,
        socket: UdpSocket,
        controllers: Vec<(u32, SocketAddr)>,
    ) -> Result<(), IoError> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, self.channels.len() as u64);
        let added = self.epoll.add(&socket, event);
        added.map_err(|error| IoError::new("the control socket".to_owned(), error.into()))?;
        self.channels.push(Channel {
            socket,
            controllers,
        });
        Ok(())
    }

    /// File descriptor to wait for.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        (!self.channels.is_empty()).then(|| self.epoll.0.as_fd())
    }

    /// Hands messages that have come in to their coordinators, from time to time.
    #[inline]
    pub(super) fn listen(&mut self, now: Time, engine: &mut Engine) {
        if now >= self.next && !self.channels.is_empty() {
            self.next = now + LISTEN_EVERY;
            self.receive(now, engine);
        }
    }

    fn receive(&mut self, now: Time, engine: &mut Engine) {
        let mut ready = [EpollEvent::empty(); 64];
        let count = self.epoll.wait(&mut ready, EpollTimeout::ZERO).unwrap_or(0);
        let mut buffer = [0; LONGEST_MESSAGE];
        for event in &ready[..count] {
            let number = event.data() as usize;
            let Channel {
                socket,
                controllers,
            } = &self.channels[number];
            for _ in 0..MESSAGES_AT_A_TURN {
                match socket.recv_from(&mut buffer) {
                    Ok((length, source)) => {
                        let known = controllers.iter().find(|(_, address)| *address == source);
                        let from = known.map_or(STRANGER, |(controller, _)| *controller);
                        engine.handle_message(now, number, from, &buffer[..length]);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // An ICMP error of an earlier message: the next one may be there.
                    Err(_) => {}
                }
            }
        }
    }

    /// Sends what coordinators have to say.
    #[inline]
    pub(super) fn send(&mut self, engine: &mut Engine) {
        for outgoing in engine.take_outgoing() {
            let Outgoing {
                coordinator,
                to,
                message,
            } = outgoing;
            let Channel {
                socket,
                controllers,
            } = &self.channels[coordinator];
            let address = controllers.iter().find(|(controller, _)| *controller == to);
            let sent = address.map(|(_, address)| socket.send_to(&message, address));
            // The protocol repeats what is lost.
            self.unsent += u64::from(!matches!(sent, Some(Ok(_))));
        }
    }
}
