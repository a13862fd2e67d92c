//! The port that drivers see: one that keeps queues, or a FIFO that looks ahead.

use super::look_ahead::LookAheadFifo;
use super::queueing::QueueingPort;
use super::{
    ConfigError, DropReason, Forward, Offer, Passage, Pool, PortConfig, QueueCounters, QueueSet,
    Transmit,
};
use crate::packet::Packet;
use crate::tally::Tally;
use crate::units::{Bytes, Rate, Time};

/// An egress port. See the [module](super) for how to drive it.
#[derive(Debug)]
#[repr(C)]
pub struct EgressPort<P> {
    ahead: Ahead<P>,
    /// Not in use if the port looks ahead. It is beside it, not in its place, so that the way of a
    /// packet through its queues does not begin with a question.
    port: QueueingPort<P>,
}

/// Departures known ahead, if the port looks ahead. Its tag is not hidden in a field, which would
/// have to be decoded at every call.
#[derive(Debug)]
#[repr(u8)]
enum Ahead<P> {
    No,
    Yes(LookAheadFifo<P>),
}

impl<P: Packet> EgressPort<P> {
    /// A port to a link of this rate. Its random stream is that of entity `id` in the run seeded
    /// `seed`.
    pub fn new(rate: Rate, config: &PortConfig, seed: u64, id: u64) -> Result<Self, ConfigError> {
        Ok(Self {
            ahead: Ahead::No,
            port: QueueingPort::new(rate, config, seed, id)?,
        })
    }

    /// Lets [`forward`](Self::forward) send every packet at once, with the time of its departure
    /// in the future where it has to wait, if the port is such that nothing can change that time: a
    /// FIFO without shaper whose buffer has a limit of its own and whose marker, if any, compares
    /// its length on arrival. The driver must then only use `forward`, must not pause the port, and
    /// must call [`settle`](Self::settle) before it asks for lengths. Nothing but the sequence of
    /// calls changes.
    ///
    /// To be called before the first packet.
    pub fn look_ahead(&mut self) {
        if let Some(fifo) = self.port.look_ahead() {
            self.ahead = Ahead::Yes(fifo);
        }
    }

    /// Brings the lengths of a port that looks ahead up to `now`.
    pub fn settle(&mut self, now: Time) {
        if let Ahead::Yes(fifo) = &mut self.ahead {
            fifo.settle(now);
        }
    }

    /// Hands the port a packet at `now`. `pool` is the memory that the ports of its switch share.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: P, pool: &mut Pool<P>) -> Offer {
        self.port.offer(now, packet, pool)
    }

    /// Hands the port a packet at `now` and, if it was empty and its link is free, sends it at
    /// once: [`offer`](Self::offer) and then [`transmit`](Self::transmit), but the packet stays
    /// with the driver if it is sent, marked if it is to be, and is copied only if it has to wait.
    #[inline(always)]
    pub fn forward(&mut self, now: Time, packet: &mut P, pool: &mut Pool<P>) -> Forward {
        match self.forward_ahead(now, packet) {
            Some(Ok(passage)) => Forward::Sent(passage),
            Some(Err(reason)) => Forward::Dropped(reason),
            None => self.port.forward(now, packet, pool),
        }
    }

    /// The same for a port that [looks ahead](Self::look_ahead), which needs no pool; `None` if the
    /// port does not, and then nothing has happened.
    #[inline(always)]
    pub fn forward_ahead(
        &mut self,
        now: Time,
        packet: &mut P,
    ) -> Option<Result<Passage, DropReason>> {
        match &mut self.ahead {
            Ahead::Yes(fifo) => Some(fifo.forward(now, packet)),
            Ahead::No => None,
        }
    }

    /// The next packet to send at `now`, or when to ask again.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, pool: &mut Pool<P>) -> Transmit<P> {
        self.port.transmit(now, pool)
    }

    /// Hands the port packets in the order of their times, and lets it send all that it starts to
    /// send before `end`: [`forward`](Self::forward) and [`transmit`](Self::transmit) at the times
    /// that the port gives. Packets are marked in their place. `departed` gets each packet with the time at which its last bit is on
    /// the wire. `due` is when the port sends the next of the packets that it holds, the greatest
    /// time if it holds none; it is the driver's from call to call.
    #[inline]
    pub fn run<'a>(
        &mut self,
        due: &mut Time,
        arrivals: impl Iterator<Item = (Time, &'a mut P)>,
        end: Time,
        pool: &mut Pool<P>,
        departed: impl FnMut(Time, &P),
    ) where
        P: 'a,
    {
        match &mut self.ahead {
            Ahead::No => self.port.run(due, arrivals, end, pool, departed),
            Ahead::Yes(fifo) => fifo.run(arrivals, departed),
        }
    }

    /// Stops these queues: an 802.3x pause names [`QueueSet::ALL`], an 802.1Qbb one the queues of
    /// its priorities. A packet that is being transmitted is finished.
    pub fn pause(&mut self, queues: QueueSet) {
        self.port.pause(queues);
    }

    /// Lets these queues go on.
    pub fn resume(&mut self, now: Time, queues: QueueSet) {
        self.port.resume(now, queues);
    }

    /// Sends a frame of the link itself, such as a pause, before all that waits: as soon as what is
    /// being transmitted is out. When its last bit is on the wire. Not for ports that look ahead.
    pub fn send_frame(&mut self, now: Time, size: u32) -> Time {
        self.port.send_frame(now, size)
    }

    /// The queue that a packet goes to.
    pub fn classify(&self, packet: &P) -> usize {
        self.port.classify(packet)
    }

    /// Returns whether queued packets were given up for one that came later, and are to be
    /// [taken](Self::take_dropped).
    #[inline]
    pub fn has_evicted(&self) -> bool {
        self.port.has_evicted()
    }

    /// Returns whether packets were dropped since they were last [taken](Self::take_dropped).
    #[inline]
    pub fn has_dropped(&self) -> bool {
        match &self.ahead {
            Ahead::Yes(fifo) => fifo.has_dropped(),
            Ahead::No => self.port.has_dropped(),
        }
    }

    /// Takes the packets dropped since the last call, with their reasons.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (P, DropReason)> + '_ {
        let dropped = match &mut self.ahead {
            Ahead::Yes(fifo) => fifo.dropped(),
            Ahead::No => self.port.dropped(),
        };
        dropped.drain(..)
    }

    /// Number of queues.
    pub fn queue_count(&self) -> usize {
        self.port.queues().count()
    }

    /// Bytes queued in one queue.
    #[inline]
    pub fn queue_bytes(&self, queue: usize) -> Bytes {
        match &self.ahead {
            Ahead::No => Bytes::new(self.port.queues().queue_bytes(queue)),
            Ahead::Yes(fifo) => fifo.bytes(),
        }
    }

    /// Packets queued in one queue.
    #[inline]
    pub fn queue_packets(&self, queue: usize) -> u32 {
        match &self.ahead {
            Ahead::No => self.port.queues().queue_packets(queue),
            Ahead::Yes(fifo) => fifo.packets(),
        }
    }

    /// Bytes queued.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        match &self.ahead {
            Ahead::No => Bytes::new(self.port.queues().bytes()),
            Ahead::Yes(fifo) => fifo.bytes(),
        }
    }

    /// Largest number of bytes that have been queued at once.
    pub fn peak_bytes(&self) -> Bytes {
        match &self.ahead {
            Ahead::No => Bytes::new(self.port.queues().peak_bytes()),
            Ahead::Yes(fifo) => fifo.peak_bytes(),
        }
    }

    /// Packets queued.
    pub fn packets(&self) -> u32 {
        match &self.ahead {
            Ahead::No => self.port.queues().packets(),
            Ahead::Yes(fifo) => fifo.packets(),
        }
    }

    /// Time at which the link is free again.
    #[inline]
    pub fn busy_until(&self) -> Time {
        match &self.ahead {
            Ahead::Yes(fifo) => fifo.busy_until(),
            Ahead::No => self.port.busy_until(),
        }
    }

    /// The length in bytes above which packets of a queue are marked now, if the marker has one.
    pub fn threshold(&self, queue: usize) -> Option<f64> {
        self.port.threshold(queue)
    }

    /// Packets that a queue has accepted.
    pub fn queued(&self, queue: usize) -> Tally {
        match &self.ahead {
            Ahead::No => self.port.queues().pushed(queue),
            Ahead::Yes(fifo) => fifo.accepted(),
        }
    }

    /// Counters of a queue.
    pub fn counters(&self, queue: usize) -> &QueueCounters {
        match &self.ahead {
            Ahead::No => self.port.counters(queue),
            Ahead::Yes(fifo) => fifo.counters(),
        }
    }
}
