use std::collections::VecDeque;

use super::config::{Cut, Pattern, UdpConfig};
use super::{Datagram, IP_HEADER, UDP_HEADER};
use crate::random::Coin;
use crate::tally::Tally;
use crate::units::{Bytes, Time, TransmissionClock};

/// Sends messages, and never hears of their fate.
#[derive(Clone, Debug)]
pub struct Sender {
    pace: Pace,
    cut: Cut,
    /// The next fragment of the current message; as many as there are when it is done.
    fragment: u16,
    ect: bool,
    stopped: bool,
    /// Time at which the current message was sent.
    sent_at: Time,
    /// Bytes given to the driver that had not left the host at the last poll.
    in_host: u64,
    /// Times at which packets leave the host, and their sizes.
    departures: VecDeque<(Time, u32)>,
    send_buffer: u64,
    jitter: Option<Jitter>,
    stats: SenderStats,
}

/// Rule for the times at which messages are sent.
#[derive(Clone, Debug)]
enum Pace {
    /// Room in the send buffer, from a time on.
    Room { from: Time },
    /// A clock: the n-th message begins exactly when all before it have been sent at the rate.
    Rate {
        next: Time,
        clock: TransmissionClock,
        size: Bytes,
    },
    /// A period.
    Period { next: Time, interval: Time },
    /// A period of bursts, and room within a burst.
    Burst {
        next: Time,
        interval: Time,
        messages: u64,
        /// Messages of the burst under way that are still to be sent.
        left: u64,
    },
}

/// Random delays of messages.
#[derive(Clone, Debug)]
struct Jitter {
    limit: Time,
    coin: Coin,
    /// Departure time of the message that is due or has room.
    until: Option<Time>,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Messages sent.
    pub messages: u64,
    /// Messages that were due and found the send buffer full: the application lost them before the
    /// network saw them, and they have no number.
    pub refused: u64,
    /// Packets, with their headers.
    pub datagrams: Tally,
}

impl Sender {
    /// A sender whose first message is due at `start`.
    pub fn new(config: &UdpConfig, start: Time) -> Self {
        let pace = match config.send {
            Pattern::Constant { rate, size } => Pace::Rate {
                next: start,
                clock: TransmissionClock::new(rate),
                size,
            },
            Pattern::Message {
                interval: Some(interval),
                ..
            } => Pace::Period {
                next: start,
                interval,
            },
            Pattern::Burst {
                bytes,
                size,
                interval,
            } => Pace::Burst {
                next: start,
                interval,
                messages: bytes.get().div_ceil(size.get().max(1)),
                left: 0,
            },
            Pattern::Saturating { .. } | Pattern::Message { .. } => Pace::Room { from: start },
        };
        let cut = config.cut();
        Self {
            pace,
            cut,
            fragment: cut.fragments,
            ect: config.ect,
            stopped: false,
            sent_at: start,
            in_host: 0,
            departures: VecDeque::new(),
            send_buffer: config.send_buffer.get(),
            jitter: None,
            stats: SenderStats::default(),
        }
    }

    /// With the jitter of its configuration, from the stream of `coin`.
    #[must_use]
    pub fn with_jitter(mut self, config: &UdpConfig, coin: Coin) -> Self {
        self.jitter = config.jitter.map(|limit| Jitter {
            limit,
            coin,
            until: None,
        });
        self
    }

    /// The next packet to hand to the NIC. All fragments of a message come at once.
    #[inline]
    pub fn poll_packet(&mut self, now: Time) -> Option<Datagram> {
        self.settle(now);
        if self.fragment == self.cut.fragments {
            self.begin_message(now)?;
        }
        let datagram = self.datagram();
        self.fragment += 1;
        self.in_host += u64::from(datagram.size);
        self.stats.datagrams.count(datagram.size);
        Some(datagram)
    }

    /// Time at which there may be a packet to [poll](Self::poll_packet): a message is due, or a
    /// departure makes room for one. `None` if the sender was stopped, or waits for room and no
    /// departure is known.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        if self.stopped {
            return None;
        }
        let room = || self.departures.front().map(|&(at, _)| at);
        self.due().or_else(room)
    }

    /// Time at which the next message is due, unless it waits for room.
    #[inline]
    fn due(&self) -> Option<Time> {
        let late = self.jitter.as_ref().and_then(|jitter| jitter.until);
        match self.pace {
            _ if late.is_some() => late,
            Pace::Room { from } => (self.in_host < self.send_buffer).then_some(from),
            Pace::Rate { next, .. }
            | Pace::Period { next, .. }
            | Pace::Burst { next, left: 0, .. } => Some(next),
            Pace::Burst { .. } => (self.in_host < self.send_buffer).then_some(Time::ZERO),
        }
    }

    /// A packet of `size` bytes leaves the host at `at`, which may be to come, or was dropped in it.
    /// Packets leave in order.
    #[inline]
    pub fn departs(&mut self, at: Time, size: u32) {
        let last = self.departures.back().map_or(Time::ZERO, |&(at, _)| at);
        self.departures.push_back((at.max(last), size));
    }

    /// Makes room of the packets that have left the host by now.
    fn settle(&mut self, now: Time) {
        while let Some(&(at, size)) = self.departures.front()
            && at <= now
        {
            self.departures.pop_front();
            debug_assert!(u64::from(size) <= self.in_host, "it was never sent");
            self.in_host -= u64::from(size);
        }
    }

    /// Sends no further message.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns whether it sends no further message.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Bytes of packets that had not left the host at the last poll.
    pub fn in_host(&self) -> u64 {
        self.in_host
    }

    /// Counters so far.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    fn begin_message(&mut self, now: Time) -> Option<()> {
        if self.stopped {
            return None;
        }
        let has_room = self.in_host < self.send_buffer;
        self.wait_for_jitter(now, has_room)?;
        match &mut self.pace {
            Pace::Room { from } if now < *from || !has_room => return None,
            Pace::Room { .. } => self.sent_at = now,
            Pace::Rate { next, .. } | Pace::Period { next, .. } if now < *next => return None,
            Pace::Burst { next, left: 0, .. } if now < *next => return None,
            Pace::Burst {
                next,
                interval,
                messages,
                left,
            } => {
                if *left == 0 {
                    *left = *messages;
                    *next = next.saturating_add(*interval);
                }
                if !has_room {
                    return None;
                }
                *left -= 1;
                self.sent_at = now;
            }
            Pace::Rate { next, clock, size } => {
                self.sent_at = *next;
                *next = next.saturating_add(clock.advance(*size));
            }
            Pace::Period { next, interval } => {
                self.sent_at = *next;
                *next = next.saturating_add(*interval);
            }
        }
        if !has_room {
            self.stats.refused += 1;
            return None;
        }
        self.stats.messages += 1;
        self.fragment = 0;
        Some(())
    }

    /// `None` while the next message is held back at random.
    fn wait_for_jitter(&mut self, now: Time, has_room: bool) -> Option<()> {
        let Some(jitter) = &mut self.jitter else {
            return Some(());
        };
        let due = match self.pace {
            Pace::Room { from } if has_room => from.max(now),
            Pace::Rate { next, .. }
            | Pace::Period { next, .. }
            | Pace::Burst { next, left: 0, .. } => next,
            Pace::Burst { .. } if has_room => now,
            Pace::Room { .. } | Pace::Burst { .. } => return None,
        };
        if now < due {
            return None;
        }
        let limit = jitter.limit;
        let coin = &mut jitter.coin;
        let until = *jitter
            .until
            .get_or_insert_with(|| due.saturating_add(coin.time_below(limit)));
        if now < until {
            return None;
        }
        jitter.until = None;
        Some(())
    }

    #[inline]
    fn datagram(&self) -> Datagram {
        let message = self.stats.messages - 1;
        self.cut
            .datagram(message, self.sent_at, self.fragment, self.ect)
    }
}

impl Cut {
    /// A fragment of a message.
    #[inline]
    fn datagram(&self, message: u64, sent_at: Time, fragment: u16, ect: bool) -> Datagram {
        let carried = if fragment + 1 == self.fragments {
            self.last
        } else {
            self.full
        };
        let udp_header = if fragment == 0 { UDP_HEADER } else { 0 };
        Datagram {
            message,
            sent_at,
            size: IP_HEADER + carried,
            len: carried - udp_header,
            fragment,
            fragments: self.fragments,
            ect,
        }
    }
}

/// The packets of a message of `bytes`, which is not [too large](super::MAX_MESSAGE), none of them
/// larger than `mtu`, which is not [too small](super::MIN_MTU).
pub fn fragments(
    message: u64,
    sent_at: Time,
    bytes: u32,
    mtu: u32,
) -> impl Iterator<Item = Datagram> {
    let cut = Cut::new(bytes, mtu);
    (0..cut.fragments).map(move |fragment| cut.datagram(message, sent_at, fragment, false))
}
