//! The balance of packets and bytes at the end of a run: per flow, port, switch and host.

use shallows_core::port::DropReason;
use shallows_core::tally::Tally;
use shallows_model::ids::ids;
use shallows_model::topology::Node;
use shallows_model::workload::FlowSpec;
use shallows_model::{FlowId, HostId, IdVec, LinkId};

use crate::world::Run;

/// What one port did with all that it was handed.
struct Account {
    offered: Tally,
    sent: Tally,
}

/// Checks the books of a run in which nothing can happen any more.
pub(crate) fn check(run: &Run) {
    for (FlowId(number), (flow, outcome)) in ids().zip(run.flows()) {
        assert!(outcome.fct.is_some(), "flow {number} never ends: {flow:?}");
        if run.datagrams(FlowId(number)).is_none() {
            let gone = outcome.received + outcome.drops;
            // A SYN that is dropped has no data.
            let exact = !run.transport.handshake || outcome.drops == 0;
            let balanced = outcome.sent == gone || (!exact && outcome.sent <= gone);
            assert!(balanced, "segments of flow {number}: {outcome:?}");
        }
    }
    let links = run.fabric.links().ids();
    let accounts: IdVec<LinkId, _> = links.map(|link| account(run, link)).collect();
    let hops: u64 = accounts.iter().map(|account| account.sent.packets).sum();
    assert_eq!(hops, run.progress().packet_hops, "packets on links");
    let arrived: u64 = run
        .flows()
        .map(|(_, outcome)| u64::from(outcome.marks))
        .sum();
    assert!(arrived <= marks(run), "more marks arrived than were made");
    for reason in DropReason::ALL {
        let of_flows: u64 = run
            .drops()
            .filter(|drop| drop.1 == reason)
            .map(|drop| u64::from(drop.2))
            .sum();
        let of_ports = drops(run, reason);
        assert!(
            of_flows <= of_ports,
            "{of_flows} of {of_ports} drops: {reason:?}"
        );
    }
    for switch in 0..run.fabric.switches() {
        check_switch(run, &accounts, switch);
    }
    for host in run.fabric.host_ids() {
        check_host(run, &accounts, host);
    }
}

/// A port sends what it accepts, unless it gives it up for something more urgent.
fn account(run: &Run, link: LinkId) -> Account {
    let port = run.port(link);
    assert_eq!((port.packets(), port.bytes().get()), (0, 0), "{link:?}");
    let queues = 0..port.queue_count();
    let queued: Tally = queues.clone().map(|queue| port.queued(queue)).sum();
    let lost: Tally = queues
        .clone()
        .map(|queue| port.counters(queue).all_drops())
        .sum();
    let evicted: Tally = queues
        .map(|queue| port.counters(queue).drops(DropReason::Evicted))
        .sum();
    Account {
        offered: minus(plus(queued, lost), evicted),
        sent: minus(queued, evicted),
    }
}

/// Packets that all ports marked.
fn marks(run: &Run) -> u64 {
    run.fabric
        .links()
        .ids()
        .map(|link| {
            let port = run.port(link);
            let queues = 0..port.queue_count();
            queues.map(|q| port.counters(q).all_marks()).sum::<u64>()
        })
        .sum()
}

/// Packets that all ports dropped for a reason, ACKs too.
fn drops(run: &Run, reason: DropReason) -> u64 {
    run.fabric
        .links()
        .ids()
        .map(|link| {
            let port = run.port(link);
            let queues = 0..port.queue_count();
            queues
                .map(|q| port.counters(q).drops(reason).packets)
                .sum::<u64>()
        })
        .sum()
}

/// What comes into a switch is handed to one of its ports.
fn check_switch(run: &Run, accounts: &IdVec<LinkId, Account>, switch: u32) {
    let (mut arrived, mut offered) = (Tally::default(), Tally::default());
    for (link, account) in run.fabric.links().iter().zip(accounts) {
        if link.to == Node::Switch(switch) {
            arrived = plus(arrived, account.sent);
        }
        if link.from == Node::Switch(switch) {
            offered = plus(offered, account.offered);
        }
    }
    assert_eq!(arrived, offered, "switch {switch}");
}

/// A host sends each byte of its flows once and as often again as segments were retransmitted;
/// it receives each byte of the flows to it at least once, and no more than was sent.
fn check_host(run: &Run, accounts: &IdVec<LinkId, Account>, host: HostId) {
    let header = u64::from(run.transport.header);
    let segment = u64::from(run.transport.segment);
    let payload = |tally: Tally| tally.bytes - header * tally.packets;
    let nics = || run.fabric.nics(host);
    let sent: u64 = nics().map(|nic| payload(accounts[nic.up].offered)).sum();
    let received: u64 = nics().map(|nic| payload(accounts[nic.down].sent)).sum();
    let (mut once, mut again, mut due, mut most) = (0, 0, 0, 0);
    for (flow, outcome) in run.flows() {
        if flow.bytes == FlowSpec::ENDLESS {
            // As much as there was time for.
            if flow.src == host || flow.dst == host {
                return;
            }
            continue;
        }
        let retransmits = u64::from(outcome.retransmits);
        if flow.src == host {
            once += flow.bytes;
            again += retransmits;
        }
        if flow.dst == host {
            due += flow.bytes;
            most += flow.bytes + retransmits * segment;
        }
    }
    let possible = once + again..=once + again * segment;
    assert!(
        possible.contains(&sent),
        "{host:?} sent {sent} bytes, not {possible:?}"
    );
    assert!(
        (due..=most).contains(&received),
        "{host:?} received {received} bytes, not {due} to {most}"
    );
}

fn plus(a: Tally, b: Tally) -> Tally {
    [a, b].into_iter().sum()
}

fn minus(a: Tally, b: Tally) -> Tally {
    Tally {
        packets: a.packets - b.packets,
        bytes: a.bytes - b.bytes,
    }
}
