//! `shallows controller` and `shallows agent`: XCo on this machine.

mod supervisor;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::{process, thread};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shallows_live::switch::{Control, Snapshot, fetch_status, request_reload};
use shallows_live::xco::cluster::Cluster;
use shallows_live::xco::controller::ControllerDaemon;
use shallows_live::xco::key::KeyFile;
use shallows_live::xco::reload::Reader;
use shallows_live::xco::{ControllerSnapshot, agent, incarnation};

use shallows_run::read_file;

use crate::failure::Failure;
use crate::{interrupt, output, service};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct ControllerArgs {
    /// The cluster, a TOML file that controllers and hosts share.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of this controller in the file; not needed if there is only one.
    #[arg(long)]
    name: Option<String>,
    #[command(subcommand)]
    command: Option<ControllerCommand>,
}

#[derive(Debug, Subcommand)]
enum ControllerCommand {
    /// Show what a running controller knows and counts.
    Status {
        /// Address of the controller's metrics.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9462")]
        at: SocketAddr,
        /// Print JSON instead of lines.
        #[arg(long)]
        json: bool,
    },
    /// Have a running controller read its file again, as SIGHUP does.
    Reload {
        /// Address of the controller's metrics.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9462")]
        at: SocketAddr,
    },
    /// Make the key of a new cluster, or that of a host.
    Key {
        /// The file to make.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// The host; without it, and without a pod, a new key for a cluster is made.
        #[arg(long, value_name = "NAME", requires = "config", group = "whose")]
        host: Option<String>,
        /// The pod of a hierarchy, for the key of its controllers.
        #[arg(long, value_name = "NAME", requires = "config", group = "whose")]
        pod: Option<String>,
        /// The cluster of the host or pod, whose key is the cluster's.
        #[arg(long, value_name = "FILE", requires = "whose")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct AgentArgs {
    /// The cluster, a TOML file that controllers and hosts share.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of this host in the file; the machine's name unless given.
    #[arg(long)]
    name: Option<String>,
    #[command(subcommand)]
    command: Option<AgentCommand>,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Have a running agent read its file again, as SIGHUP does.
    Reload {
        /// Address of the agent's metrics.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9463")]
        at: SocketAddr,
    },
    /// Show what a running agent does and counts.
    Status {
        /// Address of the agent's metrics.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9463")]
        at: SocketAddr,
        /// Print JSON instead of lines.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn controller(args: &ControllerArgs) -> Result<(), Failure> {
    match (&args.command, &args.config) {
        (Some(ControllerCommand::Status { at, json }), _) => {
            show::<ControllerSnapshot>("controller", *at, *json)
        }
        (Some(ControllerCommand::Reload { at }), _) => reload("controller", *at),
        (
            Some(ControllerCommand::Key {
                out,
                host,
                pod,
                config,
            }),
            _,
        ) => {
            let whose = host.as_deref().map(Whose::Host);
            let whose = whose.or(pod.as_deref().map(Whose::Pod));
            make_key(out, whose.zip(config.as_deref()))
        }
        (None, Some(path)) => run_controller(path, args.name.as_deref()),
        (None, None) => unreachable!("the command line asks for one of them"),
    }
}

pub(crate) fn agent(args: &AgentArgs) -> Result<(), Failure> {
    match (&args.command, &args.config) {
        (Some(AgentCommand::Status { at, json }), _) => show::<Snapshot>("agent", *at, *json),
        (Some(AgentCommand::Reload { at }), _) => reload("agent", *at),
        (None, Some(path)) if supervisor::is_worker() => run_agent(path, args.name.as_deref()),
        (None, Some(_)) => process::exit(supervisor::code(supervisor::supervise()?)),
        (None, None) => unreachable!("the command line asks for one of them"),
    }
}

fn run_controller(path: &Path, name: Option<&str>) -> Result<(), Failure> {
    let (cluster, key_file) = read(path).map_err(Failure::File)?;
    let place = match (name, &cluster.controllers[..]) {
        (Some(name), _) => cluster.controller(name),
        (None, [_]) => Ok(0),
        (None, _) => cluster.controller(""),
    };
    let place = place.map_err(|error| in_file(path, error))?;
    let plan = &cluster.controllers[place];
    let key = KeyFile::read(&key_file).and_then(|key| match &plan.pod {
        Some(pod) => key.pod(&key_file, pod),
        None => key.cluster(&key_file),
    });
    let key = key.map_err(|error| in_file(path, error))?;
    let daemon = ControllerDaemon::open(&cluster, place, &key, incarnation());
    let daemon = daemon.map_err(anyhow::Error::from)?;
    let control = Control::default();
    reload_on_request(&control, path, &cluster, Reader::Controller)?;
    service::serve_metrics(plan.metrics, &control)?;
    let stop = control.clone();
    interrupt::on_ctrl_c(move || stop.stop())?;
    output::note(format!(
        "controller {} of {} hosts at {}; Ctrl-C ends it",
        plan.name,
        cluster.domain_of_controller(place).size(),
        plan.address
    ));
    service::ready();
    let snapshot = daemon.run(&control, |change| {
        output::note(format!("{} {change}", plan.name));
    });
    output::print(&snapshot.to_string())?;
    Ok(())
}

fn run_agent(path: &Path, name: Option<&str>) -> Result<(), Failure> {
    let (cluster, key_file) = read(path).map_err(Failure::File)?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => machine_name()?,
    };
    let host = cluster.host(&name).map_err(|error| in_file(path, error))?;
    let plan = &cluster.hosts[host];
    if plan.gone {
        let gone = anyhow::anyhow!("in {}: host {name} is gone = true", path.display());
        return Err(Failure::File(gone));
    }
    // All but the devices, which are the machine's and not the file's.
    agent::config(&cluster, plan).map_err(|error| in_file(path, error))?;
    let keys = KeyFile::read(&key_file).and_then(|key| {
        let keys = key.host(&key_file, &name)?;
        match cluster.hierarchy {
            Some(_) => keys.with_pod(&key_file, &name),
            None => Ok(keys),
        }
    });
    let keys = keys.map_err(|error| in_file(path, error))?;
    let switch = agent::open(&cluster, host, &keys, incarnation()).map_err(anyhow::Error::from)?;
    let (events, happened) = channel();
    let control = Control::with_events(events);
    reload_on_request(&control, path, &cluster, Reader::Agent(host))?;
    service::serve_metrics(plan.metrics, &control)?;
    let stop = control.clone();
    interrupt::on_ctrl_c(move || stop.stop())?;
    thread::spawn(move || happened.iter().for_each(output::note));
    output::note(format!(
        "agent of {name}: {} devices behind {}; Ctrl-C ends it",
        plan.inside.len(),
        plan.nic
    ));
    service::ready();
    let report = switch.run(&control).map_err(anyhow::Error::from)?;
    output::print(&report.snapshot.to_string())?;
    Ok(())
}

/// Reads the file again at SIGHUP and when the command asks for it. What is wrong with it is said,
/// and the daemon goes on with the old one.
fn reload_on_request<S: Clone + Send + 'static>(
    control: &Control<S>,
    path: &Path,
    cluster: &Cluster,
    reader: Reader,
) -> anyhow::Result<()> {
    let (current, path) = (Mutex::new(cluster.clone()), path.to_owned());
    let inside = control.clone();
    control.on_reload(move || {
        let (new, _) = read(&path).map_err(|error| format!("{error:#}"))?;
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = current.changes(&new, reader);
        let changes = changes.map_err(|error| format!("in {}: {error}", path.display()))?;
        inside.change(new.clone());
        *current = new;
        Ok(changes.to_string())
    });
    // In this thread before there are others, which inherit it.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGHUP);
    signals.thread_block().context("cannot block SIGHUP")?;
    let control = control.clone();
    thread::spawn(move || {
        while signals.wait().is_ok() {
            match control.reload() {
                Ok(changes) => output::note(format!("the file was read again; {changes}")),
                Err(error) => {
                    output::note(format!("the file was read again and is refused: {error}"));
                }
            }
        }
    });
    Ok(())
}

fn reload(what: &str, at: SocketAddr) -> Result<(), Failure> {
    let answer = request_reload(at).with_context(|| {
        format!("no {what} answers at {at}; does its file say metrics = \"{at}\"?")
    })?;
    match answer {
        Ok(changes) => Ok(output::print(&format!("{changes}\n"))?),
        Err(refusal) => Err(Failure::File(anyhow::anyhow!(refusal))),
    }
}

fn machine_name() -> anyhow::Result<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.context("cannot read the machine's name; use --name")?;
    Ok(name.trim().to_owned())
}

/// The cluster of a file, and where this machine's key is.
fn read(path: &Path) -> anyhow::Result<(Cluster, PathBuf)> {
    let name = path.display();
    let text = read_file(path).with_context(|| format!("cannot read {name}"))?;
    let cluster = Cluster::parse(&text).with_context(|| format!("in {name}"))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let key = directory.join(&cluster.key_file);
    Ok((cluster, key))
}

fn in_file(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::File(anyhow::Error::from(error).context(format!("in {}", path.display())))
}

/// The owner of a key that is derived from the cluster's.
#[derive(Clone, Copy, Debug)]
enum Whose<'a> {
    Host(&'a str),
    Pod(&'a str),
}

fn make_key(out: &Path, whose: Option<(Whose<'_>, &Path)>) -> Result<(), Failure> {
    let key = match whose {
        None => KeyFile::random().context("cannot make a random key")?,
        Some((whose, path)) => {
            let (cluster, key_file) = read(path).map_err(Failure::File)?;
            let key = KeyFile::read(&key_file).and_then(|key| key.cluster(&key_file));
            let key = key.map_err(|error| in_file(path, error))?;
            let derived = match whose {
                Whose::Host(name) => {
                    let host = cluster.host(name);
                    host.map(|host| cluster.host_key_file(&key, host))
                }
                Whose::Pod(name) => cluster.pod_key_file(&key, name),
            };
            derived.map_err(|error| in_file(path, error))?
        }
    };
    Ok(key.write(out).map_err(anyhow::Error::from)?)
}

fn show<S: DeserializeOwned + Serialize + std::fmt::Display>(
    what: &str,
    at: SocketAddr,
    json: bool,
) -> Result<(), Failure> {
    let snapshot: S = fetch_status(at).with_context(|| {
        format!("no {what} answers at {at}; does its file say metrics = \"{at}\"?")
    })?;
    let text = if json {
        serde_json::to_string_pretty(&snapshot).context("cannot write JSON")? + "\n"
    } else {
        snapshot.to_string()
    };
    Ok(output::print(&text)?)
}
