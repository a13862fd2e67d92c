//! The switch's counters over HTTP, for Prometheus and for `shallows switch status`.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::{Control, Snapshot};

/// How long a switch may take to answer, and a client to ask.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest request that is read.
const LONGEST_REQUEST: u64 = 8192;

/// A thread that answers `/metrics` and `/status`.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
}

impl Monitor {
    /// Starts answering at `address`, for as long as the program runs.
    pub fn start(address: SocketAddr, control: Control) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let serve = move || {
            for client in listener.incoming().flatten() {
                // A client that hangs up early is its own business.
                let _ = answer(client, &control);
            }
        };
        thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(serve)?;
        Ok(Self { address })
    }

    /// Where it answers: the port that was chosen if none was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer(mut client: TcpStream, control: &Control) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new(client.try_clone()?.take(LONGEST_REQUEST));
    let mut line = String::new();
    request.read_line(&mut line)?;
    let mut header = String::new();
    while request.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = line.split(' ').nth(1).unwrap_or_default();
    let (status, kind, body) = match (path, control.snapshot(PATIENCE)) {
        ("/metrics", Some(snapshot)) => {
            ("200 OK", "text/plain; version=0.0.4", snapshot.prometheus())
        }
        ("/status", Some(snapshot)) => {
            let json = serde_json::to_string(&snapshot).map_err(io::Error::other)?;
            ("200 OK", "application/json", json)
        }
        (_, None) => (
            "503 Service Unavailable",
            "text/plain",
            "no answer\n".to_owned(),
        ),
        _ => (
            "404 Not Found",
            "text/plain",
            "there are /metrics and /status\n".to_owned(),
        ),
    };
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// Asks the switch at `address` what it counts.
pub fn fetch_status(address: SocketAddr) -> io::Result<Snapshot> {
    let mut server = TcpStream::connect_timeout(&address, PATIENCE)?;
    server.set_read_timeout(Some(2 * PATIENCE))?;
    write!(
        server,
        "GET /status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    let body = body.filter(|_| answer.starts_with("HTTP/1.1 200"));
    let body = body.ok_or_else(|| io::Error::other("the answer is not that of a switch"))?;
    serde_json::from_str(body).map_err(io::Error::other)
}
