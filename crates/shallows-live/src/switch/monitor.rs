//! The counters of a switch or another daemon over HTTP, for Prometheus and for `status`.
//!
//! Clients are not trusted to behave: a connection has one request and [`DEADLINE`] for all of it,
//! and of [`MOST_CLIENTS`] connections the oldest makes room for a new one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::{Control, metrics};

/// Time limit of a connection.
const DEADLINE: Duration = Duration::from_secs(5);

/// Time that a switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connections at a time.
const MOST_CLIENTS: usize = 32;

/// Longest header of a request.
const LONGEST_REQUEST: usize = 8192;

/// Longest answer that [`fetch_status`] reads: a switch of 250 ports with 64 queues has 20 MB.
const LONGEST_ANSWER: usize = 64 << 20;

/// A daemon's snapshot of itself.
pub trait Status: Clone + Send + Serialize + 'static {
    /// The text that Prometheus scrapes.
    fn prometheus(&self) -> String;
}

/// A thread that answers `/metrics` and `/status`.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
}

impl Monitor {
    /// Starts answering at `address`, for as long as the program runs.
    pub fn start<S: Status>(address: SocketAddr, control: Control<S>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = runtime()?;
        let serve = move || runtime.block_on(serve(listener, control));
        thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(serve)?;
        Ok(Self { address })
    }

    /// Its address: the port that was chosen if none was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn runtime() -> io::Result<Runtime> {
    runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(2)
        .build()
}

async fn serve<S: Status>(listener: std::net::TcpListener, control: Control<S>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut clients: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((client, peer)) = listener.accept().await else {
            // Out of files, most likely: those of clients come back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        clients.retain(|client| !client.is_finished());
        if clients.len() >= MOST_CLIENTS
            && let Some(oldest) = clients.pop_front()
        {
            oldest.abort();
        }
        let own = client.local_addr().map(|own| own.ip());
        let trust = if own.is_ok_and(|own| is_local(peer.ip(), own)) {
            Trust::Machine
        } else {
            Trust::Network
        };
        let client = tokio::spawn(converse(client, trust, control.clone()));
        clients.push_back(client.abort_handle());
    }
}

/// Location of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// At this machine: it may have files read again.
    Machine,
    /// Anywhere else: it may look.
    Network,
}

/// Returns whether a client at `peer` that has reached the address `own` is at this machine.
fn is_local(peer: IpAddr, own: IpAddr) -> bool {
    let peer = peer.to_canonical();
    peer.is_loopback() || peer == own.to_canonical()
}

/// Answers one request.
async fn converse<S: Status>(client: TcpStream, trust: Trust, control: Control<S>) {
    let service = service_fn(|request| answer(request, trust, control.clone()));
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(LONGEST_REQUEST)
        .serve_connection(TokioIo::new(client), service);
    // A client that hangs up early, or is too slow, is its own business.
    let _ = timeout(DEADLINE, connection).await;
}

async fn answer<B, S: Status>(
    request: Request<B>,
    trust: Trust,
    control: Control<S>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_metrics = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => true,
        (&Method::GET, "/status") => false,
        (&Method::POST, "/reload") if trust == Trust::Network => {
            let text = "files are read again for clients at this machine only\n";
            return Ok(response(StatusCode::FORBIDDEN, "text/plain", text));
        }
        (&Method::POST, "/reload") => {
            let reloaded = tokio::task::spawn_blocking(move || control.reload()).await;
            let reloaded = reloaded.unwrap_or_else(|error| Err(error.to_string()));
            let (status, text) = match reloaded {
                Ok(text) => (StatusCode::OK, text),
                Err(text) => (StatusCode::CONFLICT, text),
            };
            return Ok(response(status, "text/plain", text));
        }
        _ => {
            let text = "there are GET /metrics, GET /status and POST /reload\n";
            return Ok(response(StatusCode::NOT_FOUND, "text/plain", text));
        }
    };
    let snapshot = tokio::task::spawn_blocking(move || control.snapshot(PATIENCE)).await;
    let Ok(Some(snapshot)) = snapshot else {
        let text = "it does not answer\n";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Ok(response(status, "text/plain", text));
    };
    Ok(if is_metrics {
        let text = snapshot.prometheus();
        response(StatusCode::OK, metrics::CONTENT_TYPE, text)
    } else {
        match serde_json::to_string(&snapshot) {
            Ok(json) => response(StatusCode::OK, "application/json", json),
            Err(error) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                response(status, "text/plain", error.to_string())
            }
        }
    })
}

fn response(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Asks the daemon at `address` what it counts.
pub fn fetch_status<S: DeserializeOwned>(address: SocketAddr) -> io::Result<S> {
    let (status, body) = ask(Method::GET, address, "/status")?;
    if status != StatusCode::OK {
        return Err(io::Error::other(format!("it says {status}")));
    }
    serde_json::from_slice(&body).map_err(io::Error::other)
}

/// Has the daemon at `address` read its file again: what that changes, or why it is refused.
pub fn request_reload(address: SocketAddr) -> io::Result<Result<String, String>> {
    let (status, body) = ask(Method::POST, address, "/reload")?;
    let text = String::from_utf8_lossy(&body).into_owned();
    match status {
        StatusCode::OK => Ok(Ok(text)),
        StatusCode::CONFLICT => Ok(Err(text)),
        status => Err(io::Error::other(format!("it says {status}"))),
    }
}

fn ask(method: Method, address: SocketAddr, path: &str) -> io::Result<(StatusCode, Bytes)> {
    let asked = fetch(method, address, path);
    let fetched = runtime()?.block_on(async { timeout(2 * DEADLINE, asked).await });
    fetched.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

async fn fetch(method: Method, address: SocketAddr, path: &str) -> io::Result<(StatusCode, Bytes)> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let handshake = hyper::client::conn::http1::handshake(stream).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, address.to_string())
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(io::Error::other)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect();
    Ok((status, body.await.map_err(io::Error::other)?.to_bytes()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use shallows_testing::unknown_to_dashboard;

    use super::*;
    use crate::switch::{
        Engine, Fidelity, FidelityConfig, IngressCounters, Snapshot, SwitchConfig,
    };

    fn snapshot() -> Snapshot {
        let config = SwitchConfig::parse(
            "egress = { queues = 2, buffer = \"unlimited\", scheduler = \"strict\" }
             port = [{ device = \"eth\\\"1\", rate = \"1Gbps\" }]",
        );
        let mut engine = Engine::new(&config.unwrap(), 1522).unwrap();
        let fidelity = Fidelity::new(FidelityConfig::default());
        let counters = IngressCounters {
            frames: 7,
            losses: 1,
            ..IngressCounters::default()
        };
        let devices = vec![("eth\"1".to_owned(), counters)];
        Snapshot::new(1.5, devices, &mut engine, &fidelity)
    }

    /// The monitor of a switch that answers for as long as the test takes.
    fn monitor() -> SocketAddr {
        let control = Control::default();
        let monitor = Monitor::start(([127, 0, 0, 1], 0).into(), control.clone()).unwrap();
        thread::spawn(move || {
            loop {
                if control.take_request() {
                    control.answer(snapshot());
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        monitor.address()
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn counters_are_served_to_prometheus_and_to_status() {
        let address = monitor();
        let text = get(address, "/metrics");
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        for line in [
            "# TYPE shallows_received_frames counter",
            r#"shallows_received_frames_total{device="eth\"1"} 7"#,
            r#"shallows_device_up{device="eth\"1"} 1.0"#,
            r#"shallows_device_losses_total{device="eth\"1"} 1"#,
            r#"shallows_queue_bytes{link="eth\"1",queue="1"} 0.0"#,
            r#"shallows_station_changes_total{change="evicted"} 0"#,
            "shallows_uptime_seconds 1.5",
            r#"shallows_lateness_seconds_bucket{le="+Inf"} 0"#,
            "shallows_lateness_seconds_count 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert_eq!(fetch_status::<Snapshot>(address).unwrap(), snapshot());
        assert!(get(address, "/").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn dashboards_show_what_is_exported() {
        let mut snapshot = snapshot();
        assert_eq!(
            unknown_to_dashboard("switch", &snapshot.prometheus()),
            BTreeSet::new()
        );
        let coordinator = r#"{ "host": 0, "mode": "coordinated", "epoch": 1, "leader": 0, "held": 0,
            "permits": [], "accepted": 0, "refused": [], "small": 0, "full": 0, "unknown": 0,
            "slots": 0, "late-slots": 0, "returned": 0, "lost-control": 0 }"#;
        snapshot.coordinators = vec![serde_json::from_str(coordinator).unwrap()];
        assert_eq!(
            unknown_to_dashboard("agent", &snapshot.prometheus()),
            BTreeSet::new()
        );
    }

    #[test]
    fn clients_elsewhere_may_look_and_change_nothing() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(is_local(ip("127.0.0.1"), ip("127.0.0.1")));
        assert!(is_local(ip("::ffff:127.0.0.1"), ip("::")));
        assert!(is_local(ip("10.0.0.1"), ip("10.0.0.1")));
        assert!(!is_local(ip("10.0.0.2"), ip("10.0.0.1")));
        let request = |method: Method, path| {
            let request = Request::builder().method(method).uri(path);
            let request = request.body(()).unwrap();
            let answer = answer(request, Trust::Network, Control::<Snapshot>::default());
            runtime().unwrap().block_on(answer).unwrap().status()
        };
        assert_eq!(request(Method::POST, "/reload"), StatusCode::FORBIDDEN);
        assert_eq!(request(Method::GET, "/reload"), StatusCode::NOT_FOUND);
    }

    /// Clients that say nothing, and one that sends a byte now and then, keep nobody waiting.
    #[test]
    fn idle_clients_keep_nobody_waiting() {
        let address = monitor();
        let idle: Vec<TcpStream> = (0..130)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"G").unwrap();
        assert_eq!(fetch_status::<Snapshot>(address).unwrap(), snapshot());
        slow.write_all(b"E").unwrap();
        assert!(get(address, "/metrics").ends_with("# EOF\n"));
        // The oldest of them were sent away.
        let mut first = &idle[0];
        assert_eq!(first.read(&mut [0]).unwrap_or(0), 0);
    }

    #[test]
    fn a_silent_client_is_sent_away_after_the_deadline() {
        let address = monitor();
        let mut silent = TcpStream::connect(address).unwrap();
        silent.set_read_timeout(Some(4 * DEADLINE)).unwrap();
        assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    }
}
