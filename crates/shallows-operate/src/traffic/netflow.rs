//! NetFlow v9 (RFC 3954) and IPFIX (RFC 7011): templates, then records of whole flows.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::bytes::{Reader, number};
use super::packet::FiveTuple;
use super::{Conversation, Traffic, TrafficError};

/// Most fields of a template; exporters have some tens.
const MOST_FIELDS: u16 = 512;

/// The length of a field that has its own length in front.
const VARIABLE: u16 = 0xffff;

/// Largest mean packet of a direction that only acknowledges: TCP with timestamps over IPv6 has 72.
const LARGEST_ACK: u64 = 72;

/// A field of a template: its information element, and 0 for those of other enterprises.
#[derive(Clone, Copy, Debug)]
struct Field {
    element: u16,
    length: u16,
}

/// Templates and sampling of one exporter's domain.
#[derive(Debug, Default)]
pub(super) struct Collector {
    templates: BTreeMap<(u32, u16), Vec<Field>>,
    found: Vec<Conversation>,
    /// Packets of which one was sampled, by domain.
    sampling: BTreeMap<u32, u64>,
    /// Sets whose template has not come yet.
    unknown: u64,
    /// Records of acknowledgements alone.
    acknowledgements: u64,
}

/// Header of a message, as far as records need it.
#[derive(Clone, Copy, Debug)]
struct Message {
    domain: u32,
    version: u16,
    /// Nanoseconds since the epoch at which the exporter's uptime was zero (NetFlow v9).
    boot: Option<u64>,
}

/// Returns whether a message starts here.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    matches!(reader.u16(), Some(9 | 10)) && bytes.len() >= 16
}

/// All messages of a file that has them one after the other.
pub(super) fn file(bytes: &[u8]) -> Result<Traffic, TrafficError> {
    let mut collector = Collector::default();
    let mut rest = Reader(bytes);
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        rest = collector.message(rest).ok_or_else(|| {
            TrafficError::at(at, "this is not a whole message of NetFlow v9 or IPFIX")
        })?;
    }
    Ok(collector.finish())
}

impl Collector {
    /// Reads a message; answers with what follows it.
    pub(super) fn message<'a>(&mut self, start: Reader<'a>) -> Option<Reader<'a>> {
        let mut reader = start;
        let version = reader.u16()?;
        match version {
            9 => {
                let count = reader.u16()?;
                let (uptime, seconds) = (reader.u32()?, reader.u32()?);
                reader.take(4)?;
                let now = u64::from(seconds) * 1_000_000_000;
                let message = Message {
                    domain: reader.u32()?,
                    version,
                    boot: now.checked_sub(u64::from(uptime) * 1_000_000),
                };
                // The header counts records, not bytes: sets go on until it is reached, or until
                // something else than a set comes.
                let mut records = 0;
                while records < usize::from(count) {
                    let Some(before) = self.set(reader, message) else {
                        break;
                    };
                    (reader, records) = (before.0, records + before.1.max(1));
                }
                Some(reader)
            }
            10 => {
                let length = usize::from(reader.u16()?);
                reader.take(8)?;
                let domain = reader.u32()?;
                let mut sets = reader.part(length.checked_sub(16)?)?;
                let message = Message {
                    domain,
                    version,
                    boot: None,
                };
                while let Some((rest, _)) = self.set(sets, message) {
                    sets = rest;
                }
                Some(reader)
            }
            _ => None,
        }
    }

    /// Reads a set; answers with what follows it and the number of its records.
    fn set<'a>(&mut self, mut reader: Reader<'a>, of: Message) -> Option<(Reader<'a>, usize)> {
        let (id, length) = (reader.u16()?, reader.u16()?);
        let mut body = reader.part(usize::from(length).checked_sub(4)?)?;
        let mut records = 0;
        match id {
            0 | 2 => {
                while self.template(&mut body, of).is_some() {
                    records += 1;
                }
            }
            1 | 3 => {
                while self.options(&mut body, of, id).is_some() {
                    records += 1;
                }
            }
            4..=255 => {}
            id => {
                let Some(fields) = self.templates.get(&(of.domain, id)).cloned() else {
                    self.unknown += 1;
                    return Some((reader, 1));
                };
                while !body.is_empty() && self.record(&mut body, &fields, of).is_some() {
                    records += 1;
                }
            }
        }
        Some((reader, records))
    }

    fn template(&mut self, body: &mut Reader<'_>, of: Message) -> Option<()> {
        let (id, count) = (body.u16()?, body.u16()?);
        let fields = fields(body, count, of.version)?;
        (id >= 256).then(|| self.templates.insert((of.domain, id), fields))?;
        Some(())
    }

    fn options(&mut self, body: &mut Reader<'_>, of: Message, set: u16) -> Option<()> {
        let id = body.u16()?;
        let count = if set == 1 {
            // NetFlow v9 gives bytes of scope fields and of option fields.
            (body.u16()? / 4).checked_add(body.u16()? / 4)?
        } else {
            let count = body.u16()?;
            body.u16()?;
            count
        };
        let fields = fields(body, count, of.version)?;
        (id >= 256).then(|| self.templates.insert((of.domain, id), fields))?;
        Some(())
    }

    fn record(&mut self, body: &mut Reader<'_>, fields: &[Field], of: Message) -> Option<()> {
        let before = body.len();
        let mut record = Record::default();
        for field in fields {
            let length = match field.length {
                VARIABLE => match body.u8()? {
                    255 => body.u16()?.into(),
                    short => usize::from(short),
                },
                fixed => fixed.into(),
            };
            record.set(field.element, body.take(length)?, of.boot);
        }
        if let Some(interval) = record.sampling() {
            self.sampling.insert(of.domain, interval);
        }
        if let Some(conversation) = record.conversation() {
            if conversation.bytes > 0 {
                self.found.push(conversation);
            } else {
                self.acknowledgements += 1;
            }
        }
        // Records without a length would go on for ever.
        (body.len() < before).then_some(())
    }

    pub(super) fn finish(self) -> Traffic {
        let mut traffic = Traffic::new(self.found);
        traffic.sampling = self.sampling.into_values().max().unwrap_or(1);
        if self.acknowledgements > 0 {
            traffic.notes.push(format!(
                "{} records have packets of up to {LARGEST_ACK} bytes in the mean, which are taken for \
                 acknowledgements and left out",
                self.acknowledgements
            ));
        }
        if self.unknown > 0 {
            traffic.notes.push(format!(
                "{} sets of records came before their template and are left out",
                self.unknown
            ));
        }
        traffic
    }
}

fn fields(body: &mut Reader<'_>, count: u16, version: u16) -> Option<Vec<Field>> {
    if count > MOST_FIELDS {
        return None;
    }
    let mut fields = Vec::new();
    for _ in 0..count {
        let (element, length) = (body.u16()?, body.u16()?);
        let is_other = version == 10 && element & 0x8000 != 0;
        if is_other {
            body.take(4)?;
        }
        fields.push(Field {
            element: if is_other { 0 } else { element },
            length,
        });
    }
    (!fields.is_empty()).then_some(fields)
}

/// The information elements of a record that matter here.
#[derive(Debug, Default)]
struct Record {
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    ports: [u16; 2],
    protocol: u8,
    tos: u8,
    /// With headers, from IP on.
    bytes: Option<u64>,
    count: Option<u64>,
    start: Option<u64>,
    end: Option<u64>,
    interval: Option<u64>,
    /// Packets that are sampled in a row, and those left out after them.
    packets: [Option<u64>; 2],
}

impl Record {
    fn set(&mut self, element: u16, value: &[u8], boot: Option<u64>) {
        let of_value = number(value);
        let scaled = |unit: u64| of_value.and_then(|of| of.checked_mul(unit));
        let since_boot = || boot?.checked_add(scaled(1_000_000)?);
        match element {
            8 | 27 => self.src = address(value).or(self.src),
            12 | 28 => self.dst = address(value).or(self.dst),
            7 => self.ports[0] = of_value.unwrap_or(0) as u16,
            11 => self.ports[1] = of_value.unwrap_or(0) as u16,
            4 => self.protocol = of_value.unwrap_or(0) as u8,
            5 => self.tos = of_value.unwrap_or(0) as u8,
            1 | 85 => self.bytes = of_value,
            2 | 86 => self.count = of_value,
            22 => self.start = since_boot(),
            21 => self.end = since_boot(),
            150 => self.start = scaled(1_000_000_000),
            151 => self.end = scaled(1_000_000_000),
            152 => self.start = scaled(1_000_000),
            153 => self.end = scaled(1_000_000),
            154 | 156 => self.start = ntp(value),
            155 | 157 => self.end = ntp(value),
            34 | 50 => self.interval = of_value,
            305 | 309 => self.packets[0] = of_value,
            306 | 310 => self.packets[1] = of_value,
            _ => {}
        }
    }

    /// Packets of which one was sampled.
    fn sampling(&self) -> Option<u64> {
        let interval = self.interval.or_else(|| {
            let [Some(taken @ 1..), Some(left)] = self.packets else {
                return None;
            };
            Some(taken.checked_add(left)? / taken)
        })?;
        Some(interval.max(1))
    }

    fn conversation(&self) -> Option<Conversation> {
        let start = self.start?;
        Some(Conversation {
            start,
            end: self.end.unwrap_or(start).max(start),
            tuple: FiveTuple {
                src: self.src?,
                dst: self.dst?,
                src_port: self.ports[0],
                dst_port: self.ports[1],
                protocol: self.protocol,
            },
            dscp: self.tos >> 2,
            bytes: self.payload()?,
        })
    }

    /// Bytes without the headers of IP and of TCP or UDP, none for acknowledgements alone.
    fn payload(&self) -> Option<u64> {
        let (bytes, count) = (self.bytes?, self.count?.max(1));
        if self.protocol == 6 && bytes / count <= LARGEST_ACK {
            return Some(0);
        }
        let ip = if self.src?.is_ipv4() { 20 } else { 40 };
        let transport = if self.protocol == 17 { 8 } else { 20 };
        Some(bytes.saturating_sub(count.saturating_mul(ip + transport)))
    }
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(value).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Seconds since 1900 and a fraction, as nanoseconds since 1970.
fn ntp(value: &[u8]) -> Option<u64> {
    const TO_1970: u64 = 2_208_988_800;
    let number = number(value).filter(|_| value.len() == 8)?;
    let (seconds, fraction) = (number >> 32, number & 0xffff_ffff);
    let seconds = seconds.checked_sub(TO_1970)?;
    Some(seconds * 1_000_000_000 + ((fraction * 1_000_000_000) >> 32))
}
