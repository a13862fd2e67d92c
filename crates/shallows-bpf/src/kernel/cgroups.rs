//! The cgroups of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Mount point of cgroup2, if it is mounted.
pub(super) fn mounted() -> std::io::Result<Option<PathBuf>> {
    let text = fs::read_to_string("/proc/self/mounts")?;
    Ok(text.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    }))
}

/// The paths below the root of all cgroups that can be seen from here, by their numbers, which are
/// the inodes of their directories.
pub(super) fn all() -> BTreeMap<u64, PathBuf> {
    let mut found = BTreeMap::new();
    if let Ok(Some(root)) = mounted()
        && let Ok(metadata) = fs::metadata(&root)
    {
        found.insert(metadata.ino(), PathBuf::from("/"));
        walk(&root, Path::new("/"), &mut found);
    }
    found
}

fn walk(directory: &Path, name: &Path, found: &mut BTreeMap<u64, PathBuf>) {
    // Any of them may go meanwhile.
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|of| of.is_dir()) {
            let name = name.join(entry.file_name());
            walk(&entry.path(), &name, found);
            found.insert(entry.ino(), name);
        }
    }
}
