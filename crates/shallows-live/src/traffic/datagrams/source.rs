//! The sending ends of UDP flows.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use shallows_core::host::udp::{Datagram, MAX_MESSAGE, Sender, UdpConfig};
use shallows_core::random::Coin;
use shallows_core::units::Time;
use shallows_model::workload::FlowSpec;
use shallows_model::{FlowId, Id as _};

use super::super::{TrafficError, dscp, give_up_root};
use super::{HEADER, LATE, STREAM_PORT, Stamp, StreamTotals, open};
use crate::lab::{self, Lab};
use crate::since;
use crate::switch::Departures;

/// Keeps the streams of senders apart from those of the switch's ports.
const JITTER: u64 = 0x6A69_7474_6572;

/// Interval at which a sender without room asks for some.
const ROOM: Time = Time::from_us(200);

/// The longest time between two looks at whether to go on.
const ATTENTION: Time = Time::from_ms(50);

/// Messages of one flow before it is the next one's turn.
const MESSAGES_AT_A_TURN: usize = 16;

/// All sending ends, on one thread.
#[derive(Debug)]
pub(super) struct Sources {
    sources: Vec<Source>,
    pairs: Vec<Pair>,
    departures: Arc<Departures>,
}

/// The sending end of a flow.
#[derive(Debug)]
struct Source {
    flow: u32,
    socket: UdpSocket,
    sender: Sender,
    stop: Option<Time>,
    /// Deliberate delay of messages.
    jitter: Time,
    pair: usize,
    totals: StreamTotals,
}

/// Packets from one host to another that have not left the first, in the order of their sending.
#[derive(Debug)]
struct Pair {
    from: usize,
    to: usize,
    /// Bytes that had left when the senders were last told.
    known: u64,
    /// The source and size of each packet.
    held: VecDeque<(usize, u32)>,
}

impl Pair {
    /// Takes packets off the list by what has left in all; gives their sources and sizes. A packet
    /// leaves the list with its last byte.
    fn settle(&mut self, left: u64) -> impl Iterator<Item = (usize, u32)> {
        std::iter::from_fn(move || {
            let Some(&(_, size)) = self.held.front() else {
                self.known = left;
                return None;
            };
            if left - self.known < u64::from(size) {
                return None;
            }
            self.known += u64::from(size);
            self.held.pop_front()
        })
    }
}

impl Sources {
    pub(super) fn new(departures: &Arc<Departures>) -> Self {
        Self {
            sources: Vec::new(),
            pairs: Vec::new(),
            departures: Arc::clone(departures),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Opens the sending end of a flow, which has a start.
    pub(super) fn add(
        &mut self,
        lab: &Lab,
        FlowId(number): FlowId,
        (flow, stop): (&FlowSpec, Option<Time>),
        stream: &UdpConfig,
        seed: u64,
    ) -> Result<(), TrafficError> {
        let socket = open(lab, flow.src.index(), 0, dscp(flow.service))?;
        let to = lab::address(flow.dst.index());
        let connected = socket.connect((to, STREAM_PORT));
        connected.map_err(|error| TrafficError::new(format!("UDP to {to}"), error))?;
        let ends = (flow.src.index(), flow.dst.index());
        let known = self.pairs.iter().position(|of| (of.from, of.to) == ends);
        let pair = known.unwrap_or(self.pairs.len());
        if known.is_none() {
            self.pairs.push(Pair {
                from: ends.0,
                to: ends.1,
                known: 0,
                held: VecDeque::new(),
            });
        }
        let coin = Coin::new(seed ^ JITTER, number.into());
        let start = flow.start_time().unwrap_or_default();
        self.sources.push(Source {
            flow: number,
            socket,
            sender: Sender::new(stream, start).with_jitter(stream, coin),
            stop,
            jitter: stream.jitter.unwrap_or_default(),
            pair,
            totals: StreamTotals::default(),
        });
        Ok(())
    }

    /// Sends until `over` says so.
    pub(super) fn run(&mut self, epoch: Instant, over: impl Fn() -> bool) -> StreamTotals {
        give_up_root();
        let mut message = vec![0x5a; MAX_MESSAGE as usize];
        while !over() {
            let mut next = since(epoch) + ATTENTION;
            for number in 0..self.sources.len() {
                next = next.min(self.turn(number, epoch, &mut message));
            }
            let left = next.saturating_sub(since(epoch));
            thread::sleep(left.to_duration());
        }
        let each = self.sources.iter().map(Source::totals);
        each.fold(StreamTotals::default(), StreamTotals::plus)
    }

    /// Sends what a flow has to send now; when to ask it again.
    fn turn(&mut self, number: usize, epoch: Instant, message: &mut [u8]) -> Time {
        let now = since(epoch);
        let source = &mut self.sources[number];
        if source.stop.is_some_and(|stop| stop <= now) {
            source.sender.stop();
        }
        let of_pair = source.pair;
        for _ in 0..MESSAGES_AT_A_TURN {
            let pair = &mut self.pairs[of_pair];
            let left = self.departures.bytes(pair.from, pair.to);
            for (source, size) in pair.settle(left) {
                self.sources[source].sender.departs(now, size);
            }
            let source = &mut self.sources[number];
            let now = since(epoch);
            let Some(first) = source.sender.poll_packet(now) else {
                return source.wake(now);
            };
            let held = source.send(first, now, message);
            pair.held.extend(held.map(|size| (number, size)));
        }
        since(epoch)
    }
}

impl Source {
    /// Sends a message; gives the sizes of the packets that the host now holds.
    fn send(
        &mut self,
        first: Datagram,
        now: Time,
        message: &mut [u8],
    ) -> impl Iterator<Item = u32> + use<> {
        let (mut length, mut last) = (first.len, first);
        let mut sizes = vec![first.size];
        while !last.is_last()
            && let Some(next) = self.sender.poll_packet(now)
        {
            length += next.len;
            sizes.push(next.size);
            last = next;
        }
        let due = first.sent_at + self.jitter;
        let late = now.saturating_sub(due);
        self.totals.late += u64::from(late > LATE);
        self.totals.latest_ns = self.totals.latest_ns.max(late.ps() / 1_000);
        let stamp = Stamp {
            flow: self.flow,
            message: first.message,
            sent_ns: now.ps() / 1_000,
        };
        if let Some(header) = message.first_chunk_mut::<HEADER>() {
            stamp.write(header);
        }
        if self.socket.send(&message[..length as usize]).is_err() {
            // ENOBUFS or EAGAIN: it is lost in the host, as a full NIC would lose it.
            self.totals.not_taken += 1;
            for size in sizes.drain(..) {
                self.sender.departs(now, size);
            }
        }
        sizes.into_iter()
    }

    /// Time at which there may be something to send.
    fn wake(&self, now: Time) -> Time {
        match self.sender.deadline() {
            _ if self.sender.is_stopped() => Time::MAX,
            Some(at) => at.max(now),
            None => now + ROOM,
        }
    }

    fn totals(&self) -> StreamTotals {
        let stats = self.sender.stats();
        StreamTotals {
            sent: stats.messages,
            refused: stats.refused,
            ..self.totals
        }
    }
}

impl StreamTotals {
    /// Sum of two senders' counters.
    fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            refused: self.refused + other.refused,
            not_taken: self.not_taken + other.not_taken,
            late: self.late + other.late,
            latest_ns: self.latest_ns.max(other.latest_ns),
            received: self.received + other.received,
            socket_drops: self.socket_drops + other.socket_drops,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two flows of one pair: 1500, 1500 and 500 bytes are held.
    #[test]
    fn packets_leave_in_their_order_and_with_their_last_byte() {
        let mut pair = Pair {
            from: 0,
            to: 1,
            known: 0,
            held: VecDeque::from([(4, 1500), (5, 1500), (4, 500)]),
        };
        let left = |pair: &mut Pair, bytes| pair.settle(bytes).collect::<Vec<_>>();
        assert_eq!(left(&mut pair, 1499), []);
        assert_eq!(left(&mut pair, 1500), [(4, 1500)]);
        assert_eq!(left(&mut pair, 3400), [(5, 1500)]);
        assert_eq!(left(&mut pair, 3500), [(4, 500)]);
        // What nobody sent is nobody's.
        assert_eq!(left(&mut pair, 4000), []);
        pair.held.push_back((5, 100));
        assert_eq!(left(&mut pair, 4000), []);
        assert_eq!(left(&mut pair, 4100), [(5, 100)]);
    }
}
