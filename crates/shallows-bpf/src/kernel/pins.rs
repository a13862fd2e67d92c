//! Pins of a loaded controller: a directory of its own in the BPF file system.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use nix::unistd::geteuid;

use super::namespaces;
use crate::{Controller, Error};

/// Mount point of the BPF file system in distributions.
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
    /// Directory of `controller`, present or future.
    pub(super) fn of(controller: Controller) -> Result<Self, Error> {
        let directory = own_directory()?.join(controller.kernel_name());
        check_own(&directory)?;
        Ok(Self {
            link: directory.join("link"),
            parameters: directory.join("parameters"),
            counters: directory.join("counters"),
            directory,
        })
    }

    /// Returns whether the controller is loaded.
    pub(super) fn are_complete(&self) -> bool {
        self.link.exists()
    }

    pub(super) fn create(&self) -> Result<(), Error> {
        create_own(&self.directory)
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

/// Directory of all our pins in the BPF file system, which is mounted if it is not.
pub(super) fn own_directory() -> Result<PathBuf, Error> {
    mount_if_missing(Path::new(BPF_FS))?;
    let directory = Path::new(BPF_FS).join("shallows");
    check_own(&directory)?;
    Ok(directory)
}

/// Makes a directory, and the one above it, that nobody else can write to.
pub(super) fn create_own(directory: &Path) -> Result<(), Error> {
    let mut builder = DirBuilder::new();
    let made = builder.mode(0o700).recursive(true).create(directory);
    made.map_err(file("create", directory))
}

/// Refuses a directory of another user, or a link to anywhere: the file system may be open to all,
/// and what is pinned would be somebody else's to move.
pub(super) fn check_own(directory: &Path) -> Result<(), Error> {
    let Ok(found) = fs::symlink_metadata(directory) else {
        return Ok(());
    };
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let problem = "it is not a directory that only root can change; remove it";
    Err(file("use", directory)(io::Error::other(problem)))
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
        // As systemd mounts it; the kernel's default is open to all.
        Some("mode=0700"),
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    #[test]
    fn directories_of_others_and_links_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("own/deeper");
        check_own(&directory).unwrap();
        create_own(&directory).unwrap();
        check_own(&directory).unwrap();
        let mode = fs::metadata(&directory).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        let link = place.path().join("link");
        symlink(&directory, &link).unwrap();
        let error = check_own(&link).unwrap_err().to_string();
        assert!(error.contains("link"), "{error}");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        check_own(&directory).unwrap_err();
        if geteuid().is_root() {
            let theirs = place.path().join("theirs");
            create_own(&theirs).unwrap();
            chown(&theirs, Some(65534), None).unwrap();
            check_own(&theirs).unwrap_err();
        }
    }
}
