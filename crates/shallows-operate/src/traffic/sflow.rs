//! sFlow v5: headers of one packet in N.

use std::collections::BTreeMap;

use super::bytes::Reader;
use super::packet::{FiveTuple, Header};
use super::pcap::Link;
use super::{Conversation, Traffic, TrafficError};

const VERSION: u32 = 5;
const RAW_HEADER: u32 = 1;
const ETHERNET: u32 = 1;

/// Samples of all datagrams.
#[derive(Debug, Default)]
pub(super) struct Collector {
    found: BTreeMap<FiveTuple, Conversation>,
    /// Packets for each sample.
    rates: BTreeMap<u32, u64>,
    samples: u64,
}

/// Returns whether a datagram starts here.
pub(super) fn is_datagram(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    reader.u32() == Some(VERSION) && matches!(reader.u32(), Some(1 | 2))
}

/// All datagrams of a file that has them one after the other.
pub(super) fn file(bytes: &[u8]) -> Result<Traffic, TrafficError> {
    let mut collector = Collector::default();
    let mut rest = Reader(bytes);
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        rest = (collector.datagram(rest, None))
            .ok_or_else(|| TrafficError::at(at, "this is not a whole datagram of sFlow v5"))?;
    }
    Ok(collector.finish())
}

impl Collector {
    /// Reads a datagram that came at `at`, or at its exporter's uptime; answers with what follows.
    pub(super) fn datagram<'a>(
        &mut self,
        start: Reader<'a>,
        at: Option<u64>,
    ) -> Option<Reader<'a>> {
        let mut reader = start;
        if reader.u32()? != VERSION {
            return None;
        }
        let address = match reader.u32()? {
            1 => 4,
            2 => 16,
            _ => return None,
        };
        reader.take(address + 8)?;
        let uptime = reader.u32()?;
        let at = at.unwrap_or(u64::from(uptime) * 1_000_000);
        for _ in 0..reader.u32()? {
            let (kind, length) = (reader.u32()?, reader.u32()?);
            let sample = reader.part(length as usize)?;
            match kind {
                1 => self.sample(sample, at, 4),
                3 => self.sample(sample, at, 8),
                _ => None,
            };
        }
        Some(reader)
    }

    /// Reads a flow sample; source and interfaces take 4 or 8 bytes each.
    fn sample(&mut self, mut reader: Reader<'_>, at: u64, wide: usize) -> Option<()> {
        reader.take(4 + wide)?;
        let rate = reader.u32()?;
        // Pool, drops, input, output.
        reader.take(8 + 2 * wide)?;
        for _ in 0..reader.u32()? {
            let (kind, length) = (reader.u32()?, reader.u32()?);
            let mut record = reader.part(length as usize)?;
            if kind != RAW_HEADER || record.u32()? != ETHERNET {
                continue;
            }
            record.take(8)?;
            let kept = record.u32()? as usize;
            let Some(header) = Header::new(Link::Ethernet, record.take(kept)?) else {
                continue;
            };
            *self.rates.entry(rate).or_default() += 1;
            self.samples += 1;
            let bytes = u64::from(header.payload).saturating_mul(u64::from(rate));
            let of = self.found.entry(header.tuple).or_insert(Conversation {
                start: at,
                end: at,
                tuple: header.tuple,
                dscp: header.dscp,
                bytes: 0,
            });
            of.bytes = of.bytes.saturating_add(bytes);
            of.end = of.end.max(at);
        }
        Some(())
    }

    pub(super) fn finish(self) -> Traffic {
        let mut traffic = Traffic::new(self.found.into_values().collect());
        let rates: Vec<String> = self.rates.keys().map(u32::to_string).collect();
        traffic.sampling = self.rates.into_keys().max().unwrap_or(1).into();
        traffic.is_corrected = true;
        traffic.notes.push(format!(
            "{} samples of one packet in {}",
            self.samples,
            rates.join(", ")
        ));
        traffic
    }
}
