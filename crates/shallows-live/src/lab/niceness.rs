//! The niceness of a session while switches of it run.
//!
//! Where sessions share the CPUs as groups (autogroup), niceness counts within a session only, and
//! the session needs it as well to count against others. The first switch of a session keeps its
//! niceness in a file, which all switches of the session hold a shared lock on; the last one, or its
//! guard, puts it back.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use super::guard::DIRECTORY;

/// The kernel's knob for the niceness of a whole session.
const AUTOGROUP: &str = "/proc/self/autogroup";

/// The session's niceness, which is as before once the last of these is dropped.
#[derive(Debug)]
pub(crate) struct Urgency {
    held: Option<(PathBuf, Flock<File>)>,
}

impl Urgency {
    /// Leaves the session as it is.
    pub(crate) fn none() -> Self {
        Self { held: None }
    }

    /// Raises the session's niceness, where there is one.
    pub(crate) fn raise(nice: i32) -> Self {
        let held = file().and_then(|path| Some((hold(&path)?, path)));
        let Some((lock, path)) = held else {
            return Self::none();
        };
        // Without the right to do so it stays as it is, and is put back to that.
        let _ = fs::write(AUTOGROUP, nice.to_string());
        Self {
            held: Some((path, lock)),
        }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        if let Some((path, lock)) = self.held.take() {
            drop(lock);
            restore(&path, Path::new(AUTOGROUP));
        }
    }
}

/// File with the niceness of this session.
pub(super) fn file() -> Option<PathBuf> {
    let (group, _) = read(Path::new(AUTOGROUP))?;
    Some(Path::new(DIRECTORY).join(format!("nice-{group}")))
}

/// Puts back what killed programs have left raised, in all sessions.
pub(super) fn restore_all() {
    for entry in fs::read_dir(DIRECTORY).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(group) = name.strip_prefix("nice-") else {
            continue;
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let knobs = processes.map(|process| process.path().join("autogroup"));
        let is_its = |knob: &PathBuf| read(knob).is_some_and(|(of, _)| of == group);
        // A session without processes has no niceness.
        let knob = knobs.into_iter().find(is_its);
        restore(&entry.path(), &knob.unwrap_or_default());
    }
}

/// The group of a session and its niceness: `/autogroup-12 nice 0`.
fn read(knob: &Path) -> Option<(String, String)> {
    let text = fs::read_to_string(knob).ok()?;
    let mut words = text.split_whitespace();
    let group = words.next()?.trim_start_matches('/').to_owned();
    Some((group, words.next_back()?.to_owned()))
}

/// The file with the niceness from before the first switch, with a lock that says that there is one
/// more.
fn hold(path: &Path) -> Option<Flock<File>> {
    fs::create_dir_all(DIRECTORY).ok()?;
    let mut options = OpenOptions::new();
    options.create(true).read(true).append(true).mode(0o600);
    loop {
        let file = options.open(path).ok()?;
        let mut lock = Flock::lock(file, FlockArg::LockShared).ok()?;
        // The last switch before may have removed it meanwhile.
        if !is_at(&lock, path) {
            continue;
        }
        let mut kept = String::new();
        lock.read_to_string(&mut kept).ok()?;
        if kept.is_empty() {
            let (_, before) = read(Path::new(AUTOGROUP))?;
            lock.write_all(before.as_bytes()).ok()?;
        }
        return Some(lock);
    }
}

/// Returns whether a file is still the one at this path.
fn is_at(file: &File, path: &Path) -> bool {
    let inode = |of: &fs::Metadata| (of.dev(), of.ino());
    let (held, there) = (file.metadata(), fs::metadata(path));
    matches!((held, there), (Ok(held), Ok(there)) if inode(&held) == inode(&there))
}

/// Puts the niceness back unless a switch still needs it.
fn restore(path: &Path, knob: &Path) {
    let Ok(file) = File::open(path) else {
        return;
    };
    let Ok(mut lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
        return;
    };
    let mut kept = String::new();
    if lock.read_to_string(&mut kept).is_ok() && !kept.is_empty() {
        // There is nobody to tell.
        let _ = fs::write(knob, kept);
    }
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    /// A process that a service manager starts may belong to no session, and so to no autogroup;
    /// the test therefore runs again in a session of its own.
    #[test]
    #[allow(unsafe_code)]
    fn the_last_switch_of_a_session_puts_its_niceness_back() {
        if !Path::new(AUTOGROUP).exists() || !nix::unistd::geteuid().is_root() {
            shallows_testing::skip!("it needs root and a kernel with autogroups");
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "lab::niceness::tests::in_a_session", "--ignored"]);
        // SAFETY: setsid is async-signal-safe and touches no memory of this process.
        unsafe {
            command.pre_exec(|| nix::unistd::setsid().map(|_| ()).map_err(Into::into));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn a_file_that_was_removed_is_not_the_one_at_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nice");
        let first = File::create(&path).unwrap();
        assert!(is_at(&first, &path));
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&first, &path));
        let second = File::create(&path).unwrap();
        assert!(is_at(&second, &path) && !is_at(&first, &path));
    }

    #[test]
    #[ignore = "run by the_last_switch_of_a_session_puts_its_niceness_back"]
    fn in_a_session() {
        let (_, nice) = read(Path::new(AUTOGROUP)).expect("a session has an autogroup");
        let now = || read(Path::new(AUTOGROUP)).unwrap().1;
        let first = Urgency::raise(-7);
        let second = Urgency::raise(-7);
        assert_eq!(now(), "-7");
        drop(first);
        assert_eq!(now(), "-7");
        drop(second);
        assert_eq!(now(), nice);
    }
}
