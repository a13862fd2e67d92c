//! One change to what is pinned at a time: what another process is just making looks like what a
//! killed one has left.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

use super::pins::file;
use crate::Error;

/// Directory of locks between our programs on this machine.
const DIRECTORY: &str = "/run/shallows";
const FILE: &str = "/run/shallows/bpf.lock";

/// Waits until no other process changes what is pinned, and keeps others out until it is dropped.
pub(super) fn exclusive() -> Result<Flock<File>, Error> {
    let directory = Path::new(DIRECTORY);
    if fs::symlink_metadata(directory).is_err() {
        let made = DirBuilder::new()
            .mode(0o755)
            .recursive(true)
            .create(directory);
        made.map_err(file("create", directory))?;
    }
    let path = Path::new(FILE);
    let mut options = OpenOptions::new();
    // Nobody else may lock it.
    options.create(true).append(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW);
    let opened = options.open(path).map_err(file("open", path))?;
    Flock::lock(opened, FlockArg::LockExclusive)
        .map_err(|(_, errno)| file("lock", path)(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_at_a_time() {
        if !nix::unistd::geteuid().is_root() {
            shallows_testing::skip!("it needs root");
        }
        let held = exclusive().unwrap();
        let again = || {
            let file = File::open(FILE).unwrap();
            Flock::lock(file, FlockArg::LockSharedNonblock)
        };
        assert!(again().is_err());
        drop(held);
    }
}
