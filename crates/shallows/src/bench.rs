//! `shallows bench`: the simulator measured on two reference workloads.
//!
//! Both run on a 144-host leaf-spine with the flow lists that other simulators were measured with.
//! Each run is a process of its own, so that its peak memory is its own too. Time is that of the
//! CPU, from reading the flows to the last event.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_sim::Status;
use shallows_sim::workload::{Workload, list};

use crate::cli::BenchArgs;
use crate::failure::Failure;
use crate::output;
use crate::scenario::Loaded;

/// A reference workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reference {
    /// Permutation, 10 MB a flow, one FIFO a port.
    A,
    /// Web search at 60% load, 8 DWRR queues with MQ-ECN.
    B,
}

/// What one run took.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measurement {
    cpu_s: f64,
    wall_s: f64,
    packet_hops: u64,
    events: u64,
    peak_memory_bytes: u64,
    flows: u64,
    finished: u64,
    mean_fct_us: f64,
    timeouts: u64,
}

/// What is reported of several runs.
#[derive(Debug, Serialize)]
struct Line {
    workload: &'static str,
    description: &'static str,
    useful_packet_hops: u64,
    /// Useful packet-hops per CPU second: median, least and most of all runs.
    hops_per_cpu_s: f64,
    hops_per_cpu_s_min: f64,
    hops_per_cpu_s_max: f64,
    events_per_packet_hop: f64,
    peak_memory_bytes: u64,
    mean_fct_us: f64,
    runs: Vec<Measurement>,
    others: Vec<Other>,
}

/// What another simulator does on the same work.
#[derive(Clone, Copy, Debug, Serialize)]
struct Other {
    simulator: &'static str,
    hops_per_cpu_s: f64,
}

impl Reference {
    fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::A => "permutation of 10 MB flows, one FIFO a port, K = 65 packets",
            Self::B => "web search at 60%, 8 DWRR queues a port, MQ-ECN with K = 65 packets",
        }
    }

    fn scenario(self) -> &'static str {
        match self {
            Self::A => include_str!("bench/a.toml"),
            Self::B => include_str!("bench/b.toml"),
        }
    }

    fn flows(self) -> &'static str {
        match self {
            Self::A => include_str!("../../../data/flows/permutation-10mb.csv"),
            Self::B => include_str!("../../../data/flows/web-search-60.csv"),
        }
    }

    /// Data and ACK packets times links crossed, retransmissions not counted.
    fn useful_hops(self) -> u64 {
        match self {
            Self::A => 7_891_200,
            Self::B => 27_547_052,
        }
    }

    /// Measured on a quiet machine; htsim has no DWRR, so its B has one queue a port.
    fn others(self) -> Vec<Other> {
        let (ns_2, htsim) = match self {
            Self::A => (0.6e6, 1.61e6),
            Self::B => (0.33e6, 1.49e6),
        };
        [("ns-3", 0.045e6), ("ns-2", ns_2), ("htsim", htsim)]
            .map(|(simulator, hops_per_cpu_s)| Other {
                simulator,
                hops_per_cpu_s,
            })
            .into()
    }
}

pub(crate) fn bench(args: &BenchArgs) -> Result<(), Failure> {
    if let Some(reference) = args.only {
        let measurement = measure(reference)?;
        let json = serde_json::to_string(&measurement).context("a measurement is plain data")?;
        return Ok(output::print(&json)?);
    }
    let mut lines = Vec::new();
    for reference in [Reference::A, Reference::B] {
        let runs = (0..args.runs).map(|_| measure_apart(reference));
        let line = Line::new(reference, runs.collect::<anyhow::Result<_>>()?);
        if !args.json {
            output::print(&line.to_string())?;
        }
        lines.push(line);
    }
    if args.json {
        let json = serde_json::to_string_pretty(&lines).context("lines are plain data")?;
        output::print(&format!("{json}\n"))?;
    }
    Ok(())
}

/// Runs a workload once in another process.
fn measure_apart(reference: Reference) -> anyhow::Result<Measurement> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let output = Command::new(program)
        .args(["bench", "--only", &reference.name().to_lowercase()])
        .output()
        .context("cannot start a run")?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "a run failed: {problem}");
    serde_json::from_slice(&output.stdout).context("a run did not report")
}

/// Runs a workload once in this process.
fn measure(reference: Reference) -> Result<Measurement, Failure> {
    let (begun, cpu_before) = (Instant::now(), cpu_seconds());
    let path = format!("bench {}", reference.name());
    let loaded = Loaded::parse(Path::new(&path), reference.scenario(), &[])?;
    let fabric = loaded.fabric()?;
    let flows = list::parse(reference.flows(), fabric.hosts()).map_err(anyhow::Error::from)?;
    let workload = Workload {
        flows,
        ..Workload::default()
    };
    let built = loaded.build_with(fabric, workload)?;
    let mut simulation = loaded.simulation(&built)?;
    while simulation.run(Time::MAX, u64::MAX) == Status::Running {}
    let wall_s = begun.elapsed().as_secs_f64();
    let cpu_s = match (cpu_before, cpu_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => wall_s,
    };

    let progress = simulation.progress();
    let fcts: Vec<f64> = simulation
        .flows()
        .filter_map(|(_, outcome)| outcome.fct)
        .map(|fct| fct.ps() as f64 / 1e6)
        .collect();
    let timeouts = simulation
        .flows()
        .map(|(_, outcome)| u64::from(outcome.timeouts));
    Ok(Measurement {
        cpu_s,
        wall_s,
        packet_hops: progress.packet_hops,
        events: progress.events,
        peak_memory_bytes: peak_memory().unwrap_or_default(),
        flows: simulation.flows().count() as u64,
        finished: fcts.len() as u64,
        mean_fct_us: fcts.iter().sum::<f64>() / fcts.len() as f64,
        timeouts: timeouts.sum(),
    })
}

/// CPU time of all threads of this process, where the system tells.
fn cpu_seconds() -> Option<f64> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(nanoseconds as f64 / 1e9)
}

/// The most memory that this process has had, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kib)
}

impl Line {
    fn new(reference: Reference, mut runs: Vec<Measurement>) -> Self {
        runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
        let useful = reference.useful_hops();
        let rate = |run: &Measurement| useful as f64 / run.cpu_s;
        let median = &runs[runs.len() / 2];
        Self {
            workload: reference.name(),
            description: reference.description(),
            useful_packet_hops: useful,
            hops_per_cpu_s: rate(median),
            hops_per_cpu_s_min: rate(&runs[runs.len() - 1]),
            hops_per_cpu_s_max: rate(&runs[0]),
            events_per_packet_hop: median.events as f64 / median.packet_hops as f64,
            peak_memory_bytes: median.peak_memory_bytes,
            mean_fct_us: median.mean_fct_us,
            others: reference.others(),
            runs,
        }
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let million = |rate: f64| rate / 1e6;
        writeln!(f, "{}: {}", self.workload, self.description)?;
        writeln!(
            f,
            "   {:.2} million useful packet-hops per CPU second ({:.2} to {:.2} in {} runs)",
            million(self.hops_per_cpu_s),
            million(self.hops_per_cpu_s_min),
            million(self.hops_per_cpu_s_max),
            self.runs.len()
        )?;
        let run = &self.runs[self.runs.len() / 2];
        writeln!(
            f,
            "   {:.3} events per packet-hop, {:.1} MB peak memory, mean FCT {:.3} ms, \
             {} of {} flows finished, {} timeouts",
            self.events_per_packet_hop,
            self.peak_memory_bytes as f64 / 1e6,
            self.mean_fct_us / 1e3,
            run.finished,
            run.flows,
            run.timeouts
        )?;
        let others = self.others.iter().map(|other| {
            let times = self.hops_per_cpu_s / other.hops_per_cpu_s;
            let rate = million(other.hops_per_cpu_s);
            format!("{times:.1} x {} ({rate})", other.simulator)
        });
        writeln!(f, "   {}", others.collect::<Vec<_>>().join(", "))
    }
}
