//! Congestion controllers for the kernel: load, list, show, set and unload them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{Args, Subcommand};
use serde_json::json;
use shallows_bpf::{Controller, Parameters, Socket, TcpState};
use shallows_core::units::Time;

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum CcCommand {
    /// Register a controller with the kernel, until `cc unload` or a reboot.
    ///
    /// Sockets, routes and network namespaces can then choose it by its kernel name.
    Load {
        /// dctcp, ear, ecn-star or delay-dctcp.
        controller: Controller,
        /// Parameters, such as threshold=144us.
        #[arg(value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// List the controllers, their parameters and how many sockets use them.
    List(FormatArgs),
    /// Show the state of every socket that runs a controller, and the controllers' counters.
    Show {
        /// Only this one.
        controller: Option<Controller>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Change parameters of a loaded controller, for its running connections too.
    Set {
        /// Controller to load.
        controller: Controller,
        /// Parameters, such as threshold=144us.
        #[arg(value_name = "KEY=VALUE", required = true)]
        settings: Vec<String>,
    },
    /// Remove controllers. Connections that run one keep it until they end.
    Unload {
        /// Controllers to remove.
        #[arg(required = true)]
        controllers: Vec<Controller>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn cc(command: &CcCommand) -> Result<(), Failure> {
    let text = match command {
        CcCommand::Load {
            controller,
            settings,
        } => load(*controller, settings),
        CcCommand::List(format) => list(format),
        CcCommand::Show { controller, format } => show(*controller, format),
        CcCommand::Set {
            controller,
            settings,
        } => set(*controller, settings),
        CcCommand::Unload { controllers } => unload(controllers),
    }?;
    Ok(output::print(&text)?)
}

fn load(controller: Controller, settings: &[String]) -> anyhow::Result<String> {
    let parameters = with(Parameters::default(), controller, settings);
    shallows_bpf::load(controller, &parameters)?;
    Ok(format!(
        "{controller} is loaded as {name}\n\
         a namespace's default: sysctl -w net.ipv4.tcp_congestion_control={name}\n\
         a route's:             ip route replace ... congctl {name}\n\
         a socket's:            setsockopt TCP_CONGESTION, before it connects or listens\n\
         both ends need it\n",
        name = controller.kernel_name(),
    ))
}

fn set(controller: Controller, settings: &[String]) -> anyhow::Result<String> {
    let parameters = with(shallows_bpf::parameters(controller)?, controller, settings);
    shallows_bpf::set_parameters(controller, &parameters)?;
    Ok(format!(
        "{controller}: {}\n",
        settings_of(controller, &parameters)
    ))
}

fn with(mut parameters: Parameters, controller: Controller, settings: &[String]) -> Parameters {
    for setting in settings {
        if let Err(problem) = parameters.set(controller, setting) {
            // A wrong command line, like those that the parser finds itself.
            clap::Error::raw(ErrorKind::ValueValidation, format!("{problem}\n")).exit();
        }
    }
    parameters
}

fn unload(controllers: &[Controller]) -> anyhow::Result<String> {
    let mut text = String::new();
    for &controller in controllers {
        shallows_bpf::unload(controller)?;
        writeln!(text, "{controller} is unloaded")?;
    }
    let sockets = shallows_bpf::sockets()?;
    for &controller in controllers {
        let left = sockets
            .iter()
            .filter(|socket| socket.controller == controller)
            .count();
        if left > 0 {
            writeln!(
                text,
                "{left} sockets run {controller} until they are closed"
            )?;
        }
    }
    Ok(text)
}

fn list(format: &FormatArgs) -> anyhow::Result<String> {
    let sockets = shallows_bpf::sockets()?;
    let mut rows = vec![
        [
            "controller",
            "kernel name",
            "loaded",
            "sockets",
            "parameters",
        ]
        .map(ToOwned::to_owned)
        .to_vec(),
    ];
    let mut objects = Vec::new();
    for controller in Controller::ALL {
        let used = sockets
            .iter()
            .filter(|socket| socket.controller == controller)
            .count();
        let parameters = if shallows_bpf::is_loaded(controller)? {
            Some(shallows_bpf::parameters(controller)?)
        } else {
            None
        };
        rows.push(vec![
            controller.name().to_owned(),
            controller.kernel_name().to_owned(),
            if parameters.is_some() { "yes" } else { "no" }.to_owned(),
            used.to_string(),
            parameters.map_or_else(String::new, |parameters| {
                settings_of(controller, &parameters)
            }),
        ]);
        objects.push(json!({
            "controller": controller,
            "kernel-name": controller.kernel_name(),
            "loaded": parameters.is_some(),
            "sockets": used,
            "parameters": parameters.map(|parameters| named(parameters.of(controller))),
        }));
    }
    if format.json {
        return json_text(&objects);
    }
    Ok(table(&rows))
}

fn show(only: Option<Controller>, format: &FormatArgs) -> anyhow::Result<String> {
    let wanted = |controller: Controller| only.is_none_or(|only| only == controller);
    let mut sockets = shallows_bpf::sockets()?;
    sockets.retain(|socket| wanted(socket.controller));
    let mut counters = Vec::new();
    for controller in Controller::ALL
        .into_iter()
        .filter(|&controller| wanted(controller))
    {
        if shallows_bpf::is_loaded(controller)? {
            counters.push((controller, shallows_bpf::counters(controller)?));
        }
    }
    if format.json {
        let counters: BTreeMap<_, _> = counters
            .iter()
            .map(|(controller, of)| (controller.name(), of))
            .collect();
        return json_text(&json!({
            "sockets": sockets,
            "counters": counters,
        }));
    }
    let mut text = sockets_table(&sockets);
    for (controller, of) in counters {
        write!(text, "\n{controller}:")?;
        for (name, count) in of.named() {
            write!(text, " {name} {count},")?;
        }
        text.pop();
        text.push('\n');
    }
    Ok(text)
}

fn sockets_table(sockets: &[Socket]) -> String {
    let header = [
        "controller",
        "namespace",
        "local",
        "remote",
        "cwnd",
        "ssthresh",
        "alpha",
        "srtt",
        "base",
        "queueing",
        "delivered",
        "echoed",
        "ce received",
        "retransmits",
    ];
    let mut rows = vec![header.map(ToOwned::to_owned).to_vec()];
    for socket in sockets {
        let mut row = vec![
            socket.controller.to_string(),
            socket.namespace.to_string(),
            socket.local.to_string(),
        ];
        if socket.state == TcpState::Listen {
            row.push("(listens)".to_owned());
        } else {
            row.extend([
                socket.remote.to_string(),
                socket.cwnd.to_string(),
                or_dash(socket.ssthresh.map(|ssthresh| ssthresh.to_string())),
                or_dash(socket.alpha.map(|alpha| format!("{alpha:.4}"))),
                us(Some(socket.srtt)),
                us(socket.base_rtt),
                us(socket.queueing),
                socket.delivered.to_string(),
                socket.delivered_ce.to_string(),
                socket.received_ce.to_string(),
                socket.retransmits.to_string(),
            ]);
        }
        rows.push(row);
    }
    table(&rows)
}

fn us(time: Option<Time>) -> String {
    or_dash(time.map(|time| format!("{:.0}us", time.as_secs_f64() * 1e6)))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn settings_of(controller: Controller, parameters: &Parameters) -> String {
    let settings = parameters.of(controller).into_iter();
    let settings: Vec<_> = settings
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    settings.join(" ")
}

fn named(settings: Vec<(&'static str, String)>) -> BTreeMap<&'static str, String> {
    settings.into_iter().collect()
}

fn json_text(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    Ok(text + "\n")
}

/// Columns as wide as their widest cell.
fn table(rows: &[Vec<String>]) -> String {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
