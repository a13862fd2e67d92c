use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use socket2::{Domain, SockRef, Socket, Type};

use super::{REQUEST, TrafficError, give_up_root};
use crate::lab::Namespace;

/// Port of the servers whose connections have the hosts' congestion controller.
const PORT: u16 = 7183;

/// Port of the servers with the first special controller; each further controller has the next one.
const FIRST_SPECIAL_PORT: u16 = 7200;

/// Pending connections of a server.
const BACKLOG: i32 = 128;

/// The port of the servers with a controller.
pub(super) fn port(controller: Option<usize>) -> u16 {
    controller.map_or(PORT, |index| FIRST_SPECIAL_PORT + index as u16)
}

/// A TCP socket that asks for this congestion controller, or has the host's. The controller is set
/// before the handshake, because it decides whether ECN is negotiated.
pub(super) fn socket(controller: Option<&str>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Some(name) = controller {
        socket.set_tcp_congestion(name.as_bytes())?;
    }
    Ok(socket)
}

/// Bytes written at once.
const CHUNK: usize = 1 << 16;

/// The server ends of connections, by client and server address, so that clients of the same
/// program can ask the kernel about the sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Senders(Arc<Mutex<HashMap<Ends, Arc<TcpStream>>>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ends {
    client: SocketAddr,
    server: SocketAddr,
}

impl Senders {
    pub(super) fn of(&self, client: SocketAddr, server: SocketAddr) -> Option<Arc<TcpStream>> {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        senders.get(&Ends { client, server }).cloned()
    }

    fn add(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        let ends = Ends {
            client: stream.peer_addr()?,
            server: stream.local_addr()?,
        };
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        senders.insert(ends, Arc::clone(stream));
        Ok(())
    }
}

/// A server at a host, until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    listener: Arc<TcpListener>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its thread then sees an error and ends, and with its socket the namespace can go.
        let _ = SockRef::from(&*self.listener).shutdown(Shutdown::Both);
    }
}

/// Listens with a congestion controller, which accepted connections inherit.
fn listen(address: SocketAddrV4, controller: Option<&str>) -> io::Result<TcpListener> {
    let socket = socket(controller)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Starts a server at a host.
pub(super) fn start(
    host: &Namespace,
    address: SocketAddrV4,
    controller: Option<&str>,
    senders: Senders,
) -> Result<Server, TrafficError> {
    let listener = host.enter(|| listen(address, controller))?;
    let listener =
        listener.map_err(|error| TrafficError::new(format!("listening at {address}"), error))?;
    let listener = Arc::new(listener);
    let server = Server {
        listener: Arc::clone(&listener),
    };
    let accept = move || {
        give_up_root();
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let stream = Arc::new(stream);
            if senders.add(&stream).is_ok() {
                // The connection is over when either end says so; the client knows what it lacks.
                thread::spawn(move || serve(&stream));
            }
        }
    };
    let spawned = thread::Builder::new()
        .name("server".to_owned())
        .spawn(accept);
    spawned.map_err(|error| TrafficError::new("starting a server", error))?;
    Ok(server)
}

/// Answers requests until the client hangs up.
fn serve(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let data = vec![0x5a; CHUNK];
    let mut request = [0; REQUEST];
    loop {
        stream.read_exact(&mut request)?;
        let [dscp, bytes @ ..] = request;
        set_dscp(stream, dscp)?;
        let mut left = u64::from_be_bytes(bytes);
        while left > 0 {
            let chunk = left.min(CHUNK as u64) as usize;
            stream.write_all(&data[..chunk])?;
            left -= chunk as u64;
        }
    }
}

/// Sets the DSCP of what is sent from now on; TCP keeps the ECN bits to itself.
pub(super) fn set_dscp(stream: &TcpStream, dscp: u8) -> io::Result<()> {
    SockRef::from(stream).set_tos_v4(u32::from(dscp) << 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reno is in every kernel and every user may have it.
    #[test]
    fn accepted_connections_have_the_controller_of_their_server() {
        let any = SocketAddrV4::new([127, 0, 0, 1].into(), 0);
        let listener = listen(any, Some("reno")).unwrap();
        let client = socket(Some("reno")).unwrap();
        client
            .connect(&listener.local_addr().unwrap().into())
            .unwrap();
        let (accepted, _) = listener.accept().unwrap();
        for end in [SockRef::from(&accepted), SockRef::from(&client)] {
            let name = end.tcp_congestion().unwrap();
            assert!(name.starts_with(b"reno\0"), "{name:?}");
        }
    }
}
