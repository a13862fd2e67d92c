//! Directives without the key, to show that they are refused.
//!
//! Everything that somebody on the network can do who has no key: say it from an address of his
//! own, say it in the name of the controller, and say again what the controller has said.

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use shallows_core::units::{Rate, Time};
use shallows_core::xco::message::{Body, Directive, Epoch, Header, Key, Permit, PermitKind, seal};
use socket2::{Domain, Protocol, Socket, Type};

/// Length of the IPv4 and UDP headers that are made here.
const HEADERS: usize = 28;

/// Somebody who wants to be taken for the controller.
#[derive(Debug)]
pub struct Forger {
    /// A raw socket: the source of its packets is ours to choose.
    socket: Socket,
    /// Sees what the victim receives.
    tap: Socket,
    controller: (u32, SocketAddrV4),
    victim: (u32, SocketAddrV4),
    sequence: u64,
    recorded: Option<Vec<u8>>,
}

/// An attempt of a [`Forger`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A directive from its own address.
    OwnAddress,
    /// A directive from the controller's address, with a wrong tag.
    Spoofed,
    /// A directive of the controller once more.
    Replayed,
}

impl Attempt {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OwnAddress, Self::Spoofed, Self::Replayed];
}

/// A socket that sees the UDP packets that the namespace of the calling thread receives.
pub fn open_tap() -> io::Result<Socket> {
    let tap = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP))?;
    tap.set_read_timeout(Some(Duration::from_millis(200)))?;
    Ok(tap)
}

impl Forger {
    /// A forger in the network namespace of the calling thread. `tap` is open where the victim is.
    pub fn new(
        tap: Socket,
        controller: (u32, SocketAddrV4),
        victim: (u32, SocketAddrV4),
    ) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::IPV4,
            Type::RAW,
            Some(Protocol::from(libc::IPPROTO_RAW)),
        )?;
        Ok(Self {
            socket,
            tap,
            controller,
            victim,
            sequence: 1 << 40,
            recorded: None,
        })
    }

    /// Tries it; false if there is nothing to replay yet.
    pub fn attempt(&mut self, attempt: Attempt) -> io::Result<bool> {
        let source = *self.controller.1.ip();
        match attempt {
            Attempt::OwnAddress => {
                let message = self.directive();
                // The kernel puts the address in.
                self.send(Ipv4Addr::UNSPECIFIED, &message)?;
            }
            Attempt::Spoofed => {
                let message = self.directive();
                self.send(source, &message)?;
            }
            Attempt::Replayed => {
                if self.recorded.is_none() {
                    self.recorded = self.record()?;
                }
                let Some(message) = self.recorded.clone() else {
                    return Ok(false);
                };
                self.send(source, &message)?;
            }
        }
        Ok(true)
    }

    /// A directive to send at will for an hour, sealed with a key that is a guess.
    fn directive(&mut self) -> Vec<u8> {
        self.sequence += 1;
        let header = Header {
            from: self.controller.0,
            to: self.victim.0,
            incarnation: u64::MAX,
            sequence: self.sequence,
        };
        let epoch = Epoch {
            counter: u32::MAX,
            leader: self.controller.0,
        };
        let permit = Permit {
            destination: 0,
            kind: PermitKind::Exempt,
            until: Time::from_secs(3600),
            rate: Rate::from_gbps(100),
        };
        let directive = Directive {
            epoch,
            is_granting: true,
            permits: vec![permit],
            ..Directive::default()
        };
        let mut message = Vec::new();
        let key = Key::new([0x5a; 16]);
        seal(&key, &header, &Body::Directive(directive), &mut message);
        message
    }

    /// A message of the controller to the victim, as it passes.
    fn record(&self) -> io::Result<Option<Vec<u8>>> {
        let (source, port) = (self.controller.1.ip(), self.controller.1.port());
        let mut buffer = [0; 2048];
        for _ in 0..50 {
            let length = match (&self.tap).read(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let packet = &buffer[..length];
            let is_ours = packet.len() > HEADERS
                && packet[12..16] == source.octets()
                && packet[20..22] == port.to_be_bytes();
            if is_ours {
                return Ok(Some(packet[HEADERS..].to_vec()));
            }
        }
        Ok(None)
    }

    fn send(&self, source: Ipv4Addr, message: &[u8]) -> io::Result<()> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
        packet.extend(source.octets());
        packet.extend(self.victim.1.ip().octets());
        packet.extend(self.controller.1.port().to_be_bytes());
        packet.extend(self.victim.1.port().to_be_bytes());
        packet.extend((8 + message.len() as u16).to_be_bytes());
        // No checksum, which IPv4 allows.
        packet.extend([0, 0]);
        packet.extend(message);
        let to = SocketAddr::from((*self.victim.1.ip(), 0));
        self.socket.send_to(&packet, &to.into()).map(drop)
    }
}
