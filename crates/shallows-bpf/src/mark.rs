//! QJUMP's application utility (§4): a level for the sockets of unmodified programs.
//!
//! The paper injects a library (`LD_PRELOAD`), which statically linked and Go programs escape.
//! [`run`] puts the program and all that it starts into a cgroup whose BPF programs mark each socket
//! as it is made, bound, connected or accepted. [`preloaded`] is the paper's way, which needs no
//! root. [`sockets`] shows what the sockets of a process have.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::socket::{SockaddrStorage, getpeername, getsockname, getsockopt, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use serde::Serialize;
use shallows_core::units::Bytes;
use thiserror::Error as ThisError;

pub use crate::kernel::mark::{clean, run, run_apart};
use crate::qjump::priority_of;

/// The library that is injected.
const LIBRARY: &str = "libshallows_preload.so";

/// Mark of a program's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Their level, which [`SO_PRIORITY`](crate::qjump::priority_of) carries.
    pub level: u8,
    /// Their DSCP, in `IP_TOS` and `IPV6_TCLASS`.
    pub dscp: u8,
    /// `SO_SNDBUF`, of which the kernel makes twice as much; its own choice if not given.
    pub send_buffer: Option<Bytes>,
    /// The most segments that a TCP connection has in flight, so that none of its packets (GSO)
    /// exceeds the level; not by a library.
    pub window: Option<u32>,
}

impl Mark {
    /// TOS or traffic class.
    pub fn traffic_class(&self) -> u8 {
        self.dscp << 2
    }
}

/// The reason why a program is not run with a level.
#[derive(Debug, ThisError)]
pub enum Error {
    /// BPF is not possible here.
    #[error(transparent)]
    Bpf(#[from] crate::Error),
    /// A cgroup cannot be had.
    #[error("cannot {doing} {}", .path.display())]
    Cgroup {
        /// Attempted operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason why not.
        source: io::Error,
    },
    /// The program does not start.
    #[error("cannot run {}", .program.display())]
    Program {
        /// Its name.
        program: OsString,
        /// The reason why not.
        source: io::Error,
    },
    /// The library that is injected is not there.
    #[error(
        "there is no {LIBRARY} beside {}: build it with `cargo build --release -p \
         shallows-preload`", .0.display()
    )]
    NoLibrary(PathBuf),
    /// No such process, or not ours.
    #[error("cannot look at process {pid}")]
    Process {
        /// Its number.
        pid: u32,
        /// The reason why not.
        source: io::Error,
    },
}

/// Has `command` and what it starts load the library that marks sockets.
pub fn preloaded(mark: &Mark, command: &mut Command) -> Result<(), Error> {
    let program = std::env::current_exe().unwrap_or_default();
    let directory = program.parent().unwrap_or(Path::new("."));
    let places = [
        directory.join(LIBRARY),
        directory.join("../lib").join(LIBRARY),
    ];
    let library = places.into_iter().find(|path| path.exists());
    let library = library.ok_or_else(|| Error::NoLibrary(program.clone()))?;
    let mut preload = library.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD") {
        preload.push(":");
        preload.push(others);
    }
    command
        .env("LD_PRELOAD", preload)
        .env("SHALLOWS_LEVEL", mark.level.to_string())
        .env("SHALLOWS_PRIORITY", priority_of(mark.level).to_string())
        .env("SHALLOWS_TOS", mark.traffic_class().to_string());
    match mark.send_buffer {
        Some(bytes) => command.env("SHALLOWS_SNDBUF", bytes.get().to_string()),
        None => command.env_remove("SHALLOWS_SNDBUF"),
    };
    Ok(())
}

/// Means of marking the sockets of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// By a cgroup.
    Cgroup {
        /// Their level.
        level: u8,
    },
    /// They have the level that is chosen for their cgroup.
    Chosen {
        /// The cgroup's path below the root.
        cgroup: PathBuf,
    },
    /// By a library.
    Preload {
        /// Their level.
        level: u8,
    },
}

/// The means by which we mark the sockets of a process, if we do.
pub fn method(pid: u32) -> Result<Option<Method>, Error> {
    let read = |name: &str| {
        fs::read(format!("/proc/{pid}/{name}")).map_err(|source| Error::Process { pid, source })
    };
    let cgroups = read("cgroup")?;
    let cgroups = String::from_utf8_lossy(&cgroups);
    let cgroup = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
    if let Some(method) = cgroup.and_then(|path| method_of_cgroup(Path::new(path))) {
        return Ok(Some(method));
    }
    let environment = read("environ")?;
    let environment = String::from_utf8_lossy(&environment);
    let level = environment
        .split('\0')
        .find_map(|variable| variable.strip_prefix("SHALLOWS_LEVEL="));
    let level = level.and_then(|level| level.parse().ok());
    Ok(level.map(|level| Method::Preload { level }))
}

/// Prefix of the names of our cgroups; the process that made one and its level follow.
pub(crate) const PREFIX: &str = "shallows-exec-";

/// Level in the name of a cgroup whose level is chosen automatically.
pub(crate) const AUTOMATIC: &str = "auto";

/// The means by which a cgroup of ours at this path marks its sockets; none for cgroups of others.
pub(crate) fn method_of_cgroup(path: &Path) -> Option<Method> {
    let text = path.to_string_lossy();
    let (_, name) = text.split_once(PREFIX)?;
    let (_, level) = name.split_once('-')?;
    let level = level.split('/').next()?;
    if level == AUTOMATIC {
        let cgroup = path.to_owned();
        return Some(Method::Chosen { cgroup });
    }
    let level = level.strip_prefix("level")?.parse().ok()?;
    Some(Method::Cgroup { level })
}

/// A socket of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Socket {
    /// Its end here.
    pub local: SocketAddr,
    /// The other end, if it is connected.
    pub remote: Option<SocketAddr>,
    /// `SO_PRIORITY`.
    pub priority: i32,
    /// `IP_TOS` or `IPV6_TCLASS`.
    pub traffic_class: i32,
    /// `SO_SNDBUF`, which the kernel doubles.
    pub send_buffer: usize,
}

/// The IP sockets of a process, by duplicates of its file descriptors.
pub fn sockets(pid: u32) -> Result<Vec<Socket>, Error> {
    let failed = |source: io::Error| Error::Process { pid, source };
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let process = pidfd_open(number, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
    let mut sockets = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))
        .map_err(failed)?
        .flatten()
    {
        let is_socket = fs::read_link(entry.path())
            .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"));
        let Some(number) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if !is_socket {
            continue;
        }
        // It may have been closed since.
        if let Ok(duplicate) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
            sockets.extend(socket(&duplicate));
        }
    }
    sockets.sort_by_key(|socket| (socket.local, socket.remote));
    Ok(sockets)
}

fn socket(socket: &OwnedFd) -> Option<Socket> {
    use std::os::fd::AsRawFd as _;
    let local = address(&getsockname(socket.as_raw_fd()).ok()?)?;
    Some(Socket {
        local,
        remote: getpeername(socket.as_raw_fd())
            .ok()
            .and_then(|address: SockaddrStorage| self::address(&address)),
        priority: getsockopt(socket, sockopt::Priority).ok()?,
        traffic_class: match local {
            SocketAddr::V4(_) => getsockopt(socket, sockopt::Ipv4Tos).ok()?,
            SocketAddr::V6(_) => getsockopt(socket, sockopt::Ipv6TClass).ok()?,
        },
        send_buffer: getsockopt(socket, sockopt::SndBuf).ok()?,
    })
}

fn address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| {
        address
            .as_sockaddr_in6()
            .map(|v6| SocketAddr::V6((*v6).into()))
    })
}
