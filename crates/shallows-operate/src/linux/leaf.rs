//! The qdisc of one band: buffer and marker.

use shallows_core::port::marker::{Average, NotEct, SchemeConfig, Threshold, minimum_thresholds};
use shallows_core::port::{BufferConfig, ConfigError, PerIndex, PortConfig, SchedulerConfig};
use shallows_core::units::{Bytes, Rate};

use super::{Command, LinuxError};
use crate::sonic::Fidelity;

/// Bytes that a band may hold where the scenario has no limit of its own.
pub(super) const DEFAULT_LIMIT: u64 = 10_000_000;

/// Fastest link that tc takes for `red`, which needs it to age its average while a band is idle.
const FASTEST: u64 = 34_000_000_000;

/// Marking of a band.
enum Marks {
    None,
    /// Above a length, or between two with a probability at the second.
    Length {
        min: f64,
        max: f64,
        p: f64,
    },
    Sojourn(shallows_core::units::Time),
}

pub(super) fn leaf(
    port: &PortConfig,
    rate: Rate,
    queue: usize,
    place: &str,
) -> Result<Command, LinuxError> {
    let (limit, buffer) = limit(port, queue)?;
    let (marks, fidelity, scheme) = marks(port, rate, queue)?;
    let replace = format!("tc qdisc replace {place}");
    let says = |scheme: &str| match buffer {
        "" => scheme.to_owned(),
        buffer => format!("{scheme}; {buffer}"),
    };
    let inexact = |fidelity| {
        if buffer.is_empty() {
            fidelity
        } else {
            Fidelity::Nearest
        }
    };
    Ok(match marks {
        Marks::None => {
            let words = format!("{replace} bfifo limit {limit}");
            Command::new(words, inexact(fidelity), says(scheme))
        }
        Marks::Sojourn(sojourn) => {
            // The kernel counts whole microseconds.
            let us = sojourn.ps().div_ceil(1_000_000);
            let packets = limit / port.packet.get().max(1);
            let words = format!(
                "{replace} fq_codel flows 1 limit {} target 1s interval 10s ce_threshold {us}us noecn",
                packets.max(1)
            );
            Command::new(words, inexact(fidelity), says(scheme))
        }
        Marks::Length { min, max, p } => {
            let min = (min.round() as u64).max(1);
            let max = (max.round() as u64).max(min + 1);
            let passes = match port.marker.not_ect {
                NotEct::Pass => " nodrop",
                NotEct::Drop => "",
            };
            // tc derives the weight of the average from avpkt and burst: with burst packets of avpkt
            // bytes up to min it is one half, the most that it can be.
            let burst = min.div_ceil(port.packet.get().max(1)).max(1);
            let packet = min.div_ceil(burst);
            let words = format!(
                "{replace} red limit {} min {min} max {max} avpkt {packet} burst {burst} probability {p} bandwidth {}bit ecn{passes}",
                limit.max(max + packet),
                rate.bps().min(FASTEST)
            );
            Command::new(words, inexact(fidelity), says(scheme))
        }
    })
}

/// Limit of a band, and the difference that remains.
fn limit(port: &PortConfig, queue: usize) -> Result<(u64, &'static str), ConfigError> {
    Ok(match &port.buffer {
        BufferConfig::Unlimited => (DEFAULT_LIMIT, "the band has a limit, the scenario has none"),
        BufferConfig::Shared { size } if port.queues == 1 => {
            (size.whole_bytes(port.packet).get(), "")
        }
        BufferConfig::Shared { size } => {
            let says = "each band may hold what the port may in the scenario";
            (size.whole_bytes(port.packet).get(), says)
        }
        BufferConfig::PerQueue { limit } => {
            let limits = limit.each("limit", port.queues)?;
            (limits[queue].whole_bytes(port.packet).get(), "")
        }
        BufferConfig::Dynamic { .. } => {
            let says = "Linux has no pool that devices share: the band has a limit of its own";
            (DEFAULT_LIMIT, says)
        }
    })
}

const AVERAGED: &str =
    "red marks by an average that follows the queue within a few packets, and marks at enqueue";
const NEAREST: &str = "Linux has no such marker: red marks at the threshold of each queue";

fn marks(
    port: &PortConfig,
    rate: Rate,
    queue: usize,
) -> Result<(Marks, Fidelity, &'static str), ConfigError> {
    use Fidelity::{Exact, Missing, Nearest};
    let step = |threshold: Threshold, says| {
        let k = threshold.in_bytes(rate, port.packet)?;
        // A threshold beyond any queue is none.
        let marks = if k >= 1e12 {
            Marks::None
        } else {
            Marks::Length {
                min: k,
                max: k,
                p: 1.0,
            }
        };
        Ok((marks, Nearest, says))
    };
    let each = |values: &PerIndex<Threshold>| {
        let values = values.each("threshold", port.queues)?;
        Ok::<Threshold, ConfigError>(values[queue])
    };
    match &port.marker.scheme {
        SchemeConfig::None => Ok((Marks::None, Exact, "nothing is marked")),
        SchemeConfig::PerQueue { threshold } | SchemeConfig::EcnStar { threshold } => {
            step(each(threshold)?, AVERAGED)
        }
        SchemeConfig::PerQueueMinimum { threshold } => {
            let k = threshold.in_bytes(rate, port.packet)?;
            let shares = minimum_thresholds(k, &weights(port)?);
            let bytes = Bytes::new(shares[queue].round() as u64);
            let length = shallows_core::units::Length::Bytes(bytes);
            step(Threshold::Length(length), AVERAGED)
        }
        SchemeConfig::Tcn(tcn) => {
            let says = "ce_threshold marks at dequeue what waited longer; target and interval keep CoDel itself from dropping";
            Ok((Marks::Sojourn(tcn.sojourn), Exact, says))
        }
        SchemeConfig::Red(red) => {
            let count = port.queues;
            let min = red.min.each("min", count)?[queue].in_bytes(port.packet);
            let max = red.max.each("max", count)?[queue].in_bytes(port.packet);
            let p = red.max_probability.each("max-probability", count)?[queue];
            if min >= 1e12 {
                return Ok((Marks::None, Exact, "nothing is marked"));
            }
            let says = match red.average {
                Average::Instantaneous => AVERAGED,
                Average::Ewma(_) => "red averages with a weight of its own, by burst",
            };
            Ok((Marks::Length { min, max, p }, Nearest, says))
        }
        SchemeConfig::MqEcn(of) => step(of.threshold, NEAREST),
        SchemeConfig::MlEcn(of) => step(of.threshold, NEAREST),
        SchemeConfig::PerPort { threshold } | SchemeConfig::PerPool { threshold } => {
            step(*threshold, NEAREST)
        }
        SchemeConfig::Pmsb(of) => step(each(&of.queue)?, NEAREST),
        SchemeConfig::Cedm(of) => step(of.enqueue, NEAREST),
        SchemeConfig::AEcn(of) => step(of.threshold, NEAREST),
        SchemeConfig::MmEcn(of) => step(of.threshold, NEAREST),
        SchemeConfig::Demepro(of) => step(of.threshold, NEAREST),
        SchemeConfig::Custom(_) => Ok((
            Marks::None,
            Missing,
            "a scheme of another crate has no equal: nothing is marked",
        )),
    }
}

/// Shares of the queues.
fn weights(port: &PortConfig) -> Result<Vec<u32>, ConfigError> {
    Ok(match &port.scheduler {
        SchedulerConfig::Wrr { quantum }
        | SchedulerConfig::Dwrr { quantum }
        | SchedulerConfig::StrictOver { quantum, .. } => {
            let quanta = quantum.each("quantum", port.queues)?;
            quanta
                .into_iter()
                .map(|quantum| quantum.get() as u32)
                .collect()
        }
        SchedulerConfig::Wfq { weight } => weight.each("weight", port.queues)?,
        _ => vec![1; port.queues],
    })
}
