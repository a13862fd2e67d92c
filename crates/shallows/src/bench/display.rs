//! Measurements as lines for a terminal.

use std::fmt::{self, Display, Formatter};

use super::{LargeFabric, Line, Reference, Speedup};

fn million(rate: f64) -> f64 {
    rate / 1e6
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.workload, self.description)?;
        writeln!(
            f,
            "   {:.2} million useful packet-hops per CPU second ({:.2} to {:.2} in {} runs)",
            million(self.hops_per_cpu_s),
            million(self.hops_per_cpu_s_min),
            million(self.hops_per_cpu_s_max),
            self.runs.len()
        )?;
        let run = &self.runs[self.runs.len() / 2];
        writeln!(
            f,
            "   {:.3} events per packet-hop, {:.1} MB peak memory, mean FCT {:.3} ms, \
             {} of {} flows finished, {} timeouts",
            self.events_per_packet_hop,
            million(self.peak_memory_bytes as f64),
            self.mean_fct_us / 1e3,
            run.finished,
            run.flows,
            run.timeouts
        )?;
        for speedup in &self.speedups {
            let results = if speedup.identical {
                "identical"
            } else {
                "DIFFERENT"
            };
            let Speedup {
                threads,
                times,
                ceiling,
                ..
            } = speedup;
            writeln!(
                f,
                "   {threads} threads: {times:.2} times as fast ({:.2} to {:.2}), {results} results",
                speedup.times_min, speedup.times_max
            )?;
            writeln!(
                f,
                "   {:.0}% of what the machine allows: {threads} independent runs at once do \
                 {ceiling:.2} times the work of one",
                100.0 * times / ceiling
            )?;
        }
        Ok(())
    }
}

impl Display for LargeFabric {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "scale: {}", Reference::Large.description())?;
        writeln!(
            f,
            "   {:.2} million packet-hops per CPU second, {:.2} times the cost of A's, \
             {:.0} MB peak memory",
            million(self.hops_per_cpu_s),
            self.cost_against_a,
            million(self.peak_memory_bytes as f64)
        )?;
        writeln!(f, "   {:.0} bytes per idle flow", self.bytes_per_idle_flow)
    }
}
