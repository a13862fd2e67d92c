//! Zeek's conn.log, as tab-separated values or as JSON.

use std::net::IpAddr;

use super::packet::FiveTuple;
use super::{Conversation, Traffic, TrafficError, nanoseconds};

const COLUMNS: [&str; 8] = [
    "ts",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "proto",
    "orig_bytes",
    "resp_bytes",
];

/// Returns whether this is the first line of a conn.log.
pub(super) fn is_log(text: &str) -> bool {
    text.starts_with("#separator") || (text.starts_with('{') && text.contains("\"id.orig_h\""))
}

/// Both directions of every connection with known lengths.
pub(super) fn log(text: &str) -> Result<Traffic, TrafficError> {
    let mut columns: Option<Vec<usize>> = None;
    let mut found = Vec::new();
    let mut unknown = 0_u64;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(names) = line.strip_prefix("#fields\t") {
            columns = Some(places(names).map_err(|name| {
                TrafficError::line(number, format!("conn.log has no column {name}"))
            })?);
            continue;
        }
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let values: Vec<String> = if line.starts_with('{') {
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line)
                .map_err(|error| TrafficError::line(number, error.to_string()))?;
            let text = |name: &&str| match object.get(*name) {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => "-".to_owned(),
            };
            COLUMNS.iter().map(text).collect()
        } else {
            let places = columns.as_ref();
            let places = places.ok_or_else(|| TrafficError::line(number, "no line of #fields"))?;
            let cells: Vec<&str> = line.split('\t').collect();
            let cell = |&place: &usize| cells.get(place).map(|cell| (*cell).to_owned());
            let values: Option<Vec<String>> = places.iter().map(cell).collect();
            values.ok_or_else(|| TrafficError::line(number, "the line is too short"))?
        };
        let both = connection(&values)
            .map_err(|name| TrafficError::line(number, format!("{name} cannot be read")))?;
        match both {
            Some(both) => found.extend(both.into_iter().filter(|of| of.bytes > 0)),
            None => unknown += 1,
        }
    }
    let mut traffic = Traffic::new(found);
    if unknown > 0 {
        traffic.notes.push(format!(
            "{unknown} connections are neither TCP nor UDP or have no lengths, and are left out"
        ));
    }
    Ok(traffic)
}

/// Positions of the columns; otherwise the first that is missing.
fn places(names: &str) -> Result<Vec<usize>, &'static str> {
    let names: Vec<&str> = names.split('\t').collect();
    let place = |column: &'static str| names.iter().position(|name| *name == column).ok_or(column);
    COLUMNS.into_iter().map(place).collect()
}

/// Both directions; nothing if the lengths are not known.
fn connection(values: &[String]) -> Result<Option<[Conversation; 2]>, &'static str> {
    let text = |column: usize| values.get(column).map_or("-", String::as_str);
    let address = |column: usize| text(column).parse::<IpAddr>().map_err(|_| COLUMNS[column]);
    let port = |column: usize| text(column).parse::<u16>().map_err(|_| COLUMNS[column]);
    let protocol = match text(5) {
        "tcp" => 6,
        "udp" => 17,
        _ => return Ok(None),
    };
    if text(6) == "-" || text(7) == "-" {
        return Ok(None);
    }
    let bytes = |column: usize| text(column).parse::<u64>().map_err(|_| COLUMNS[column]);
    let start = nanoseconds(text(0)).ok_or(COLUMNS[0])?;
    let tuple = FiveTuple {
        src: address(1)?,
        dst: address(3)?,
        src_port: port(2)?,
        dst_port: port(4)?,
        protocol,
    };
    let of = |tuple, bytes| Conversation {
        start,
        end: start,
        tuple,
        dscp: 0,
        bytes,
    };
    Ok(Some([
        of(tuple, bytes(6)?),
        of(tuple.reversed(), bytes(7)?),
    ]))
}
