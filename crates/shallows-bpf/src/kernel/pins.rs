//! Where a loaded controller lives: a directory of its own in the BPF file system.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::namespaces;
use crate::{Controller, Error};

/// Where distributions mount the BPF file system.
pub(super) const BPF_FS: &str = "/sys/fs/bpf";

/// The pinned objects of a controller.
pub(super) struct Pins {
    directory: PathBuf,
    /// Holds the registration; as it goes, the controller goes.
    pub(super) link: PathBuf,
    pub(super) parameters: PathBuf,
    pub(super) counters: PathBuf,
}

impl Pins {
    /// Where those of `controller` are, or will be.
    pub(super) fn of(controller: Controller) -> Result<Self, Error> {
        mount_if_missing(Path::new(BPF_FS))?;
        let directory = Path::new(BPF_FS)
            .join("shallows")
            .join(controller.kernel_name());
        Ok(Self {
            link: directory.join("link"),
            parameters: directory.join("parameters"),
            counters: directory.join("counters"),
            directory,
        })
    }

    /// Whether the controller is loaded.
    pub(super) fn are_complete(&self) -> bool {
        self.link.exists()
    }

    pub(super) fn create(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.directory).map_err(file("create", &self.directory))
    }

    /// Removes all of them, also those of a load that was cut off.
    pub(super) fn clear(&self) -> Result<(), Error> {
        for path in [&self.link, &self.parameters, &self.counters] {
            if_there(fs::remove_file(path)).map_err(file("remove", path))?;
        }
        if_there(fs::remove_dir(&self.directory)).map_err(file("remove", &self.directory))
    }
}

pub(super) fn if_there(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

pub(super) fn mount_if_missing(path: &Path) -> Result<(), Error> {
    let found = statfs(path).map_err(|errno| file("look at", path)(errno.into()))?;
    if found.filesystem_type() == BPF_FS_MAGIC {
        return Ok(());
    }
    // `ip netns exec` gives a command a /sys of its own; a mount there would end with the command.
    if let Some(name) = namespaces::name_of_ours() {
        return Err(Error::InNamespace(name));
    }
    mount(
        Some("bpf"),
        path,
        Some("bpf"),
        MsFlags::empty(),
        None::<&str>,
    )
    .map_err(|errno| file("mount the BPF file system at", path)(errno.into()))
}

pub(super) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File {
        doing,
        path,
        source,
    }
}
