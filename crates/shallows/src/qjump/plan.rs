//! `shallows qjump plan`.

mod files;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use shallows_core::host::qjump::{
    Allotment, Application, FULL_FRAME, Latency, Need, Network, Phase, Plan, PlannedLevel,
    Surroundings, mark_of, on_the_wire,
};
use shallows_core::port::{Framing, SchedulerConfig};
use shallows_core::units::{Bytes, Rate, Time};
use shallows_model::workload::{Cdf, SizeUnit};
use shallows_run::scenario::link_name;
use shallows_run::{Scenario, read_file};

use super::shown_rate;
use crate::failure::Failure;

/// Quantiles that a distribution is cut by.
const QUANTILES: u32 = 100_000;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// n, the hosts that may send to one destination at once.
    #[arg(long, value_name = "N", required_unless_present = "scenario")]
    hosts: Option<u32>,
    /// The largest frame of the guaranteed level, of which a host sends one per epoch; with what it
    /// takes on the wire besides, it is P. (In a scenario, a packet.)
    #[arg(long, value_name = "BYTES", default_value = "256B")]
    packet: Bytes,
    /// R, the rate of the slowest edge link.
    #[arg(long, value_name = "RATE", required_unless_present = "scenario")]
    rate: Option<Rate>,
    /// Total delay that the switches on a path add.
    #[arg(long, value_name = "TIME")]
    processing: Option<Time>,
    /// Take hosts, rate and processing from a scenario's topology; options go before it.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// An application and what it needs, with its largest frame if that is not a full one:
    /// ptpd=guaranteed@128B, memcached=1Gbps, hadoop=bulk.
    #[arg(long = "app", value_name = "NAME=NEED[@FRAME]", value_parser = wanted, conflicts_with_all = ["factors", "sizes"])]
    applications: Vec<Wanted>,
    /// The factor f of each level, from the lowest priority, such as 12,6,1.
    #[arg(
        long,
        value_name = "F,F",
        value_delimiter = ',',
        conflicts_with = "sizes"
    )]
    factors: Vec<f64>,
    /// A distribution of flow sizes to cut into levels: web-search or another built-in one, or a
    /// file of sizes and cumulative probabilities.
    #[arg(long, value_name = "NAME|FILE")]
    sizes: Option<String>,
    /// Number of levels to cut the distribution into.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "sizes")]
    levels: usize,
    /// Load of those flows on each edge link, from 0 to 1.
    #[arg(long, value_name = "SHARE", requires = "sizes", value_parser = share)]
    load: Option<f64>,
    /// Hosts begin their epochs at the same instant, so that eq. 1 is enough.
    #[arg(long)]
    synchronized: bool,
    /// The longest epoch that is good enough.
    #[arg(long, value_name = "TIME")]
    epoch: Option<Time>,
    /// The largest frame that hosts send: 1514B, or the largest packet of the scenario, if not given.
    #[arg(long, value_name = "BYTES")]
    largest_packet: Option<Bytes>,
    /// Hosts that share the network and do not take part.
    #[arg(long, value_name = "N", default_value_t = 0)]
    others: u32,
    /// Write the limits for `qjump apply`, the `[hosts]` part of a scenario and a figure into a
    /// directory.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// An application of the command line.
#[derive(Clone, Debug)]
struct Wanted {
    name: String,
    need: Need,
    /// Its largest frame.
    frame: Option<Bytes>,
}

fn wanted(text: &str) -> Result<Wanted, String> {
    let expected = "write NAME=NEED or NAME=NEED@FRAME, where NEED is guaranteed, bulk or a rate \
                    such as 5Gbps, and FRAME the bytes of its largest frame";
    let (name, need) = text.split_once('=').ok_or(expected)?;
    let (need, frame) = match need.split_once('@') {
        Some((need, frame)) => (need, Some(frame)),
        None => (need, None),
    };
    let need = match need {
        "guaranteed" => Need::Guaranteed,
        "bulk" => Need::Bulk,
        rate => Need::Rate(
            rate.parse()
                .map_err(|error| format!("{error}; {expected}"))?,
        ),
    };
    let frame = frame.map(str::parse).transpose();
    Ok(Wanted {
        name: name.to_owned(),
        need,
        frame: frame.map_err(|error| format!("{error}; {expected}"))?,
    })
}

/// Framing overhead of the planned link.
#[derive(Clone, Copy, Debug)]
enum Wire {
    /// Of real hosts.
    Ethernet,
    /// Of a scenario, whose packets have no header yet.
    Framing(Framing),
}

impl Wire {
    fn bytes(self, frame: Bytes) -> Bytes {
        match self {
            Self::Ethernet => on_the_wire(frame),
            Self::Framing(framing) => {
                let packet = u32::try_from(frame.get()).unwrap_or(u32::MAX / 2);
                Bytes::new(u64::from(framing.wire_size(packet)))
            }
        }
    }
}

/// Part of a link.
fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "a share is a number above 0, at most 1".to_owned())
}

pub(super) fn plan(args: &PlanArgs) -> Result<String, Failure> {
    let phase = if args.synchronized {
        Phase::Synchronized
    } else {
        Phase::Mesochronous
    };
    let (network, around, wire) = situation(args)?;
    let plan = if let Some(sizes) = &args.sizes {
        let sizes = quantiles(sizes, wire)?;
        Plan::from_flow_sizes(network, phase, &sizes, args.levels)
    } else if args.factors.is_empty() {
        let full = around.largest_packet.unwrap_or_default();
        let application = |wanted: &Wanted| Application {
            name: wanted.name.clone(),
            need: wanted.need,
            largest: wanted.frame.map_or(full, |frame| wire.bytes(frame)),
        };
        let applications: Vec<_> = args.applications.iter().map(application).collect();
        Plan::from_applications(network, phase, &applications)
    } else {
        Plan::from_factors(network, phase, &args.factors)
    };
    let plan = plan.map_err(anyhow::Error::from)?;
    let written = match &args.write {
        Some(directory) => files::write(&plan, directory)?,
        None => String::new(),
    };
    if args.json {
        return Ok(json_text(&plan, &around)?);
    }
    let frame = args.packet;
    let packet = plan.network.packet;
    let mut text = text(&plan, &around);
    if packet > frame {
        text = format!(
            "P = {packet}: a frame of {frame} with preamble, check sequence and gap\n{text}"
        );
    }
    Ok(text + &written)
}

/// The network and what is around it, from the options and a scenario.
fn situation(args: &PlanArgs) -> Result<(Network, Surroundings, Wire), Failure> {
    let mut wire = Wire::Ethernet;
    let mut around = Surroundings {
        core: None,
        others: args.others,
        largest_packet: Some(on_the_wire(args.largest_packet.unwrap_or(FULL_FRAME))),
        wanted_epoch: args.epoch,
        strict_queues: None,
        load: args.load,
    };
    let (mut hosts, mut rate, mut processing) = (args.hosts, args.rate, args.processing);
    if let Some(path) = &args.scenario {
        let loaded = Scenario::load(path)?;
        let fabric = loaded.fabric()?;
        let port = &loaded.config.ports.switch;
        wire = Wire::Framing(port.framing);
        let largest = wire.bytes(args.largest_packet.unwrap_or(port.packet));
        let packet = wire.bytes(args.packet);
        hosts = hosts.or(Some(fabric.hosts()));
        rate = rate.or(fabric.slowest_edge());
        // A packet is stored and forwarded at each hop, behind one of a lower level at worst.
        let hop = |rate: Rate| rate.transmission_time(packet) + rate.transmission_time(largest);
        let whole = fabric.longest_path(|link| link.propagation + hop(link.rate));
        processing = processing.or(Some(whole));
        around.largest_packet = Some(largest);
        around.core = fabric.slowest_core().map(|number| {
            let link = fabric.link(number);
            (link_name(&fabric, link), link.rate)
        });
        around.strict_queues = Some(match port.scheduler {
            SchedulerConfig::Strict => port.queues,
            _ => 1,
        });
    }
    let network = Network {
        hosts: hosts.unwrap_or_default(),
        packet: wire.bytes(args.packet),
        rate: rate.context("there are no hosts")?,
        processing: processing.unwrap_or_default(),
    };
    Ok((network, around, wire))
}

/// A distribution as sizes on the link at equal steps.
fn quantiles(name: &str, wire: Wire) -> anyhow::Result<Vec<f64>> {
    let cdf = if Cdf::names().any(|known| known == name) {
        Cdf::named(name)?
    } else {
        let text = read_file(Path::new(name)).with_context(|| {
            let known: Vec<_> = Cdf::names().collect();
            format!(
                "{name} is no file, and no distribution of ours: {}",
                known.join(", ")
            )
        })?;
        Cdf::parse(&text, SizeUnit::Bytes).with_context(|| name.to_owned())?
    };
    // Full packets, as the simulator makes of them.
    let unit = match cdf.unit() {
        SizeUnit::Bytes => 1.0,
        SizeUnit::Packets => 1460.0,
    };
    let middle = |step: u32| (f64::from(step) + 0.5) / f64::from(QUANTILES);
    let sizes = (0..QUANTILES).map(|step| cdf.quantile(middle(step)) * unit);
    // TCP/IP and, on real hosts, Ethernet around every 1,460 B.
    let header = match wire {
        Wire::Ethernet => 54.0 + 24.0,
        Wire::Framing(framing) => f64::from(framing.header + framing.gap),
    };
    let on_link = sizes.map(|size| size + (size / 1460.0).ceil() * header);
    Ok(on_link.collect())
}

fn text(plan: &Plan, around: &Surroundings) -> String {
    let Network {
        hosts,
        packet,
        rate,
        processing,
    } = plan.network;
    let (equation, factor) = match plan.phase {
        Phase::Synchronized => (1, ""),
        Phase::Mesochronous => (2, "2 x "),
    };
    let mut text = format!(
        "network epoch {} = {factor}{hosts} hosts x {packet} / {} + {} (eq. {equation})\n\n",
        plan.epoch,
        shown_rate(rate),
        processing
    );
    let with_flows = plan.levels.iter().any(|level| level.flows.is_some());
    let _ = write!(
        text,
        "{:>5} {:>4} {:>7} {:>8} {:>8} {:>10} {:>10}  {:<20}",
        "level", "DSCP", "service", "f", "senders", "per epoch", "rate", "latency"
    );
    if with_flows {
        let _ = write!(text, " {:>12} {:>7} {:>7}", "flows", "share", "bytes");
    }
    text += " applications\n";
    for (number, level) in plan.levels.iter().enumerate().rev() {
        let _ = write!(
            text,
            "{number:>5} {:>4} {:>7} {:>8} {:>8} {:>10} {:>10}  {:<20}",
            mark_of(number as u8),
            service(plan, number),
            level.factor.map_or_else(|| hosts.to_string(), three_digits),
            level
                .factor
                .map_or_else(|| "1".to_owned(), |f| three_digits(f64::from(hosts) / f)),
            allotment(level).to_string(),
            shown_rate(level.rate),
            shown_latency(level.latency),
        );
        if let Some(share) = level.flows {
            let up_to = match share.up_to {
                Some(bytes) => format!("<= {bytes}"),
                None => "more".to_owned(),
            };
            let _ = write!(
                text,
                " {up_to:>12} {:>6.1}% {:>6.1}%",
                100.0 * share.flows,
                100.0 * share.bytes
            );
        }
        let _ = writeln!(text, " {}", level.names().join(", "));
    }
    let text: String = text
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect();
    let caveats = plan.caveats(around).into_iter();
    let caveats: Vec<String> = caveats.map(|caveat| format!("note: {caveat}\n")).collect();
    let caveats = caveats.concat();
    format!(
        "{text}\nlevel and DSCP: on real hosts; service: in a simulated scenario, where strict switches \
         serve service 0 first\n\
         expected: while no more than n / f hosts (senders) of each level send to one host at once\n\
         {caveats}"
    )
}

/// The service that has a level in a scenario.
fn service(plan: &Plan, level: usize) -> usize {
    plan.levels.len() - 1 - level
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 100.0 || value.fract() == 0.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

fn allotment(level: &PlannedLevel) -> Allotment {
    level.bytes.map_or(Allotment::Unlimited, Allotment::Bytes)
}

fn shown_latency(latency: Latency) -> String {
    let us = |time: Time| three_digits(time.as_secs_f64() * 1e6);
    match latency {
        Latency::Guaranteed(time) => format!("guaranteed {} us", us(time)),
        Latency::Expected(time) => format!("expected {} us", us(time)),
        Latency::Unbounded => "no bound".to_owned(),
    }
}

fn json_text(plan: &Plan, around: &Surroundings) -> anyhow::Result<String> {
    let seconds = |time: Time| time.as_secs_f64();
    let levels = plan.levels.iter().enumerate().map(|(number, level)| {
        let (kind, latency) = match level.latency {
            Latency::Guaranteed(time) => ("guaranteed", Some(time)),
            Latency::Expected(time) => ("expected", Some(time)),
            Latency::Unbounded => ("unbounded", None),
        };
        json!({
            "level": number,
            "service": service(plan, number),
            "applications": level.names(),
            "factor": level.factor,
            "bytes-per-epoch": level.bytes.map(Bytes::get),
            "rate-bps": level.rate.bps(),
            "latency": kind,
            "latency-s": latency.map(seconds),
            "flows-up-to-bytes": level.flows.and_then(|share| share.up_to).map(Bytes::get),
            "share-of-flows": level.flows.map(|share| share.flows),
            "share-of-bytes": level.flows.map(|share| share.bytes),
        })
    });
    let caveats = plan.caveats(around).into_iter();
    let value = json!({
        "epoch-s": seconds(plan.epoch),
        "levels": levels.collect::<Vec<_>>(),
        "notes": caveats.map(|caveat| caveat.to_string()).collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&value).context("cannot write JSON")?;
    Ok(text + "\n")
}
