//! Links.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use bytemuck::{Pod, Zeroable};

use super::{Map, bpf, get, info, open, pin, raw};

const LINK_CREATE: i32 = 28;
const ITER_CREATE: i32 = 33;
const LINK_DETACH: i32 = 34;

/// A link that keeps a program or a controller attached: until it is dropped, unless it is pinned.
#[derive(Debug)]
pub(crate) struct Link {
    fd: OwnedFd,
}

/// `struct bpf_link_info`, as far as it is needed.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct LinkInfo {
    kind: u32,
    id: u32,
    /// Of its program.
    pub(crate) program: u32,
    padding: u32,
    /// The device of a tcx link; 0 if it is gone.
    pub(crate) ifindex: u32,
}

impl Link {
    pub(super) fn create(what: u32, target: u32, attach_type: u32) -> io::Result<Self> {
        Self::create_with(what, target, attach_type, 0)
    }

    pub(super) fn create_with(
        what: u32,
        target: u32,
        attach_type: u32,
        flags: u32,
    ) -> io::Result<Self> {
        // SAFETY: the block has no addresses.
        let fd = unsafe { open(LINK_CREATE, &mut [what, target, attach_type, flags]) }?;
        Ok(Self { fd })
    }

    /// Registers what a map of the kind struct_ops describes.
    pub(in crate::loader) fn register(map: &Map) -> io::Result<Self> {
        const STRUCT_OPS: u32 = 44;
        Self::create(map.raw(), 0, STRUCT_OPS)
    }

    /// One that is pinned.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: get(path)? })
    }

    pub(crate) fn pin(&self, path: &Path) -> io::Result<()> {
        pin(self.fd.as_fd(), path)
    }

    pub(crate) fn info(&self) -> io::Result<LinkInfo> {
        info(self.fd.as_fd())
    }

    pub(crate) fn detach(&self) -> io::Result<()> {
        // SAFETY: the block has no addresses.
        unsafe { bpf(LINK_DETACH, &mut raw(self.fd.as_fd())) }.map(drop)
    }

    /// Output of an iterator, for this thread's network namespace.
    pub(crate) fn iterate(&self) -> io::Result<File> {
        // SAFETY: the block has no addresses.
        let fd = unsafe { open(ITER_CREATE, &mut [raw(self.fd.as_fd()), 0]) }?;
        Ok(fd.into())
    }
}
