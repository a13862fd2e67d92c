//! Little-endian numbers and strings in a file.

/// The number of 16 bits at an offset.
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// The number of 32 bits at an offset.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// The number of 64 bits at an offset, as an offset or a size.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<usize> {
    let number = u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?);
    usize::try_from(number).ok()
}

/// So many bytes from an offset on.
pub(super) fn slice(bytes: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    bytes.get(offset..)?.get(..length)
}

/// The string at an offset, up to the next 0.
pub(super) fn string_at(strings: &[u8], offset: usize) -> Option<&str> {
    let string = strings.get(offset..)?.split(|&byte| byte == 0).next()?;
    str::from_utf8(string).ok()
}
