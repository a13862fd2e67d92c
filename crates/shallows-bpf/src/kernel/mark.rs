//! Marks by BPF programs of a cgroup.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use super::{cgroups, check_readable, kernel, objects};
use crate::loader::Link;
use crate::mark::{AUTOMATIC, Error, Mark, PREFIX};
use crate::qjump::priority_of;

/// Mount point of cgroup2 if we have to mount it.
const OWN_MOUNT: &str = "/run/shallows/cgroup2";

/// `struct mark`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RawMark {
    priority: i32,
    traffic_class: i32,
    send_buffer: i32,
    window: i32,
}

/// Runs a command whose sockets, and those of all that it starts, are marked. Calls `started` once
/// it is on its way.
///
/// Returns when the last of these processes has ended, with the status of the first; then nothing is
/// left of it. SIGTERM and SIGHUP are passed on to the command.
pub fn run(
    mark: &Mark,
    command: &mut Command,
    started: impl FnOnce(),
) -> Result<ExitStatus, Error> {
    check_readable()?;
    let cgroup = Cgroup::create(&format!("level{}", mark.level))?;
    let _links = attach(mark, &cgroup)?;
    run_in(&cgroup, command, started)
}

/// Runs a command in a cgroup of its own, so that a level can be [chosen](crate::qjump::Chooser) for
/// it. Ends like [`run`].
pub fn run_apart(command: &mut Command, started: impl FnOnce()) -> Result<ExitStatus, Error> {
    check_readable()?;
    run_in(&Cgroup::create(AUTOMATIC)?, command, started)
}

fn run_in(
    cgroup: &Cgroup,
    command: &mut Command,
    started: impl FnOnce(),
) -> Result<ExitStatus, Error> {
    let held = HeldSignals::hold(command);
    let mut child = cgroup.spawn(command)?;
    started();
    held.pass_on_to(&child);
    let status = child.wait().map_err(|source| Error::Program {
        program: command.get_program().to_owned(),
        source,
    })?;
    while cgroup.is_populated() {
        thread::sleep(Duration::from_millis(50));
    }
    Ok(status)
}

fn attach(mark: &Mark, cgroup: &Cgroup) -> Result<Vec<Link>, Error> {
    let object = objects::open_mark()?;
    let raw = RawMark {
        priority: priority_of(mark.level).cast_signed(),
        traffic_class: mark.traffic_class().into(),
        send_buffer: mark
            .send_buffer
            .map_or(0, |bytes| i32::try_from(bytes.get()).unwrap_or(i32::MAX)),
        window: mark
            .window
            .map_or(0, |segments| i32::try_from(segments).unwrap_or(i32::MAX)),
    };
    let set = object.map("marks").set(0u32, &raw);
    set.map_err(kernel("set the mark"))?;
    let directory = File::open(&cgroup.path).map_err(cgroup.failed("open"))?;
    let programs = object.programs().iter();
    let links = programs.map(|program| program.attach_to_cgroup(directory.as_fd()));
    let links: Result<Vec<Link>, _> = links.collect();
    Ok(links.map_err(kernel("attach to the cgroup"))?)
}

/// The signals that this process passes on to its command. They are blocked from before the command
/// starts, so that none of them ends this process alone; dropping this restores the signal mask.
struct HeldSignals {
    passed: SigSet,
    mask_before: SigSet,
}

impl HeldSignals {
    /// Blocks the signals; the command starts with the signal mask of before.
    #[allow(unsafe_code)]
    fn hold(command: &mut Command) -> Self {
        use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

        let mask_before = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
        let passed: SigSet = [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().collect();
        // Where this fails, a signal ends this process and leaves the command running.
        let _ = passed.thread_block();
        // SAFETY: between fork and exec only async-signal-safe functions may be called; this one
        // makes one system call with a value that the closure owns.
        unsafe {
            command.pre_exec(move || mask_before.thread_set_mask().map_err(Into::into));
        }
        Self {
            passed,
            mask_before,
        }
    }

    /// Starts to pass signals on. Ctrl-C and Ctrl-\\ of a terminal reach the command without it.
    fn pass_on_to(&self, child: &Child) {
        use Signal::{SIGHUP, SIGTERM};

        let child = Pid::from_raw(child.id().cast_signed());
        let Ok(signals) = SignalFd::new(&self.passed) else {
            return;
        };
        thread::spawn(move || {
            while let Ok(Some(info)) = signals.read_signal() {
                let Ok(signal) = Signal::try_from(info.ssi_signo.cast_signed()) else {
                    continue;
                };
                let of_terminal = info.ssi_code == libc::SI_KERNEL;
                if !of_terminal || matches!(signal, SIGTERM | SIGHUP) {
                    // It may have ended.
                    let _ = kill(child, signal);
                }
            }
        });
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        let _ = self.mask_before.thread_set_mask();
    }
}

/// A cgroup of ours; it goes as it is dropped.
struct Cgroup {
    root: PathBuf,
    path: PathBuf,
}

impl Cgroup {
    /// `level` ends its name.
    fn create(level: &str) -> Result<Self, Error> {
        let root = root()?;
        sweep(&root);
        let name = format!("{PREFIX}{}-{level}", std::process::id());
        let cgroup = Self {
            path: root.join(name),
            root,
        };
        fs::create_dir(&cgroup.path).map_err(cgroup.failed("create"))?;
        Ok(cgroup)
    }

    /// Starts a command in it, by going there for a moment.
    fn spawn(&self, command: &mut Command) -> Result<Child, Error> {
        let back = self.root.join(own()?.trim_start_matches('/'));
        enter(&self.path).map_err(self.failed("enter"))?;
        let child = command.spawn();
        enter(&back).map_err(self.failed("leave"))?;
        child.map_err(|source| Error::Program {
            program: command.get_program().to_owned(),
            source,
        })
    }

    fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.path.join("cgroup.events"));
        events.is_ok_and(|events| events.contains("populated 1"))
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        failed(doing, &self.path)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // If it has processes yet, because of an error, the next run clears it away.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Moves this process.
fn enter(cgroup: &Path) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), "0")
}

/// The cgroup of this process.
fn own() -> Result<String, Error> {
    let path = Path::new("/proc/self/cgroup");
    let text = fs::read_to_string(path).map_err(failed("read", path))?;
    let line = text.lines().find_map(|line| line.strip_prefix("0::"));
    Ok(line.unwrap_or("/").to_owned())
}

/// Mount point of cgroup2; mounts it if nobody has.
fn root() -> Result<PathBuf, Error> {
    let mounts = Path::new("/proc/self/mounts");
    if let Some(place) = cgroups::mounted().map_err(failed("read", mounts))? {
        return Ok(place);
    }
    let place = PathBuf::from(OWN_MOUNT);
    fs::create_dir_all(&place).map_err(failed("create", &place))?;
    let nothing = None::<&str>;
    mount(
        Some("cgroup2"),
        &place,
        Some("cgroup2"),
        MsFlags::empty(),
        nothing,
    )
    .map_err(|errno| failed("mount cgroup2 at", &place)(errno.into()))?;
    Ok(place)
}

/// Removes the cgroups of runs that were killed, as far as their processes are gone.
pub fn clean() -> Result<(), Error> {
    check_readable()?;
    sweep(&root()?);
    Ok(())
}

fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((pid, _)) = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('-'))
        else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Cgroup {
        doing,
        path,
        source,
    }
}
