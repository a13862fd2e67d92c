//! Pins of limiters: a directory for each in the BPF file system.

use std::fs;
use std::path::PathBuf;

use crate::kernel::kernel;
use crate::kernel::pins::{check_own, create_own, file, if_there, own_directory};
use crate::loader::{Map, Object};
use crate::qjump::Error;

const MAPS: [&str; 6] = [
    "limits",
    "buckets",
    "installation",
    "automatic",
    "applications",
    "chosen",
];

/// The pinned objects of a limiter. Names in this file system have no dots, so it is the number of
/// the device that stands in the path.
#[derive(Clone, Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    /// Inode of the device's network namespace.
    pub(super) namespace: u64,
    pub(super) index: u32,
}

fn root() -> Result<PathBuf, Error> {
    let directory = own_directory().map_err(|error| match error {
        crate::Error::InNamespace(name) => Error::InNamespace(name),
        error => error.into(),
    })?;
    let directory = directory.join("qjump");
    check_own(&directory)?;
    Ok(directory)
}

impl Pins {
    /// Directory of a device's limiter, present or future.
    pub(super) fn of(namespace: u64, index: u32) -> Result<Self, Error> {
        Ok(Self {
            directory: root()?.join(format!("{namespace}-{index}")),
            namespace,
            index,
        })
    }

    /// Those that there are.
    pub(super) fn all() -> Result<Vec<Self>, Error> {
        let entries = fs::read_dir(root()?).into_iter().flatten().flatten();
        let pins = entries.filter_map(|entry| {
            check_own(&entry.path()).ok()?;
            let name = entry.file_name().into_string().ok()?;
            let (namespace, index) = name.split_once('-')?;
            Some(Self {
                directory: entry.path(),
                namespace: namespace.parse().ok()?,
                index: index.parse().ok()?,
            })
        });
        Ok(pins.collect())
    }

    /// Holds the attachment at tcx; as it goes, the limiter goes.
    pub(super) fn link(&self) -> PathBuf {
        self.directory.join("link")
    }

    /// The program of a filter.
    pub(super) fn program(&self) -> PathBuf {
        self.directory.join("program")
    }

    pub(super) fn open(&self, map: &str) -> Result<Map, Error> {
        let opened = Map::open(&self.directory.join(map));
        Ok(opened.map_err(kernel("open a map of the limiter"))?)
    }

    pub(super) fn create(&self, object: &Object) -> Result<(), Error> {
        let directory = &self.directory;
        create_own(directory)?;
        for name in MAPS {
            let pinned = object.map(name).pin(&directory.join(name));
            pinned.map_err(kernel("pin a map of the limiter"))?;
        }
        Ok(())
    }

    /// Removes all of them, also those of somebody who was killed half-way.
    pub(super) fn clear(&self) -> Result<(), Error> {
        let maps = MAPS.map(|name| self.directory.join(name));
        for path in [self.link(), self.program()].iter().chain(&maps) {
            if_there(fs::remove_file(path)).map_err(file("remove", path))?;
        }
        let directory = &self.directory;
        if_there(fs::remove_dir(directory)).map_err(file("remove", directory))?;
        Ok(())
    }
}
