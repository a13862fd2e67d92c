//! Messages of applications as bytes of a connection.

use shallows_core::application::Message;

/// Length, kind, tag and wanted reply of a message.
pub(super) const HEADER: usize = 25;

/// Length of a message on the connection.
pub(super) fn wire_length(message: Message) -> u64 {
    message.bytes.max(HEADER as u64)
}

pub(super) fn encode(message: Message) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(wire_length(message) as usize);
    bytes.extend(message.bytes.to_be_bytes());
    bytes.push(message.kind);
    bytes.extend(message.tag.to_be_bytes());
    bytes.extend(message.reply.to_be_bytes());
    bytes.resize(wire_length(message) as usize, 0x5a);
    bytes
}

/// Decodes a whole header.
pub(super) fn decode(header: &[u8]) -> Option<Message> {
    let number = |from: usize| {
        Some(u64::from_be_bytes(
            header.get(from..from + 8)?.try_into().ok()?,
        ))
    };
    Some(Message {
        bytes: number(0)?,
        kind: *header.get(8)?,
        tag: number(9)?,
        reply: number(17)?,
    })
}
