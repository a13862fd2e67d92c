//! A marker that Shallows does not have: it marks with a probability that rises with the square of
//! the queue's length, and is 1 at `full`.
//!
//! Everything that it takes is here: the parameters, the rule, and the name in the registry. The
//! scenario beside it says `marker.scheme.quadratic = { full = "60pkts" }`.

use serde::Deserialize;
use shallows_core::port::marker::{Marking, PortContext, Seen, Threshold};
use shallows_core::port::{ConfigError, MarkReason, Queues};
use shallows_core::random::Coin;
use shallows_core::registry::{Parameters, Registry};

/// The parameters in the scenario.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Config {
    /// Length at which every packet is marked.
    full: Threshold,
}

/// The running marker of one port.
#[derive(Debug)]
struct Quadratic {
    full: f64,
    coin: Coin,
}

impl Marking for Quadratic {
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        let fullness = seen.queue_length as f64 / self.full;
        let marked = self.coin.heads(fullness * fullness);
        marked.then_some(MarkReason::Probability)
    }

    fn threshold(&self, _: usize, _: &Queues) -> Option<f64> {
        Some(self.full)
    }
}

fn make(parameters: &Parameters, port: &PortContext<'_>) -> Result<Box<dyn Marking>, ConfigError> {
    let Config { full } = parameters.read()?;
    Ok(Box::new(Quadratic {
        full: port.bytes(full)?,
        coin: port.coin(),
    }))
}

/// A registry that knows the marker as `quadratic`.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.marker("quadratic", make);
    registry
}
