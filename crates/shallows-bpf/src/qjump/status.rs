use std::fmt::{self, Display, Formatter, Write as _};
use std::path::PathBuf;

use serde::Serialize;
use shallows_core::units::{Bytes, Time};

use super::{Allotment, Limits, Queue};

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// The named network namespace that it is in, if that is not ours.
    pub netns: Option<String>,
}

impl Device {
    /// A device of this network namespace.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            netns: None,
        }
    }
}

impl Display for Device {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.netns {
            Some(netns) => write!(f, "{} in {netns}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Attachment point of the program in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// A link of Linux 6.6 and later.
    Tcx,
    /// A filter of the clsact qdisc.
    Clsact,
}

impl Display for Hook {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        })
    }
}

/// Side of a device whose packets a limiter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Those that the device sends: the host's own.
    #[default]
    Egress,
    /// Those that come in by the device: of the guest behind a tap or a veth.
    Guest,
}

/// Report of [`apply`](super::apply), or of [a check](super::check) without changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Attachment point of the program; none if that is not known before.
    pub hook: Option<Hook>,
    /// The device's MTU with its Ethernet header.
    pub frame: Bytes,
    /// Treatment of levels by the device's queue.
    pub queue: Queue,
    /// The limits that the device had before.
    pub replaced: Option<Limits>,
    /// The end of the trial, if it is one, in nanoseconds of the kernel's monotonic clock. It counts
    /// from the machine's start, and may be more than a [`Time`] holds.
    pub until_ns: Option<u64>,
}

/// A limiter in the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// Its device.
    pub device: Device,
    /// Attachment point of the program; none if the device is gone.
    pub hook: Option<Hook>,
    /// Side of the device whose packets it counts.
    pub side: Side,
    /// Treatment of levels by the device's queue, if it can be seen.
    pub queue: Option<Queue>,
    /// Remaining time of the trial until everything passes, if it is one.
    pub trial: Option<Time>,
    /// Its limits.
    pub limits: Limits,
    /// For each level from 0.
    pub levels: Vec<LevelStatus>,
    /// CPU time per packet, if the kernel measures it (`kernel.bpf_stats_enabled`).
    pub cost: Option<Cost>,
    /// The applications whose levels are chosen; none if nobody [chooses](super::Chooser).
    pub applications: Option<Vec<ApplicationStatus>>,
}

/// An application whose level is chosen by what it sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationStatus {
    /// Its cgroup.
    pub cgroup: PathBuf,
    /// Its level, from 0, the lowest.
    pub level: u8,
    /// Packets that it has sent without a level by hand.
    pub packets: u64,
    /// Their bytes on the link.
    pub bytes: u64,
    /// Those of the packets that its level had no bytes left for, and that went at a lower one.
    pub lowered_packets: u64,
}

/// A level of a limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LevelStatus {
    /// Packets that passed; a GSO packet is one.
    pub passed_packets: u64,
    /// Their bytes on the wire.
    pub passed_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Epochs in which it sent or tried to.
    pub epochs: u64,
    /// Remaining tokens of this epoch; none if it is not limited.
    pub tokens: Option<u64>,
    /// Bytes that wait for an epoch; none where the excess is dropped.
    pub waiting_bytes: Option<u64>,
}

/// Time in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cost {
    /// All of it.
    pub time: Time,
    /// Calls.
    pub packets: u64,
}

impl Cost {
    /// The mean of a packet, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.time.as_secs_f64() * 1e9 / self.packets as f64
    }
}

/// A metric of a level: name, type, help, and its value, if the level has one.
type LevelMetric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&LevelStatus, &Allotment) -> Option<u64>,
);

const LEVEL_METRICS: [LevelMetric; 7] = [
    (
        "passed_packets_total",
        "counter",
        "Packets within the limit.",
        |level, _| Some(level.passed_packets),
    ),
    (
        "passed_bytes_total",
        "counter",
        "Bytes within the limit.",
        |level, _| Some(level.passed_bytes),
    ),
    (
        "dropped_packets_total",
        "counter",
        "Packets over the limit.",
        |level, _| Some(level.dropped_packets),
    ),
    (
        "dropped_bytes_total",
        "counter",
        "Bytes over the limit.",
        |level, _| Some(level.dropped_bytes),
    ),
    (
        "epochs_total",
        "counter",
        "Epochs in which the level sent.",
        |level, _| Some(level.epochs),
    ),
    (
        "tokens_bytes",
        "gauge",
        "Bytes left in the epoch.",
        |level, _| level.tokens,
    ),
    (
        "allotment_bytes",
        "gauge",
        "Bytes that the level may send in an epoch.",
        |_, allotment| match allotment {
            Allotment::Bytes(bytes) => Some(bytes.get()),
            Allotment::Unlimited => None,
        },
    ),
];

/// Everything in Prometheus' text format.
pub fn prometheus(limiters: &[Status]) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in LEVEL_METRICS {
        let _ = writeln!(text, "# HELP shallows_qjump_{name} {help}");
        let _ = writeln!(text, "# TYPE shallows_qjump_{name} {kind}");
        for limiter in limiters {
            let labels = labels(&limiter.device);
            let levels = limiter.levels.iter().zip(&limiter.limits.levels);
            for (number, (level, allotment)) in levels.enumerate() {
                if let Some(value) = value(level, allotment) {
                    let _ = writeln!(
                        text,
                        "shallows_qjump_{name}{{{labels},level=\"{number}\"}} {value}"
                    );
                }
            }
        }
    }
    text += "# HELP shallows_qjump_epoch_seconds Length of an epoch.\n\
             # TYPE shallows_qjump_epoch_seconds gauge\n";
    for limiter in limiters {
        let labels = labels(&limiter.device);
        let epoch = limiter.limits.epoch.as_secs_f64();
        let _ = writeln!(text, "shallows_qjump_epoch_seconds{{{labels}}} {epoch}");
    }
    applications(limiters, &mut text);
    text
}

/// The labels that name a device.
fn labels(device: &Device) -> String {
    let Device { name, netns } = device;
    let netns = escaped(netns.as_deref().unwrap_or_default());
    format!("device=\"{}\",netns=\"{netns}\"", escaped(name))
}

/// The value of a label: systemd's names of cgroups have backslashes.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

/// The applications whose levels are chosen.
fn applications(limiters: &[Status], text: &mut String) {
    let mut metric = |name: &str, kind: &str, help: &str, value: fn(&ApplicationStatus) -> u64| {
        let _ = writeln!(text, "# HELP shallows_qjump_application_{name} {help}");
        let _ = writeln!(text, "# TYPE shallows_qjump_application_{name} {kind}");
        for limiter in limiters {
            let device = escaped(&limiter.device.name);
            let netns = escaped(limiter.device.netns.as_deref().unwrap_or_default());
            for application in limiter.applications.iter().flatten() {
                let _ = writeln!(
                    text,
                    "shallows_qjump_application_{name}{{device=\"{device}\",netns=\"{netns}\",\
                     cgroup=\"{}\"}} {}",
                    escaped(&application.cgroup.to_string_lossy()),
                    value(application)
                );
            }
        }
    };
    metric(
        "level",
        "gauge",
        "The level that was chosen for a cgroup.",
        |of| of.level.into(),
    );
    metric(
        "bytes_total",
        "counter",
        "Bytes of a cgroup whose level is chosen.",
        |of| of.bytes,
    );
    metric(
        "lowered_packets_total",
        "counter",
        "Packets of a cgroup that went at a lower level, because theirs had no bytes left.",
        |of| of.lowered_packets,
    );
}

#[cfg(test)]
mod tests {
    use shallows_core::host::qjump::{EpochClock, Excess};

    use super::*;

    #[test]
    fn metrics_have_a_line_for_each_level() {
        let status = Status {
            device: Device::named("eth0"),
            hook: Some(Hook::Tcx),
            side: Side::Egress,
            queue: None,
            trial: None,
            limits: Limits {
                epoch: Time::from_us(100),
                levels: vec![Allotment::Unlimited, Allotment::Bytes(Bytes::new(256))],
                clock: EpochClock::Grid,
                excess: Excess::Drop,
                hold_limit: None,
                dscp: None,
                priority_tag: false,
            },
            levels: vec![
                LevelStatus {
                    passed_packets: 3,
                    ..LevelStatus::default()
                },
                LevelStatus {
                    dropped_bytes: 128,
                    tokens: Some(17),
                    ..LevelStatus::default()
                },
            ],
            cost: None,
            applications: Some(vec![ApplicationStatus {
                cgroup: "/system.slice/my\\x2dcache \"a\".service".into(),
                level: 1,
                packets: 5,
                bytes: 500,
                lowered_packets: 0,
            }]),
        };
        let text = prometheus(&[status]);
        let unknown = shallows_testing::unknown_to_dashboard("limiter", &text);
        assert!(unknown.is_empty(), "{unknown:?}");
        for line in [
            "shallows_qjump_passed_packets_total{device=\"eth0\",netns=\"\",level=\"0\"} 3",
            "shallows_qjump_dropped_bytes_total{device=\"eth0\",netns=\"\",level=\"1\"} 128",
            "shallows_qjump_tokens_bytes{device=\"eth0\",netns=\"\",level=\"1\"} 17",
            "shallows_qjump_allotment_bytes{device=\"eth0\",netns=\"\",level=\"1\"} 256",
            "shallows_qjump_epoch_seconds{device=\"eth0\",netns=\"\"} 0.0001",
            "shallows_qjump_application_level{device=\"eth0\",netns=\"\",\
             cgroup=\"/system.slice/my\\\\x2dcache \\\"a\\\".service\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("tokens_bytes{device=\"eth0\",netns=\"\",level=\"0\"}"));
    }
}
