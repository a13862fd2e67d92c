//! Differences between the target state of some ports' queues and their present one.

use std::collections::BTreeMap;

use shallows_core::port::marker::{MarkPoint, MeasureUnit, NotEct, SchemeConfig};
use shallows_core::port::{BufferConfig, ClassifierConfig, PortConfig, SchedulerConfig};
use shallows_core::units::{Bytes, Rate};

use super::super::database::{ConfigDb, LAST_DSCP};
use super::super::import::{self, Marks, PortImport, greatest_common_divisor};
use super::super::port::PortGroup;
use super::super::tables::{LAST_QUEUE, SchedulerKind, Threshold};
use super::super::words;
use super::{ExportError, Fidelity, Statement};

/// Largest weight of SONiC's model.
const LARGEST_WEIGHT: u64 = 100;

/// Target scheduling of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Service {
    pub(super) kind: SchedulerKind,
    pub(super) weight: u32,
}

/// Changes, by SONiC's numbers of queues.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) order: Vec<u8>,
    pub(super) marks: BTreeMap<u8, Option<Marks>>,
    pub(super) services: BTreeMap<u8, Service>,
    pub(super) buffers: BTreeMap<u8, Threshold>,
    /// The queue of each DSCP.
    pub(super) classes: Option<Vec<u8>>,
    dynamic: bool,
    pool_now: Option<Bytes>,
}

/// Everything that the parts of a wish are made from.
pub(super) struct Making<'a> {
    pub(super) file: &'a str,
    pub(super) group: &'a PortGroup<'a>,
    pub(super) config: &'a PortConfig,
    pub(super) rate: Option<Rate>,
    pub(super) now: Option<&'a PortImport>,
    pub(super) order: Vec<u8>,
    /// Queues that packets join, or that have a row.
    pub(super) used: Vec<u8>,
    pub(super) statements: &'a mut Vec<Statement>,
}

impl Wish {
    pub(super) fn new(
        db: &ConfigDb,
        group: &PortGroup<'_>,
        config: &PortConfig,
        rate: Option<Rate>,
        statements: &mut Vec<Statement>,
    ) -> Result<Self, ExportError> {
        if config.queues == 0 || config.queues > usize::from(LAST_QUEUE) + 1 {
            return Err(ExportError::Queues(config.queues));
        }
        let now = import::port(db, group, None);
        let now = now.as_ref();
        let mut making = Making {
            file: db.file(),
            group,
            config,
            rate,
            now,
            order: order(config, now),
            used: Vec::new(),
            statements,
        };
        making.used = making.used();
        making.leftovers();
        Ok(Self {
            marks: making.marks()?,
            services: making.services()?,
            buffers: making.buffers(),
            classes: making.classes(),
            dynamic: matches!(config.buffer, BufferConfig::Dynamic { .. }),
            pool_now: now.and_then(|now| now.pool),
            order: making.order,
        })
    }

    /// Returns whether the size of the pool is to change.
    pub(super) fn sets_pool(&self, pool: Option<Bytes>) -> bool {
        self.dynamic && pool != self.pool_now
    }
}

/// SONiC's number of each queue: as they are now if the strict ones are as many, else the strict ones
/// at the top.
fn order(config: &PortConfig, now: Option<&PortImport>) -> Vec<u8> {
    let (count, strict) = (config.queues, strict_queues(config));
    if let Some(now) = now
        && now.order.len() == count
        && strict_queues(&now.config) == strict
    {
        return now.order.clone();
    }
    let number = |queue: usize| {
        if queue < strict {
            count - 1 - queue
        } else {
            queue - strict
        }
    };
    (0..count).map(|queue| number(queue) as u8).collect()
}

fn strict_queues(config: &PortConfig) -> usize {
    match config.scheduler {
        SchedulerConfig::Strict | SchedulerConfig::Pfabric | SchedulerConfig::PushOut => {
            config.queues
        }
        SchedulerConfig::StrictOver { strict, .. } => strict.min(config.queues),
        _ => 0,
    }
}

impl Making<'_> {
    pub(super) fn say(&mut self, fidelity: Fidelity, key: &'static str, says: impl Into<String>) {
        let says = says.into();
        self.statements.push(Statement {
            fidelity,
            key,
            says,
        });
    }

    /// Queues that some DSCP joins, and those that have a row in the file.
    fn used(&self) -> Vec<u8> {
        let wanted = self.queues();
        let joined = |queue: &u8| match &wanted {
            Some(queues) => queues.contains(queue),
            None => true,
        };
        let view = |queue: &u8| self.group.queues.get(usize::from(*queue));
        let has_row = |queue: &u8| view(queue).is_some_and(|view| view.row.is_some());
        let queues = self.order.iter().copied();
        queues
            .filter(|queue| joined(queue) || has_row(queue))
            .collect()
    }

    /// Parts that no table has.
    fn leftovers(&mut self) {
        if self.config.shaper != self.now.and_then(|now| now.config.shaper) {
            let says = "a rate below the link's is not exported; add a SCHEDULER row with pir to PORT_QOS_MAP by hand";
            self.say(Fidelity::Missing, "shaper", says);
        }
        let marker = &self.config.marker;
        if marker.scheme == SchemeConfig::None {
            return;
        }
        let (drops, at_enqueue, in_packets) = (
            marker.not_ect == NotEct::Drop,
            marker.point == MarkPoint::Enqueue,
            marker.measure.unit == MeasureUnit::Packets,
        );
        if !drops {
            let says = "a switch drops packets that are not ECT where it marks others; the scenario lets them pass (not-ect = \"pass\")";
            self.say(Fidelity::Nearest, "marker", says);
        }
        if !at_enqueue {
            let says = "the chip decides whether it marks at enqueue or at dequeue";
            self.say(Fidelity::Nearest, "marker", says);
        }
        if in_packets {
            let says = "queues are measured in bytes, not in packets";
            self.say(Fidelity::Nearest, "marker", says);
        }
    }

    /// Bytes per round of each queue, or its weight.
    pub(super) fn weights(&self) -> Result<Vec<u64>, ExportError> {
        Ok(match &self.config.scheduler {
            SchedulerConfig::Wrr { quantum }
            | SchedulerConfig::Dwrr { quantum }
            | SchedulerConfig::StrictOver { quantum, .. } => {
                let quanta = self.each(quantum)?;
                quanta.into_iter().map(Bytes::get).collect()
            }
            SchedulerConfig::Wfq { weight } => {
                let weights = self.each(weight)?;
                weights.into_iter().map(u64::from).collect()
            }
            _ => vec![1; self.config.queues],
        })
    }

    /// Schedulers that differ from the present ones.
    fn services(&mut self) -> Result<BTreeMap<u8, Service>, ExportError> {
        use Fidelity::{Exact, Missing, Nearest};
        use shallows_core::port::scheduler::RoundRobinConfig;
        let key = "scheduler";
        let mut kind = SchedulerKind::Dwrr;
        match &self.config.scheduler {
            SchedulerConfig::Fifo => {
                self.say(Exact, key, "one queue needs no scheduler");
                return Ok(BTreeMap::new());
            }
            SchedulerConfig::Custom(_) => {
                let says = "a scheduler of another crate has no equal; the present ones stay";
                self.say(Missing, key, says);
                return Ok(BTreeMap::new());
            }
            SchedulerConfig::Pfabric | SchedulerConfig::PushOut => {
                let says = "no switch sorts packets within a queue: all queues are STRICT";
                self.say(Nearest, key, says);
            }
            SchedulerConfig::Wfq { .. } => {
                let says = "WFQ's weights become those of DWRR, which serves in rounds";
                self.say(Nearest, key, says);
            }
            SchedulerConfig::Wrr { .. }
            | SchedulerConfig::StrictOver {
                rest: RoundRobinConfig::Wrr,
                ..
            } => {
                kind = SchedulerKind::Wrr;
                let says = "queues share by weight; chips choose the bytes of a round themselves";
                self.say(Exact, key, says);
            }
            SchedulerConfig::Strict
            | SchedulerConfig::Dwrr { .. }
            | SchedulerConfig::StrictOver { .. } => {
                let says = "queues share by weight; chips choose the bytes of a round themselves";
                self.say(Exact, key, says);
            }
        }
        if self
            .now
            .is_some_and(|now| now.config.scheduler == self.config.scheduler)
        {
            return Ok(BTreeMap::new());
        }
        let strict = strict_queues(self.config);
        let mut services = vec![
            Service {
                kind: SchedulerKind::Strict,
                weight: 1,
            };
            strict
        ];
        let shares = self.shares(strict)?;
        services.extend(shares.into_iter().map(|weight| Service { kind, weight }));
        let pairs = self.order.iter().copied().zip(services);
        Ok(pairs
            .filter(|(queue, _)| self.used.contains(queue))
            .filter(|(queue, wanted)| !self.serves(*queue, *wanted))
            .collect())
    }

    /// Returns whether a queue is served like that now. The weight of a strict queue does not matter.
    fn serves(&self, queue: u8, wanted: Service) -> bool {
        let view = self.group.queues.get(usize::from(queue));
        let row = view.and_then(|view| view.scheduler);
        row.is_some_and(|(_, row)| {
            let strict = wanted.kind == SchedulerKind::Strict;
            row.kind == wanted.kind && (strict || row.weight == wanted.weight)
        })
    }

    /// Weights of the queues below the strict ones, in the scale that keeps most of the present ones.
    fn shares(&mut self, strict: usize) -> Result<Vec<u32>, ExportError> {
        let quanta = self.weights()?.split_off(strict);
        let divisor = quanta.iter().copied().reduce(greatest_common_divisor);
        let divisor = divisor.unwrap_or(1).max(1);
        let mut lowest: Vec<u64> = quanta.iter().map(|quantum| quantum / divisor).collect();
        let largest = lowest.iter().copied().max().unwrap_or(1);
        if largest > LARGEST_WEIGHT {
            let scaled = |weight: &u64| (weight * LARGEST_WEIGHT).div_ceil(largest).max(1);
            lowest = lowest.iter().map(scaled).collect();
            let weights: Vec<String> = lowest.iter().map(u64::to_string).collect();
            let says = format!(
                "weights are whole numbers up to {LARGEST_WEIGHT}: {}",
                words::list(&weights)
            );
            self.say(Fidelity::Nearest, "scheduler", says);
        }
        let largest = lowest.iter().copied().max().unwrap_or(1).max(1);
        let present = |queue: &u8| {
            let view = self.group.queues.get(usize::from(*queue));
            let row = view.and_then(|view| view.scheduler);
            row.map_or(0, |(_, row)| u64::from(row.weight))
        };
        let present: Vec<u64> = self.order[strict..].iter().map(present).collect();
        let kept = |scale: &u64| {
            let pairs = lowest.iter().zip(&present);
            let kept = pairs.filter(|(weight, now)| *weight * scale == **now);
            (kept.count(), u64::MAX - scale)
        };
        let scale = (1..=LARGEST_WEIGHT / largest).max_by_key(kept).unwrap_or(1);
        Ok(lowest
            .iter()
            .map(|weight| (weight * scale) as u32)
            .collect())
    }

    /// Limits of queues, if the buffer differs from the present one.
    fn buffers(&mut self) -> BTreeMap<u8, Threshold> {
        use Fidelity::{Exact, Missing, Nearest};
        let key = "buffer";
        let count = self.config.queues;
        let packet = self.config.packet;
        let limits = match &self.config.buffer {
            BufferConfig::Unlimited => {
                let says = "a switch has the memory that it has; the present limits stay";
                self.say(Missing, key, says);
                return BTreeMap::new();
            }
            BufferConfig::Dynamic { alpha } => {
                let exponent = alpha.log2().round().clamp(-8.0, 7.0);
                let nearest = exponent.exp2();
                if nearest == *alpha {
                    self.say(Exact, key, "alpha is a power of two: dynamic_th");
                } else {
                    let says = format!("alpha is a power of two: {alpha} becomes {nearest}");
                    self.say(Nearest, key, says);
                }
                vec![Threshold::Dynamic(exponent as i8); count]
            }
            BufferConfig::Shared { size } => {
                let says = "a profile limits queues, not ports: each queue may hold what the port may in the scenario";
                self.say(Nearest, key, says);
                vec![Threshold::Static(size.whole_bytes(packet).get()); count]
            }
            BufferConfig::PerQueue { limit } => {
                self.say(Exact, key, "the limit of each queue: static_th");
                let limits = limit.each("limit", count).unwrap_or_default();
                let limits = limits.into_iter();
                limits
                    .map(|limit| Threshold::Static(limit.whole_bytes(packet).get()))
                    .collect()
            }
        };
        if self
            .now
            .is_some_and(|now| now.config.buffer == self.config.buffer)
        {
            return BTreeMap::new();
        }
        self.order.iter().copied().zip(limits).collect()
    }

    /// The queue of each DSCP, if the classifier goes by it.
    fn queues(&self) -> Option<Vec<u8>> {
        let last = self.config.queues - 1;
        let queue = |dscp: u8| match &self.config.classifier {
            ClassifierConfig::Dscp => Some(usize::from(dscp).min(last)),
            ClassifierConfig::DscpMap { map, other } => {
                let queue = map.get(usize::from(dscp)).unwrap_or(other);
                Some(usize::from(*queue))
            }
            ClassifierConfig::FlowHash | ClassifierConfig::SizeClass(_) => None,
        };
        (0..=LAST_DSCP)
            .map(|dscp| self.order.get(queue(dscp)?).copied())
            .collect()
    }

    /// The queue of each DSCP, if some differ from the present ones.
    fn classes(&mut self) -> Option<Vec<u8>> {
        let Some(queues) = self.queues() else {
            let says =
                "a switch chooses queues by DSCP, not by flow or size; the present maps stay";
            self.say(Fidelity::Missing, "classifier", says);
            return None;
        };
        self.say(Fidelity::Exact, "classifier", "the queue of each DSCP");
        let present = self.group.classes.queues.iter();
        let same = present
            .zip(&queues)
            .all(|(now, wanted)| now.unwrap_or(0) == *wanted);
        (!same).then_some(queues)
    }
}
