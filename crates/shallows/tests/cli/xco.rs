//! XCo's daemons and keys, as far as they need no root.

use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command as Process, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SIGTERM, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::{directory, shallows, write};

fn free_udp() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

fn free_tcp() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A directory with `cluster.toml` and its key, and where the controller serves its metrics.
fn with_cluster() -> (TempDir, SocketAddr) {
    let (directory, metrics) = (directory(), free_tcp());
    let text = format!(
        "key-file = \"xco.key\"
         [[controller]]
         name = \"c0\"
         address = \"{}\"
         metrics = \"{metrics}\"
         [[host]]
         name = \"h0\"
         rate = \"1Gbps\"
         address = \"127.0.0.1:4784\"
         stations = [\"02:00:00:00:00:01\"]
         [[host]]
         name = \"h1\"
         rate = \"1Gbps\"
         address = \"127.0.0.2:4784\"
         nic = \"eth-none\"
         inside = [{{ device = \"tap-none\" }}]
         networks = [\"10.1.0.0/24\"]\n",
        free_udp()
    );
    write(&directory, "cluster.toml", &text);
    let key = shallows(&directory).args(["controller", "key", "--out", "xco.key"]);
    key.assert().success();
    (directory, metrics)
}

fn error(directory: &TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let output = shallows(directory).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

fn change(directory: &TempDir, from: &str, to: &str) {
    let path = directory.path().join("cluster.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

const CONTROLLER: [&str; 3] = ["controller", "--config", "cluster.toml"];
const AGENT: [&str; 5] = ["agent", "--config", "cluster.toml", "--name", "h1"];

#[test]
fn files_that_are_wrong_are_refused_with_the_reason() {
    for (from, to, said) in [
        ("1Gbps", "0bps", "\"0bps\" is not a rate: it is zero"),
        ("name = \"h1\"", "nam = \"h1\"", "unknown field `nam`"),
        ("127.0.0.2:4784", "127.0.0.1:4784", "address of two"),
        ("xco.key", "other.key", "shallows controller key"),
    ] {
        let (directory, _) = with_cluster();
        change(&directory, from, to);
        let (code, error) = error(&directory, &CONTROLLER);
        assert_eq!(code, Some(2), "{error}");
        assert!(
            error.contains(said) && error.contains("cluster.toml"),
            "{error}"
        );
    }
}

#[test]
fn keys_must_be_secret_and_whose_they_should_be() {
    let (directory, _) = with_cluster();
    let key = directory.path().join("xco.key");
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    let (code, said) = error(&directory, &AGENT);
    assert_eq!(code, Some(2));
    assert!(said.contains("must not leave the controllers"), "{said}");
    let make = [
        "controller",
        "key",
        "--config",
        "cluster.toml",
        "--host",
        "h0",
    ];
    let made = shallows(&directory).args(make).args(["--out", "h0.key"]);
    made.assert().success();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = error(&directory, &CONTROLLER);
    assert_eq!(code, Some(2));
    assert!(said.contains("can be read by others (mode 644)"), "{said}");
    fs::rename(directory.path().join("h0.key"), &key).unwrap();
    let (_, said) = error(&directory, &CONTROLLER);
    assert!(said.contains("is the key of a host"), "{said}");
    let (_, said) = error(&directory, &AGENT);
    assert!(said.contains("is the key of h0, and this is h1"), "{said}");
}

#[test]
fn an_agent_needs_a_host_and_devices() {
    let (directory, _) = with_cluster();
    let unknown = ["agent", "--config", "cluster.toml", "--name", "h7"];
    let (code, said) = error(&directory, &unknown);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("no host \"h7\" in the file, it has h0, h1"),
        "{said}"
    );
    let (code, said) = error(
        &directory,
        &["agent", "--config", "cluster.toml", "--name", "h0"],
    );
    assert_eq!(code, Some(2));
    assert!(said.contains("host h0 has no nic"), "{said}");
}

fn start(directory: &TempDir) -> Child {
    Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(CONTROLLER)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_controller_shows_its_status_and_ends_when_told() {
    let (directory, metrics) = with_cluster();
    // On all addresses, of which it warns.
    let open = format!("0.0.0.0:{}", metrics.port());
    change(&directory, &metrics.to_string(), &open);
    let controller = start(&directory);
    let status = || {
        let at = metrics.to_string();
        let status = ["controller", "status", "--at", &at];
        shallows(&directory).args(status).output().unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let shown = loop {
        let output = status();
        if output.status.success() {
            break String::from_utf8(output.stdout).unwrap();
        }
        assert!(Instant::now() < deadline, "it never answers");
        thread::sleep(Duration::from_millis(50));
    };
    assert!(shown.starts_with("c0 is leader"), "{shown}");
    assert!(shown.contains("0 of 2 hosts joined"), "{shown}");
    let pid = Pid::from_raw(controller.id().cast_signed());
    kill(pid, SIGTERM).unwrap();
    let output = controller.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("c0 leads, term 1"), "{said}");
    assert!(said.contains("warning: other machines can read"), "{said}");
    assert!(!status().status.success());
}

#[test]
fn a_service_manager_is_told_when_a_daemon_is_up() {
    let (directory, _) = with_cluster();
    let place = directory.path().join("notify");
    let manager = UnixDatagram::bind(&place).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut controller = Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(CONTROLLER)
        .env("NOTIFY_SOCKET", &place)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut message = [0; 64];
    let length = manager.recv(&mut message);
    kill(Pid::from_raw(controller.id().cast_signed()), SIGTERM).unwrap();
    assert!(controller.wait().unwrap().success());
    assert_eq!(&message[..length.unwrap()], b"READY=1");
}
