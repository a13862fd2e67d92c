//! The network namespaces of this machine.

use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::panic;
use std::thread;

use nix::sched::{CloneFlags, setns};

pub(super) const OURS: &str = "/proc/thread-self/ns/net";

/// This one and every other that has a name.
pub(super) fn all() -> io::Result<Vec<File>> {
    let ours = File::open(OURS)?;
    let inode = ours.metadata()?.ino();
    let others = named().filter(|entry| inode_of(entry) != Some(inode));
    let others = others.filter_map(|entry| File::open(entry.path()).ok());
    Ok([ours].into_iter().chain(others).collect())
}

/// The name of this one, if it has one.
pub(super) fn name_of_ours() -> Option<String> {
    name_of(fs::metadata(OURS).ok()?.ino())
}

/// The name of the one with this inode, if it has one.
pub(super) fn name_of(inode: u64) -> Option<String> {
    let entry = named().find(|entry| inode_of(entry) == Some(inode))?;
    Some(entry.file_name().to_string_lossy().into_owned())
}

fn named() -> impl Iterator<Item = DirEntry> {
    let directory = fs::read_dir("/run/netns").into_iter().flatten();
    directory.flatten()
}

fn inode_of(entry: &DirEntry) -> Option<u64> {
    // Not the entry's own metadata: a namespace is mounted over it.
    Some(fs::metadata(entry.path()).ok()?.ino())
}

/// Does `work` in a namespace; nothing if what was found is none.
pub(super) fn within<T: Send>(namespace: File, work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).ok()?;
            Some(work())
        });
        worker
            .join()
            .unwrap_or_else(|why| panic::resume_unwind(why))
    })
}
