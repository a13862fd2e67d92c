//! Flows from a CSV list.
//!
//! The first line names the columns, in any order: `start_s`, `src`, `dst`, `bytes` and `service`;
//! others are ignored, so that the flow table of a run can be fed to another. Start times are
//! decimal seconds, exact to the picosecond and rounded to it beyond; hosts are numbers from 0.
//!
//! ```
//! use shallows_core::units::Time;
//! use shallows_model::workload::list;
//!
//! let flows = list::parse("start_s,src,dst,bytes,service\n0.000002287,16,66,8760,0\n", 144)?;
//! assert_eq!(flows[0].start, Time::from_ns(2287));
//! # Ok::<(), list::ListError>(())
//! ```

use std::fs;
use std::io;
use std::path::Path;

use shallows_core::units::Time;
use thiserror::Error;

use super::{FlowSpec, LATEST_START};
use crate::ids::HostId;
use crate::interrupt::{Interrupt, Interrupted};
use crate::topology::nearest;

/// A petabyte, as in distributions.
const MOST_BYTES: u64 = 1_000_000_000_000_000;

/// The flows of a list, sorted by start and, where that is equal, by line. There are `hosts` hosts.
pub fn parse(text: &str, hosts: u32) -> Result<Vec<FlowSpec>, ListError> {
    let mut flows = in_their_order(text, hosts, Interrupt::Never)?;
    flows.sort_by_key(|flow| flow.start);
    Ok(flows)
}

/// The flows in the order of the lines.
fn in_their_order(
    text: &str,
    hosts: u32,
    interrupt: Interrupt<'_>,
) -> Result<Vec<FlowSpec>, ListError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !is_blank(line));
    let (number, header) = lines.next().ok_or(ListError::Empty)?;
    let columns = Columns::find(number, header)?;
    let flows = lines
        .map(|(number, line)| {
            interrupt.check_at(number)?;
            let flow = columns.flow(line, hosts);
            flow.map_err(|problem| ListError::Line { number, problem })
        })
        .collect::<Result<Vec<_>, _>>()?;
    if flows.is_empty() {
        return Err(ListError::Empty);
    }
    Ok(flows)
}

/// The flows of a list in a file, in the order of its lines.
pub(super) fn read(
    path: &Path,
    hosts: u32,
    interrupt: Interrupt<'_>,
) -> Result<Vec<FlowSpec>, ReadError> {
    let named = |problem: Problem| ReadError {
        path: path.display().to_string(),
        problem,
    };
    let text = fs::read_to_string(path).map_err(|error| named(Problem::Io(error)))?;
    let flows = in_their_order(&text, hosts, interrupt);
    flows.map_err(|error| named(Problem::List(error)))
}

/// The reason why a file cannot be read.
#[derive(Debug, Error)]
#[error("{path}: {problem}")]
pub struct ReadError {
    path: String,
    problem: Problem,
}

impl ReadError {
    /// Returns whether it was given up, and nothing is wrong with the file.
    pub(super) fn is_interrupted(&self) -> bool {
        matches!(self.problem, Problem::List(ListError::Interrupted(_)))
    }
}

#[derive(Debug, Error)]
enum Problem {
    #[error("{}", match .0.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => .0.to_string(),
    })]
    Io(io::Error),
    #[error(transparent)]
    List(ListError),
}

/// The reason why a text is not a list of flows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListError {
    /// Somebody gave up waiting for it.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// No line but perhaps the header.
    #[error("the list has no flows")]
    Empty,
    /// A column is missing.
    #[error("line {number} has no column {column:?}{}", .nearest.as_ref().map(|n| format!(", but {n:?}")).unwrap_or_default())]
    NoColumn {
        /// Number of the line that names the columns, from 1.
        number: usize,
        /// Its name.
        column: &'static str,
        /// The most similar column, if one is close.
        nearest: Option<String>,
    },
    /// A line cannot be read.
    #[error("line {number}: {problem}")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// The error in that line.
        problem: LineError,
    },
}

/// A problem of one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// Too few fields.
    #[error("{line:?} has no field for the column {column:?}")]
    Short {
        /// The line.
        line: String,
        /// The column that it does not reach.
        column: &'static str,
    },
    /// Too many fields.
    #[error("{line:?} has {fields} fields, the header names {columns} columns")]
    Long {
        /// The line.
        line: String,
        /// Its number of fields.
        fields: usize,
        /// Number of columns in the header.
        columns: usize,
    },
    /// A field is not what it should be.
    #[error("{column} is {text:?}, it must be {expected}")]
    Field {
        /// The column.
        column: &'static str,
        /// The field.
        text: String,
        /// Description of a valid value.
        expected: &'static str,
    },
    /// A host that the fabric does not have.
    #[error("{column} is {host}, the fabric has hosts 0 to {}", .hosts - 1)]
    NoSuchHost {
        /// The column.
        column: &'static str,
        /// The number.
        host: u32,
        /// Number of hosts.
        hosts: u32,
    },
    /// A flow to where it comes from.
    #[error("src and dst are both {0}")]
    ToItself(u32),
}

const NAMES: [&str; 5] = ["start_s", "src", "dst", "bytes", "service"];

struct Columns {
    /// The position of each of [`NAMES`] in a line.
    positions: [usize; 5],
    /// All columns, of other names too.
    count: usize,
}

impl Columns {
    fn find(number: usize, header: &str) -> Result<Self, ListError> {
        let fields: Vec<&str> = header
            .trim_start_matches('\u{feff}')
            .split(',')
            .map(str::trim)
            .collect();
        let mut positions = [0; 5];
        for (position, column) in positions.iter_mut().zip(NAMES) {
            let found = fields.iter().position(|field| *field == column);
            *position = found.ok_or_else(|| ListError::NoColumn {
                number,
                column,
                nearest: nearest(column, fields.iter()).map(str::to_owned),
            })?;
        }
        Ok(Self {
            positions,
            count: fields.len(),
        })
    }

    fn flow(&self, line: &str, hosts: u32) -> Result<FlowSpec, LineError> {
        let [start, src, dst, bytes, service] = self.fields(line)?;
        let (src, dst) = (src.host(hosts)?, dst.host(hosts)?);
        if src == dst {
            return Err(LineError::ToItself(src.0));
        }
        let in_time = |text: &str| seconds(text).filter(|start| *start <= LATEST_START);
        let size = |text: &str| text.parse().ok().filter(|n| (1..=MOST_BYTES).contains(n));
        Ok(FlowSpec {
            start: start.read(
                in_time,
                "decimal seconds from 0 to 8640000 such as 0.000125",
            )?,
            src,
            dst,
            bytes: bytes.read(size, "a whole number of bytes from 1 to 1e15")?,
            service: service.read(|n| n.parse().ok(), "a whole number from 0 to 65535")?,
        })
    }

    fn fields<'a>(&self, line: &'a str) -> Result<[Field<'a>; 5], LineError> {
        let mut fields = NAMES.map(|column| Field { column, text: "" });
        let (mut found, mut count) = (0, 0);
        for (position, text) in line.split(',').enumerate() {
            count += 1;
            let mut positions = self.positions.iter();
            if let Some(which) = positions.position(|&wanted| wanted == position) {
                fields[which].text = text.trim();
                found |= 1 << which;
            }
        }
        if count > self.count {
            return Err(LineError::Long {
                line: line.to_owned(),
                fields: count,
                columns: self.count,
            });
        }
        match (0..NAMES.len()).find(|which| found & 1 << which == 0) {
            None => Ok(fields),
            Some(missing) => Err(LineError::Short {
                line: line.to_owned(),
                column: NAMES[missing],
            }),
        }
    }
}

struct Field<'a> {
    column: &'static str,
    text: &'a str,
}

impl Field<'_> {
    fn read<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        expected: &'static str,
    ) -> Result<T, LineError> {
        parse(self.text).ok_or_else(|| LineError::Field {
            column: self.column,
            text: self.text.to_owned(),
            expected,
        })
    }

    fn host(&self, hosts: u32) -> Result<HostId, LineError> {
        let host = self.read(|n| n.parse().ok(), "the number of a host")?;
        if host >= hosts {
            return Err(LineError::NoSuchHost {
                column: self.column,
                host,
                hosts,
            });
        }
        Ok(HostId(host))
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// Decimal seconds, with or without an exponent, to the nearest picosecond.
fn seconds(text: &str) -> Option<Time> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes());
    if !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // Digits up to the last whole picosecond, and the one after it to round by.
    let kept = i64::try_from(whole.len()).ok()? + i64::from(exponent) + 12;
    let mut ps: u64 = 0;
    let mut seen = 0_i64;
    for digit in digits.map(|digit| u64::from(digit - b'0')) {
        if seen == kept && digit >= 5 {
            ps = ps.checked_add(1)?;
        }
        if seen < kept {
            ps = ps.checked_mul(10)?.checked_add(digit)?;
        }
        seen += 1;
    }
    if ps == 0 {
        return Some(Time::ZERO);
    }
    let zeros = u32::try_from((kept - seen).max(0)).ok()?;
    let ps = ps.checked_mul(10_u64.checked_pow(zeros)?)?;
    Some(Time::from_ps(ps))
}

#[cfg(test)]
mod tests;
