use shallows_core::units::Rate;
use shallows_results::ports::{LinkRole, PortRecord};
use shallows_results::probes::{
    PingSample, QueueSample, RttSample, SampleWriter, ThroughputSample,
};
use shallows_results::record::Completeness;
use shallows_results::size_class::SizeClasses;
use shallows_results::summary::RunFacts;

use shallows_core::units::Time;
use shallows_results::RunRecord;
use shallows_results::probes::GoodputSample;
use shallows_results::record::FlowRecord;
use shallows_results::statistics::PercentileRule;
use shallows_results::summary::Summary;

use super::*;

fn flow(id: u64, bytes: u64, fct_us: u64, sent: u32, dropped: u32) -> FlowRecord {
    FlowRecord {
        id,
        start: Time::ZERO,
        src: 0,
        dst: 1,
        bytes,
        service: 0,
        fct: Some(Time::from_us(fct_us)),
        ideal_fct: Time::from_us(10),
        retransmits: 0,
        timeouts: 0,
        marks: dropped + 1,
        sent: Some(sent),
        dropped: Some(dropped),
    }
}

/// Two small flows of 10 KB and a large one of 20 MB.
fn record() -> RunRecord {
    let flows = vec![
        flow(0, 10_000, 30, 10, 0),
        flow(1, 10_000, 40, 10, 1),
        FlowRecord {
            service: 3,
            timeouts: 2,
            ..flow(2, 20_000_000, 20_000, 100, 7)
        },
    ];
    let facts = RunFacts {
        simulated: Time::from_ms(50),
        ..RunFacts::default()
    };
    let rule = PercentileRule::NearestRank;
    let whole = Completeness::Complete;
    let summary = Summary::new(&flows, whole, SizeClasses::default(), rule, facts).unwrap();
    let mut record = RunRecord::new(flows, Some(summary));
    add_samples_of_queues(&mut record);
    add_round_trip_times(&mut record);
    add_arrived_bytes(&mut record);
    add_sent_bytes(&mut record);
    let port = |name: &str, role| PortRecord {
        name: name.to_owned(),
        role,
        rate: Rate::from_gbps(1),
        counters: None,
    };
    record.ports = vec![
        port("h0->s", LinkRole::HostUp),
        port("s->h0", LinkRole::HostDown),
    ];
    record
}

fn add_samples_of_queues(record: &mut RunRecord) {
    let mut queues = SampleWriter::in_memory();
    for (us, queue, bytes) in [(1, 0, 500), (1, 1, 1_500), (2, 0, 0), (2, 1, 1_000)] {
        let time = Time::from_us(us);
        let sample = QueueSample {
            time,
            port: 1,
            queue,
            bytes,
            packets: 0,
            threshold: None,
        };
        queues.write(&sample).unwrap();
    }
    record.insert("queues", queues.finish().unwrap().unwrap());
}

fn add_round_trip_times(record: &mut RunRecord) {
    let mut rtts = SampleWriter::in_memory();
    for us in [10, 30] {
        let rtt = Time::from_us(us);
        rtts.write(&RttSample {
            time: rtt,
            flow: 0,
            rtt,
        })
        .unwrap();
    }
    record.insert("flows-rtt", rtts.finish().unwrap().unwrap());
    // Two that were answered, and one that was not.
    let mut pings = SampleWriter::in_memory();
    for (probe, rtt) in [(0, Some(100)), (1, Some(200)), (1, None)] {
        let sample = PingSample {
            time: Time::from_ms(1),
            probe,
            rtt: rtt.map(Time::from_us),
        };
        pings.write(&sample).unwrap();
    }
    record.insert("pings", pings.finish().unwrap().unwrap());
}

fn add_arrived_bytes(record: &mut RunRecord) {
    // The first sample is before anything has arrived, and does not count.
    let mut goodput = SampleWriter::in_memory();
    for (ms, service, bytes) in [
        (0, 0, 0),
        (1, 0, 1_000),
        (1, 1, 0),
        (3, 0, 251_000),
        (3, 1, 125_000),
    ] {
        let time = Time::from_ms(ms);
        goodput
            .write(&GoodputSample {
                time,
                service,
                bytes,
            })
            .unwrap();
    }
    record.insert("goodput", goodput.finish().unwrap().unwrap());
}

fn add_sent_bytes(record: &mut RunRecord) {
    // 125 and 62.5 KB in 1 ms, then 125 and 0 KB, then 12.5 and 0 KB.
    let mut throughput = SampleWriter::in_memory();
    for (ms, queue, bytes) in [
        (1, 0, 125_000),
        (1, 1, 62_500),
        (2, 0, 125_000),
        (2, 1, 0),
        (3, 0, 12_500),
        (3, 1, 0),
    ] {
        let sample = ThroughputSample {
            time: Time::from_ms(ms),
            interval: Time::from_ms(1),
            port: 1,
            queue,
            bytes,
            rate: Rate::from_gbps(1),
        };
        throughput.write(&sample).unwrap();
    }
    record.insert("throughput", throughput.finish().unwrap().unwrap());
}

#[test]
fn metrics_are_functions_over_a_record() {
    let mut run = Measured::of_record(record(), None);
    // A scenario says what of a packet is payload.
    let goodput = Metric::try_from("goodput".to_owned()).unwrap();
    assert_eq!(goodput.of(&run), None);
    run.payload_share = Some(0.5);
    for (name, expected) in [
        ("small.mean", 0.035),
        ("small.p99.9", 0.04),
        ("all.max", 20.0),
        // sqrt((0.03^2 + 0.04^2) / 2) ms
        ("small.rms", 0.035_355_339_059_327_38),
        ("all.slowdown.max", 2000.0),
        ("small.slowdown.mean", 3.5),
        // 20 MB in 20 ms.
        ("throughput.large", 8_000.0),
        ("fct.host.0", 0.03),
        ("drops.small", 1.0),
        ("drops.service.0", 1.0),
        ("service.3.mean", 20.0),
        ("service.3.slowdown.max", 2000.0),
        ("throughput.service.3", 8_000.0),
        ("timeouts.service.3", 2.0),
        ("drop-rate.small", 5.0),
        ("drop-rate.large", 7.0),
        ("marks.small", 3.0),
        ("queue.s->h0.max", 2.0),
        ("queue.s->h0.p50", 1.0),
        ("rtt.data.mean", 20.0),
        ("rtt.mean", 150.0),
        ("rtt.max", 200.0),
        ("goodput.flow.2", 8_000.0),
        // 20,020,000 bytes in 50 ms.
        ("delivered", 3_203.2),
        // 10 KB in 30 and 40 us: (1/3 + 1/4)^2 / (2 (1/9 + 1/16)) = 49/50.
        ("fairness.small", 0.98),
        // 250 and 125 KB in 2 ms.
        ("received.1", 1_000.0),
        // Half of 1,500, 1,000 and 100 Mbps; only the last is below half of the mean.
        ("goodput", 1_300.0 / 3.0),
        ("goodput.1", 350.0),
        ("goodput.2", 250.0 / 3.0),
        ("goodput.gap", 1.0),
        ("received.2", 500.0),
        ("received", 1_500.0),
        ("received.1+received.2+drops.small", 1_501.0),
    ] {
        let metric = Metric::try_from(name.to_owned()).unwrap();
        let value = metric
            .of(&run)
            .unwrap_or_else(|| panic!("{name} has no value"));
        assert!(
            (value - expected).abs() < 1e-9 * expected,
            "{name}: {value}"
        );
    }
    for name in ["queue.nowhere.p99", "goodput.flow.9", "goodput.3"] {
        assert_eq!(
            Metric::try_from(name.to_owned()).unwrap().of(&run),
            None,
            "{name}"
        );
    }
}

#[test]
fn a_service_may_have_a_name() {
    let mut run = Measured::of_record(record(), None);
    let metric = |name: &str| Metric::try_from(name.to_owned()).unwrap();
    assert_eq!(metric("service.storage.mean").of(&run), None);
    assert!(
        metric("service.storage.mean")
            .needs()
            .contains("report.services")
    );
    run.services.insert("storage".to_owned(), 3);
    let by_number = metric("service.3.mean").of(&run);
    assert!(by_number.is_some());
    assert_eq!(metric("service.storage.mean").of(&run), by_number);
    assert_eq!(metric("timeouts.service.storage").of(&run), Some(2.0));
    assert_eq!(metric("service.web.mean").of(&run), None);
}

/// 5 MB from 10 ms to the end at 50 ms, beside the flows that end.
#[test]
fn long_lived_flows_are_a_class() {
    let mut record = record();
    let mut endless = record.flows[2];
    endless.id = 7;
    endless.start = Time::from_ms(10);
    endless.bytes = 5_000_000;
    endless.fct = None;
    endless.ideal_fct = Time::ZERO;
    record.flows.push(endless);
    let run = Measured::of_record(record, None);
    let of = |name: &str| Metric::try_from(name.to_owned()).unwrap().of(&run);
    for (name, expected) in [
        ("throughput.long-lived", 1_000.0),
        ("delivered.long-lived", 800.0),
        ("fairness.long-lived", 1.0),
        // Without the flow that has no end.
        ("throughput.large", 8_000.0),
    ] {
        let value = of(name).unwrap_or_else(|| panic!("{name} has no value"));
        assert!(
            (value - expected).abs() < 1e-9 * expected,
            "{name}: {value}"
        );
    }
}

#[test]
fn names_that_mean_nothing_are_refused() {
    for name in [
        "",
        "all",
        "all.p",
        "all.p101",
        "all.p99.99",
        "tiny.mean",
        "goodput.0",
        "goodput.flow",
        "received.0",
        "rate.read.block",
        "rtt.mean+",
        "queue.p99",
        "drops.p99",
        "mice.small",
        "service.p99",
        "service.3",
        "service.X.p99",
        "service.storage",
        "rtt",
        "slowdown.mean",
    ] {
        assert!(Metric::try_from(name.to_owned()).is_err(), "{name}");
    }
}

#[test]
fn every_row_is_found_by_its_example() {
    for row in table::ROWS {
        let metric = Metric::try_from(row.example.to_owned()).unwrap();
        assert!(
            matches!(metric, Metric::Of(found, _) if found == row),
            "{}: {metric:?}",
            row.example
        );
        assert!(!row.about.is_empty() && !row.about.ends_with('.'));
    }
}

#[test]
fn unfinished_flows_are_counted_without_long_lived_ones() {
    let facts = || RunFacts {
        simulated: Time::from_ms(50),
        ..RunFacts::default()
    };
    let cut_short = |id, bytes, ideal_us| FlowRecord {
        fct: None,
        ideal_fct: Time::from_us(ideal_us),
        ..flow(id, bytes, 1, 10, 0)
    };
    let run = |flows: Vec<FlowRecord>| {
        let (classes, rule) = (SizeClasses::default(), PercentileRule::NearestRank);
        let summary = Summary::new(&flows, Completeness::Complete, classes, rule, facts());
        let record = RunRecord::new(flows, Some(summary.unwrap()));
        Measured::of_record(record, None)
    };
    let value = |run: &Measured, name: &str| Metric::try_from(name.to_owned()).unwrap().of(run);
    let finite = || vec![flow(0, 10_000, 30, 10, 0), cut_short(1, 20_000_000, 10)];
    let without = run(finite());
    for (name, count) in [
        ("unfinished", 1.0),
        ("unfinished.large", 1.0),
        ("unfinished.small", 0.0),
    ] {
        assert_eq!(value(&without, name), Some(count), "{name}");
    }
    let mut flows = finite();
    flows.push(cut_short(2, 30_000_000, 0));
    let with = run(flows);
    for (name, count) in [
        ("unfinished", 1.0),
        ("unfinished.large", 1.0),
        ("unfinished.service.0", 1.0),
        ("unfinished.long-lived", 0.0),
    ] {
        assert_eq!(value(&with, name), Some(count), "{name}");
    }
}
