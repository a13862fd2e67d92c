//! The explanation as tables for a terminal.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::{Drop, Explanation, FlowLife, Group, HotPort, LISTED, OTHER_PARTS, Observed, PortUse};
use crate::table::{aligned, short};

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let focus = self.observed.as_ref();
        if let Some(life) = focus.and_then(|observed| observed.flow.as_ref()) {
            return write_life(f, life, self.observed.as_ref());
        }
        if let Some(port) = focus.and_then(|observed| observed.port.as_ref()) {
            return write_port(f, port, self);
        }
        let all = self.all_ports;
        writeln!(
            f,
            "Hottest ports of {all} (drops, then marks, pauses, peak queue)"
        )?;
        write!(f, "{}", ports(&self.ports))?;
        if let Some(observed) = &self.observed {
            writeln!(f)?;
            write_parts(f, observed)?;
        }
        self.write_timeouts(f)?;
        if let Some(observed) = &self.observed {
            write_drops(f, observed)?;
            if !observed.same_flows {
                writeln!(
                    f,
                    "\nnote: this program gives other completion times than the recorded run; parts \
                     and drops are those of the new simulation"
                )?;
            }
        }
        if let Some(reason) = &self.not_observed {
            writeln!(f, "\nnote: {reason}")?;
        }
        Ok(())
    }
}

impl Explanation {
    fn write_timeouts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.timeouts.is_empty() {
            return writeln!(f, "\nNo flow had a timeout.");
        }
        let count = self.flows_with_timeouts;
        writeln!(f, "\nFlows with timeouts: {count}")?;
        let mut rows = vec![heads(&[
            "flow", "from", "to", "service", "bytes", "FCT us", "timeouts", "drops", "lost at",
        ])];
        for flow in &self.timeouts {
            let lost = self
                .observed
                .as_ref()
                .map(|of| lost_at(of, flow.flow as u32));
            rows.push(vec![
                flow.flow.to_string(),
                format!("h{}", flow.hosts[0]),
                format!("h{}", flow.hosts[1]),
                flow.service.to_string(),
                flow.bytes.to_string(),
                flow.fct_us.map_or_else(|| "-".to_owned(), short),
                flow.timeouts.to_string(),
                flow.drops
                    .map_or_else(|| "-".to_owned(), |drops| drops.to_string()),
                lost.unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        write!(f, "{}", aligned(&rows, 1))
    }
}

fn heads(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn ports(ports: &[HotPort]) -> String {
    let mut rows = vec![heads(&[
        "port",
        "MB",
        "utilisation",
        "peak KB",
        "marks",
        "drops",
        "pauses",
    ])];
    for port in ports {
        rows.push(vec![
            port.port.clone(),
            short(port.bytes as f64 / 1e6),
            format!("{:.1}%", 100.0 * port.utilisation),
            short(port.peak_bytes as f64 / 1e3),
            port.marks.to_string(),
            port.drops.to_string(),
            port.pauses.to_string(),
        ]);
    }
    aligned(&rows, 1)
}

/// Ports that dropped packets of a flow, most first.
fn lost_at(observed: &Observed, flow: u32) -> String {
    let drops = observed.drops.iter().filter(|drop| drop.flow == flow);
    let mut ports: BTreeMap<&str, u32> = BTreeMap::new();
    for drop in drops {
        *ports.entry(&drop.port).or_default() += 1;
    }
    let mut ports: Vec<_> = ports.into_iter().collect();
    ports.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let shown: Vec<_> = ports
        .iter()
        .take(2)
        .map(|(port, count)| format!("{port} x{count}"))
        .collect();
    if shown.is_empty() {
        return "no drop of its data".to_owned();
    }
    shown.join(", ")
}

/// Parts that are zero in every group are left out.
fn write_parts(f: &mut Formatter<'_>, observed: &Observed) -> fmt::Result {
    writeln!(
        f,
        "Mean completion time by where it went, in us (queues by tier; data and ACKs of the critical \
         path)"
    )?;
    let used: Vec<usize> = (0..observed.parts.len())
        .filter(|&part| observed.groups.iter().any(|of| of.parts_us[part] > 0.0))
        .collect();
    let mut head = heads(&["flows", "count", "FCT"]);
    head.extend(used.iter().map(|&part| observed.parts[part].clone()));
    let row = |of: &Group| {
        let mut row = vec![of.name.clone(), of.flows.to_string(), short(of.mean_fct_us)];
        row.extend(used.iter().map(|&part| short(of.parts_us[part])));
        row
    };
    let mut rows = vec![head];
    rows.extend(observed.groups.iter().map(row));
    write!(f, "{}", aligned(&rows, 1))
}

fn write_drops(f: &mut Formatter<'_>, observed: &Observed) -> fmt::Result {
    let all = observed.drops.len() as u64 + observed.drops_left_out;
    if all == 0 {
        return writeln!(f, "\nNo data packet was dropped.");
    }
    writeln!(
        f,
        "\nDrops of data packets: {all}; the first, with the flows queued at the port:"
    )?;
    write!(f, "{}", drops(observed.drops.iter().take(LISTED)))
}

fn drops<'a>(drops: impl Iterator<Item = &'a Drop>) -> String {
    let mut rows = vec![heads(&[
        "time us",
        "flow",
        "port",
        "reason",
        "queued packets",
    ])];
    for drop in drops {
        let mut flows: Vec<_> = drop.queued.iter().collect();
        flows.sort_by_key(|&(flow, packets)| (std::cmp::Reverse(*packets), *flow));
        let total: u32 = drop.queued.values().sum();
        let shown = flows.iter().take(3);
        let shown: Vec<_> = shown
            .map(|(flow, packets)| format!("flow {flow} x{packets}"))
            .collect();
        rows.push(vec![
            format!("{:.1}", drop.time_us),
            drop.flow.to_string(),
            drop.port.clone(),
            drop.reason.clone(),
            format!("{total}: {}", shown.join(", ")),
        ]);
    }
    aligned(&rows, 5)
}

fn write_life(f: &mut Formatter<'_>, life: &FlowLife, observed: Option<&Observed>) -> fmt::Result {
    writeln!(f, "Flow {}", life.flow)?;
    writeln!(f, "path: {}", life.path.join(" "))?;
    if let Some(observed) = observed
        && let Some(parts) = &observed.flow_parts_us
    {
        let total: f64 = parts.iter().sum();
        writeln!(f, "\n{} us from its start to its completion:", short(total))?;
        let used = observed.parts.iter().zip(parts).enumerate();
        let mut rows = Vec::new();
        for (part, (name, us)) in used.filter(|(_, (_, us))| **us > 0.0) {
            let name = match part {
                part if part < OTHER_PARTS => name.clone(),
                _ => format!("queues {name}"),
            };
            rows.push(vec![
                name,
                short(*us),
                format!("{:.1}%", 100.0 * us / total),
            ]);
        }
        write!(f, "{}", aligned(&rows, 1))?;
    }
    if !life.marks.is_empty() {
        let marks = life.marks.iter();
        let marks: Vec<_> = marks
            .map(|(port, count)| format!("{port} x{count}"))
            .collect();
        writeln!(f, "\nmarked at: {}", marks.join(", "))?;
    }
    if !life.events.is_empty() {
        writeln!(f, "\nevents")?;
        for event in &life.events {
            writeln!(f, "{:>12.1} us  {}", event.time_us, event.event)?;
        }
    }
    if !life.windows.is_empty() {
        writeln!(f, "\ncongestion window")?;
        let most = life
            .windows
            .iter()
            .map(|of| of.cwnd_bytes)
            .fold(1.0, f64::max);
        for at in &life.windows {
            let bar = "#".repeat((40.0 * at.cwnd_bytes / most).round() as usize);
            let kb = at.cwnd_bytes / 1e3;
            writeln!(f, "{:>12.1} us  {kb:>9.1} KB  {bar}", at.time_us)?;
        }
    }
    Ok(())
}

fn write_port(f: &mut Formatter<'_>, port: &PortUse, answer: &Explanation) -> fmt::Result {
    writeln!(
        f,
        "Port {}: {} packets, wait {} us in the mean and {} us at most\n",
        port.port,
        port.packets,
        short(port.mean_wait_us),
        short(port.longest_wait_us)
    )?;
    if let Some(hot) = answer.ports.iter().find(|of| of.port == port.port) {
        writeln!(f, "{}", ports(std::slice::from_ref(hot)))?;
    }
    let mut rows = vec![heads(&["service", "packets", "MB", "mean wait us"])];
    for (service, of) in &port.services {
        rows.push(vec![
            service.to_string(),
            of.packets.to_string(),
            short(of.bytes as f64 / 1e6),
            short(of.mean_wait_us),
        ]);
    }
    write!(f, "{}", aligned(&rows, 1))?;
    let mut rows = vec![heads(&["flow", "MB"])];
    for of in &port.flows {
        rows.push(vec![of.flow.to_string(), short(of.bytes as f64 / 1e6)]);
    }
    write!(f, "\n{}", aligned(&rows, 1))?;
    let Some(observed) = &answer.observed else {
        return Ok(());
    };
    let here: Vec<_> = observed
        .drops
        .iter()
        .filter(|drop| drop.port == port.port)
        .collect();
    if here.is_empty() {
        return writeln!(f, "\nIt dropped no data packet.");
    }
    writeln!(f, "\nDrops of data packets: {}", here.len())?;
    write!(f, "{}", drops(here.into_iter().take(LISTED)))
}
