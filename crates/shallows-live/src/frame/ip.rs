//! The fields of IP headers that a switch reads, and the one that it writes.

use super::{Malformed, word};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Fields common to both versions.
pub(super) struct Facts {
    /// DSCP and ECN in one byte.
    pub(super) traffic_class: u8,
    pub(super) flow: u64,
}

/// Reads an IPv4 packet; bytes after its end are padding.
pub(super) fn v4(packet: &[u8]) -> Result<Facts, Malformed> {
    let header = packet.first_chunk::<20>().ok_or(Malformed::Truncated)?;
    if header[0] >> 4 != 4 {
        return Err(Malformed::Version);
    }
    let length = usize::from(header[0] & 0xf) * 4;
    if length < header.len() {
        return Err(Malformed::HeaderLength);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if total < length || total > packet.len() {
        return Err(Malformed::TotalLength);
    }
    // Later fragments have no ports, and the first must take the same way.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let ports = match header[9] {
        TCP | UDP if !fragment => ports(&packet[length..total]),
        _ => [0; 4],
    };
    let mut key = [0; 13];
    key[..8].copy_from_slice(&header[12..20]);
    key[8..12].copy_from_slice(&ports);
    key[12] = header[9];
    Ok(Facts {
        traffic_class: header[1],
        flow: hash(&key),
    })
}

/// Reads an IPv6 packet. Ports are read where TCP or UDP follows at once, without extensions.
pub(super) fn v6(packet: &[u8]) -> Result<Facts, Malformed> {
    let header = packet.first_chunk::<40>().ok_or(Malformed::Truncated)?;
    if header[0] >> 4 != 6 {
        return Err(Malformed::Version);
    }
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if payload > packet.len() - header.len() {
        return Err(Malformed::TotalLength);
    }
    let ports = match header[6] {
        TCP | UDP => ports(&packet[40..40 + payload]),
        _ => [0; 4],
    };
    let mut key = [0; 37];
    key[..32].copy_from_slice(&header[8..40]);
    key[32..36].copy_from_slice(&ports);
    key[36] = header[6];
    Ok(Facts {
        traffic_class: header[0] << 4 | header[1] >> 4,
        flow: hash(&key),
    })
}

fn ports(payload: &[u8]) -> [u8; 4] {
    payload.first_chunk::<4>().copied().unwrap_or_default()
}

/// Multiplies and folds eight bytes at a time: fast, and good enough to spread flows over queues.
pub(super) fn hash(key: &[u8]) -> u64 {
    let mut state = key.len() as u64;
    for chunk in key.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        let product = u128::from(state ^ u64::from_le_bytes(bytes)) * 0x9e37_79b9_7f4a_7c15_u128;
        state = (product as u64) ^ (product >> 64) as u64;
    }
    state
}

/// Sets CE, and the checksum by what changed (RFC 1624, eq. 3).
pub(super) fn mark_v4(packet: &mut [u8]) {
    let (Some(old), Some(checksum)) = (word(packet, 0), word(packet, 10)) else {
        return;
    };
    packet[1] |= 0b11;
    let new = old | 0b11;
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

/// Sets CE. IPv6 has no header checksum.
pub(super) fn mark_v6(packet: &mut [u8]) {
    if let Some(byte) = packet.get_mut(1) {
        *byte |= 0b0011_0000;
    }
}
