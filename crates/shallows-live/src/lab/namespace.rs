use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;

use nix::sched::{CloneFlags, setns};

use super::LabError;

/// A named network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    pub(super) fn named(name: String) -> Self {
        Self { name }
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lab that it belongs to.
    pub(crate) fn lab(&self) -> &str {
        self.name
            .rsplit_once('-')
            .map_or(&*self.name, |(lab, _)| lab)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }

    /// Moves the calling thread into the namespace for good: sockets that it opens are there.
    pub fn join(&self) -> Result<(), LabError> {
        let failed = |error| LabError::File {
            what: format!("entering the namespace {}", self.name),
            error,
        };
        let file = File::open(self.path()).map_err(failed)?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(error.into()))
    }

    /// Does something on a thread in the namespace and waits for it.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.join()?;
                Ok(work())
            });
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Sets `net.ipv4.something`, which every namespace has its own of.
    pub fn set(&self, name: &str, value: &str) -> Result<(), LabError> {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let written = self.enter(|| fs::write(path, value))?;
        written.map_err(|error| LabError::Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            error,
        })
    }
}
