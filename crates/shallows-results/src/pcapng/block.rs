//! The three blocks of pcapng that a capture needs (draft-ietf-opsawg-pcapng), in little-endian
//! order on every machine.

use std::io::{self, Write};

use shallows_core::units::Time;

use super::Interface;
use super::frame::Frame;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;
/// Timestamps count 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// The block that begins a file.
pub(super) fn section_header(out: &mut Vec<u8>) {
    let mut body = Vec::new();
    body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
    // Version 1.0, and a section whose length is not told.
    body.extend(1_u16.to_le_bytes());
    body.extend(0_u16.to_le_bytes());
    body.extend((-1_i64).to_le_bytes());
    let application = concat!("shallows ", env!("CARGO_PKG_VERSION"));
    option(&mut body, 4, application.as_bytes());
    end_of_options(&mut body);
    block(out, SECTION_HEADER, &body);
}

/// A block for a link.
pub(super) fn interface(out: &mut Vec<u8>, interface: &Interface) {
    let mut body = Vec::new();
    body.extend(LINKTYPE_ETHERNET.to_le_bytes());
    body.extend(0_u16.to_le_bytes());
    body.extend(u32::try_from(Frame::MAX_LEN).unwrap_or(0).to_le_bytes());
    option(&mut body, 2, interface.name.as_bytes());
    option(&mut body, 8, &interface.rate.bps().to_le_bytes());
    option(&mut body, 9, &[NANOSECONDS]);
    end_of_options(&mut body);
    block(out, INTERFACE_DESCRIPTION, &body);
}

/// A block for a packet, without options.
pub(super) fn packet(
    out: &mut impl Write,
    time: Time,
    interface: u32,
    frame: &Frame,
) -> io::Result<()> {
    let ns = time.ps() / 1_000;
    let captured = frame.bytes().len();
    let padding = padding(captured);
    let length = 32 + captured as u32 + padding.len() as u32;
    for word in [
        ENHANCED_PACKET,
        length,
        interface,
        (ns >> 32) as u32,
        ns as u32,
        captured as u32,
        frame.original_len(),
    ] {
        out.write_all(&word.to_le_bytes())?;
    }
    out.write_all(frame.bytes())?;
    out.write_all(padding)?;
    out.write_all(&length.to_le_bytes())
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = 12 + body.len() as u32;
    out.extend(kind.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
    out.extend(length.to_le_bytes());
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Names are cut at what the length field can tell.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.extend(padding(value.len()));
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// Zeros up to a multiple of four bytes.
fn padding(len: usize) -> &'static [u8] {
    &[0; 3][..len.next_multiple_of(4) - len]
}
