use shallows_core::units::Time;

use super::SampleConfig;
use super::engine::Engine;

/// Most values that are kept: some 560 MB.
const MOST_VALUES: usize = 20_000_000;

/// Queue lengths over time, and the thresholds that they were judged by.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The link and queue of each column.
    pub columns: Vec<(String, usize)>,
    /// Time of each row, since the switch began.
    pub times: Vec<Time>,
    /// Bytes in the queue, row by row.
    pub bytes: Vec<u32>,
    /// Packets in the queue, row by row.
    pub packets: Vec<u32>,
    /// Bytes that the queue has sent so far, row by row.
    pub sent: Vec<u64>,
    /// Packets that the queue has sent so far, row by row.
    pub sent_packets: Vec<u64>,
    /// The marker's threshold, row by row; not a number where it has none.
    pub thresholds: Vec<f32>,
    /// Rows that were not kept, for want of memory.
    pub lost: u64,
}

/// Takes samples at equal distances.
#[derive(Debug)]
pub(super) struct Sampler {
    every: Time,
    next: Time,
    samples: Samples,
}

impl Sampler {
    pub(super) fn new(config: SampleConfig, engine: &Engine) -> Self {
        let mut columns = Vec::new();
        for link in engine.links() {
            let queues = 0..link.port.queue_count();
            columns.extend(queues.map(|queue| (link.name.clone(), queue)));
        }
        Self {
            every: config.every,
            next: Time::ZERO,
            samples: Samples {
                columns,
                ..Samples::default()
            },
        }
    }

    #[inline]
    pub(super) fn look(&mut self, now: Time, engine: &Engine) {
        if now >= self.next {
            self.take(now, engine);
        }
    }

    #[inline(never)]
    fn take(&mut self, now: Time, engine: &Engine) {
        self.next = now - now % self.every + self.every;
        let samples = &mut self.samples;
        if samples.bytes.len() + samples.columns.len() > MOST_VALUES {
            samples.lost += 1;
            return;
        }
        samples.times.push(now);
        for link in engine.links() {
            for queue in 0..link.port.queue_count() {
                let threshold = link.port.threshold(queue);
                samples
                    .bytes
                    .push(link.port.queue_bytes(queue).get() as u32);
                samples.packets.push(link.port.queue_packets(queue));
                let queued = link.port.queued(queue);
                let left = link.port.queue_bytes(queue).get();
                samples.sent.push(queued.bytes.saturating_sub(left));
                let left = u64::from(link.port.queue_packets(queue));
                samples
                    .sent_packets
                    .push(queued.packets.saturating_sub(left));
                samples
                    .thresholds
                    .push(threshold.map_or(f32::NAN, |value| value as f32));
            }
        }
    }

    pub(super) fn finish(self) -> Samples {
        self.samples
    }
}

impl Samples {
    /// The lengths of one queue from `from` on, and their times.
    pub fn lengths(&self, link: &str, queue: usize, from: Time) -> Vec<(Time, u32)> {
        let column = self
            .columns
            .iter()
            .position(|(l, q)| l == link && *q == queue);
        let Some(column) = column else {
            return Vec::new();
        };
        let rows = self.bytes.chunks(self.columns.len().max(1));
        let rows = self
            .times
            .iter()
            .zip(rows)
            .filter(|(time, _)| **time >= from);
        rows.map(|(&time, row)| (time, row[column])).collect()
    }
}
