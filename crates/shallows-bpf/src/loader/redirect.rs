//! The program that hands a device's frames to an AF_XDP socket: five instructions, so there is no
//! compiler for them.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::sys::{Link, Map, MapAttributes, Program, ProgramKind};

// Of linux/bpf.h.
const XSKMAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const REDIRECT_MAP: i32 = 51;
const PASS: i32 = 2;

/// A program at a device, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Redirect {
    _link: Link,
}

impl Redirect {
    /// Hands what comes in at queue 0 of the device with this number to an AF_XDP socket.
    pub fn attach(device: u32, socket: BorrowedFd<'_>) -> io::Result<Self> {
        let attributes = MapAttributes {
            kind: XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: 1,
            ..MapAttributes::default()
        };
        let map = Map::create("sockets", None, &attributes)?;
        map.set(0u32, &socket.as_raw_fd())?;
        let kind = ProgramKind {
            kind: PROGRAM_XDP,
            ..ProgramKind::default()
        };
        let program = Program::load("redirect", kind, c"Dual MIT/GPL", &program(&map))?;
        Ok(Self {
            _link: program.attach_to_xdp(device)?,
        })
    }
}

/// return redirect_map(map, context->rx_queue_index, XDP_PASS)
fn program(map: &Map) -> Vec<u8> {
    /// struct bpf_insn: destination in the low half of the registers, source in the high one.
    fn instruction(code: u8, registers: u8, offset: i16, immediate: i32) -> [u8; 8] {
        let [low, high] = offset.to_ne_bytes();
        let [a, b, c, d] = immediate.to_ne_bytes();
        [code, registers, low, high, a, b, c, d]
    }
    [
        // r2 = context->rx_queue_index
        instruction(0x61, 0x12, 16, 0),
        // r1 = map, in two halves
        instruction(0x18, 0x11, 0, map.raw().cast_signed()),
        instruction(0, 0, 0, 0),
        // r3 = what becomes of frames of other queues
        instruction(0xb7, 0x03, 0, PASS),
        instruction(0x85, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0),
    ]
    .concat()
}
