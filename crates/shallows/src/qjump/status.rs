//! `shallows qjump status`.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use shallows_bpf::qjump::{self, LevelStatus, Side, Status};
use shallows_core::units::{Rate, Time};

use super::shown_rate;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Only this device.
    #[arg(long, value_name = "DEVICE")]
    dev: Option<String>,
    /// Print Prometheus' text format, for its node exporter's textfile collector.
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure rates over so many seconds.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    interval: f64,
}

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<String> {
    let read = || -> anyhow::Result<Vec<Status>> {
        let mut limiters = qjump::status()?;
        limiters.retain(|limiter| {
            args.dev
                .as_ref()
                .is_none_or(|dev| *dev == limiter.device.name)
        });
        Ok(limiters)
    };
    let limiters = read()?;
    let text = if args.prometheus {
        qjump::prometheus(&limiters)
    } else if args.json {
        let text = serde_json::to_string_pretty(&limiters).context("cannot write JSON")?;
        text + "\n"
    } else if limiters.is_empty() {
        "there is no limiter\n".to_owned()
    } else {
        let seconds = args.interval.clamp(0.01, 3600.0);
        thread::sleep(Duration::from_secs_f64(seconds));
        let later = read()?;
        later
            .iter()
            .map(|limiter| {
                let before = limiters
                    .iter()
                    .find(|before| before.device == limiter.device);
                table(limiter, before, seconds)
            })
            .collect()
    };
    Ok(text)
}

fn table(limiter: &Status, before: Option<&Status>, seconds: f64) -> String {
    let mut text = heading(limiter);
    levels(limiter, before, seconds, &mut text);
    applications(limiter, &mut text);
    match limiter.cost {
        Some(cost) => {
            let _ = writeln!(
                text,
                "{:.0} ns per packet over {} packets",
                cost.mean_ns(),
                cost.packets
            );
        }
        None => text += "what a packet costs: sysctl -w kernel.bpf_stats_enabled=1\n",
    }
    text
}

/// The device, its queue and its trial.
fn heading(limiter: &Status) -> String {
    let mut text = String::new();
    let hook = match limiter.hook {
        Some(hook) => hook.to_string(),
        None => "the device is gone".to_owned(),
    };
    let side = match limiter.side {
        Side::Egress => "",
        Side::Guest => ", what its guest sends",
    };
    let _ = writeln!(
        text,
        "{} ({hook}{side}), epoch {}",
        limiter.device, limiter.limits.epoch
    );
    if let Some(queue) = &limiter.queue {
        let _ = writeln!(text, "its queue is {queue}");
    }
    match limiter.trial {
        None => {}
        Some(Time::ZERO) => text += "its trial has ended: everything passes as it is\n",
        Some(left) => {
            let _ = writeln!(
                text,
                "on trial: it ends in {:.0} s unless confirmed",
                left.as_secs_f64()
            );
        }
    }
    text
}

/// A line for each level.
fn levels(limiter: &Status, before: Option<&Status>, seconds: f64, text: &mut String) {
    let holds = limiter.limits.hold_limit().is_some();
    let _ = writeln!(
        text,
        "{:>5} {:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>10}",
        "level",
        "DSCP",
        "per epoch",
        if holds { "waiting" } else { "left" },
        "packets",
        "rate",
        "dropped",
        "share",
        "epochs"
    );
    for (number, level) in limiter.levels.iter().enumerate() {
        let rate = before
            .and_then(|before| before.levels.get(number))
            .map(|before| {
                let bytes = level.passed_bytes.saturating_sub(before.passed_bytes);
                Rate::from_bps((bytes as f64 * 8.0 / seconds) as u64)
            });
        let _ = writeln!(
            text,
            "{number:>5} {:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>10}",
            limiter.limits.dscp_of(number),
            limiter.limits.levels[number].to_string(),
            level
                .waiting_bytes
                .or(level.tokens)
                .map_or_else(|| "-".to_owned(), |tokens| format!("{tokens}B")),
            level.passed_packets,
            rate.map_or_else(|| "-".to_owned(), shown_rate),
            level.dropped_packets,
            dropped_share(level),
            level.epochs,
        );
    }
}

/// The programs whose levels are chosen.
fn applications(limiter: &Status, text: &mut String) {
    let Some(applications) = &limiter.applications else {
        return;
    };
    *text += "levels are chosen by what programs send:\n";
    let _ = writeln!(
        text,
        "{:>5} {:>10} {:>12} {:>10}  cgroup",
        "level", "packets", "bytes", "lowered"
    );
    for of in applications {
        let _ = writeln!(
            text,
            "{:>5} {:>10} {:>12} {:>10}  {}",
            of.level,
            of.packets,
            of.bytes,
            of.lowered_packets,
            of.cgroup.display()
        );
    }
}

fn dropped_share(level: &LevelStatus) -> String {
    match level.passed_packets + level.dropped_packets {
        0 => "-".to_owned(),
        all => format!("{:.2}%", 100.0 * level.dropped_packets as f64 / all as f64),
    }
}
