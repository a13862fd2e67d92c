//! Records what the scenario's probes see, as the run goes on. One file a probe.

mod capture;
mod goodput;
mod pings;
mod queues;
mod rtt;
mod sojourn;
mod throughput;
mod windows;

use std::fmt::Debug;
use std::path::Path;

use shallows_core::units::Time;
use shallows_results::probes::{Sample, SampleWriter};
use shallows_results::series::Series;
use shallows_results::{Format, ResultsError, RunRecord};
use shallows_sim::{Observation, Simulation};

use crate::driver::{Observer, Step, Ticks};
use crate::failure::Failure;
use crate::plan::RunPlan;
use crate::scenario::Sampled;

/// Destination of the tables of probes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TableDestination<'a> {
    /// Into a directory, as they come.
    Directory(&'a Path, Format),
    /// Into the record of the run. Captures, which are files for Wireshark, are left out.
    Memory,
}

impl TableDestination<'_> {
    fn writer<S: Sample>(self) -> Result<SampleWriter<S>, ResultsError> {
        match self {
            Self::Directory(directory, format) => SampleWriter::create(directory, format),
            Self::Memory => Ok(SampleWriter::in_memory()),
        }
    }
}

/// A probe of a simulated run: it takes samples at its times or sees packets, and ends as a table.
trait Probe: Debug {
    /// The time of its next sample, if it takes any.
    fn next_sample(&self) -> Option<Time> {
        None
    }

    /// Takes a sample, at the time of its own.
    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        let _ = (now, simulation);
        Ok(())
    }

    /// Takes note of a packet.
    fn observe(&mut self, seen: &Observation) -> Result<(), ResultsError> {
        let _ = seen;
        Ok(())
    }

    /// All packets up to `now` have been seen.
    fn settle(&mut self, now: Time) -> Result<(), ResultsError> {
        let _ = now;
        Ok(())
    }

    /// Looks at the simulation after its last event.
    fn end(&mut self, simulation: &Simulation) -> Result<(), ResultsError> {
        let _ = simulation;
        Ok(())
    }

    /// Completes its table.
    fn finish(self: Box<Self>) -> Result<Table, ResultsError>;
}

/// The table of a probe.
#[derive(Debug)]
enum Table {
    /// In memory, under this name.
    Memory(&'static str, Series),
    /// In a file of this name, without extension.
    File(&'static str),
    /// In a file of this name, of a format of its own.
    Named(&'static str),
}

impl Table {
    /// The table of a writer.
    fn of<S: Sample>(writer: SampleWriter<S>) -> Result<Self, ResultsError> {
        Ok(match writer.finish()? {
            Some(table) => Self::Memory(S::FILE, table),
            None => Self::File(S::FILE),
        })
    }
}

/// The tables of a run's probes in the making.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    place: TableDestination<'a>,
    probes: Vec<Box<dyn Probe + 'a>>,
}

impl<'a> Recorder<'a> {
    /// Begins the tables of the probes that the scenario has.
    pub(crate) fn create(
        plan: &'a RunPlan,
        place: TableDestination<'a>,
    ) -> Result<Self, ResultsError> {
        // A new probe is begun here.
        let all = [
            queues::begin(plan, place)?,
            throughput::begin(plan, place)?,
            windows::begin(plan, place)?,
            goodput::begin(plan, place)?,
            pings::begin(plan, place)?,
            rtt::begin(plan, place)?,
            sojourn::begin(plan, place)?,
            capture::begin(plan, place)?,
        ];
        Ok(Self {
            place,
            probes: all.into_iter().flatten().collect(),
        })
    }

    /// Completes the tables. Those in memory go into the record; the names of the files of the
    /// others are returned.
    pub(crate) fn complete(self, record: &mut RunRecord) -> Result<Vec<String>, ResultsError> {
        let mut files = Vec::new();
        let extension = match self.place {
            TableDestination::Directory(_, format) => format.extension(),
            TableDestination::Memory => "",
        };
        for probe in self.probes {
            match probe.finish()? {
                Table::Memory(name, table) => record.insert(name, table),
                Table::File(name) => files.push(format!("{name}.{extension}")),
                Table::Named(file) => files.push(file.to_owned()),
            }
        }
        Ok(files)
    }
}

impl Observer for Recorder<'_> {
    fn next_sample(&self) -> Option<Time> {
        let probes = self.probes.iter();
        probes.filter_map(|probe| probe.next_sample()).min()
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        for probe in &mut self.probes {
            probe.sample(now, simulation)?;
        }
        Ok(Step::Continue)
    }

    fn observe(&mut self, seen: &[Observation], now: Time) -> Result<(), Failure> {
        for probe in &mut self.probes {
            for observation in seen {
                probe.observe(observation)?;
            }
            probe.settle(now)?;
        }
        Ok(())
    }

    fn finish(&mut self, simulation: &Simulation) -> Result<(), Failure> {
        for probe in &mut self.probes {
            probe.end(simulation)?;
        }
        Ok(())
    }
}

/// A beginning that most probes have: nothing if the scenario does not ask for it.
type Begun<'a> = Result<Option<Box<dyn Probe + 'a>>, ResultsError>;

/// Samples of one kind at equal distances.
#[derive(Debug)]
struct Sampler<'a, I, S> {
    sampled: &'a Sampled<I>,
    ticks: Ticks,
    writer: SampleWriter<S>,
}

impl<'a, I, S: Sample> Sampler<'a, I, S> {
    fn create(sampled: &'a Sampled<I>, place: TableDestination<'_>) -> Result<Self, ResultsError> {
        Ok(Self {
            sampled,
            ticks: sampled.ticks(),
            writer: place.writer()?,
        })
    }
}
