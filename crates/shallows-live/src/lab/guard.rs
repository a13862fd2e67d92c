use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::fcntl::{Flock, FlockArg};

use super::{LabError, PREFIX, niceness};

/// Directory of running labs: a file for each, locked for as long as its program runs.
pub(super) const DIRECTORY: &str = "/run/shallows";

/// Environment variable of programs outside of the namespaces; its value is the name of their lab.
pub(crate) const MARK: &str = "SHALLOWS_LAB";

/// Waits for the end of its input, which is the end of the program that started it, then removes
/// the namespaces in its arguments with whatever runs in them, and programs outside that carry the
/// lab's mark. The first argument is the lab's file, the second the file of the session's niceness,
/// which a switch that was killed has left raised: the last switch of the session puts it back.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
read -r _
file=$1
nice=$2
shift 2
for _ in 1 2 3 4 5; do
    processes=$(grep -lszx "SHALLOWS_LAB=${file##*/}" /proc/[0-9]*/environ | cut -d/ -f3)
    if [ -z "$processes" ]; then break; fi
    kill -9 $processes
done
for name in "$@"; do
    for _ in 1 2 3 4 5; do
        processes=$(ip netns pids "$name" 2>/dev/null)
        if [ -z "$processes" ]; then break; fi
        kill -9 $processes
    done
    ip netns delete "$name" 2>/dev/null
done
if [ -s "$nice" ]; then
    flock -n "$nice" sh -c 'cat "$0" > /proc/self/autogroup; rm -f "$0"' "$nice"
fi
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
        let mut lock = lock(&path).map_err(|error| failed("locking a lab's file", error))?;
        // What is not in the list is not ours, whatever it is called.
        let namespaces: Vec<&str> = namespaces.collect();
        lock.write_all(namespaces.join("\n").as_bytes())
            .map_err(|error| failed("writing a lab's file", error))?;
        let process = Command::new("sh")
            .args(["-c", SCRIPT, "shallows-guard"])
            .arg(&path)
            .arg(niceness::file().unwrap_or_default())
            .args(namespaces)
            .env_remove(MARK)
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

/// Removed items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Namespaces of programs that are gone.
    pub removed: Vec<String>,
    /// Namespaces of programs that still run.
    pub alive: Vec<String>,
}

/// Removes the namespaces of labs whose programs are gone. They are known by the lists that labs
/// keep of them; others are left alone, whatever they are called.
pub fn clean() -> Result<Cleaned, LabError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(LabError::Root);
    }
    let mut cleaned = Cleaned::default();
    for entry in fs::read_dir(DIRECTORY).into_iter().flatten().flatten() {
        let (path, lab) = (entry.path(), entry.file_name());
        let lab = lab.to_string_lossy();
        if !lab.starts_with(PREFIX) {
            continue;
        }
        let lock = lock(&path);
        let list = fs::read_to_string(&path).unwrap_or_default();
        let is_there = |name: &&str| Path::new("/run/netns").join(name).exists();
        let of_lab = |name: &&str| name.starts_with(&format!("{lab}-")) && !name.contains('/');
        for name in list.lines().filter(of_lab).filter(is_there) {
            // Otherwise another process has it.
            if lock.is_ok() {
                remove(name)?;
                cleaned.removed.push(name.to_owned());
            } else {
                cleaned.alive.push(name.to_owned());
            }
        }
        if lock.is_ok() {
            // Its guard may have been faster.
            let _ = fs::remove_file(&path);
        }
    }
    niceness::restore_all();
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
