//! `shallows bench threads`: what several threads cost where they bring nothing.

use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use rustc_hash::FxHasher;
use shallows_run::examples::Example;
use shallows_run::{Interrupt, Observer, RunPlan, Scenario, Setting, drive};
use shallows_sim::{Engine, EngineChoice};

use super::Reference;
use crate::failure::Failure;
use crate::output;

/// Little traffic on slow links: a packet takes many lookaheads.
const SPARSE: &str = include_str!("sparse.toml");

/// Twelve scenarios: sparse ones, shaped ones, examples, and the reference workloads.
const CASES: [(&str, Text, &[&str]); 12] = [
    ("100 Mbps, 2% load", Text::Of(SPARSE), &[]),
    (
        "100 Mbps, 60% load",
        Text::Of(SPARSE),
        &["workload.poisson.load=0.6"],
    ),
    (
        "1 Gbps, 2% load",
        Text::Of(SPARSE),
        &[
            "topology.leaf-spine.host-rate=1Gbps",
            "topology.leaf-spine.fabric-rate=1Gbps",
        ],
    ),
    (
        "10 Gbps, 2%, shared memory",
        Text::Of(SPARSE),
        &[
            "topology.leaf-spine.host-rate=10Gbps",
            "topology.leaf-spine.fabric-rate=10Gbps",
            "ports.pool=2MB",
        ],
    ),
    (
        "ports shaped to 1 Mbps",
        Text::Example("quickstart"),
        &[
            "ports.switch.shaper={rate=\"1Mbps\",bucket=\"3000B\"}",
            "workload.poisson.flows=300",
        ],
    ),
    (
        "ports shaped to 1 bps",
        Text::Example("quickstart"),
        &[
            "ports.switch.shaper={rate=\"1bps\",bucket=\"1B\"}",
            "workload.poisson.flows=20",
        ],
    ),
    ("quickstart", Text::Example("quickstart"), &[]),
    (
        "quickstart, shared memory",
        Text::Example("quickstart"),
        &["ports.pool=2MB"],
    ),
    ("incast", Text::Example("incast"), &[]),
    ("dumbbell", Text::Example("dumbbell"), &[]),
    (
        "UDP, 1% of each link",
        Text::Of(SPARSE),
        &[
            "until=200s",
            "workload={ udp = { src = \"0-7\", dst = \"8-15\", stream = { send = { constant = { rate = \"125Kbps\", size = \"1472B\" } } } } }",
        ],
    ),
    ("reference workload A", Text::Reference(Reference::A), &[]),
];

/// A scenario.
#[derive(Clone, Copy)]
enum Text {
    Of(&'static str),
    Example(&'static str),
    Reference(Reference),
}

/// Times of runs on one thread and on several, in turns.
struct Row {
    engine: &'static str,
    alone_s: f64,
    together_s: f64,
    /// The median of the ratios of neighbouring runs.
    ratio: f64,
}

/// Runs twelve scenarios in turns on one thread and on several, as `shallows run` would; the last one
/// on the event queue with all threads as well, however slow they are.
pub(crate) fn bench(threads: u32, runs: u32) -> Result<(), Failure> {
    let mut text = format!(
        "{:<27} {:<12} {:>10} {:>12} {:>7}\n",
        "scenario",
        "engine",
        "1 thread",
        format!("{threads} threads"),
        "ratio"
    );
    output::print(&text)?;
    let mut worst = 0.0_f64;
    for (name, source, settings) in CASES {
        let plan = build(source, settings)?;
        let mut engines = vec![EngineChoice::Automatic];
        if matches!(source, Text::Reference(_)) {
            engines.push(EngineChoice::Events);
        }
        for engine in engines {
            let row = Row::measure(&plan, engine, (threads, runs))?;
            let forced = engine == EngineChoice::Events;
            if !forced {
                worst = worst.max(row.ratio);
            }
            text.clear();
            writeln!(
                text,
                "{name:<27} {:<12} {:>8.3} s {:>10.3} s {:>7.2}{}",
                row.engine,
                row.alone_s,
                row.together_s,
                row.ratio,
                if forced { "  (demanded)" } else { "" }
            )
            .context("a text takes any line")?;
            output::print(&text)?;
        }
    }
    let text = format!("the greatest ratio is {worst:.2}; medians of {runs} runs in turns\n");
    Ok(output::print(&text)?)
}

fn build(source: Text, settings: &[&str]) -> Result<RunPlan, Failure> {
    let settings: Vec<Setting> = settings.iter().map(|&text| Setting::new(text)).collect();
    let text = match source {
        Text::Of(text) => text,
        Text::Example(name) => Example::find(name).context("no such example")?.text,
        Text::Reference(reference) => reference.scenario(),
    };
    let scenario = Scenario::parse(Path::new("bench threads"), text, &settings)?;
    match source {
        Text::Reference(reference) => super::plan(reference, &scenario),
        _ => Ok(scenario.build()?),
    }
}

/// Looks on as the progress line of a run does, and shows nothing.
struct Nobody;

impl Observer for Nobody {}

impl Row {
    fn measure(
        plan: &RunPlan,
        engine: EngineChoice,
        (threads, runs): (u32, u32),
    ) -> Result<Self, Failure> {
        let mut pairs = Vec::new();
        let mut name = "";
        for _ in 0..runs {
            let alone = run(plan, engine, 1)?;
            let together = run(plan, engine, threads)?;
            if alone.fingerprint != together.fingerprint {
                return Err(anyhow!("several threads gave other results; this is a bug").into());
            }
            name = alone.engine;
            pairs.push((alone.wall_s, together.wall_s));
        }
        let median = |number: &dyn Fn(&(f64, f64)) -> f64| {
            let numbers = super::sorted(pairs.iter().map(number));
            numbers[numbers.len() / 2]
        };
        Ok(Self {
            engine: name,
            alone_s: median(&|pair| pair.0),
            together_s: median(&|pair| pair.1),
            ratio: median(&|pair| pair.1 / pair.0),
        })
    }
}

struct Timed {
    wall_s: f64,
    engine: &'static str,
    fingerprint: u64,
}

fn run(plan: &RunPlan, engine: EngineChoice, threads: u32) -> Result<Timed, Failure> {
    let mut simulation = plan.simulation_on(engine, threads)?;
    let start = Instant::now();
    drive(
        &mut simulation,
        plan.until,
        &mut [&mut Nobody],
        Interrupt::Never,
    )?;
    let wall_s = start.elapsed().as_secs_f64();
    let mut hasher = FxHasher::default();
    for (_, outcome) in simulation.flows() {
        outcome.hash(&mut hasher);
    }
    Ok(Timed {
        wall_s,
        engine: match simulation.engine() {
            Engine::Events(_) => "event queue",
            Engine::Layers { .. } => "layers",
        },
        fingerprint: hasher.finish(),
    })
}
