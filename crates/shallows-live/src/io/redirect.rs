//! The program that hands a device's frames to an AF_XDP socket: five instructions, so there is
//! no compiler and no library for them.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::IoError;

// Of linux/bpf.h.
const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const XSKMAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const REDIRECT_MAP: i32 = 51;
const PASS: i32 = 2;

// Of linux/if_link.h: in the driver, or in the stack for drivers that cannot.
const IN_DRIVER: u32 = 1 << 2;
const IN_STACK: u32 = 1 << 1;

/// A program at a device, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Redirect {
    _link: OwnedFd,
}

/// struct bpf_insn
#[repr(C)]
struct Instruction {
    code: u8,
    /// Destination in the low half, source in the high one.
    registers: u8,
    offset: i16,
    immediate: i32,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach: u32,
    flags: u32,
}

impl Redirect {
    /// Hands what comes in at queue 0 of the device with this number to `socket`.
    pub(super) fn attach(device: u32, socket: RawFd) -> Result<Self, IoError> {
        let map = create_map()?;
        let (key, value) = (0u32, socket);
        let entry = MapUpdate {
            map: map.as_raw_fd().cast_unsigned(),
            _padding: 0,
            key: (&raw const key) as u64,
            value: (&raw const value) as u64,
            flags: 0,
        };
        bpf(MAP_UPDATE, &entry).map_err(failed("putting an AF_XDP socket into its map"))?;
        let program = load(&map)?;
        let link = |flags| {
            let link = LinkCreate {
                program: program.as_raw_fd().cast_unsigned(),
                device,
                attach: ATTACH_XDP,
                flags,
            };
            file(bpf(LINK_CREATE, &link))
        };
        let link = link(IN_DRIVER).or_else(|_| link(IN_STACK));
        Ok(Self {
            _link: link.map_err(failed("attaching an XDP program"))?,
        })
    }
}

fn create_map() -> Result<OwnedFd, IoError> {
    let map = MapCreate {
        kind: XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
    };
    file(bpf(MAP_CREATE, &map)).map_err(failed("making a map for AF_XDP sockets"))
}

/// return redirect_map(map, context->rx_queue_index, XDP_PASS)
fn load(map: &OwnedFd) -> Result<OwnedFd, IoError> {
    let instruction = |code, registers, offset, immediate| Instruction {
        code,
        registers,
        offset,
        immediate,
    };
    let program = [
        // r2 = context->rx_queue_index
        instruction(0x61, 0x12, 16, 0),
        // r1 = map, in two halves
        instruction(0x18, 0x11, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0),
        // r3 = what becomes of frames of other queues
        instruction(0xb7, 0x03, 0, PASS),
        instruction(0x85, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0),
    ];
    let license = c"Dual MIT/GPL";
    let load = ProgramLoad {
        kind: PROGRAM_XDP,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
    };
    file(bpf(PROGRAM_LOAD, &load)).map_err(failed("loading an XDP program"))
}

fn bpf<T>(command: i32, attributes: &T) -> io::Result<RawFd> {
    // SAFETY: the attributes are those of the command, and what they point to outlives the call;
    // the kernel takes those that it knows beyond them for zero.
    let answer = unsafe {
        let attributes = std::ptr::from_ref(attributes);
        libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>())
    };
    match answer {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer as RawFd),
    }
}

fn file(answer: io::Result<RawFd>) -> io::Result<OwnedFd> {
    // SAFETY: a descriptor that the kernel has just made and that nobody else owns.
    answer.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> IoError {
    move |error| IoError::new(what, error)
}
