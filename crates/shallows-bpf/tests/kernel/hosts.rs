//! Two hosts and a cable between them, and what they send each other.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::Flock;
use shallows_bpf::qjump::{self, Device, Status, priority_of};
use shallows_testing::{alone, skipped};
use socket2::{Domain, SockRef, Socket, Type};

use crate::lab::{run, within};

/// Two hosts and a cable, removed whatever happens.
pub(crate) struct Hosts {
    pub(crate) sender: String,
    pub(crate) receiver: String,
    _lock: Flock<File>,
}

const RECEIVER: [u8; 4] = [10, 98, 1, 2];

impl Hosts {
    /// None, with the reason printed, where this machine cannot do it.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if let Err(reason) = shallows_bpf::check() {
            skipped(&reason.to_string());
            return None;
        }
        let lock = alone();
        let hosts = Self {
            sender: format!("shallows-bpf-test-hq-{test}-a"),
            receiver: format!("shallows-bpf-test-hq-{test}-b"),
            _lock: lock,
        };
        let (a, b) = (&hosts.sender, &hosts.receiver);
        for name in [a, b] {
            remove(name);
            run(&format!("ip netns add {name}"));
        }
        run(&format!(
            "ip link add eth0 netns {a} type veth peer name eth0 netns {b}"
        ));
        for (name, address) in [(a, 1), (b, 2)] {
            run(&format!(
                "ip -n {name} addr add 10.98.1.{address}/24 dev eth0"
            ));
            run(&format!("ip -n {name} link set eth0 up"));
            run(&format!("ip -n {name} link set lo up"));
        }
        Some(hosts)
    }

    pub(crate) fn device(&self) -> Device {
        Device {
            name: "eth0".to_owned(),
            netns: Some(self.sender.clone()),
        }
    }

    pub(crate) fn tc(&self, arguments: &str) {
        run(&format!("tc -n {} {arguments}", self.sender));
    }

    /// A slow link whose queue fills: the audit's tbf of 20 Mbps with a queue in it.
    pub(crate) fn slow(&self, inside: &str) {
        self.tc("qdisc add dev eth0 root handle 1: tbf rate 20mbit burst 4000 limit 4000000");
        self.tc(&format!(
            "qdisc add dev eth0 parent 1:1 handle 10: {inside}"
        ));
    }

    pub(crate) fn status(&self) -> Status {
        let limiters = qjump::status().unwrap().into_iter();
        let mut ours = limiters.filter(|limiter| limiter.device == self.device());
        ours.next().expect("there is a limiter")
    }

    pub(crate) fn receive_at(&self, port: u16) -> UdpSocket {
        within(&self.receiver, || UdpSocket::bind(to(port)).unwrap())
    }

    /// A socket at a level; none marks nothing.
    pub(crate) fn udp(&self, level: Option<u8>) -> UdpSocket {
        within(&self.sender, || {
            let socket = UdpSocket::bind("10.98.1.1:0").unwrap();
            if let Some(level) = level {
                let priority = priority_of(level);
                SockRef::from(&socket).set_priority(priority).unwrap();
            }
            socket
        })
    }

    /// Bytes that arrive of a TCP transfer with a level and a TOS, until nothing has come for a
    /// second. With a level the send buffer has ten frames, as `shallows exec` would make it.
    pub(crate) fn transfer(&self, level: Option<u8>, tos: u32, bytes: usize) -> usize {
        let listener: TcpListener = within(&self.receiver, || TcpListener::bind(to(0)).unwrap());
        let address = listener.local_addr().unwrap();
        let client: TcpStream = within(&self.sender, || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_tos_v4(tos).unwrap();
            if let Some(level) = level {
                socket.set_priority(priority_of(level)).unwrap();
                socket.set_send_buffer_size(15_380).unwrap();
            }
            socket.connect(&address.into()).unwrap();
            socket.into()
        });
        let (mut server, _) = listener.accept().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let _ = (&client).write_all(&vec![0; bytes]);
                // Held open until the receiver has given up.
                let mut buffer = [0];
                let _ = (&client).read(&mut buffer);
            });
            server
                .set_read_timeout(Some(Duration::from_secs(1)))
                .unwrap();
            let (mut buffer, mut got) = (vec![0; 1 << 16], 0);
            while got < bytes
                && let Ok(some @ 1..) = server.read(&mut buffer)
            {
                got += some;
            }
            drop(server);
            got
        })
    }

    /// Latencies of 100 B every 10 ms at a level, next to bulk without one if wanted, in order.
    pub(crate) fn latencies(&self, level: u8, with_bulk: bool) -> Vec<Duration> {
        let done = AtomicBool::new(false);
        let began = Instant::now();
        let receiver = self.receive_at(7000);
        let sink = self.receive_at(7001);
        let (probe, bulk) = (self.udp(Some(level)), self.udp(None));
        thread::scope(|scope| {
            if with_bulk {
                let (done, bulk) = (&done, &bulk);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        // About twice what the link carries.
                        for _ in 0..35 {
                            let _ = bulk.send_to(&[0; 1400], to(7001));
                        }
                        thread::sleep(Duration::from_millis(10));
                    }
                });
                // A queue first.
                thread::sleep(Duration::from_millis(300));
            }
            scope.spawn(|| {
                for _ in 0..100 {
                    let mut packet = [0; 100];
                    let now = began.elapsed().as_nanos() as u64;
                    packet[..8].copy_from_slice(&now.to_ne_bytes());
                    probe.send_to(&packet, to(7000)).unwrap();
                    thread::sleep(Duration::from_millis(10));
                }
            });
            let patience = Some(Duration::from_millis(500));
            receiver.set_read_timeout(patience).unwrap();
            let (mut found, mut packet) = (Vec::new(), [0; 100]);
            while found.len() < 100 && receiver.recv(&mut packet).is_ok() {
                let sent = u64::from_ne_bytes(packet[..8].try_into().unwrap());
                found.push(began.elapsed().saturating_sub(Duration::from_nanos(sent)));
            }
            done.store(true, Ordering::Relaxed);
            drop(sink);
            found.sort();
            found
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = qjump::remove(&self.device());
        for name in [&self.sender, &self.receiver] {
            remove(name);
        }
    }
}

/// An address of the receiver.
pub(crate) fn to(port: u16) -> SocketAddr {
    SocketAddr::from((RECEIVER, port))
}

/// Removes a network namespace, if there is one of that name.
fn remove(name: &str) {
    let _ = Command::new("ip").args(["netns", "del", name]).output();
}
