//! Latencies that programs print, for the record: `latencies = "ping"` of a command.

use std::fs;

use anyhow::bail;
use shallows_core::units::Time;
use shallows_live::command::{CommandOutcome, Ending};
use shallows_live::experiment::Observed;
use shallows_model::topology::Fabric;
use shallows_results::latencies::{Latency, Operation};

use crate::scenario::{LatencyFormat, Scenario};

/// Latencies of applications and of programs' own logs, in order of time.
pub fn latencies(
    observed: &Observed,
    scenario: &Scenario,
    fabric: &Fabric,
) -> anyhow::Result<Vec<Latency>> {
    let operations = observed.operations.iter().map(|of| Latency {
        operation: operation(&of.application, of.name),
        start: of.start,
        host: of.host as u32,
        latency: of.latency,
    });
    let mut latencies: Vec<Latency> = operations.collect();
    let formats = scenario.config.live.commands.iter().flat_map(|command| {
        let hosts = command.host.resolve(fabric).map_or(0, |hosts| hosts.len());
        std::iter::repeat_n(command.latencies, hosts)
    });
    for (outcome, format) in observed.commands.iter().zip(formats) {
        if let Some(format) = format.filter(|_| !outcome.failed()) {
            latencies.extend(of_command(outcome, format)?);
        }
    }
    latencies.sort_by_key(|of| of.start);
    Ok(latencies)
}

fn of_command(outcome: &CommandOutcome, format: LatencyFormat) -> anyhow::Result<Vec<Latency>> {
    let text = match &outcome.stdout.file {
        Some(file) => fs::read(file)?,
        None => outcome.stdout.last.clone(),
    };
    let text = String::from_utf8_lossy(&text);
    let mut printed = match format {
        LatencyFormat::Ping => ping(&text),
        LatencyFormat::Memcaslap => memcaslap(&text),
        LatencyFormat::Ptpd => ptpd(&text),
    };
    // One that was ended may not have come to print any.
    if printed.is_empty() && outcome.ending == Ending::Exited(0) {
        let line = &outcome.plan.line;
        bail!(
            "the command `{line}` at host {} printed no latencies: {}",
            outcome.plan.host,
            match format {
                LatencyFormat::Ping => "ping must run with -D and without -q",
                LatencyFormat::Memcaslap => "memcaslap prints them once it has come to its end",
                LatencyFormat::Ptpd =>
                    "ptpd must run with -C, --global:log_statistics=y and \
                     --global:statistics_log_interval=0",
            }
        );
    }
    for latency in &mut printed {
        latency.start += outcome.plan.start;
        latency.host = outcome.plan.host as u32;
    }
    Ok(printed)
}

fn operation(application: &str, name: &str) -> Operation {
    Operation {
        application: application.to_owned(),
        name: name.to_owned(),
    }
}

fn latency(operation: Operation, start: Time, latency: Time) -> Latency {
    Latency {
        operation,
        start,
        host: 0,
        latency,
    }
}

/// `[1794908329.123456] 64 bytes from 10.83.0.1: icmp_seq=1 ttl=64 time=0.312 ms`
fn ping(text: &str) -> Vec<Latency> {
    let parsed = text.lines().filter_map(|line| {
        let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
        let (_, time) = rest.split_once("time=")?;
        let ms: f64 = time.split(' ').next()?.parse().ok()?;
        Some((stamp.parse::<f64>().ok()?, ms))
    });
    let parsed: Vec<(f64, f64)> = parsed.collect();
    let first = parsed.first().map_or(0.0, |(stamp, _)| *stamp);
    let pings = parsed.iter().map(|(stamp, ms)| {
        let (start, time) = (seconds(stamp - first), seconds(ms / 1e3));
        latency(operation("ping", "ping"), start, time)
    });
    pings.collect()
}

/// The statistics log: time stamp, state, clock, one-way delay, offset from the master. What counts
/// is how far off the clock seems to be, whichever way.
fn ptpd(text: &str) -> Vec<Latency> {
    let parsed = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [stamp, "slv", _, delay, offset, ..] = fields[..] else {
            return None;
        };
        // Until the first delay is known, the offset has the whole way in it.
        if delay == "0.000000000" {
            return None;
        }
        Some((time_of_day(stamp)?, offset.parse::<f64>().ok()?))
    });
    let parsed: Vec<(f64, f64)> = parsed.collect();
    let first = text
        .lines()
        .find_map(|line| time_of_day(line.split(',').next()?));
    let offsets = parsed.iter().map(|(stamp, offset)| {
        let day = 86_400.0;
        let start = (stamp - first.unwrap_or_default()).rem_euclid(day);
        let offset = seconds(offset.abs());
        latency(operation("ptpd", "offset"), seconds(start), offset)
    });
    offsets.collect()
}

/// Seconds since midnight of `2026-11-17 09:55:01.325735`.
fn time_of_day(stamp: &str) -> Option<f64> {
    let (_, clock) = stamp.split_once(' ')?;
    let mut parts = clock.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some((hours * 60.0 + minutes) * 60.0 + seconds)
}

/// memcaslap counts requests by powers of two of microseconds. Within one they are taken to be
/// spread evenly on a logarithmic scale, between the least and the most, and evenly over the time of
/// the run. With `-S 1s` it tells the mean of each second too: `get-mean`.
fn memcaslap(text: &str) -> Vec<Latency> {
    let mut latencies = Vec::new();
    let span = text.lines().find_map(|line| {
        let (_, rest) = line.split_once("Run time: ")?;
        rest.split('s').next()?.parse::<f64>().ok()
    });
    for (heading, name) in [("Get Statistics", "get"), ("Set Statistics", "set")] {
        let of_name = operation("memcached", name);
        let times = histogram(text, heading).unwrap_or_default();
        let gap = span.unwrap_or_default() / times.len() as f64;
        // In no order that could be taken for one.
        let stride = (0..times.len()).map(|n| n * STRIDE % times.len().max(1));
        latencies.extend(times.iter().zip(stride).map(|(us, place)| {
            let start = seconds(gap * place as f64);
            latency(of_name.clone(), start, seconds(us / 1e6))
        }));
        let mut second = 0;
        let mut in_section = false;
        for line in text.lines() {
            if line.contains(" Statistics") {
                in_section = line.ends_with(heading);
            }
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let (true, ["Period", .., average, _, _]) = (in_section, &fields[..])
                && let Ok(us) = average.parse::<f64>()
            {
                let of_name = operation("memcached", &format!("{name}-mean"));
                latencies.push(latency(of_name, Time::from_secs(second), seconds(us / 1e6)));
                second += 1;
            }
        }
    }
    latencies
}

/// A prime, so that requests of all latencies are everywhere in the run.
const STRIDE: usize = 7_919;

/// The latencies of a final histogram, in microseconds.
fn histogram(text: &str, heading: &str) -> Option<Vec<f64>> {
    let is_heading = |line: &&str| line.starts_with(heading) && line.ends_with("events)");
    let lines = text.lines().skip_while(|line| !is_heading(line)).skip(1);
    let mut lines = lines.take_while(|line| !line.trim().is_empty());
    let mut value = |name: &str| {
        let line = lines.find(|line| line.trim_start().starts_with(name))?;
        line.split_once(':')?.1.trim().parse::<f64>().ok()
    };
    let (least, most) = (value("Min:")?, value("Max:")?);
    lines.find(|line| line.contains("Log2 Dist:"))?;
    let mut times = Vec::new();
    for line in lines {
        let (first, counts) = line.split_once(':')?;
        let first: i32 = first.trim().parse().ok()?;
        for (power, count) in (first..).zip(counts.split_whitespace()) {
            let count: u32 = count.parse().ok()?;
            let from = 2_f64.powi(power - 1).max(least);
            let to = 2_f64.powi(power).min(most).max(from);
            let step = |n: u32| from * (to / from).powf((f64::from(n) + 0.5) / f64::from(count));
            times.extend((0..count).map(step));
        }
    }
    Some(times)
}

fn seconds(of: f64) -> Time {
    Time::from_ps((of.max(0.0) * 1e12).round() as u64)
}

#[cfg(test)]
mod tests {
    use shallows_live::command::{Captured, CommandPlace, CommandPlan, CommandUser};

    use super::*;

    fn outcome(ending: Ending) -> CommandOutcome {
        CommandOutcome {
            plan: CommandPlan {
                host: 0,
                start: Time::ZERO,
                line: "memcaslap".to_owned(),
                awaited: true,
                timeout: Time::from_secs(1),
                user: CommandUser::Unprivileged,
                place: CommandPlace::Inside,
                may_fail: false,
            },
            ending,
            stdout: Captured::default(),
            stderr: Captured::default(),
        }
    }

    #[test]
    fn a_program_that_was_ended_need_not_have_printed_latencies() {
        for ending in [Ending::Stopped, Ending::NotStarted] {
            let printed = of_command(&outcome(ending), LatencyFormat::Memcaslap).unwrap();
            assert_eq!(printed.len(), 0, "{ending:?}");
        }
        let error = of_command(&outcome(Ending::Exited(0)), LatencyFormat::Memcaslap);
        assert!(error.unwrap_err().to_string().contains("no latencies"));
    }

    fn named<'a>(all: &'a [Latency], name: &str) -> Vec<&'a Latency> {
        all.iter().filter(|of| of.operation.name == name).collect()
    }

    #[test]
    fn pings_have_times_of_their_own() {
        let text = "PING 10.83.0.1 (10.83.0.1) 56(84) bytes of data.\n\
                    [1794908329.250000] 64 bytes from 10.83.0.1: icmp_seq=1 ttl=64 time=0.312 ms\n\
                    [1794908329.500000] 64 bytes from 10.83.0.1: icmp_seq=3 ttl=64 time=9.4 ms\n";
        let pings = ping(text);
        let shown: Vec<_> = pings.iter().map(|of| (of.start, of.latency)).collect();
        assert_eq!(
            shown,
            [
                (Time::ZERO, Time::from_us(312)),
                (Time::from_ms(250), Time::from_us(9_400))
            ]
        );
        assert!(ping("rtt min/avg/max/mdev = 7.499/9.423/10.709/0.892 ms").is_empty());
    }

    #[test]
    fn offsets_count_once_a_delay_is_known_and_over_midnight() {
        let text = "2026-11-17 23:59:59.000000, init, \n\
                    2026-11-17 23:59:59.500000, slv, e2/1,  0.000000000,  0.000010285,  0.0\n\
                    2026-11-18 00:00:01.500000, slv, e2/1,  0.000001407, -0.000002166,  0.0\n";
        let offsets = ptpd(text);
        assert_eq!(offsets.len(), 1);
        assert_eq!(offsets[0].start, Time::from_us(2_500_000));
        assert_eq!(offsets[0].latency, Time::from_ns(2_166));
    }

    #[test]
    fn a_histogram_of_memcaslap_becomes_requests() {
        let text = "\n\
            Get Statistics\n\
            Type     Time(s)  Ops  TPS(ops/s)  Net(M/s)  Get_miss  Min(us)  Max(us)  Avg(us)  Std_dev  Geo_dist\n\
            Period   1        3    3           0.1       0         14       100      60       103.93   32.09\n\
            Global   1        3    3           0.1       0         14       100      38       103.93   32.09\n\
            \n\
            Set Statistics\n\
            Period   1        0    0           0.1       0         14       100      77       103.93   32.09\n\
            \n\
            Get Statistics (3 events)\n   Min:        14\n   Max:       100\n   Avg:        39\n\
            \x20  Geo:     31.74\n   Std:    165.15\n   Log2 Dist:\n\
            \x20      4:        1        0        0        2\n\n\
            Set Statistics (0 events)\n\
            \n\
            Run time: 3.0s Ops: 3 TPS: 1 Net_rate: 31.4M/s\n";
        let all = memcaslap(text);
        let get: Vec<f64> = named(&all, "get")
            .iter()
            .map(|of| of.latency.as_secs_f64() * 1e6)
            .collect();
        // From the least to 16 us, and two between 64 us and the most.
        let expected = [
            14.0 * (16.0_f64 / 14.0).sqrt(),
            64.0 * (100.0_f64 / 64.0).powf(0.25),
            64.0 * (100.0_f64 / 64.0).powf(0.75),
        ];
        assert_eq!(get.len(), 3);
        for (ours, expected) in get.iter().zip(expected) {
            assert!((ours - expected).abs() < 1e-3, "{ours} for {expected}");
        }
        let starts: Vec<u64> = named(&all, "get").iter().map(|of| of.start.ps()).collect();
        assert!(starts.iter().all(|&start| start < Time::from_secs(3).ps()));
        let mean = named(&all, "get-mean");
        assert_eq!((mean.len(), mean[0].latency), (1, Time::from_us(60)));
        assert!(named(&all, "set").is_empty());
        assert!(memcaslap("Could not connect").is_empty());
    }
}
