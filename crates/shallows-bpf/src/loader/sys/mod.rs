//! The system call bpf(2), with a safe function for each command: the only unsafe code of the crate.
//!
//! What makes them safe: the kernel reads and writes memory at the addresses of an attribute block
//! only, these are always those of slices that live for the call, and the sizes of what is read and
//! written are either in the block or, for keys and values of a map, asked from the kernel by
//! [`Map`].

#![allow(unsafe_code)]

mod link;
mod map;
mod program;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bytemuck::{Pod, Zeroable, bytes_of_mut};

pub(crate) use link::Link;
pub(super) use map::MapAttributes;
pub(crate) use map::{LOCK, Map};
pub(crate) use program::Program;
pub(super) use program::ProgramKind;

const OBJ_PIN: i32 = 6;
const OBJ_GET: i32 = 7;
const OBJ_GET_INFO_BY_FD: i32 = 15;
const BTF_LOAD: i32 = 18;

/// Calls bpf(2).
///
/// # Safety
/// Every address in `attributes` is one that the command may use as it does.
unsafe fn bpf(command: i32, attributes: &mut impl Pod) -> io::Result<i32> {
    let bytes = bytes_of_mut(attributes);
    // SAFETY: the block lives for the call and is as long as it is said to be; the caller vouches
    // for what it points to.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, bytes.as_mut_ptr(), bytes.len()) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer as i32)
}

/// Calls bpf(2) for a new file descriptor.
///
/// # Safety
/// That of [`bpf`], and the command answers with a file descriptor.
unsafe fn open(command: i32, attributes: &mut impl Pod) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for it; nobody else has the new file descriptor.
    unsafe { bpf(command, attributes).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

fn raw(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr() as u64
}

fn address_mut(bytes: &mut [u8]) -> u64 {
    bytes.as_mut_ptr() as u64
}

/// The names of maps and programs have room for 15 bytes.
fn short(name: &str) -> [u8; 16] {
    let mut short = [0; 16];
    for (to, from) in short[..15].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    short
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Gives the kernel the types of an object.
pub(super) fn load_btf(btf: &[u8]) -> io::Result<OwnedFd> {
    #[derive(Clone, Copy, Pod, Zeroable)]
    #[repr(C)]
    struct Attributes {
        btf: u64,
        log: u64,
        size: u32,
        log_size: u32,
        log_level: u32,
        padding: u32,
    }
    let mut attributes = Attributes {
        btf: address(btf),
        size: btf.len() as u32,
        ..Attributes::zeroed()
    };
    // SAFETY: the slice is as long as is said, and no log is asked for.
    unsafe { open(BTF_LOAD, &mut attributes) }
}

/// The kernel's information about an object.
fn info<T: Pod>(fd: BorrowedFd<'_>) -> io::Result<T> {
    #[derive(Clone, Copy, Pod, Zeroable)]
    #[repr(C)]
    struct Attributes {
        fd: u32,
        size: u32,
        info: u64,
    }
    let mut info = T::zeroed();
    let bytes = bytes_of_mut(&mut info);
    let mut attributes = Attributes {
        fd: raw(fd),
        size: bytes.len() as u32,
        info: address_mut(bytes),
    };
    // SAFETY: there is as much room as is said.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attributes) }?;
    Ok(info)
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PinAttributes {
    path: u64,
    fd: u32,
    flags: u32,
}

fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let mut attributes = PinAttributes {
        path: path.as_ptr() as u64,
        fd: raw(fd),
        flags: 0,
    };
    // SAFETY: the path ends with a 0.
    unsafe { bpf(OBJ_PIN, &mut attributes) }.map(drop)
}

fn get(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    let mut attributes = PinAttributes {
        path: path.as_ptr() as u64,
        fd: 0,
        flags: 0,
    };
    // SAFETY: the path ends with a 0.
    unsafe { open(OBJ_GET, &mut attributes) }
}
