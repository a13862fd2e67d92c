//! `shallows import`: traffic of a real network as the workload of a scenario.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use shallows_core::units::{Rate, Time};
use shallows_operate::traffic::{
    self, Format, HostMap, ServiceMap, Traffic, TrafficError, Workload,
};

use shallows_run::read_bytes;

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Traffic to read: a capture, exported flow records or a log.
    source: PathBuf,
    /// Format of the source; detected from its first bytes if not given.
    #[arg(long, value_enum)]
    format: Option<SourceFormat>,
    /// Hosts by address, lines of prefix,host such as 10.0.1.0/24,8-15 (by default a host for each
    /// address, in their order).
    #[arg(long, value_name = "FILE.csv")]
    hosts: Option<PathBuf>,
    /// Services by port, lines of port,service such as 11211,46 (by default and elsewhere the DSCP).
    #[arg(long, value_name = "FILE.csv")]
    services: Option<PathBuf>,
    /// Silence after which data on the same connection is a new flow; of captures.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    idle: Time,
    /// Rate of the hosts' links, such as 25Gbps: adds loads, and random arrivals with them.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// A built-in distribution of sizes for the random arrivals, such as web-search; sampled traffic
    /// needs one.
    #[arg(long, value_name = "CDF", requires = "rate")]
    sizes: Option<String>,
    /// Directory of the results (by default the name of the source, under out).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SourceFormat {
    /// Packets: pcapng or pcap.
    Capture,
    /// NetFlow v9 or IPFIX messages, or a capture of their datagrams.
    Netflow,
    /// sFlow v5 datagrams, or a capture of them.
    Sflow,
    /// Zeek's conn.log.
    Zeek,
    /// A log of `date +%s.%N; ss -tinH`.
    Ss,
}

impl SourceFormat {
    fn format(self) -> Format {
        match self {
            Self::Capture => Format::Capture,
            Self::Netflow => Format::Netflow,
            Self::Sflow => Format::Sflow,
            Self::Zeek => Format::Zeek,
            Self::Ss => Format::Ss,
        }
    }
}

pub(crate) fn import(args: &ImportArgs) -> Result<(), Failure> {
    let services = match &args.services {
        Some(path) => parsed(path, |bytes| ServiceMap::parse(text(bytes)?))?,
        None => ServiceMap::default(),
    };
    let hosts = match &args.hosts {
        Some(path) => Some(parsed(path, |bytes| HostMap::parse(text(bytes)?))?),
        None => None,
    };
    let format = args.format.map(SourceFormat::format);
    let idle = args.idle.ps() / 1_000;
    let source = &args.source;
    let (traffic, workload) = parsed(source, |bytes| {
        let traffic = traffic::read(bytes, format, idle)?;
        let of_addresses = || HostMap::of_addresses(&traffic.conversations);
        let hosts = hosts.clone().unwrap_or_else(of_addresses);
        let workload = Workload::new(&traffic, &hosts, &services)?;
        if args.sizes.is_none() {
            workload.whole_flows()?;
        }
        Ok((traffic, workload))
    })?;
    for note in &workload.notes {
        output::note(note);
    }
    let stem = source.file_stem().unwrap_or_default();
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new("out").join(stem));
    let files = files(args, &traffic, &workload, hosts.is_none());
    write(&out, &files)?;
    Ok(output::print(&summary(args, &workload, &out, &files))?)
}

fn text(bytes: &[u8]) -> Result<&str, TrafficError> {
    std::str::from_utf8(bytes).map_err(|_| TrafficError::new("this is not text"))
}

/// Reads a file; errors name it.
fn parsed<T>(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, TrafficError>,
) -> Result<T, Failure> {
    let name = path.display();
    let failed = |error| Failure::File(anyhow!("cannot read {name}: {error}"));
    let bytes = read_bytes(path).map_err(failed)?;
    parse(&bytes).map_err(|error| Failure::File(anyhow!("{name}: {error}")))
}

fn files(
    args: &ImportArgs,
    traffic: &Traffic,
    workload: &Workload,
    with_hosts: bool,
) -> Vec<(String, String)> {
    let mut files = vec![("load.csv".to_owned(), workload.load_csv())];
    if workload.sampling <= 1 {
        files.push(("flows.csv".to_owned(), workload.flows_csv()));
        let list = "[workload]\nlist = \"flows.csv\"\n";
        files.push(("workload.toml".to_owned(), list.to_owned()));
        for service in workload.services().keys() {
            files.push((format!("sizes-{service}.csv"), workload.sizes_csv(*service)));
        }
    }
    if let Some(rate) = args.rate {
        let poisson = workload.poisson_toml(rate, args.sizes.as_deref());
        files.push(("poisson.toml".to_owned(), poisson));
    }
    if with_hosts {
        let map = HostMap::of_addresses(&traffic.conversations);
        files.push(("hosts.csv".to_owned(), map.to_csv()));
    }
    files
}

fn write(directory: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let result = fs::create_dir_all(directory).and_then(|()| {
        files
            .iter()
            .try_for_each(|(name, text)| fs::write(directory.join(name), text))
    });
    let directory = directory.display();
    Ok(result.with_context(|| format!("cannot write to {directory}"))?)
}

fn summary(
    args: &ImportArgs,
    workload: &Workload,
    out: &Path,
    files: &[(String, String)],
) -> String {
    let mut text = format!(
        "{} flows between {} hosts in {:.6} s\n",
        workload.flows.len(),
        workload.hosts,
        workload.duration as f64 / 1e9
    );
    if workload.sampling > 1 {
        let _ = writeln!(
            text,
            "sampled: one packet in {}; bytes are multiplied by it",
            workload.sampling
        );
    }
    for (service, of) in workload.services() {
        let _ = write!(
            text,
            "service {service}: {} flows, {} bytes",
            of.flows, of.bytes
        );
        if let Some(rate) = args.rate {
            let load = 100.0 * workload.load(of.bytes, rate);
            let _ = write!(text, ", {load:.2}% of the hosts' links");
        }
        text.push('\n');
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(text, "written to {}: {}", out.display(), names.join(", "));
    text
}
