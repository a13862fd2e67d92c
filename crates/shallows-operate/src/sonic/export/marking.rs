//! Markers of a scenario as WRED profiles.

use std::collections::BTreeMap;

use shallows_core::port::PerIndex;
use shallows_core::port::marker::{
    Average, RedConfig, SchemeConfig, Threshold as MarkThreshold, minimum_thresholds,
};
use shallows_core::units::Rate;

use super::super::import::{self, Marks, NEVER};
use super::wish::Making;
use super::{ExportError, Fidelity};

const ADAPTIVE: &str =
    "no table has a threshold that adapts: each queue has the one that it starts from";

impl Making<'_> {
    /// Marks that differ from the present ones.
    pub(super) fn marks(&mut self) -> Result<BTreeMap<u8, Option<Marks>>, ExportError> {
        let wanted = self.scheme()?;
        let group = self.group;
        let now = |queue: u8| {
            let view = group.queues.get(usize::from(queue));
            view.and_then(|view| view.wred)
                .and_then(|(_, row)| import::marks(row))
        };
        let pairs = self.order.iter().copied().zip(wanted);
        Ok(pairs
            .filter(|(queue, _)| self.used.contains(queue))
            .filter(|(queue, marks)| now(*queue) != *marks)
            .collect())
    }

    /// Marking of each queue under the scheme.
    fn scheme(&mut self) -> Result<Vec<Option<Marks>>, ExportError> {
        use Fidelity::{Exact, Nearest};
        let key = "marker";
        let scheme = &self.config.marker.scheme;
        let (thresholds, fidelity, says): (Vec<MarkThreshold>, _, _) = match scheme {
            SchemeConfig::None => {
                self.say(Exact, key, "no queue has a WRED profile");
                return Ok(vec![None; self.config.queues]);
            }
            SchemeConfig::Red(red) => return self.red(red),
            SchemeConfig::PerQueue { threshold } => {
                let says = "a step at K is min = max = K with 100%";
                (self.each(threshold)?, Exact, says)
            }
            SchemeConfig::EcnStar { threshold } => {
                let says = "ECN* marks at dequeue; the chip decides where";
                (self.each(threshold)?, Nearest, says)
            }
            SchemeConfig::PerQueueMinimum { threshold } => {
                let steps = self.minimum(*threshold)?;
                self.say(Exact, key, "each queue has its share of K as a static step");
                return Ok(steps);
            }
            SchemeConfig::MqEcn(mq) => {
                let says = "no table has MQ-ECN, whose thresholds follow the busy queues: each queue has K of its own, so that queues wait longer when several are busy";
                (self.same(mq.threshold), Nearest, says)
            }
            SchemeConfig::MlEcn(ml) => {
                let says = "no table has ML-ECN: each queue has K, whatever the size of its flows";
                (self.same(ml.threshold), Nearest, says)
            }
            SchemeConfig::PerPort { threshold } | SchemeConfig::PerPool { threshold } => {
                let says = "no table marks by the length of a port or pool: each queue has K of its own, so that a port may hold K for each of its queues";
                (self.same(*threshold), Nearest, says)
            }
            SchemeConfig::Pmsb(pmsb) => {
                let says =
                    "no table has PMSB: each queue has its threshold, whatever the port holds";
                (self.each(&pmsb.queue)?, Nearest, says)
            }
            SchemeConfig::Cedm(cedm) => {
                let says = "no table has two thresholds: each queue has the one at enqueue";
                (self.same(cedm.enqueue), Nearest, says)
            }
            SchemeConfig::AEcn(a) => (self.same(a.threshold), Nearest, ADAPTIVE),
            SchemeConfig::MmEcn(mm) => (self.same(mm.threshold), Nearest, ADAPTIVE),
            SchemeConfig::Demepro(demepro) => (self.same(demepro.threshold), Nearest, ADAPTIVE),
            SchemeConfig::Tcn(tcn) => {
                let threshold = MarkThreshold::Product {
                    rtt: tcn.sojourn,
                    lambda: 1.0,
                };
                let says = "no table marks by waiting time: each queue marks at the length that waits as long while it has the link for itself";
                (self.same(threshold), Nearest, says)
            }
            SchemeConfig::Custom(_) => {
                let says = "a scheme of another crate has no equal; the present WRED profiles stay";
                self.say(Fidelity::Missing, key, says);
                return Ok(self.present());
            }
        };
        self.say(fidelity, key, says);
        thresholds.into_iter().map(|k| self.step(k)).collect()
    }

    fn same(&self, threshold: MarkThreshold) -> Vec<MarkThreshold> {
        vec![threshold; self.config.queues]
    }

    pub(super) fn each<T: Clone>(&self, values: &PerIndex<T>) -> Result<Vec<T>, ExportError> {
        let each = values.each("threshold", self.config.queues);
        each.map_err(|error| ExportError::Port(error.to_string()))
    }

    /// The marks of the queues as they are.
    fn present(&self) -> Vec<Option<Marks>> {
        let now = |queue: &u8| {
            let view = self.group.queues.get(usize::from(*queue))?;
            view.wred.and_then(|(_, row)| import::marks(row))
        };
        self.order.iter().map(now).collect()
    }

    /// A threshold in bytes.
    fn bytes(&self, threshold: MarkThreshold) -> Result<f64, ExportError> {
        let rate = match (threshold, self.rate) {
            (_, Some(rate)) => rate,
            (MarkThreshold::Length(_), None) => Rate::from_gbps(1),
            (MarkThreshold::Product { .. }, None) => {
                return Err(ExportError::NoSpeed {
                    file: self.file.to_owned(),
                    port: self.group.ports[0].clone(),
                });
            }
        };
        let bytes = threshold.in_bytes(rate, self.config.packet);
        bytes.map_err(|error| ExportError::Port(error.to_string()))
    }

    fn step(&mut self, threshold: MarkThreshold) -> Result<Option<Marks>, ExportError> {
        let bytes = self.bytes(threshold)?;
        Ok(self.whole_step(bytes))
    }

    /// A step at a whole number of bytes; nothing for one that is never reached.
    fn whole_step(&mut self, bytes: f64) -> Option<Marks> {
        if bytes >= NEVER.get() as f64 {
            return None;
        }
        let whole = bytes.round().max(1.0);
        // Products of rate and time carry the rounding of floating point.
        if (whole - bytes).abs() > 0.001 {
            let says = format!("{bytes:.1} bytes are rounded to {whole}");
            self.say(Fidelity::Nearest, "marker", says);
        }
        Some(Marks {
            min: whole as u64,
            max: whole as u64,
            percent: 100,
        })
    }

    fn minimum(&mut self, threshold: MarkThreshold) -> Result<Vec<Option<Marks>>, ExportError> {
        let standard = self.bytes(threshold)?;
        let weights = self.weights()?;
        let weights: Vec<u32> = weights.iter().map(|&weight| weight as u32).collect();
        let shares = minimum_thresholds(standard, &weights);
        Ok(shares.into_iter().map(|k| self.whole_step(k)).collect())
    }

    fn red(&mut self, red: &RedConfig) -> Result<Vec<Option<Marks>>, ExportError> {
        let packet = self.config.packet;
        let (min, max) = (self.each(&red.min)?, self.each(&red.max)?);
        let percents = self.each(&red.max_probability)?;
        let mut fidelity = Fidelity::Exact;
        let mut says = String::from("min, max and probability are those of the profile");
        let average = red.average != Average::Instantaneous;
        if average || red.gentle || red.spread {
            fidelity = Fidelity::Nearest;
            says = String::from(
                "a profile looks at the present length, jumps to 1 at max and spreads nothing: average, gentle and spread are left out",
            );
        }
        let mut lanes = Vec::new();
        for ((min, max), p) in min.into_iter().zip(max).zip(percents) {
            let (min, max) = (min.whole_bytes(packet).get(), max.whole_bytes(packet).get());
            let percent = (100.0 * p).round();
            if (percent / 100.0 - p).abs() > 1e-9 && min < max {
                fidelity = Fidelity::Nearest;
                says = format!("probabilities are whole percents: {p} is {percent}%");
            }
            let percent = if min == max { 100 } else { percent as u8 };
            let marks = Marks { min, max, percent };
            lanes.push(Some(marks).filter(|marks| marks.min < NEVER.get()));
        }
        self.say(fidelity, "marker", says);
        Ok(lanes)
    }
}
