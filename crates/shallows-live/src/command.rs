//! Programs that run at the hosts of a lab, beside the flows.
//!
//! Whatever a program does, the run goes on: its output is read to its end but kept up to a limit
//! only, it has a longest time, and when that or the run is over its process group is terminated and
//! then killed. What it leaves behind outside its group goes with the namespaces of the lab; outside
//! of them it is known by a mark in its environment.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{SIGKILL, SIGTERM, Signal, killpg};
use nix::unistd::Pid;
use shallows_core::units::Time;

use crate::lab::{self, LabError, Namespace, Unprivileged};

/// Limit of each stream's bytes in its file.
pub const MOST_OUTPUT: u64 = 64 << 20;

/// Bytes kept in memory from the end of each stream.
const MOST_KEPT: usize = 64 << 10;

/// From one look at a program to the next.
const TICK: Duration = Duration::from_millis(5);

/// Time that a program may take to end after the request, and again after the kill.
const GRACE: Duration = Duration::from_millis(500);

/// Wait for a program's last output after its end. A child that it leaves behind may hold its
/// output open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A program to run at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPlan {
    /// Host that runs the command.
    pub host: usize,
    /// Start time.
    pub start: Time,
    /// A line for the shell. `{h3}` is the address of host 3, `{netns}` the name of its own host's
    /// namespace, `{shallows}` this program.
    pub line: String,
    /// True if the run waits for its end. What still runs then is terminated.
    pub awaited: bool,
    /// Time limit.
    pub timeout: Time,
    /// User that it runs as.
    pub user: CommandUser,
    /// Inside the host's namespace, or outside.
    pub place: CommandPlace,
    /// True if the run is worth as much if it fails.
    pub may_fail: bool,
}

/// User that a program runs as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandUser {
    /// The user who called sudo, or nobody.
    #[default]
    Unprivileged,
    /// Root, with everything that it may do to this machine.
    Root,
}

/// Namespace that a program runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandPlace {
    /// In the host's network namespace, with a view of `/sys` that has its devices and no BPF.
    #[default]
    Inside,
    /// On the machine itself, for tools that reach into the host's namespace `{netns}`.
    Outside,
}

/// Outcome of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The plan.
    pub plan: CommandPlan,
    /// The way it ended.
    pub ending: Ending,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
}

/// The way a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that was not ours.
    Killed(i32),
    /// It was terminated at the end of the run.
    Stopped,
    /// It was terminated because it took longer than its `timeout`.
    TimedOut,
    /// The run was over before its time had come.
    NotStarted,
}

/// One of the two streams of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its last 64 KB.
    pub last: Vec<u8>,
    /// Bytes in all.
    pub bytes: u64,
    /// The file with its first [`MOST_OUTPUT`] bytes, if there was a place for it.
    pub file: Option<PathBuf>,
}

impl CommandOutcome {
    /// Returns whether it did not do what it was for.
    pub fn failed(&self) -> bool {
        match self.ending {
            Ending::Exited(status) => status != 0,
            Ending::Killed(_) | Ending::TimedOut => true,
            Ending::Stopped | Ending::NotStarted => false,
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exit status {status}"),
            Self::Killed(signal) => match Signal::try_from(*signal) {
                Ok(signal) => write!(f, "{signal}"),
                Err(_) => write!(f, "signal {signal}"),
            },
            Self::Stopped => f.write_str("stopped at the end of the run"),
            Self::TimedOut => f.write_str("its timeout"),
            Self::NotStarted => f.write_str("not started"),
        }
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Killed(signal.unwrap_or_default()),
        }
    }
}

impl CommandPlan {
    /// The line with the addresses of hosts, the namespace of its own and the path of this program.
    fn resolved(&self, host: &Namespace) -> String {
        // The command of the Python package runs in an interpreter, and says what it is.
        let named = env::var_os("SHALLOWS_PROGRAM").map(PathBuf::from);
        let program = named.or_else(|| env::current_exe().ok());
        let program = program.unwrap_or_else(|| "shallows".into());
        let program = program.display().to_string();
        let line = self.line.replace("{shallows}", &program);
        let mut line = line.replace("{netns}", host.name());
        for number in 0..lab::MOST_HOSTS {
            let address = lab::address(number).to_string();
            line = line.replace(&format!("{{h{number}}}"), &address);
        }
        line
    }

    /// Runs it at its time, counted from `epoch`, until it ends or `stop` says so. Output goes to
    /// files in `directory` that begin with `number`.
    pub(crate) fn run(
        &self,
        number: usize,
        host: &Namespace,
        epoch: Instant,
        directory: Option<&Path>,
        stop: impl Fn() -> bool,
    ) -> Result<CommandOutcome, LabError> {
        let mut outcome = CommandOutcome {
            plan: self.clone(),
            ending: Ending::NotStarted,
            stdout: Captured::default(),
            stderr: Captured::default(),
        };
        let start = epoch + self.start.to_duration();
        while Instant::now() < start {
            if stop() {
                return Ok(outcome);
            }
            thread::sleep(start.saturating_duration_since(Instant::now()).min(TICK));
        }
        let create = |stream: &str| {
            let name = format!("{number}-h{}.{stream}", self.host);
            directory
                .map(|directory| create(directory.join(name)))
                .transpose()
        };
        let (stdout, stderr) = (create("stdout")?, create("stderr")?);
        let mut child = self.spawn(host)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let stdout = out.map(|pipe| Capture::start(pipe, stdout));
        let stderr = err.map(|pipe| Capture::start(pipe, stderr));
        outcome.ending = self.await_end(&mut child, stop).map_err(|error| {
            let what = format!("waiting for {:?}", self.line);
            LabError::File { what, error }
        })?;
        let deadline = Instant::now() + LAST_WORDS;
        outcome.stdout = stdout
            .map(|capture| capture.finish(deadline))
            .unwrap_or_default();
        outcome.stderr = stderr
            .map(|capture| capture.finish(deadline))
            .unwrap_or_default();
        Ok(outcome)
    }

    fn await_end(&self, child: &mut Child, stop: impl Fn() -> bool) -> io::Result<Ending> {
        let begun = Instant::now();
        let timeout = self.timeout.to_duration();
        let ending = loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status.into());
            }
            if stop() {
                break Ending::Stopped;
            }
            if begun.elapsed() >= timeout {
                break Ending::TimedOut;
            }
            thread::sleep(TICK);
        };
        // The whole group, because the shell has children. It may have ended by itself just now.
        let group = Pid::from_raw(child.id().cast_signed());
        for signal in [SIGTERM, SIGKILL] {
            let _ = killpg(group, signal);
            let deadline = Instant::now() + GRACE;
            while Instant::now() < deadline {
                if child.try_wait()?.is_some() {
                    // Its children may not have heard the first one.
                    let _ = killpg(group, SIGKILL);
                    return Ok(ending);
                }
                thread::sleep(TICK);
            }
        }
        Ok(ending)
    }

    fn spawn(&self, host: &Namespace) -> Result<Child, LabError> {
        let mut words: Vec<String> = Vec::new();
        if self.place == CommandPlace::Inside {
            words.extend(["ip", "netns", "exec", host.name()].map(str::to_owned));
        }
        if self.user == CommandUser::Unprivileged {
            words.extend(Unprivileged::find().wrapper());
        }
        words.extend(["sh", "-c", &self.resolved(host)].map(str::to_owned));
        Command::new(&words[0])
            .args(&words[1..])
            // What it leaves behind outside of the namespaces is known by this.
            .env(lab::MARK, host.lab())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| LabError::Program {
                program: "ip".to_owned(),
                package: "iproute2",
                error,
            })
    }
}

/// Removes the directory with the output of an earlier run's commands; of a link, the link.
pub(crate) fn remove_directory(path: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LabError::File {
            what: format!("removing {}", path.display()),
            error,
        }),
        _ => Ok(()),
    }
}

/// Makes a directory for the output of commands.
pub(crate) fn create_directory(path: &Path) -> Result<(), LabError> {
    fs::create_dir(path).map_err(|error| LabError::File {
        what: format!("making the directory {}", path.display()),
        error,
    })
}

/// A new file, which must not be somebody else's link to another one.
fn create(path: PathBuf) -> Result<(PathBuf, File), LabError> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path);
    match file {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(LabError::File {
            what: format!("creating {}", path.display()),
            error,
        }),
    }
}

/// A thread that reads a stream to its end.
struct Capture {
    state: Arc<Mutex<State>>,
    thread: JoinHandle<()>,
    file: Option<PathBuf>,
}

#[derive(Default)]
struct State {
    last: VecDeque<u8>,
    bytes: u64,
}

impl Capture {
    fn start(mut pipe: impl Read + Send + 'static, file: Option<(PathBuf, File)>) -> Self {
        let state = Arc::<Mutex<State>>::default();
        let (path, mut file) = file.unzip();
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; MOST_KEPT];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST_OUTPUT.saturating_sub(state.bytes).min(read as u64);
                if let Some(to) = &mut file
                    && to.write_all(&buffer[..room as usize]).is_err()
                {
                    // The disk is full. What came before stays, and the program goes on.
                    file = None;
                }
                state.bytes += read as u64;
                state.last.extend(&buffer[..read]);
                let excess = state.last.len().saturating_sub(MOST_KEPT);
                state.last.drain(..excess);
            }
        });
        Self {
            state,
            thread,
            file: path,
        }
    }

    /// Captured output once the stream has ended, or at the deadline.
    fn finish(self, deadline: Instant) -> Captured {
        while !self.thread.is_finished() && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Captured {
            last: state.last.iter().copied().collect(),
            bytes: state.bytes,
            file: self.file,
        }
    }
}
