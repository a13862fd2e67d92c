use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::fcntl::{Flock, FlockArg};

use super::{LabError, PREFIX};

/// Where labs that live are known: a file for each, locked for as long as its program runs.
const DIRECTORY: &str = "/run/shallows";

/// Waits for the end of its input, which is the end of the program that started it, then removes
/// the namespaces in its arguments with whatever runs in them. The first argument is the lab's file.
/// A switch that was killed has left its session's niceness raised, which ends here too.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
nice=$(sed 's/.*nice //' /proc/self/autogroup 2>/dev/null)
read -r _
file=$1
shift
for name in "$@"; do
    for _ in 1 2 3 4 5; do
        processes=$(ip netns pids "$name" 2>/dev/null)
        if [ -z "$processes" ]; then break; fi
        kill -9 $processes
    done
    ip netns delete "$name" 2>/dev/null
done
if [ -n "$nice" ]; then echo "$nice" > /proc/self/autogroup; fi
rm -f "$file"
"#;

/// The process that removes a lab.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    /// Held until the namespaces are gone.
    _lock: Flock<File>,
}

impl Guard {
    pub(super) fn start<'a>(
        id: &str,
        namespaces: impl Iterator<Item = &'a str>,
    ) -> Result<Self, LabError> {
        let failed = |what: &str, error| LabError::File {
            what: what.to_owned(),
            error,
        };
        fs::create_dir_all(DIRECTORY).map_err(|error| failed("making /run/shallows", error))?;
        let path = Path::new(DIRECTORY).join(id);
        let lock = lock(&path).map_err(|error| failed("locking a lab's file", error))?;
        let process = Command::new("sh")
            .args(["-c", SCRIPT, "shallows-guard"])
            .arg(&path)
            .args(namespaces)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the program, not for its guard.
            .process_group(0)
            .spawn()
            .map_err(|error| failed("starting the guard", error))?;
        Ok(Self {
            process,
            _lock: lock,
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // There is nobody to tell.
        let _ = self.process.wait();
    }
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Namespaces of programs that are gone.
    pub removed: Vec<String>,
    /// Namespaces of programs that still run.
    pub alive: Vec<String>,
}

/// Removes the namespaces of labs whose programs are gone.
pub fn clean() -> Result<Cleaned, LabError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(LabError::Root);
    }
    let mut cleaned = Cleaned::default();
    let mut living = BTreeSet::new();
    let mut files: Vec<(PathBuf, Flock<File>)> = Vec::new();
    for entry in fs::read_dir(DIRECTORY).into_iter().flatten().flatten() {
        match lock(&entry.path()) {
            Ok(lock) => files.push((entry.path(), lock)),
            // Another process has it.
            Err(_) => {
                living.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // shallows-PID-NUMBER-host: the lab is all but the last part.
        let Some((lab, _)) = name.rsplit_once('-').filter(|_| name.starts_with(PREFIX)) else {
            continue;
        };
        if living.contains(lab) {
            cleaned.alive.push(name);
        } else {
            remove(&name)?;
            cleaned.removed.push(name);
        }
    }
    for (path, _lock) in &files {
        // Its guard may have been faster.
        let _ = fs::remove_file(path);
    }
    Ok(cleaned)
}

fn remove(namespace: &str) -> Result<(), LabError> {
    let pids = Command::new("ip")
        .args(["netns", "pids", namespace])
        .output();
    let pids = pids.map_err(|error| LabError::Program {
        program: "ip".to_owned(),
        package: "iproute2",
        error,
    })?;
    for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
        if let Ok(pid) = pid.parse() {
            let pid = nix::unistd::Pid::from_raw(pid);
            // It may have ended by itself.
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL);
        }
    }
    match super::ip(&["netns", "delete", namespace], "") {
        Err(error) if Path::new("/run/netns").join(namespace).exists() => Err(error),
        _ => Ok(()),
    }
}

/// The file at `path`, locked; an error if another process has it.
fn lock(path: &Path) -> std::io::Result<Flock<File>> {
    let mut options = OpenOptions::new();
    // Nobody else may lock it, and so make a lab that is dead look alive.
    options.create(true).append(true).mode(0o600);
    let file = options.open(path)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}
