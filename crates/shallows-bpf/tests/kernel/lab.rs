//! Two hosts and a switch in network namespaces, removed whatever happens.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use nix::fcntl::Flock;
use nix::sched::{CloneFlags, setns};
use shallows_bpf::{Controller, Parameters, Socket as Seen};
use shallows_live::io::{Offload, set_offload};
use shallows_testing::{alone, skipped};
use socket2::{Domain, Socket, Type};

/// Names of namespaces begin with it; the controller that they were made for follows.
const PREFIX: &str = "shallows-bpf-test-";

/// What is between the hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Nothing.
    Plain,
    /// A slow link with a deep queue that marks nothing.
    Slow,
    /// The same, and every 16th segment with data is marked.
    Marking,
}

/// An end of the connections.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Client,
    Server,
}

/// The offloads that let one frame stand for several.
const SEGMENTATION: [Offload; 3] = [
    Offload::TcpSegmentation,
    Offload::GenericSegmentation,
    Offload::GenericReceive,
];

/// The hosts, and a controller that is loaded as long as they are there.
pub(crate) struct Lab {
    client: String,
    server: String,
    switch: String,
    controller: Controller,
    /// Controllers are the machine's, so one test at a time.
    _lock: Flock<File>,
}

impl Lab {
    /// None, with the reason printed, where this machine cannot do it.
    pub(crate) fn with(controller: Controller, switch: Switch) -> Option<Self> {
        if let Err(reason) = shallows_bpf::check() {
            skipped(&reason.to_string());
            return None;
        }
        let lock = alone();
        clean_up_after_crashes();
        if shallows_bpf::is_loaded(controller).unwrap() {
            skipped(&format!(
                "{controller} is loaded on this machine, and may be in use"
            ));
            return None;
        }
        let name = |what: &str| format!("{PREFIX}{controller}-{what}");
        let lab = Self {
            client: name("client"),
            server: name("server"),
            switch: name("switch"),
            controller,
            _lock: lock,
        };
        // In this order, so that a crash leaves the namespaces that tell of the load.
        lab.build(switch);
        shallows_bpf::load(controller, &Parameters::default()).unwrap();
        Some(lab)
    }

    fn build(&self, switch: Switch) {
        let x = &self.switch;
        run(&format!("ip netns add {x}"));
        set(x, "net.ipv4.ip_forward", "1");
        for (host, port) in [(&self.client, 1), (&self.server, 2)] {
            run(&format!("ip netns add {host}"));
            run(&format!(
                "ip link add port0 netns {host} type veth peer name port{port} netns {x}"
            ));
            run(&format!(
                "ip -n {host} addr add 10.99.{port}.2/24 dev port0"
            ));
            run(&format!(
                "ip -n {x} addr add 10.99.{port}.1/24 dev port{port}"
            ));
            for (namespace, device) in [(host, "port0".into()), (x, format!("port{port}"))] {
                // Frames as on a wire: none stands for several.
                within(namespace, || {
                    for offload in SEGMENTATION {
                        set_offload(&device, offload, false).unwrap();
                    }
                });
                run(&format!(
                    "ip -n {namespace} link set {device} gso_max_segs 1 up"
                ));
            }
            run(&format!(
                "ip -n {host} route add default via 10.99.{port}.1"
            ));
        }
        if switch != Switch::Plain {
            run(&format!(
                "tc -n {x} qdisc add dev port2 root tbf rate 100mbit burst 4600 limit 10mb"
            ));
        }
        if switch == Switch::Marking {
            let mut object = tempfile::NamedTempFile::new().unwrap();
            let marker = include_bytes!("../../objects/marker.bpf.o");
            object.write_all(marker).unwrap();
            let path = object.path().display();
            run(&format!("tc -n {x} qdisc add dev port2 clsact"));
            run(&format!(
                "tc -n {x} filter add dev port2 egress bpf da obj {path} sec tc"
            ));
        }
    }

    /// Sets the route from a host to the other.
    pub(crate) fn set_route(&self, end: End, options: &str) {
        let (namespace, port) = self.namespace(end);
        run(&format!(
            "ip -n {namespace} route replace default via 10.99.{port}.1 {options}"
        ));
    }

    /// Sets `net.ipv4.something` of a host.
    pub(crate) fn set(&self, end: End, name: &str, value: &str) {
        set(self.namespace(end).0, name, value);
    }

    /// The namespace of a host, and its port at the switch.
    pub(crate) fn namespace(&self, end: End) -> (&str, u8) {
        match end {
            End::Client => (&self.client, 1),
            End::Server => (&self.server, 2),
        }
    }

    /// Changes the rate of the slow link.
    pub(crate) fn set_rate(&self, rate: &str) {
        run(&format!(
            "tc -n {} qdisc change dev port2 root tbf rate {rate} burst 4600 limit 10mb",
            self.switch
        ));
    }

    /// A connection with this controller at both ends.
    pub(crate) fn connect(&self, congestion: &str) -> Pair {
        self.connect_with(Some(congestion), Some(congestion))
    }

    /// A connection whose ends set a controller each.
    pub(crate) fn connect_to(&self, server: &str, client: &str) -> Pair {
        self.connect_with(Some(server), Some(client))
    }

    /// A connection whose ends leave it to their namespaces.
    pub(crate) fn connect_default(&self) -> Pair {
        self.connect_with(None, None)
    }

    fn connect_with(&self, server: Option<&str>, client: Option<&str>) -> Pair {
        let address = SocketAddr::from((Ipv4Addr::new(10, 99, 2, 2), 5000));
        let listener: TcpListener = within(&self.server, || {
            let socket = new_socket(server);
            socket.set_reuse_address(true).unwrap();
            socket.bind(&address.into()).unwrap();
            socket.listen(1).unwrap();
            socket.into()
        });
        let client: TcpStream = within(&self.client, || {
            let socket = new_socket(client);
            socket.connect(&address.into()).unwrap();
            socket.into()
        });
        let (server, _) = listener.accept().unwrap();
        Pair { client, server }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Each may be missing: a test may have unloaded the controller, or stopped half-way.
        let _ = shallows_bpf::unload(self.controller);
        for namespace in [&self.client, &self.server, &self.switch] {
            let _ = Command::new("ip")
                .args(["netns", "del", namespace])
                .output();
        }
    }
}

/// Removes what a test has left that was killed: it had loaded the controller itself.
fn clean_up_after_crashes() {
    let namespaces = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for namespace in namespaces {
        let name = namespace.file_name().into_string().unwrap_or_default();
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let made_for = |controller: &Controller| rest.starts_with(&format!("{controller}-"));
        if let Some(controller) = Controller::ALL.into_iter().find(made_for) {
            let _ = shallows_bpf::unload(controller);
        }
        run(&format!("ip netns del {name}"));
    }
}

/// The two ends of a connection.
pub(crate) struct Pair {
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    /// Sends `bytes` from the client, which is done as the server has them all and has said so.
    pub(crate) fn transfer(&mut self, bytes: usize) {
        let (client, server) = (&mut self.client, &mut self.server);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                let mut left = bytes;
                while left > 0 {
                    let most = left.min(buffer.len());
                    left -= server.read(&mut buffer[..most]).unwrap();
                }
                server.write_all(b"!").unwrap();
            });
            client.write_all(&vec![0; bytes]).unwrap();
            client.read_exact(&mut [0]).unwrap();
        });
    }

    /// Sends `bytes` from the client; the server does not answer.
    pub(crate) fn send(&mut self, bytes: usize) {
        self.client.write_all(&vec![0; bytes]).unwrap();
        self.server.read_exact(&mut vec![0; bytes]).unwrap();
    }

    pub(crate) fn client_congestion(&self) -> String {
        let name = socket2::SockRef::from(&self.client)
            .tcp_congestion()
            .unwrap();
        let name = name.split(|&byte| byte == 0).next().unwrap();
        String::from_utf8(name.to_vec()).unwrap()
    }

    pub(crate) fn client_address(&self) -> SocketAddr {
        self.client.local_addr().unwrap()
    }

    pub(crate) fn server_address(&self) -> SocketAddr {
        self.server.local_addr().unwrap()
    }

    /// Returns whether `socket` is an end of this connection.
    pub(crate) fn is_between(&self, socket: &Seen) -> bool {
        [self.client_address(), self.server_address()].contains(&socket.remote)
    }
}

/// The controllers that the kernel has.
pub(crate) fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
}

fn new_socket(congestion: Option<&str>) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    if let Some(name) = congestion {
        socket.set_tcp_congestion(name.as_bytes()).unwrap();
    }
    socket
}

/// Does `work` in a network namespace.
pub(crate) fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        });
        worker.join().unwrap()
    })
}

/// Sets `net.ipv4.something` of a network namespace.
fn set(namespace: &str, name: &str, value: &str) {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let written = within(namespace, || fs::write(&path, value));
    written.unwrap_or_else(|error| panic!("{path} = {value}: {error}"));
}

/// Runs a command, which must succeed.
pub(crate) fn run(line: &str) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(words)
        .output()
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {problem}");
}
