//! The simulated side: the run that was live, with the probes of the live switch and clients.

use shallows_core::units::Time;
use shallows_live::switch::Samples;
use shallows_live::traffic::{GOODPUT_EVERY, Goodput, Ping};
use shallows_model::topology::{Fabric, Node};
use shallows_model::workload::Workload;
use shallows_model::{Completion, Connections, Interrupt, LinkId};
use shallows_results::RunRecord;
use shallows_results::probes::{GoodputSample, PingSample, QueueSample, Sample as _};
use shallows_results::record::Completeness;
use shallows_run::live::{SAMPLE_EVERY, roles, switch_link_name};
use shallows_run::measurements::Measurements;
use shallows_run::scenario::{Probes, Sampled};
use shallows_run::{Failure, Options, RunPlan, Simulated, World as _};

use super::Side;

/// Simulates what ran live. Like there, connections are there before the flows and are kept, and a
/// flow takes until its sender's last ACK, because the way of a live flow's request is as long.
pub(super) fn run(plan: &RunPlan, interrupted: Interrupt<'_>) -> Result<Side, Failure> {
    let mut scenario = plan.scenario.clone();
    let config = &mut scenario.config;
    config.completion = Completion::Sender;
    config.connections = Connections::Persistent;
    config.transport.handshake = false;
    let fabric = scenario.fabric()?;
    let mut plan = scenario.build_with(fabric, Workload::clone(&plan.workload))?;
    plan.probes = probes(&plan);
    let plan = Simulated.admit(plan)?;
    let options = Options {
        interrupted,
        ..Options::default()
    };
    let run = plan.run(&options, &mut [])?;
    if run.completeness == Completeness::Partial {
        return Err(Failure::Interrupted);
    }
    Ok(Side {
        measurements: measurements(&run.record, &plan).unwrap_or_default(),
        records: run.record.flows,
        summary: run.record.summary,
    })
}

/// The samples that the live switch and clients take.
fn probes(plan: &RunPlan) -> Probes {
    let links = plan.fabric.links().numbered();
    let of_switches = links.filter(|(_, link)| matches!(link.from, Node::Switch(_)));
    let of_switches = of_switches.map(|(number, _)| number).collect();
    Probes {
        queues: Some(Sampled::new(of_switches, SAMPLE_EVERY)),
        goodput: Some(Sampled::new(Vec::new(), GOODPUT_EVERY)),
        ..plan.probes.only_pings()
    }
}

/// The tables of these probes as the series that the live world has.
fn measurements(record: &RunRecord, plan: &RunPlan) -> Option<Measurements> {
    let duration = record.summary.as_ref()?.facts.simulated;
    Some(Measurements {
        goodput: goodput(record)?,
        queues: queues(record, &plan.fabric)?,
        roles: roles(&plan.fabric),
        pings: pings(record, plan.probes.pings.len(), duration)?,
        duration,
    })
}

/// Bytes by service; each service has a row at each instant.
fn goodput(record: &RunRecord) -> Option<Goodput> {
    let table = record.table(GoodputSample::FILE).ok()??;
    let services = table.integers("service")?;
    let mut dscps: Vec<u8> = services.iter().map(|&service| service as u8).collect();
    dscps.sort_unstable();
    dscps.dedup();
    let width = dscps.len().max(1);
    let instants = table.times("time_us")?.iter().step_by(width);
    let rows = table.integers("bytes")?.chunks(width);
    let rows = rows.map(|row| row.iter().map(|&bytes| bytes as u64).collect());
    Some(Goodput {
        rows: instants.copied().zip(rows).collect(),
        dscps,
    })
}

/// Lengths of queues; each queue has a row at each instant.
fn queues(record: &RunRecord, fabric: &Fabric) -> Option<Samples> {
    let table = record.table(QueueSample::FILE).ok()??;
    let instants = table.times("time_us")?;
    let width = instants.partition_point(|time| *time <= instants[0]);
    let columns = table.integers("port")?.iter();
    let columns = columns.zip(table.integers("queue")?);
    let column = |(&port, &queue): (&i64, &i64)| {
        let link = LinkId(port as u32);
        (switch_link_name(fabric, link), queue as usize)
    };
    let numbers = |column| -> Option<Vec<u32>> {
        let values = table.integers(column)?.iter();
        Some(values.map(|&value| value as u32).collect())
    };
    Some(Samples {
        columns: columns.take(width).map(column).collect(),
        times: instants.iter().step_by(width.max(1)).copied().collect(),
        bytes: numbers("bytes")?,
        packets: numbers("packets")?,
        ..Samples::default()
    })
}

/// The pings of each probe while there were flows: live there are no others.
fn pings(record: &RunRecord, probes: usize, until: Time) -> Option<Vec<Vec<Ping>>> {
    let mut pings = vec![Vec::new(); probes];
    if probes == 0 {
        return Some(pings);
    }
    let table = record.table(PingSample::FILE).ok()??;
    let (sent, rtts) = (table.times("time_us")?, table.times("rtt_us")?);
    let (probe, lost) = (table.integers("probe")?, table.integers("lost")?);
    for (number, &sent) in sent.iter().enumerate().filter(|(_, sent)| **sent <= until) {
        let rtt = (lost[number] == 0).then_some(rtts[number]);
        pings[probe[number] as usize].push(Ping { sent, rtt });
    }
    Some(pings)
}

#[cfg(test)]
mod tests {
    use shallows_run::Scenario;

    use super::*;

    fn simulate(workload: &str) -> Side {
        let text = format!(
            "until = '400ms'
             topology.star = {{ hosts = 3, rate = '100Mbps', delay = '50us' }}
             ports.switch = {{ buffer = {{ per-queue = {{ limit = '100KB' }} }}, scheduler = 'fifo' }}
             probes.ping = [{{ from = 1, to = 2, interval = '10ms' }}]
             {workload}"
        );
        let plan = text.parse::<Scenario>().unwrap().build().unwrap();
        run(&plan, Interrupt::Never).unwrap()
    }

    /// Two flows fill the link to host 2, whose queue pings have to pass. Their payload is 1460 of
    /// 1500 bytes.
    #[test]
    fn the_simulated_side_has_the_series_of_the_live_one() {
        let side = simulate("workload.long-lived = [{ src = '0-1', dst = 2, service = 3 }]");
        let of = side.measurements;
        let [goodput] = &of.goodput()[..] else {
            panic!("{:?}", of.goodput())
        };
        assert_eq!(goodput.service, 3);
        assert!((goodput.mbps - 97.3).abs() < 2.0, "{goodput:?}");
        assert_eq!(of.queues.columns.len(), 3);
        assert_eq!(of.queues.times.len(), 400);
        let lengths = of.port_lengths();
        let busiest = lengths
            .iter()
            .max_by_key(|(_, lengths)| lengths.iter().sum::<u32>());
        assert_eq!(*busiest.unwrap().0, link_to_host(2));
        let [rtt] = &of.rtts()[..] else {
            panic!("{:?}", of.rtts())
        };
        assert!(rtt.sent > 30 && rtt.mean_us > 1000.0, "{rtt:?}");
    }

    fn link_to_host(host: usize) -> String {
        shallows_live::lab::port(host)
    }

    #[test]
    fn applications_without_flows_are_simulated_to_their_end() {
        let side = simulate(
            "application = [{ clients = 0, servers = 2, run = { requests = { count = 50, pace = { closed = { think = '1ms' } } } } }]",
        );
        let latencies = side.summary.unwrap().facts.latencies;
        // Gets and sets.
        assert_eq!(latencies.iter().map(|of| of.count).sum::<u64>(), 50);
    }
}
