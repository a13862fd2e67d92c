//! Maps.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use bytemuck::{Pod, Zeroable, bytes_of, bytes_of_mut, pod_read_unaligned};

use super::{address, address_mut, bpf, get, info, open, pin, raw, short};
use crate::loader::malformed;

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP_ELEM: i32 = 1;
const MAP_UPDATE_ELEM: i32 = 2;
const MAP_DELETE_ELEM: i32 = 3;
const MAP_GET_NEXT_KEY: i32 = 4;

// The types of maps that we know: with one value, and with one for each CPU.
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const PERCPU_HASH: u32 = 5;
const PERCPU_ARRAY: u32 = 6;
const LRU_HASH: u32 = 9;
const LRU_PERCPU_HASH: u32 = 10;
const XSKMAP: u32 = 17;
const PERCPU_CGROUP_STORAGE: u32 = 21;
const STRUCT_OPS: u32 = 26;

/// `BPF_F_LOCK`: the value is copied under its spin lock.
pub(crate) const LOCK: u64 = 4;

/// Attributes of a new map, in the kernel's layout.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(in crate::loader) struct MapAttributes {
    pub(in crate::loader) kind: u32,
    pub(in crate::loader) key_size: u32,
    pub(in crate::loader) value_size: u32,
    pub(in crate::loader) max_entries: u32,
    pub(in crate::loader) flags: u32,
    pub(in crate::loader) inner_map: u32,
    pub(in crate::loader) numa_node: u32,
    pub(in crate::loader) name: [u8; 16],
    pub(in crate::loader) ifindex: u32,
    pub(in crate::loader) btf: u32,
    pub(in crate::loader) btf_key: u32,
    pub(in crate::loader) btf_value: u32,
    pub(in crate::loader) btf_vmlinux_value: u32,
}

/// Bytes that the kernel copies for a value of `size` bytes. Of other types of maps it is not known,
/// and what is copied would not fit.
fn copied(kind: u32, size: usize, cpus: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
    match kind {
        HASH | ARRAY | LRU_HASH | XSKMAP | STRUCT_OPS => Ok(size),
        PERCPU_HASH | PERCPU_ARRAY | LRU_PERCPU_HASH | PERCPU_CGROUP_STORAGE => {
            Ok(size.next_multiple_of(8) * cpus()?)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("maps of type {kind} cannot be read"),
        )),
    }
}

/// A map in the kernel.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    /// Bytes of a key.
    key: usize,
    /// Bytes that the kernel copies for a value, of all CPUs where each has its own.
    copied: usize,
    /// Bytes of a value.
    size: usize,
}

impl Map {
    pub(in crate::loader) fn create(
        name: &str,
        btf: Option<BorrowedFd<'_>>,
        attributes: &MapAttributes,
    ) -> io::Result<Self> {
        let mut attributes = MapAttributes {
            name: short(name),
            btf: btf.map_or(0, raw),
            ..*attributes
        };
        // SAFETY: the block has no addresses.
        Self::from_fd(unsafe { open(MAP_CREATE, &mut attributes) }?)
    }

    /// One that is pinned.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::from_fd(get(path)?)
    }

    fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        /// `struct bpf_map_info`, as far as it is needed.
        #[derive(Clone, Copy, Pod, Zeroable)]
        #[repr(C)]
        struct Info {
            kind: u32,
            id: u32,
            key_size: u32,
            value_size: u32,
        }
        let info: Info = info(fd.as_fd())?;
        let size = info.value_size as usize;
        let copied = copied(info.kind, size, possible_cpus)?;
        Ok(Self {
            fd,
            key: info.key_size as usize,
            copied,
            size,
        })
    }

    /// The value of a key, of this size; of a map with a value for each CPU, all of these.
    fn copy(&self, key: impl Pod, size: usize, flags: u64) -> io::Result<Vec<u8>> {
        self.check(bytes_of(&key), size)?;
        let mut value = vec![0; self.copied];
        let mut attributes = Element {
            map: raw(self.fd.as_fd()),
            key: address(bytes_of(&key)),
            value: address_mut(&mut value),
            flags,
            ..Element::zeroed()
        };
        // SAFETY: keys and values have the sizes that the kernel has told us.
        unsafe { bpf(MAP_LOOKUP_ELEM, &mut attributes) }?;
        Ok(value)
    }

    /// The value of a key.
    pub(crate) fn get<T: Pod>(&self, key: impl Pod, flags: u64) -> io::Result<T> {
        let value = self.copy(key, size_of::<T>(), flags)?;
        Ok(pod_read_unaligned(&value[..self.size]))
    }

    /// The value of a key, if the map has one.
    pub(crate) fn find<T: Pod>(&self, key: impl Pod, flags: u64) -> io::Result<Option<T>> {
        if_found(self.get(key, flags))
    }

    /// The keys of a map, in no order.
    pub(crate) fn keys<K: Pod>(&self) -> io::Result<Vec<K>> {
        let mut keys = Vec::new();
        while let Some(key) = self.key_after(keys.last())? {
            keys.push(key);
        }
        Ok(keys)
    }

    /// The key that follows another, or the first.
    fn key_after<K: Pod>(&self, key: Option<&K>) -> io::Result<Option<K>> {
        let mut next = K::zeroed();
        self.check(bytes_of(&next), self.size)?;
        let mut attributes = Element {
            map: raw(self.fd.as_fd()),
            key: key.map_or(0, |key| address(bytes_of(key))),
            value: address_mut(bytes_of_mut(&mut next)),
            ..Element::zeroed()
        };
        // SAFETY: both keys have the size that the kernel has told us; without one it takes none.
        let found = unsafe { bpf(MAP_GET_NEXT_KEY, &mut attributes) };
        Ok(if_found(found)?.map(|_| next))
    }

    /// Removes a key of a map whose keys come and go.
    pub(crate) fn remove(&self, key: impl Pod) -> io::Result<()> {
        self.check(bytes_of(&key), self.size)?;
        let mut attributes = Element {
            map: raw(self.fd.as_fd()),
            key: address(bytes_of(&key)),
            ..Element::zeroed()
        };
        // SAFETY: the key has the size that the kernel has told us.
        unsafe { bpf(MAP_DELETE_ELEM, &mut attributes) }.map(drop)
    }

    /// The values that the CPUs have for a key.
    pub(crate) fn get_of_cpus<T: Pod>(&self, key: impl Pod) -> io::Result<Vec<T>> {
        let values = self.copy(key, size_of::<T>(), 0)?;
        let of_cpus = values.chunks_exact(self.size.next_multiple_of(8));
        Ok(of_cpus
            .map(|value| pod_read_unaligned(&value[..self.size]))
            .collect())
    }

    pub(crate) fn set(&self, key: impl Pod, value: &impl Pod) -> io::Result<()> {
        self.set_bytes(key, bytes_of(value), 0)
    }

    /// Sets a value, with [`LOCK`](super::LOCK) as a whole.
    pub(crate) fn set_with(&self, key: impl Pod, value: &impl Pod, flags: u64) -> io::Result<()> {
        self.set_bytes(key, bytes_of(value), flags)
    }

    /// Sets a value, which is not one for each CPU.
    pub(in crate::loader) fn set_bytes(
        &self,
        key: impl Pod,
        value: &[u8],
        flags: u64,
    ) -> io::Result<()> {
        self.check(bytes_of(&key), value.len())?;
        if self.copied != self.size {
            return Err(malformed("a value for each CPU"));
        }
        let mut attributes = Element {
            map: raw(self.fd.as_fd()),
            key: address(bytes_of(&key)),
            value: address(value),
            flags,
            ..Element::zeroed()
        };
        // SAFETY: keys and values have the sizes that the kernel has told us.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
    }

    /// A map that was pinned by another version may have other keys and values.
    fn check(&self, key: &[u8], size: usize) -> io::Result<()> {
        if (key.len(), size) == (self.key, self.size) {
            return Ok(());
        }
        Err(malformed("a map of another version of shallows"))
    }

    pub(crate) fn pin(&self, path: &Path) -> io::Result<()> {
        pin(self.fd.as_fd(), path)
    }

    pub(in crate::loader) fn raw(&self) -> u32 {
        raw(self.fd.as_fd())
    }
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// None where the kernel has found no such key.
fn if_found<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The CPUs that the kernel has values for, such as 4 for "0-3".
fn possible_cpus() -> io::Result<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    let counts: Option<Vec<usize>> = text.trim().split(',').map(count).collect();
    counts
        .map(|counts| counts.iter().sum())
        .ok_or_else(|| malformed("/sys/devices/system/cpu/possible"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_for_each_cpu_takes_room_for_each() {
        let of = |kind| copied(kind, 12, || Ok(4)).ok();
        for kind in [HASH, ARRAY, LRU_HASH, XSKMAP, STRUCT_OPS] {
            assert_eq!(of(kind), Some(12));
        }
        for kind in [
            PERCPU_HASH,
            PERCPU_ARRAY,
            LRU_PERCPU_HASH,
            PERCPU_CGROUP_STORAGE,
        ] {
            assert_eq!(of(kind), Some(64));
        }
        // A queue, a ring buffer, and what is still to come.
        for kind in [0, 22, 27, 99] {
            assert_eq!(of(kind), None);
        }
    }
}
