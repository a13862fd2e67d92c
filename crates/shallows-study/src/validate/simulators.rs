//! The published simulators, their flows and the schemes that both sides have.

/// A published simulator: its flows, what it made of them, and our scenario of it.
#[derive(Debug)]
pub struct Simulator {
    /// Its name at the command line and in file names.
    pub name: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// The flows and their completion times.
    pub(super) flows: &'static str,
    /// The example with its fabric and its transport.
    pub(super) scenario: &'static str,
    /// Draw of our paths, where theirs are not known.
    pub(super) paths: Paths,
    /// A small flow that takes longer, in microseconds, has waited for a retransmission timeout;
    /// none where queues alone can take as long.
    pub(super) timeout: Option<f64>,
    /// The schemes.
    pub(super) references: &'static [Reference],
}

/// Agreement of the paths of flows in both simulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paths {
    /// By the same hash of the same numbers: each flow has the path that it has in theirs.
    Same,
    /// By other random numbers, so that each of our runs draws anew.
    Drawn,
}

/// A scheme that both simulators have.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) label: &'static str,
    /// The column with the completion times; empty where a flow had not finished at the end.
    pub(super) column: &'static str,
    pub(super) settings: &'static [&'static str],
    /// Timeouts of the finished flows in the authors' run.
    pub(super) timeouts: u32,
}

/// All of them.
pub static SIMULATORS: [Simulator; 3] = [MQ_ECN, EAR, QJUMP];

impl Simulator {
    /// The simulator of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        SIMULATORS.iter().find(|simulator| simulator.name == name)
    }

    /// Name of the file with the flows.
    pub(super) fn file(&self) -> String {
        format!("data/validation/{}/flows.csv", self.name)
    }
}

/// 5,000 flows at 50% load.
const MQ_ECN: Simulator = Simulator {
    name: "mq-ecn",
    label: "MQ-ECN",
    flows: include_str!("../../data/validation/mq-ecn/flows.csv"),
    scenario: "mq-ecn-as-simulated",
    paths: Paths::Same,
    timeout: Some(5_000.0),
    references: &[
        Reference {
            label: "Standard threshold",
            column: "standard_us",
            settings: &["ports.switch.marker.scheme={ per-queue = { threshold = '65pkts' } }"],
            timeouts: 157,
        },
        Reference {
            label: "MQ-ECN",
            column: "mq_ecn_us",
            settings: &[],
            timeouts: 20,
        },
        Reference {
            label: "Minimum threshold",
            column: "minimum_us",
            settings: &["ports.switch.marker.scheme={ per-queue = { threshold = '8.125pkts' } }"],
            timeouts: 0,
        },
    ],
};

/// The published script as it is: 32 hosts, the core loaded by 80%, 10,010 flows, of which it
/// waits for 10,000.
const EAR: Simulator = Simulator {
    name: "ear",
    label: "EAR",
    flows: include_str!("../../data/validation/ear/flows.csv"),
    scenario: "ear-as-simulated",
    paths: Paths::Drawn,
    timeout: Some(10_000.0),
    references: &[
        Reference {
            label: "ECN-based DCTCP",
            column: "ecn_us",
            settings: &["transport.controller={ dctcp = { initial-alpha = 0.0 } }"],
            timeouts: 17,
        },
        Reference {
            label: "Delay-based DCTCP",
            column: "delay_us",
            settings: &[
                "transport.controller={ delay-dctcp = { t = '108us', initial-alpha = 0.0 } }",
            ],
            timeouts: 18,
        },
        Reference {
            label: "EAR",
            column: "ear_us",
            settings: &[],
            timeouts: 3,
        },
    ],
};

/// Web search at 60% load on four racks of eight hosts; all else as published.
const QJUMP: Simulator = Simulator {
    name: "qjump",
    label: "QJUMP",
    flows: include_str!("../../data/validation/qjump/flows.csv"),
    scenario: "qjump-as-simulated",
    paths: Paths::Drawn,
    timeout: None,
    references: &[
        Reference {
            label: "QJUMP",
            column: "qjump_us",
            settings: &[],
            timeouts: 12_692,
        },
        // The variant of repro/qjump/fig9-web-search.toml, with the growth of the authors' code.
        Reference {
            label: "DCTCP",
            column: "dctcp_us",
            settings: &[
                "hosts={}",
                "ports.switch={ queues = 1, buffer = { shared = { size = '224999B' } }, scheduler = 'fifo' }",
                "ports.switch.marker.scheme.per-queue.threshold=15pkts",
                "transport.receive-window=149",
                "transport.controller={ dctcp = { g = 0.0625, initial-alpha = 0.0 } }",
                "transport.ecn=precise",
                "transport.marked-growth=in-bursts",
            ],
            timeouts: 0,
        },
    ],
};
