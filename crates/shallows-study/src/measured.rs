//! One run and what is kept of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use shallows_results::record::{Completeness, FlowRecord};
use shallows_results::size_class::SizeClasses;
use shallows_results::summary::Summary;
use shallows_results::{Format, write_text};

use shallows_run::{Failure, Observer, Options, RunRecord, Scenario, Simulated, World as _};

/// The file of a record that is written last.
const SUMMARY: &str = "summary.json";

/// Small flows of up to this many segments fit the initial window of §5.2.
const MICE_SEGMENTS: u64 = 16;

/// Measurements of a run: the numbers that most figures ask for, and the location of the rest.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) summary: Summary,
    /// Percent of small flows that fit 16 packets.
    pub(crate) mice_percent: Option<f64>,
    /// Share of payload in the bytes that a full packet takes on the wire, if the scenario is known.
    #[serde(default)]
    pub(crate) payload_share: Option<f64>,
    /// Numbers of services by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) services: BTreeMap<String, u16>,
    /// Fidelity of a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fidelity: Option<RunFidelity>,
    /// The whole record.
    #[serde(skip)]
    pub(crate) kept: Kept,
}

/// Results of a run that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// The whole record: flows and the tables of probes.
    #[default]
    All,
    /// The summary. Metrics that need flows or tables have no values.
    Summary,
}

/// Location of a run's record. Those of a figure with many runs do not fit into memory.
#[derive(Debug, Default)]
pub(crate) enum Kept {
    #[default]
    Nowhere,
    Directory(PathBuf),
    Memory(Arc<RunRecord>),
}

/// Fidelity of the machine in a live run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RunFidelity {
    /// Share of the frames that were sent too late.
    pub(crate) late_share: f64,
    /// 99 of 100 were sent at most this late.
    pub(crate) late_p99_us: f64,
    /// Share of CPU time that other virtual machines took.
    pub(crate) steal: Option<f64>,
}

impl Measured {
    /// The whole record, if it was kept.
    pub(crate) fn record(&self) -> Option<Arc<RunRecord>> {
        match &self.kept {
            Kept::Nowhere => None,
            Kept::Directory(directory) => RunRecord::open(directory).ok().map(Arc::new),
            Kept::Memory(record) => Some(Arc::clone(record)),
        }
    }

    /// Runs a scenario and keeps of its record in `place` what `keep` says. `progress` hears how far
    /// it has come; nothing is measured of a run that was interrupted.
    pub(crate) fn run(
        scenario: &Scenario,
        keep: Keep,
        place: &Path,
        progress: &mut dyn Observer,
        interrupted: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        let plan = Simulated.admit(scenario.build_unless(interrupted.into())?)?;
        let options = Options {
            out: (keep == Keep::All).then_some((place, Format::Parquet)),
            interrupted: interrupted.into(),
            ..Options::default()
        };
        let record = plan.run(&options, &mut [progress])?.record;
        let summary = record.summary.as_ref().context("the run has no summary")?;
        if summary.completeness == Completeness::Partial {
            return Ok(None);
        }
        if keep == Keep::Summary {
            fs::create_dir_all(place)
                .with_context(|| format!("cannot create {}", place.display()))?;
            summary.write_json(&place.join(SUMMARY))?;
            let (text, _) = scenario.config.resolved()?;
            write_text(&place.join("scenario.toml"), &text)?;
        }
        Ok(Some(Self::of_record(record, Some(scenario))))
    }

    /// Measurements of a complete run in `place`. Only the record is taken over, so that fixed
    /// statistics count; of a run whose flows need not be kept, the summary.
    pub(crate) fn open(scenario: &Scenario, keep: Keep, place: &Path) -> Option<Self> {
        if keep == Keep::Summary {
            let summary = Summary::read_json(&place.join(SUMMARY)).ok()?;
            return Some(Self {
                summary,
                mice_percent: None,
                payload_share: None,
                services: scenario.config.report.services.clone(),
                fidelity: None,
                kept: Kept::Nowhere,
            });
        }
        let record = RunRecord::open(place).ok()?;
        let summary = record.summary.as_ref()?;
        if summary.completeness == Completeness::Partial {
            return None;
        }
        let mut measured = Self::of_record(record, Some(scenario));
        measured.kept = Kept::Directory(place.to_owned());
        Some(measured)
    }

    /// Of a record with flows.
    pub(crate) fn of_record(record: RunRecord, scenario: Option<&Scenario>) -> Self {
        let kept = record.summary.as_ref().expect("it has flows");
        let facts = kept.facts.clone();
        let (classes, rule) = (kept.size_classes, kept.percentile_rule);
        let summary = Summary::new(&record.flows, kept.completeness, classes, rule, facts);
        Self {
            summary: summary.expect("it has flows"),
            mice_percent: scenario.and_then(|of| mice_percent(&record.flows, of, classes)),
            payload_share: scenario.map(payload_share),
            services: scenario.map_or_else(BTreeMap::new, |of| of.config.report.services.clone()),
            fidelity: None,
            kept: Kept::Memory(Arc::new(record)),
        }
    }
}

pub(crate) fn mice_percent(
    records: &[FlowRecord],
    scenario: &Scenario,
    classes: SizeClasses,
) -> Option<f64> {
    let most = MICE_SEGMENTS * u64::from(scenario.config.transport.segment);
    let small_max = classes.small_max().get();
    let sizes = records.iter().map(|record| record.bytes);
    let small: Vec<u64> = sizes
        .filter(|&bytes| bytes > 0 && bytes <= small_max)
        .collect();
    let mice = small.iter().filter(|&&bytes| bytes <= most).count();
    (!small.is_empty()).then(|| 100.0 * mice as f64 / small.len() as f64)
}

/// Share of payload in the bytes on the wire of a full packet from a switch.
fn payload_share(scenario: &Scenario) -> f64 {
    let transport = &scenario.config.transport;
    let packet = transport.segment + transport.header;
    let wire = scenario.config.ports.switch.framing.wire_size(packet);
    f64::from(transport.segment) / f64::from(wire)
}
