use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// A device's own queue and its treatment of levels, between the limiter and the driver.
///
/// The paper's module owns the queue and serves the highest level first (Listing 1, line 16); this
/// limiter stands before the qdisc that the device has, and gives packets the priorities that the
/// qdisc serves in the order of their levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Queue {
    /// Its qdiscs, such as `pfifo_fast` or `tbf, pfifo_fast`.
    pub qdisc: String,
    /// The reason why it does not serve levels in strict priority; none if it does.
    pub problem: Option<String>,
}

impl Display for Queue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.problem {
            None if self.qdisc == "noqueue" => f.write_str("noqueue, where nothing waits"),
            None => write!(f, "{}, which serves levels in strict priority", self.qdisc),
            Some(problem) => write!(
                f,
                "{}, which does NOT serve levels in strict priority: {problem}",
                self.qdisc
            ),
        }
    }
}

/// Treatment of a device's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueChoice {
    /// Use it if it serves levels in strict priority, else refuse.
    #[default]
    Keep,
    /// Put one of ours in the place of the kernel's default.
    Install,
    /// Leave it as it is, whatever it does.
    Ignore,
}
