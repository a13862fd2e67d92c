use std::collections::VecDeque;

use super::config::UdpConfig;
use super::{Datagram, MIN_MTU};
use crate::tally::Tally;
use crate::units::{Bytes, Time};

/// Puts messages together from their fragments.
///
/// Memory for fragments is bounded, and what is missing is never asked for: a message whose
/// fragments do not all come in time is gone.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Messages that wait for fragments, the one that began first in front.
    partial: VecDeque<Partial>,
    /// Limit of incomplete messages.
    most_partial: usize,
    timeout: Time,
    /// Messages that must have been sent, as the number of the latest tells.
    known: u64,
    stats: ReceiverStats,
}

#[derive(Clone, Copy, Debug)]
struct Partial {
    message: u64,
    /// A bit for each fragment that has come.
    arrived: u128,
    len: u32,
    expires: Time,
}

// No message has more fragments than `arrived` has bits.
const _: () = assert!(65_535_u32.div_ceil((MIN_MTU - super::IP_HEADER) / 8 * 8) <= u128::BITS);

/// A message that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number.
    pub message: u64,
    /// Its bytes.
    pub len: u32,
    /// From the application that sent it to the one that gets it.
    pub delay: Time,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Complete messages and the bytes in them: goodput.
    pub delivered: Tally,
    /// Packets that came, with their headers.
    pub datagrams: Tally,
    /// Messages of which fragments came that were given up when others needed the memory.
    pub evicted: u64,
    /// Messages of which fragments came that were given up when their time was over.
    pub expired: u64,
}

impl Receiver {
    /// A receiver that has nothing yet.
    pub fn new(config: &UdpConfig) -> Self {
        let fit = config.reassembly.memory / config.send.size().max(Bytes::new(1));
        Self {
            partial: VecDeque::new(),
            most_partial: (fit as usize).max(1),
            timeout: config.reassembly.timeout,
            known: 0,
            stats: ReceiverStats::default(),
        }
    }

    /// Takes a packet; gives the message that it completes, if it does.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, datagram: &Datagram) -> Option<Delivery> {
        self.stats.datagrams.count(datagram.size);
        let len = if datagram.fragments == 1 {
            self.known = self.known.max(datagram.message + 1);
            datagram.len
        } else {
            self.add_fragment(now, datagram)?
        };
        self.stats.delivered.count(len);
        Some(Delivery {
            message: datagram.message,
            len,
            delay: now.saturating_sub(datagram.sent_at),
        })
    }

    /// Messages that must have been sent, of which neither all fragments have come nor more are
    /// waited for. Of those after the latest that was heard of, only the sender can know.
    pub fn lost(&self) -> u64 {
        let present = self.stats.delivered.packets + self.partial.len() as u64;
        self.known.saturating_sub(present)
    }

    /// Messages that wait for fragments.
    pub fn waiting(&self) -> usize {
        self.partial.len()
    }

    /// Counters so far.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Keeps a fragment; gives the bytes of the message if this was the last one missing.
    fn add_fragment(&mut self, now: Time, datagram: &Datagram) -> Option<u32> {
        self.expire(now);
        let index = self.place(now, datagram.message);
        let partial = &mut self.partial[index];
        let bit = 1 << datagram.fragment;
        if partial.arrived & bit != 0 {
            return None;
        }
        partial.arrived |= bit;
        partial.len += datagram.len;
        let (arrived, len) = (partial.arrived.count_ones(), partial.len);
        (arrived == u32::from(datagram.fragments)).then(|| {
            self.partial.remove(index);
            len
        })
    }

    fn expire(&mut self, now: Time) {
        while self.partial.front().is_some_and(|p| p.expires <= now) {
            self.partial.pop_front();
            self.stats.expired += 1;
        }
    }

    /// Slot of a message; makes room for a new one.
    fn place(&mut self, now: Time, message: u64) -> usize {
        // A message with a number not heard of is new; so nearly all searches end at once.
        if message < self.known
            && let Some(index) = self.partial.iter().rposition(|p| p.message == message)
        {
            return index;
        }
        self.known = self.known.max(message + 1);
        if self.partial.len() == self.most_partial {
            self.partial.pop_front();
            self.stats.evicted += 1;
        }
        self.partial.push_back(Partial {
            message,
            arrived: 0,
            len: 0,
            expires: now.saturating_add(self.timeout),
        });
        self.partial.len() - 1
    }
}
