//! A sender and a receiver with a link of fixed delay between them, in virtual time.

use std::collections::BTreeMap;

use shallows_core::packet::Ecn;
use shallows_core::tcp::{Ack, Receiver, Segment, Sender, TcpConfig};
use shallows_core::units::Time;

/// What the link does to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    Drop,
    /// Marked, if it is ECN-capable.
    Mark,
    /// This much later than others.
    Late(Time),
    /// Twice, the second time this much later.
    Twice(Time),
}

#[derive(Clone, Copy, Debug)]
enum Arrival {
    Segment(Segment, Ecn),
    Ack(Ack),
}

/// A segment on its way, with its time.
pub(crate) type Sent = (Time, Segment);

pub(crate) struct Pair {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) now: Time,
    /// Every segment sent.
    pub(crate) sent: Vec<Sent>,
    /// Every ACK sent.
    pub(crate) acks: Vec<(Time, Ack)>,
    /// What happens to the n-th segment and to the n-th ACK; all others are delivered.
    pub(crate) segment_fates: BTreeMap<usize, Fate>,
    pub(crate) ack_fates: BTreeMap<usize, Fate>,
    delay: Time,
    /// In order of arrival, then of sending.
    flying: BTreeMap<(Time, u64), Arrival>,
    order: u64,
}

/// One way; a round trip takes 100 us.
pub(crate) const DELAY: Time = Time::from_us(50);

impl Pair {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        config.validate().expect("tests use what is possible");
        Self {
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            now: Time::ZERO,
            sent: Vec::new(),
            acks: Vec::new(),
            segment_fates: BTreeMap::new(),
            ack_fates: BTreeMap::new(),
            delay: DELAY,
            flying: BTreeMap::new(),
            order: 0,
        }
    }

    /// Loses the segments with these indices, counted as they are sent.
    pub(crate) fn dropping(mut self, segments: impl IntoIterator<Item = usize>) -> Self {
        let drops = segments.into_iter().map(|index| (index, Fate::Drop));
        self.segment_fates.extend(drops);
        self
    }

    /// Marks the segments with these indices, counted as they are sent.
    pub(crate) fn marking(mut self, segments: impl IntoIterator<Item = usize>) -> Self {
        let marks = segments.into_iter().map(|index| (index, Fate::Mark));
        self.segment_fates.extend(marks);
        self
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        self.sender.write(self.now, bytes);
        self.pump();
    }

    /// Jumps to the next arrival or deadline; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let arrival = self.flying.keys().next().map(|key| key.0);
        let wakeups = [arrival, self.sender.deadline(), self.receiver.deadline()];
        let Some(next) = wakeups.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let (_, arrival) = self.flying.pop_first().expect("it was the first");
            self.arrive(arrival);
        } else {
            self.sender.on_deadline(self.now);
            if let Some(ack) = self.receiver.on_deadline(self.now) {
                self.launch_ack(ack);
            }
        }
        self.pump();
        true
    }

    /// Runs until all that was written is acknowledged; gives the time.
    pub(crate) fn finish(&mut self) -> Time {
        for _ in 0..1_000_000 {
            if self.sender.is_done() {
                return self.now;
            }
            assert!(self.step(), "stalled at {}", self.now);
        }
        panic!("no end by {}", self.now);
    }

    /// Lets whatever still flies arrive, until `time`.
    pub(crate) fn rest_until(&mut self, time: Time) {
        while self.flying.keys().next().is_some_and(|key| key.0 <= time) {
            self.step();
        }
        self.now = time;
    }

    /// The numbers of the segments sent at each time, in units of `segment` bytes.
    pub(crate) fn rounds(&self, segment: u64) -> Vec<(Time, Vec<u64>)> {
        let mut rounds: Vec<(Time, Vec<u64>)> = Vec::new();
        for (at, sent) in &self.sent {
            let number = sent.seq / segment;
            match rounds.last_mut() {
                Some((time, numbers)) if time == at => numbers.push(number),
                _ => rounds.push((*at, vec![number])),
            }
        }
        rounds
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Segment(segment, ecn) => {
                for ack in self.receiver.on_segment(self.now, &segment, ecn) {
                    self.launch_ack(ack);
                }
            }
            Arrival::Ack(ack) => self.sender.on_ack(self.now, &ack),
        }
    }

    fn pump(&mut self) {
        while let Some(segment) = self.sender.poll_segment(self.now) {
            let fate = self.segment_fates.get(&self.sent.len()).copied();
            self.sent.push((self.now, segment));
            let unmarked = if segment.ect { Ecn::Ect0 } else { Ecn::NotEct };
            let ecn = match fate {
                Some(Fate::Mark) if segment.ect => Ecn::Ce,
                _ => unmarked,
            };
            self.launch(Arrival::Segment(segment, ecn), fate);
        }
    }

    fn launch_ack(&mut self, ack: Ack) {
        let fate = self.ack_fates.get(&self.acks.len()).copied();
        self.acks.push((self.now, ack));
        self.launch(Arrival::Ack(ack), fate);
    }

    fn launch(&mut self, arrival: Arrival, fate: Option<Fate>) {
        let soon = self.now + self.delay;
        match fate.unwrap_or(Fate::Deliver) {
            Fate::Drop => {}
            Fate::Deliver | Fate::Mark => self.fly(soon, arrival),
            Fate::Late(extra) => self.fly(soon + extra, arrival),
            Fate::Twice(extra) => {
                self.fly(soon, arrival);
                self.fly(soon + extra, arrival);
            }
        }
    }

    fn fly(&mut self, at: Time, arrival: Arrival) {
        self.flying.insert((at, self.order), arrival);
        self.order += 1;
    }
}

/// Segments of 1000 bytes, no limited transmit, timeouts of at least 5 ms, Reno.
pub(crate) fn plain() -> TcpConfig {
    toml::from_str(
        r#"
        segment = 1000
        limited-transmit = false
        rto = { initial = "10ms", minimum = "5ms" }
        controller = "reno"
        "#,
    )
    .expect("the text is a transport")
}

pub(crate) fn us(us: u64) -> Time {
    Time::from_us(us)
}
