use std::fs;

/// Time that the hypervisor took away from this machine's CPUs.
#[derive(Clone, Copy, Debug)]
pub struct StealClock {
    begun: Option<(u64, u64)>,
}

impl StealClock {
    /// Starts to measure.
    pub fn start() -> Self {
        Self { begun: read() }
    }

    /// The share of all CPU time since then that was stolen; `None` if the kernel does not say.
    pub fn share(&self) -> Option<f64> {
        let (stolen, total) = read()?;
        let (stolen_then, total_then) = self.begun?;
        let total = total.saturating_sub(total_then).max(1);
        Some(stolen.saturating_sub(stolen_then) as f64 / total as f64)
    }
}

/// Stolen and total ticks of all CPUs: the first line of /proc/stat.
fn read() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks = text.lines().next()?.split_whitespace().skip(1);
    let ticks: Vec<u64> = ticks.take(8).filter_map(|tick| tick.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}
