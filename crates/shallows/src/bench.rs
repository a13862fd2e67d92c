//! `shallows bench`: the simulator measured on reference workloads.
//!
//! A and B run on a 144-host leaf-spine with given flow lists. Each run is a process of its own, so
//! that its peak memory is its own too. Time is that of the CPU, from reading the flows to the last
//! event; the speed-up of several threads is a ratio of wall times, of runs that take turns. Beside
//! it stands what the machine allows: as many runs at once, on one thread each, which share nothing
//! but the caches and the memory.

mod display;
pub(crate) mod threads;

use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_model::HostId;
use shallows_model::workload::{FlowSpec, Workload, list};
use shallows_run::{Interrupt, RunPlan, Scenario, drive};
use shallows_sim::Simulation;

use crate::cli::BenchArgs;
use crate::failure::Failure;
use crate::output;

/// Flows that are told apart from none, to see what one takes.
const IDLE_FLOWS: u32 = 200_000;

/// A workload to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reference {
    /// Permutation, 10 MB a flow, one FIFO a port.
    A,
    /// Web search at 60% load, 8 DWRR queues with MQ-ECN.
    B,
    /// The ports of A, on a fat-tree of 11,664 hosts.
    Large,
    /// A, but for 200,000 flows that have not started.
    Idle,
}

/// Time, memory and work of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measurement {
    threads: u64,
    /// Two runs share it only if all their flows had the same fate.
    fingerprint: u64,
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

/// Median of several runs, as one line of output.
#[derive(Debug, Serialize)]
struct Line {
    workload: &'static str,
    description: &'static str,
    useful_packet_hops: u64,
    /// Useful packet-hops per CPU second: median, least and most of all runs on one thread.
    hops_per_cpu_s: f64,
    hops_per_cpu_s_min: f64,
    hops_per_cpu_s_max: f64,
    events_per_packet_hop: f64,
    peak_memory_bytes: u64,
    mean_fct_us: f64,
    speedups: Vec<Speedup>,
    runs: Vec<Measurement>,
}

/// Speed on several threads compared with one.
#[derive(Clone, Copy, Debug, Serialize)]
struct Speedup {
    threads: u64,
    /// Wall time of one thread over that of several: median, least and most.
    times: f64,
    times_min: f64,
    times_max: f64,
    /// The work that as many independent runs at once do, over that of one alone in the same time:
    /// the median.
    ceiling: f64,
    /// True if all flows had the same fate as on one thread.
    identical: bool,
}

/// Runs that took turns: on one thread, on several, and independent ones at once.
#[derive(Clone, Debug)]
struct Round {
    together: Measurement,
    /// Wall time of the slowest of as many runs at once as there are threads.
    at_once_wall_s: f64,
}

/// Cost of a large fabric compared with workload A.
#[derive(Debug, Serialize)]
struct LargeFabric {
    hosts: u64,
    packet_hops: u64,
    hops_per_cpu_s: f64,
    /// CPU time of a packet-hop over that of workload A.
    cost_against_a: f64,
    peak_memory_bytes: u64,
    bytes_per_idle_flow: f64,
}

impl Reference {
    fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::Large => "large",
            Self::Idle => "idle",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::A | Self::Idle => "permutation of 10 MB flows, one FIFO a port, K = 65 packets",
            Self::B => "web search at 60%, 8 DWRR queues a port, MQ-ECN with K = 65 packets",
            Self::Large => "permutation of 146 KB flows on a fat-tree of 11,664 hosts",
        }
    }

    fn scenario(self) -> &'static str {
        match self {
            Self::A | Self::Idle => include_str!("bench/a.toml"),
            Self::B => include_str!("bench/b.toml"),
            Self::Large => include_str!("bench/large.toml"),
        }
    }

    /// Its list of flows, unless the scenario has a workload.
    fn flows(self) -> Option<&'static str> {
        match self {
            Self::A => Some(include_str!("../data/flows/permutation-10mb.csv")),
            Self::B => Some(include_str!("../data/flows/web-search-60.csv")),
            Self::Large | Self::Idle => None,
        }
    }

    /// Data and ACK packets times links crossed, retransmissions not counted.
    fn useful_hops(self) -> u64 {
        match self {
            Self::A => 7_891_200,
            Self::B => 27_547_052,
            Self::Large | Self::Idle => 0,
        }
    }
}

pub(crate) fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let threads = args.threads.unwrap_or_else(|| {
        let all = thread::available_parallelism().map_or(1, NonZero::get);
        all.min(256) as u32
    });
    if let Some(reference) = args.only {
        let json = match reference {
            Reference::Idle => idle_flow()?.to_string(),
            _ => serde_json::to_string(&measure(reference, threads)?)
                .context("a measurement is plain data")?,
        };
        return Ok(output::print(&json)?);
    }
    let mut lines = Vec::new();
    for reference in [Reference::A, Reference::B] {
        let line = Line::measure(reference, args.runs, threads)?;
        if !args.json {
            output::print(&line.to_string())?;
        }
        lines.push(line);
    }
    let scale = LargeFabric::measure(lines[0].hops_per_cpu_s)?;
    if !args.json {
        output::print(&scale.to_string())?;
        return Ok(());
    }
    let all = serde_json::json!({ "workloads": lines, "scale": scale });
    let json = serde_json::to_string_pretty(&all).context("lines are plain data")?;
    Ok(output::print(&format!("{json}\n"))?)
}

/// Starts a run of a workload in another process.
fn start(reference: Reference, threads: u32) -> anyhow::Result<Child> {
    let program = shallows_run::program().context("cannot tell where this program is")?;
    Command::new(program)
        .args(["bench", "--only", &reference.name().to_lowercase()])
        .args(["--threads", &threads.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start a run")
}

/// Waits for the end of a run; what it printed.
fn printed(run: Child) -> anyhow::Result<Vec<u8>> {
    let output = run.wait_with_output().context("cannot wait for a run")?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "a run failed: {problem}");
    Ok(output.stdout)
}

fn measured(run: Child, reference: Reference) -> anyhow::Result<Measurement> {
    let run: Measurement =
        serde_json::from_slice(&printed(run)?).context("a run did not report")?;
    run.check(reference)?;
    Ok(run)
}

fn measure_apart(reference: Reference, threads: u32) -> anyhow::Result<Measurement> {
    measured(start(reference, threads)?, reference)
}

/// Runs a workload on one thread in each of several processes at once; the wall time of the
/// slowest.
fn measure_at_once(reference: Reference, copies: u32) -> anyhow::Result<f64> {
    let runs: Result<Vec<Child>, _> = (0..copies).map(|_| start(reference, 1)).collect();
    let mut slowest = 0.0_f64;
    for run in runs? {
        slowest = slowest.max(measured(run, reference)?.wall_s);
    }
    Ok(slowest)
}

impl Measurement {
    /// Refuses a run that did not do all its work: it would look faster than it is.
    fn check(&self, reference: Reference) -> anyhow::Result<()> {
        let (name, useful) = (reference.name(), reference.useful_hops());
        ensure!(
            self.finished == self.flows,
            "{name}: {} of {} flows finished; the others are missing from the measurement",
            self.finished,
            self.flows
        );
        ensure!(
            self.packet_hops >= useful,
            "{name}: {} packet-hops, and the work has {useful}",
            self.packet_hops
        );
        Ok(())
    }
}

/// Runs a workload once in this process.
fn measure(reference: Reference, threads: u32) -> Result<Measurement, Failure> {
    let (begun, cpu_before) = (Instant::now(), cpu_seconds());
    let mut simulation = simulation(reference, threads)?;
    drive(&mut simulation, None, &mut [], Interrupt::Never)?;
    let wall_s = begun.elapsed().as_secs_f64();
    let cpu_s = match (cpu_before, cpu_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => wall_s,
    };

    let progress = simulation.progress();
    let outcomes: Vec<_> = simulation.flows().map(|(_, outcome)| outcome).collect();
    let mut hasher = FxHasher::default();
    for outcome in &outcomes {
        outcome.hash(&mut hasher);
    }
    let fcts = outcomes.iter().filter_map(|outcome| outcome.fct);
    let fcts: Vec<f64> = fcts.map(|fct| fct.ps() as f64 / 1e6).collect();
    Ok(Measurement {
        threads: simulation.threads() as u64,
        fingerprint: hasher.finish(),
        cpu_s,
        wall_s,
        packet_hops: progress.packet_hops,
        events: progress.events,
        peak_memory_bytes: memory("VmHWM:").unwrap_or_default(),
        flows: outcomes.len() as u64,
        finished: fcts.len() as u64,
        mean_fct_us: fcts.iter().sum::<f64>() / fcts.len() as f64,
        timeouts: outcomes.iter().map(|of| u64::from(of.timeouts)).sum(),
    })
}

fn simulation(reference: Reference, threads: u32) -> Result<Simulation, Failure> {
    let path = format!("bench {}", reference.name());
    let scenario = Scenario::parse(Path::new(&path), reference.scenario(), &[])?;
    Ok(plan(reference, &scenario)?.simulation(threads)?)
}

/// The plan of a workload's scenario, with its flows.
fn plan(reference: Reference, scenario: &Scenario) -> Result<RunPlan, Failure> {
    let fabric = scenario.fabric()?;
    let flows = match (reference, reference.flows()) {
        (_, Some(flows)) => list::parse(flows, fabric.hosts()).map_err(anyhow::Error::from)?,
        (Reference::Idle, None) => idle_flows(fabric.hosts()),
        (_, None) => return Ok(scenario.build()?),
    };
    let workload = Workload {
        flows: flows.into(),
        ..Workload::default()
    };
    Ok(scenario.build_with(fabric, workload)?)
}

fn idle_flows(hosts: u32) -> Vec<FlowSpec> {
    let flow = |number| FlowSpec {
        start: Time::from_secs(1),
        src: HostId(number % hosts),
        dst: HostId((number + 1) % hosts),
        bytes: 1_000_000,
        service: 0,
    };
    (0..IDLE_FLOWS).map(flow).collect()
}

/// Bytes of memory that a flow takes which has not started.
fn idle_flow() -> Result<f64, Failure> {
    let used = || memory("VmRSS:").context("the system does not tell the memory in use");
    drop(simulation(Reference::A, 1)?);
    let before = used()?;
    let simulation = simulation(Reference::Idle, 1)?;
    let after = used()?;
    drop(simulation);
    Ok((after - before) as f64 / f64::from(IDLE_FLOWS))
}

/// CPU time of the main thread, where the system tells; runs on one thread are on this one.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/schedstat").ok()?;
    let of_main: u64 = stat.split_whitespace().next()?.parse().ok()?;
    Some(of_main as f64 / 1e9)
}

/// A line of what the system tells of this process's memory.
fn memory(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kib)
}

impl Line {
    /// Measures a workload on one thread and on several, in turns.
    fn measure(reference: Reference, runs: u32, most_threads: u32) -> anyhow::Result<Self> {
        let mut alone = Vec::new();
        let mut together: Vec<Vec<Round>> = Vec::new();
        together.resize_with(most_threads.saturating_sub(1) as usize, Vec::new);
        for _ in 0..runs {
            alone.push(measure_apart(reference, 1)?);
            for (threads, rounds) in (2..).zip(&mut together) {
                rounds.push(Round {
                    at_once_wall_s: measure_at_once(reference, threads)?,
                    together: measure_apart(reference, threads)?,
                });
            }
        }
        let speedups = together.iter().map(|rounds| Speedup::of(&alone, rounds));
        let speedups = speedups.collect();
        alone.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
        let useful = reference.useful_hops();
        let rate = |run: &Measurement| useful as f64 / run.cpu_s;
        let median = &alone[alone.len() / 2];
        Ok(Self {
            workload: reference.name(),
            description: reference.description(),
            useful_packet_hops: useful,
            hops_per_cpu_s: rate(median),
            hops_per_cpu_s_min: rate(&alone[alone.len() - 1]),
            hops_per_cpu_s_max: rate(&alone[0]),
            events_per_packet_hop: median.events as f64 / median.packet_hops as f64,
            peak_memory_bytes: median.peak_memory_bytes,
            mean_fct_us: median.mean_fct_us,
            speedups,
            runs: alone,
        })
    }
}

impl Speedup {
    /// Of runs that took turns.
    fn of(alone: &[Measurement], rounds: &[Round]) -> Self {
        let pairs = || alone.iter().zip(rounds);
        let threads = rounds[0].together.threads;
        let times = sorted(pairs().map(|(one, round)| one.wall_s / round.together.wall_s));
        let ceilings =
            sorted(pairs().map(|(one, round)| threads as f64 * one.wall_s / round.at_once_wall_s));
        Self {
            threads,
            times: times[times.len() / 2],
            times_min: times[0],
            times_max: times[times.len() - 1],
            ceiling: ceilings[ceilings.len() / 2],
            identical: pairs().all(|(one, round)| one.fingerprint == round.together.fingerprint),
        }
    }
}

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

impl LargeFabric {
    fn measure(hops_per_cpu_s_of_a: f64) -> anyhow::Result<Self> {
        let large = measure_apart(Reference::Large, 1)?;
        let idle = printed(start(Reference::Idle, 1)?)?;
        let rate = large.packet_hops as f64 / large.cpu_s;
        Ok(Self {
            hosts: large.flows,
            packet_hops: large.packet_hops,
            hops_per_cpu_s: rate,
            cost_against_a: hops_per_cpu_s_of_a / rate,
            peak_memory_bytes: large.peak_memory_bytes,
            bytes_per_idle_flow: serde_json::from_slice(&idle).context("a run did not report")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ended_early_is_refused() {
        let whole = Measurement {
            threads: 1,
            fingerprint: 0,
            cpu_s: 1.0,
            wall_s: 1.0,
            packet_hops: Reference::A.useful_hops() + 10,
            events: 1,
            peak_memory_bytes: 1,
            flows: 144,
            finished: 144,
            mean_fct_us: 1.0,
            timeouts: 0,
        };
        assert!(whole.check(Reference::A).is_ok());
        let unfinished = Measurement {
            finished: 143,
            ..whole.clone()
        };
        assert!(unfinished.check(Reference::A).is_err());
        let early = Measurement {
            packet_hops: Reference::A.useful_hops() - 1,
            ..whole
        };
        assert!(early.check(Reference::A).is_err());
    }

    #[test]
    fn the_ceiling_is_the_work_of_independent_runs() {
        let run = |threads, wall_s| Measurement {
            threads,
            fingerprint: 7,
            cpu_s: 1.0,
            wall_s,
            packet_hops: 1,
            events: 1,
            peak_memory_bytes: 1,
            flows: 1,
            finished: 1,
            mean_fct_us: 1.0,
            timeouts: 0,
        };
        let round = |wall_s, at_once_wall_s| Round {
            together: run(2, wall_s),
            at_once_wall_s,
        };
        let alone = [run(1, 3.0), run(1, 3.0), run(1, 3.0)];
        let rounds = [round(2.0, 4.0), round(2.5, 3.0), round(1.5, 5.0)];
        let speedup = Speedup::of(&alone, &rounds);
        assert_eq!((speedup.times, speedup.ceiling), (1.5, 1.5));
        assert_eq!((speedup.times_min, speedup.times_max), (1.2, 2.0));
    }
}
