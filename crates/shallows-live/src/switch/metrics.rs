//! A switch's counters in the text format of Prometheus and OpenMetrics.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::{Buckets, CoordinatorSnapshot, IngressCounters, QueueSnapshot, Snapshot, Status};
use crate::frame::Malformed;

/// Content type of the text in HTTP.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Status for Snapshot {
    fn prometheus(&self) -> String {
        encode(Metrics(self.clone()))
    }
}

/// The text of a collector.
pub(crate) fn encode(collector: impl Collector) -> String {
    let mut registry = Registry::with_prefix("shallows");
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("a string takes any text");
    text
}

#[derive(Debug)]
struct Metrics(Snapshot);

/// A metric with its samples: labels and value.
pub(crate) struct Family<'a> {
    pub(crate) encoder: DescriptorEncoder<'a>,
}

pub(crate) type Labels<'a> = Vec<(&'static str, &'a str)>;

impl Family<'_> {
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let kind = MetricType::Gauge;
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        metric.encode_gauge(&value)
    }

    pub(crate) fn gauges<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, f64)>,
    ) -> fmt::Result {
        let kind = MetricType::Gauge;
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in samples {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    pub(crate) fn histogram(&mut self, name: &str, help: &str, of: &Buckets) -> fmt::Result {
        let kind = MetricType::Histogram;
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        let count = of.counts.iter().sum();
        metric.encode_histogram::<NoLabelSet>(of.sum_s, count, &of.by_bound(), None)
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let kind = MetricType::Counter;
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    pub(crate) fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, u64)>,
    ) -> fmt::Result {
        let kind = MetricType::Counter;
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in samples {
            let mut metric = metric.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Family { encoder };
        let Self(snapshot) = self;
        switch(&mut families, snapshot)?;
        devices(&mut families, snapshot)?;
        queues(&mut families, snapshot)?;
        coordinators(&mut families, snapshot)
    }
}

fn switch(to: &mut Family<'_>, of: &Snapshot) -> fmt::Result {
    let faithful = f64::from(u8::from(of.verdict.faithful));
    to.gauge("uptime_seconds", "Time since the switch began", of.uptime_s)?;
    to.gauge("frames", "Frames in the switch", of.frames as f64)?;
    to.gauge("faithful", "1 if the switch keeps time", faithful)?;
    let share = of.verdict.late_share;
    to.gauge("late_share", "Fraction of frames sent too late", share)?;
    let help = "How late frames were sent";
    to.histogram("lateness_seconds", help, &of.late_buckets)?;
    let filtered = "Frames that had nowhere to go";
    to.counter("filtered_frames", filtered, of.filtered)?;
    let lost = "Copies of flooded frames that found no memory";
    to.counter("lost_copies", lost, of.lost_copies)?;
    let gates = of.gate_drops.iter();
    let gates = gates.map(|(reason, count)| (vec![("reason", reason.as_str())], *count));
    to.counters(
        "gate_dropped_frames",
        "Frames dropped by hosts' gates",
        gates,
    )?;
    let stations = &of.stations;
    let known = stations.known as f64;
    to.gauge("stations", "Addresses in the forwarding tables", known)?;
    let changes = [
        ("learned", stations.learned),
        ("moved", stations.moved),
        ("aged", stations.aged),
        ("evicted", stations.evicted),
    ];
    let changes = changes.map(|(change, count)| (vec![("change", change)], count));
    to.counters("station_changes", "Changes of forwarding tables", changes)
}

fn devices(to: &mut Family<'_>, of: &Snapshot) -> fmt::Result {
    let each = |count: fn(&IngressCounters) -> u64| {
        let devices = of.devices.iter();
        devices.map(move |(device, counters)| (vec![("device", device.as_str())], count(counters)))
    };
    let up = each(|counters| u64::from(!counters.lost));
    let up = up.map(|(labels, up)| (labels, up as f64));
    to.gauges("device_up", "1 if the device is there and up", up)?;
    let losses = each(|counters| counters.losses);
    to.counters("device_losses", "How often the device went away", losses)?;
    let frames = each(|counters| counters.frames);
    to.counters("received_frames", "Frames that came in", frames)?;
    let bytes = each(|counters| counters.bytes);
    to.counters("received_bytes", "Bytes that came in", bytes)?;
    let sent = each(|counters| counters.sent);
    to.counters("sent_frames", "Frames handed to the device", sent)?;
    let malformed = Malformed::ALL.map(|kind| kind.name().replace(' ', "-"));
    let odd = of.devices.iter().flat_map(|(device, counters)| {
        let known = [
            ("not-ip", counters.not_ip),
            ("runt", counters.runts),
            ("oversized", counters.oversized),
            ("unfinished-checksum", counters.unfinished),
            ("no-memory", counters.no_memory),
            ("missed", counters.missed),
            ("refused", counters.refused),
        ];
        let malformed = malformed.iter().zip(counters.malformed);
        let malformed = malformed.map(|(reason, count)| (reason.as_str(), count));
        let all = malformed.chain(known);
        all.map(move |(reason, count)| {
            (vec![("device", device.as_str()), ("reason", reason)], count)
        })
    });
    to.counters("odd_frames", "Frames that are not plain IP packets", odd)
}

fn queues(to: &mut Family<'_>, of: &Snapshot) -> fmt::Result {
    let most = of.links.iter().map(|link| link.queues.len()).max();
    let numbers: Vec<String> = (0..most.unwrap_or(0)).map(|n| n.to_string()).collect();
    let queues = || {
        of.links.iter().flat_map(|link| {
            let queues = link.queues.iter().zip(&numbers);
            queues.map(move |(queue, number)| {
                (
                    vec![("link", link.name.as_str()), ("queue", number.as_str())],
                    queue,
                )
            })
        })
    };
    let each = |value: fn(&QueueSnapshot) -> u64| {
        queues().map(move |(labels, queue)| (labels, value(queue)))
    };
    let real = |(labels, value)| (labels, value as f64);
    let bytes = each(|queue| queue.bytes).map(real);
    to.gauges("queue_bytes", "Bytes in the queue", bytes)?;
    let packets = each(|queue| queue.packets).map(real);
    to.gauges("queue_packets", "Packets in the queue", packets)?;
    let thresholds = queues().filter_map(|(labels, queue)| Some((labels, queue.threshold? as f64)));
    to.gauges("threshold_bytes", "Packets are marked above it", thresholds)?;
    let packets = each(|queue| queue.accepted_packets);
    to.counters("accepted_packets", "Packets that were queued", packets)?;
    let bytes = each(|queue| queue.accepted_bytes);
    to.counters("accepted_bytes", "Bytes that were queued", bytes)?;
    let unmarkable = each(|queue| queue.unmarkable);
    let help = "Packets to be marked that are not ECN-capable";
    to.counters("unmarkable_packets", help, unmarkable)?;
    let reasons = |counts: fn(&QueueSnapshot) -> &[(String, u64)]| {
        queues().flat_map(move |(labels, queue)| {
            counts(queue).iter().map(move |(reason, count)| {
                let mut labels = labels.clone();
                labels.push(("reason", reason));
                (labels, *count)
            })
        })
    };
    let marks = reasons(|queue| &queue.marks);
    to.counters("marked_packets", "Packets marked with CE", marks)?;
    let drops = reasons(|queue| &queue.drops);
    to.counters("dropped_packets", "Packets dropped", drops)
}

fn labels<'a>(name: &'a str, of: &CoordinatorSnapshot) -> Labels<'a> {
    vec![("host", name), ("level", of.level.name())]
}

fn coordinators(to: &mut Family<'_>, of: &Snapshot) -> fmt::Result {
    if of.coordinators.is_empty() {
        return Ok(());
    }
    let of = &of.coordinators;
    let names: Vec<String> = of.iter().map(|each| each.host.to_string()).collect();
    let each = |value: fn(&CoordinatorSnapshot) -> u64| {
        let named = names.iter().zip(of);
        named.map(move |(name, each)| (labels(name, each), value(each)))
    };
    let real = |(labels, value)| (labels, value as f64);
    let modes = names.iter().zip(of).flat_map(|(name, each)| {
        let modes = ["coordinated", "uncoordinated", "leaving"];
        modes.map(|mode| {
            let labels = [labels(name, each), vec![("mode", mode)]].concat();
            (labels, f64::from(u8::from(each.mode == mode)))
        })
    });
    to.gauges("xco_mode", "1 for the mode of the coordinator", modes)?;
    let epochs = each(|each| each.epoch.into()).map(real);
    to.gauges("xco_term", "Term of leadership that it follows", epochs)?;
    let held = each(|each| each.held).map(real);
    to.gauges("xco_held_frames", "Frames that wait for permission", held)?;
    let slots = names.iter().zip(of).flat_map(|(name, each)| {
        let fates = [
            ("in-time", each.slots),
            ("late", each.late_slots),
            ("returned", each.returned),
        ];
        fates.map(|(fate, count)| ([labels(name, each), vec![("fate", fate)]].concat(), count))
    });
    to.counters("xco_slots", "Slots received, and given back", slots)?;
    let passed = each(|each| each.small + each.unknown);
    let help = "Frames that need no permission";
    to.counters("xco_passed_frames", help, passed)?;
    let accepted = each(|each| each.accepted);
    to.counters("xco_accepted_messages", "Messages acted on", accepted)?;
    let refused = names.iter().zip(of).flat_map(|(name, each)| {
        let reasons = each.refused.iter();
        reasons.map(move |(reason, count)| {
            let labels = [labels(name, each), vec![("reason", reason.as_str())]].concat();
            (labels, *count)
        })
    });
    to.counters("xco_refused_messages", "Messages refused", refused)?;
    let lost = each(|each| each.lost_control);
    to.counters("xco_lost_control", "Times without a controller", lost)
}
