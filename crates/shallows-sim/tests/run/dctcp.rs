//! DCTCP's queue on one bottleneck against the analysis of Alizadeh et al., SIGCOMM 2010, §3.3.

use shallows_core::units::Time;
use shallows_model::LinkId;

use crate::bottleneck::marked;
use crate::world::{World, endless};

/// A bottleneck of 10 or 100 Gbps between hosts that are twice as fast, with a round trip of
/// exactly 100 us for a full segment and its ACK.
struct Bottleneck {
    gbps: u64,
    /// Threshold in packets.
    k: f64,
    g: f64,
    flows: u32,
}

/// The queue in packets.
#[derive(Clone, Copy, Debug)]
struct Sawtooth {
    highest: f64,
    lowest: f64,
    mean: f64,
}

impl Sawtooth {
    fn amplitude(&self) -> f64 {
        self.highest - self.lowest
    }
}

const ROUND_TRIP: Time = Time::from_us(100);

impl Bottleneck {
    /// Packets that the path holds without a queue: C x RTT.
    fn path(&self) -> f64 {
        self.gbps as f64 * 100_000.0 / 12_000.0
    }

    /// §3.3 for `flows` sawtooths in step.
    fn predict(&self) -> Sawtooth {
        let n = f64::from(self.flows);
        // The window at which the queue reaches K.
        let w = (self.path() + self.k) / n;
        // alpha^2 (1 - alpha/4) = (2W + 1) / (W + 1)^2, without the approximation sqrt(2 / W).
        let share = (2.0 * w + 1.0) / (w + 1.0).powi(2);
        let alpha = (0..50).fold(share.sqrt(), |alpha, _| {
            (share / (1.0 - alpha / 4.0)).sqrt()
        });
        let amplitude = n * (w + 1.0) * alpha / 2.0;
        let highest = self.k + n;
        Sawtooth {
            highest,
            lowest: highest - amplitude,
            mean: highest - amplitude / 2.0,
        }
    }

    /// The queue, looked at a hundred times a round trip, after `settling` for as long as `time`.
    fn measure(&self, settling: Time, time: Time) -> Sawtooth {
        let n = self.flows;
        // Three links each way: 1500 B and 40 B on the uplink, and twice as fast on the others.
        let transmission = Time::from_ps(1540 * 8_000 * 2 / self.gbps);
        let uplink = Time::from_ps((ROUND_TRIP - transmission).ps() / 2) - Time::from_us(2);
        let topology = format!(
            "dumbbell = {{ left = {n}, right = {n}, rate = \"{}Gbps\", delay = \"1us\", uplink-rate = \"{}Gbps\", uplink-delay = \"{uplink}\" }}",
            2 * self.gbps,
            self.gbps,
        );
        let transport = format!("controller = {{ dctcp = {{ g = {} }} }}", self.g);
        let flows = (0..n).map(|src| endless(src, n + src)).collect();
        let world = World {
            switches: marked(&format!("{}pkts", self.k)),
            ..World::new(&topology, &transport, flows)
        };
        let end = settling + time;
        let mut run = world.stopping(end).start();
        // The uplink comes after two directions for each of 2n hosts.
        let link = LinkId(4 * n);
        assert_eq!(run.fabric.link(link).rate.bps(), self.gbps * 1_000_000_000);
        run.until(settling);
        let mut lengths = Vec::new();
        let mut now = settling;
        while now < end {
            now += ROUND_TRIP / 100;
            run.until(now);
            lengths.push(run.port(link).bytes().get() as f64 / 1500.0);
        }
        run.finish();
        sawtooth(&lengths, self.predict().amplitude())
    }
}

/// Means of the highest and lowest points of each tooth. A new tooth begins where the queue has
/// passed its mean by 15% of the expected amplitude, so that steps of a few packets make none.
fn sawtooth(lengths: &[f64], expected: f64) -> Sawtooth {
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    let band = 0.15 * expected;
    let (mut highs, mut lows) = (Vec::new(), Vec::new());
    let (mut highest, mut lowest) = (f64::MIN, f64::MAX);
    let mut rising = true;
    for &length in lengths {
        highest = highest.max(length);
        lowest = lowest.min(length);
        if rising && length < mean - band {
            highs.push(highest);
            (rising, lowest) = (false, length);
        } else if !rising && length > mean + band {
            lows.push(lowest);
            (rising, highest) = (true, length);
        }
    }
    let average = |points: &[f64]| points.iter().sum::<f64>() / points.len() as f64;
    // The first high may be that of a tooth already under way.
    Sawtooth {
        highest: average(&highs[1..]),
        lowest: average(&lows),
        mean,
    }
}

/// Relative deviations of mean and amplitude from the prediction.
fn deviations(bottleneck: &Bottleneck, settling: Time) -> (f64, f64) {
    let predicted = bottleneck.predict();
    let measured = bottleneck.measure(settling, Time::from_ms(50));
    let mean = measured.mean / predicted.mean - 1.0;
    let amplitude = measured.amplitude() / predicted.amplitude() - 1.0;
    println!(
        "{:2} flows: mean {mean:+.3}, amplitude {amplitude:+.3}, {measured:.1?}, not {predicted:.1?}",
        bottleneck.flows
    );
    (mean, amplitude)
}

/// The analysis takes alpha for constant and windows for large. So: a gain that keeps alpha steady
/// over a sawtooth (1/128, far below the bound of §3.4), windows of 100 packets and more (100 Gbps
/// and 100 us are 833 packets) and K above a seventh of that (§3.4).
#[test]
fn the_queue_oscillates_as_the_analysis_predicts() {
    for flows in 1..=10 {
        let bottleneck = Bottleneck {
            gbps: 100,
            k: 200.0,
            g: 1.0 / 128.0,
            flows,
        };
        let (mean, amplitude) = deviations(&bottleneck, Time::from_ms(100));
        assert!(mean.abs() < 0.02, "{flows} flows");
        assert!(amplitude.abs() < 0.1, "{flows} flows");
    }
}

/// The setting of the paper's Fig. 12: 10 Gbps, K = 40, g = 1/16. Alpha swings here over a sawtooth
/// and is least when it cuts the window, so one to three flows cut less than predicted; with many
/// the windows are as small as 12 packets. The mean holds; the amplitude is up to 15% off.
#[test]
fn the_queue_of_the_papers_own_setting() {
    for flows in 1..=10 {
        let bottleneck = Bottleneck {
            gbps: 10,
            k: 40.0,
            g: 1.0 / 16.0,
            flows,
        };
        let (mean, amplitude) = deviations(&bottleneck, Time::from_ms(50));
        assert!(mean.abs() < 0.05, "{flows} flows");
        let most = if flows <= 3 { 0.15 } else { 0.1 };
        assert!(amplitude.abs() < most, "{flows} flows");
    }
}
