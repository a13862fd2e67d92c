//! The same dynamics at a rate that this machine carries.
//!
//! Rates are multiplied by a factor and times are divided by it; sizes stay. A packet, a window, a
//! buffer and a threshold are what they were, and so is everything in units of packets: the
//! bandwidth-delay product, the share of marked packets, the slowdown of flows. What the kernel
//! itself takes, some tens of microseconds a packet, is not scaled, and so weighs less than before.

mod typed;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shallows_core::tcp::TcpConfig;
use shallows_core::units::{Rate, Time};
use shallows_model::workload::{FlowSpec, Workload};

use crate::scenario::{ScenarioConfig, value};

/// Factors are exact to so many parts.
const PARTS: u64 = 1_000_000;

/// Factor by which a scenario runs slower.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowdown {
    /// The factor in millionths.
    parts: u64,
}

impl Slowdown {
    pub(super) fn new(factor: f64) -> anyhow::Result<Self> {
        let parts = (factor * PARTS as f64).round();
        ensure!(
            parts >= 1.0 && factor <= 1000.0,
            "{factor} is not a valid factor: 0.2 makes 200Mbps of 1Gbps"
        );
        Ok(Self {
            parts: parts as u64,
        })
    }

    pub(super) fn rate(self, rate: Rate) -> Rate {
        rate.scaled(self.parts, PARTS)
    }

    pub(super) fn time(self, time: Time) -> Time {
        let ps = u128::from(time.ps()) * u128::from(PARTS) / u128::from(self.parts);
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// A scenario with every rate and time scaled.
    pub(super) fn scenario(self, scenario: &ScenarioConfig) -> anyhow::Result<ScenarioConfig> {
        let mut scaled = self.scaled(scenario)?;
        // A longer one makes no difference to anybody, and would be refused.
        let longest = &mut scaled.transport.rto.maximum;
        *longest = TcpConfig::LONGEST_TIMER.min(*longest);
        for special in &mut scaled.transports {
            special.set = self.settings(&scenario.transport, &special.set)?;
        }
        Ok(scaled)
    }

    /// Some keys of a transport with every rate and time scaled. Other values stay as they are
    /// written.
    fn settings(self, usual: &TcpConfig, set: &toml::Table) -> anyhow::Result<toml::Table> {
        let mut keys = toml::Table::try_from(usual)?;
        keys.extend(set.clone());
        let transport: TcpConfig = value::read_table(&keys)?;
        let plain = toml::Table::try_from(&transport)?;
        let scaled = toml::Table::try_from(self.scaled(&transport)?)?;
        let value = |(key, written): (&String, &toml::Value)| {
            let changed = scaled
                .get(key)
                .filter(|value| plain.get(key) != Some(value));
            (key.clone(), changed.unwrap_or(written).clone())
        };
        Ok(set.iter().map(value).collect())
    }

    /// A part of a scenario with every rate and time scaled.
    fn scaled<T: Serialize + DeserializeOwned>(self, of: &T) -> anyhow::Result<T> {
        let value = typed::value(self, of).context("cannot scale the scenario")?;
        let value = value.as_ref().and_then(toml::Value::as_table);
        value::read_table(value.context("a scenario is a table")?)
            .context("cannot scale the scenario")
    }

    /// Flows with every rate and time scaled.
    pub(super) fn workload(self, mut workload: Workload) -> anyhow::Result<Workload> {
        for flow in &mut workload.flows {
            if flow.start != FlowSpec::AT_BARRIER {
                flow.start = self.time(flow.start);
            }
        }
        for stop in &mut workload.stops {
            stop.at = self.time(stop.at);
        }
        for barrier in &mut workload.barriers {
            barrier.pause = self.time(barrier.pause);
        }
        for stream in &mut workload.streams {
            *stream = self.scaled(stream)?;
        }
        for load in &mut workload.offered {
            load.capacity *= self.parts as f64 / PARTS as f64;
        }
        Ok(workload)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn rates_and_times_scale_and_sizes_stay() {
        let text = r#"
            until = "1s"
            topology.star = { hosts = 2, rate = "1Gbps", delay = "50us" }
            transport.rto = { minimum = "10ms" }
            [ports.switch]
            buffer = { shared = { size = "96KB" } }
            scheduler = { dwrr = { quantum = "1500B" } }
            marker = { scheme = { mq-ecn = { threshold = "32KB", t-idle = "12us" } } }
            shaper = { rate = "995Mbps", bucket = "2500B" }
            [workload.poisson]
            load = 0.5
            size = "20KB"
            duration = "100ms"
            from = 0
            to = 1
        "#;
        let scenario = Scenario::parse(Path::new("x.toml"), text, &[])
            .unwrap()
            .config;
        let scaled = Slowdown::new(0.2).unwrap().scenario(&scenario).unwrap();
        let text = toml::to_string(&scaled).unwrap();
        for line in [
            "until = \"5s\"",
            "rate = \"200Mbps\"",
            "delay = \"250us\"",
            "minimum = \"50ms\"",
            "size = \"96KB\"",
            "quantum = \"1500B\"",
            "threshold = \"32KB\"",
            "t-idle = \"60us\"",
            "rate = \"199Mbps\"",
            "bucket = \"2.5KB\"",
            "size = \"20KB\"",
            "duration = \"500ms\"",
            "from = \"0\"",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    /// The keys of a special transport are a table without types of its own.
    #[test]
    fn special_transports_are_scaled() {
        let text = r#"
            topology.star = { hosts = 2, rate = "1Gbps", delay = "50us" }
            ports.switch = { buffer = "unlimited", scheduler = "fifo" }
            workload.flows = [{ start = "0s", src = 0, dst = 1, size = "1MB" }]
            transports = [{ services = [1], set = { controller.ear = { t = "100us" } } }]
        "#;
        let scenario: Scenario = text.parse().unwrap();
        let scaled = Slowdown::new(0.2)
            .unwrap()
            .scenario(&scenario.config)
            .unwrap();
        let set = scaled.transports[0].set.to_string();
        assert!(set.contains("t = \"500us\""), "{set}");
        assert_eq!(scaled.transports[0].set.len(), 1, "{set}");
    }

    /// Strings that could be read as times and rates, but are not.
    #[test]
    fn names_and_commands_are_not_times() {
        let text = r#"
            name = "10ms"
            topology.star = { hosts = 2, rate = "1Gbps", delay = "50us" }
            workload.poisson = { load = 0.5, size = "20KB", flows = 3, load-of = "1Gbps" }
            live.commands = [{ host = 0, run = "1s", start = "1s" }]
            [ports.switch]
            buffer = "unlimited"
            scheduler = "fifo"
        "#;
        let scenario = Scenario::parse(Path::new("x.toml"), text, &[])
            .unwrap()
            .config;
        let scaled = Slowdown::new(0.2).unwrap().scenario(&scenario).unwrap();
        assert_eq!(scaled.name.as_deref(), Some("10ms"));
        let command = &scaled.live.commands[0];
        assert_eq!((&*command.run, command.start), ("1s", Time::from_secs(5)));
        let text = toml::to_string(&scaled).unwrap();
        assert!(text.contains("load-of = \"200Mbps\""), "{text}");
    }

    /// Rates of UDP flows are scaled with the links; flows keep their sizes.
    #[test]
    fn streams_are_scaled() {
        let text = r#"
            until = "1s"
            topology.star = { hosts = 2, rate = "10Gbps", delay = "5us" }
            ports.switch = { buffer = "unlimited", scheduler = "fifo" }
            [[workload]]
            udp = { src = 0, dst = 1, start = "3ms", stop = "1s", stream = { jitter = "2us", send = { constant = { rate = "9Gbps", size = "64KB" } } } }
            [[workload]]
            udp = { src = 1, dst = 0, stream = { send = { burst = { bytes = "2MB", interval = "25ms" } } } }
        "#;
        let scenario = Scenario::parse(Path::new("x.toml"), text, &[]).unwrap();
        let built = scenario.build().unwrap();
        let workload = (*built.workload).clone();
        let scaled = Slowdown::new(0.01).unwrap().workload(workload).unwrap();
        let texts: Vec<String> = scaled
            .streams
            .iter()
            .map(|stream| toml::to_string(stream).unwrap())
            .collect();
        for (of, line) in [
            (0, "rate = \"90Mbps\""),
            (0, "size = \"64KB\""),
            (0, "jitter = \"200us\""),
            (0, "send-buffer = \"212.992KB\""),
            (0, "timeout = \"3000s\""),
            (1, "bytes = \"2MB\""),
            (1, "interval = \"2.5s\""),
        ] {
            assert!(texts[of].contains(line), "{line} is not in\n{}", texts[of]);
        }
        let late = scaled.flows.iter().map(|flow| flow.start).max();
        assert_eq!(late, Some(Time::from_ms(300)));
        assert_eq!(scaled.stops[0].at, Time::from_secs(100));
    }

    /// With a factor of one nothing changes, whatever a scenario has.
    #[test]
    fn shipped_scenarios_survive() {
        let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        for entry in std::fs::read_dir(scenarios).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                let scenario = Scenario::read(&path, &[]).unwrap().config;
                let same = Slowdown::new(1.0).unwrap().scenario(&scenario).unwrap();
                assert_eq!(same, scenario, "{}", path.display());
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for factor in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(Slowdown::new(factor).is_err(), "{factor}");
        }
    }
}
