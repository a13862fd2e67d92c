//! The ports of a fabric as results have them, and the bytes that they send.

use shallows_core::packet::Packet;
use shallows_core::port::{Accounting, DropReason, EgressPort, PortConfig};
use shallows_model::topology::{Fabric, Node};
use shallows_results::ports::{LinkRole, PortRecord};

use crate::scenario::link_name;

/// The ports of a fabric, in the order of their links.
pub(crate) fn ports(fabric: &Fabric) -> Vec<PortRecord> {
    let links = fabric.links().iter();
    links
        .map(|link| PortRecord {
            name: link_name(fabric, link),
            role: match (link.from, link.to) {
                (Node::Host(_), _) => LinkRole::HostUp,
                (_, Node::Host(_)) => LinkRole::HostDown,
                (Node::Switch(_), Node::Switch(_)) => LinkRole::Core,
            },
            rate: link.rate,
            counters: None,
        })
        .collect()
}

/// Bytes that a queue has put on the wire, but for the padding of short frames.
pub(crate) fn sent_bytes<P: Packet>(
    port: &EgressPort<P>,
    config: &PortConfig,
    queue: usize,
) -> u64 {
    let queued = port.queued(queue);
    let evicted = port.counters(queue).drops(DropReason::Evicted);
    let packets = queued.packets - evicted.packets - u64::from(port.queue_packets(queue));
    let bytes = queued.bytes - evicted.bytes - port.queue_bytes(queue).get();
    bytes + packets * u64::from(overhead(config))
}

/// Bytes of a packet on the wire that its port does not count, but for padding.
pub(crate) fn overhead(config: &PortConfig) -> u32 {
    match config.accounting {
        Accounting::Wire => 0,
        Accounting::Packet => config.framing.header + config.framing.gap,
    }
}
