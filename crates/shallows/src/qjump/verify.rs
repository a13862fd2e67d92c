//! `shallows qjump verify`.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use shallows_bpf::qjump;
use shallows_bpf::qjump::verify::{self, Probed, RoundTrips, Verdict};

use crate::interrupt::watch_for_ctrl_c;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Answer probes at this address of this host until Ctrl-C.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "to")]
    answer: Option<IpAddr>,
    /// Probe the path to a host that answers.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "answer")]
    to: Option<IpAddr>,
    /// The UDP port of the host that answers.
    #[arg(long, default_value_t = 7011)]
    port: u16,
    /// Number of levels to probe (as many as the limiters of this host have, if not given).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=8))]
    levels: Option<u8>,
    /// Probes of each level, without bulk and next to it.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Only send bulk until Ctrl-C: from a second host, it fills the queue of a switch.
    #[arg(long, requires = "to")]
    only_load: bool,
}

pub(super) fn verify(args: &VerifyArgs) -> anyhow::Result<()> {
    let interrupted = watch_for_ctrl_c()?;
    if let Some(address) = args.answer {
        let at = SocketAddr::new(address, args.port);
        let ready = || {
            let text = format!("answering at {at} until Ctrl-C\n");
            output::print(&text).map_err(io::Error::other)
        };
        return Ok(verify::answer(at, &interrupted, ready)?);
    }
    let Some(address) = args.to else {
        bail!("give --answer or --to");
    };
    let to = SocketAddr::new(address, args.port);
    if args.only_load {
        output::print(&format!("sending bulk to {to} until Ctrl-C\n"))?;
        return Ok(verify::load(to, &interrupted)?);
    }
    let limiters = qjump::status().unwrap_or_default();
    let highest = limiters.iter().map(|of| of.limits.levels.len()).max();
    let Some(levels) = args.levels.or(highest.map(|levels| levels as u8)) else {
        bail!("this host has no limiter: say how many levels to probe with --levels");
    };
    let probed = verify::probe(to, levels, args.count as usize)?;
    output::print(&table(&probed))?;
    match verify::verdict(&probed) {
        Verdict::Served => {
            output::print("levels are served: each passes the bulk of level 0\n")?;
            Ok(())
        }
        Verdict::NoQueue => bail!(
            "nothing can be told: the bulk of this host made no queue; send more from others \
             (--only-load)"
        ),
        Verdict::NotServed(levels) => {
            let levels: Vec<String> = levels.iter().map(u8::to_string).collect();
            bail!(
                "level {} waits with the bulk of level 0: look at the queue of this host \
                 (`shallows qjump status`) and at those of the switches",
                levels.join(", ")
            )
        }
    }
}

fn table(probed: &[Probed]) -> String {
    let mut text = format!(
        "{:>5} {:>34} {:>34}\n{:>5}",
        "", "idle (us)", "next to bulk (us)", "level"
    );
    for _ in 0..2 {
        let _ = write!(text, " {:>10} {:>12} {:>10}", "median", "p99", "lost");
    }
    text += "\n";
    let us = |time: Option<Duration>| match time {
        Some(time) => format!("{:.0}", time.as_secs_f64() * 1e6),
        None => "-".to_owned(),
    };
    for of in probed.iter().rev() {
        let _ = write!(text, "{:>5}", of.level);
        for RoundTrips { lost, median, p99 } in [of.idle, of.loaded] {
            let _ = write!(text, " {:>10} {:>12} {lost:>10}", us(median), us(p99));
        }
        text += "\n";
    }
    text
}
