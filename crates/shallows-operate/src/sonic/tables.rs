//! Rows of the tables about queues. Field names and defaults are those of SONiC's YANG models.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::names::PortName;
use super::read::{Problems, Row};

/// Highest queue of a port (`sonic-queue.yang`, `sonic-buffer-queue.yang`).
pub(super) const LAST_QUEUE: u8 = 15;

/// A row of `WRED_PROFILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WredProfile {
    /// Packets that no policer has coloured.
    pub green: Curve,
    /// Packets of a second colour.
    pub yellow: Curve,
    /// Packets of a third colour.
    pub red: Curve,
    /// The colours whose ECN-capable packets are marked rather than dropped.
    pub ecn: EcnColors,
    /// True if the row has the field `ecn`.
    pub ecn_given: bool,
}

/// WRED curve of one colour over the length of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Bytes at which the probability begins to rise.
    pub min: Option<u64>,
    /// Bytes above which it is 1.
    pub max: Option<u64>,
    /// The probability at `max`, in percent.
    pub probability: u8,
    /// Switch of the curve; off if not given.
    pub enable: Option<bool>,
}

impl Curve {
    /// Returns whether marking or dropping is on.
    pub fn is_on(&self) -> bool {
        self.enable == Some(true)
    }
}

/// Colours whose packets are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnColors {
    /// Green ones.
    pub green: bool,
    /// Yellow ones.
    pub yellow: bool,
    /// Red ones.
    pub red: bool,
}

impl EcnColors {
    const fn new(green: bool, yellow: bool, red: bool) -> Self {
        Self { green, yellow, red }
    }

    /// The word of the configuration for these colours.
    pub fn word(self) -> &'static str {
        let found = ECN_WORDS.iter().find(|(_, colors)| *colors == self);
        found.map_or("ecn_none", |(word, _)| word)
    }
}

const ECN_WORDS: [(&str, EcnColors); 8] = [
    ("ecn_none", EcnColors::new(false, false, false)),
    ("ecn_green", EcnColors::new(true, false, false)),
    ("ecn_yellow", EcnColors::new(false, true, false)),
    ("ecn_red", EcnColors::new(false, false, true)),
    ("ecn_green_yellow", EcnColors::new(true, true, false)),
    ("ecn_green_red", EcnColors::new(true, false, true)),
    ("ecn_yellow_red", EcnColors::new(false, true, true)),
    ("ecn_all", EcnColors::new(true, true, true)),
];

impl WredProfile {
    pub(super) const FIELDS: [&str; 13] = [
        "ecn",
        "green_min_threshold",
        "green_max_threshold",
        "green_drop_probability",
        "wred_green_enable",
        "yellow_min_threshold",
        "yellow_max_threshold",
        "yellow_drop_probability",
        "wred_yellow_enable",
        "red_min_threshold",
        "red_max_threshold",
        "red_drop_probability",
        "wred_red_enable",
    ];

    pub(super) fn read(row: &Row<'_>, problems: &mut Problems) -> Self {
        let mut curve = |color: &str| Curve {
            min: row.bytes(&format!("{color}_min_threshold"), problems),
            max: row.bytes(&format!("{color}_max_threshold"), problems),
            probability: row
                .number(&format!("{color}_drop_probability"), 0..=100, problems)
                .unwrap_or(100) as u8,
            enable: row.flag(&format!("wred_{color}_enable"), problems),
        };
        let (green, yellow, red) = (curve("green"), curve("yellow"), curve("red"));
        let ecn = row.word("ecn", &ECN_WORDS, problems);
        Self {
            green,
            yellow,
            red,
            ecn: ecn.unwrap_or_default(),
            ecn_given: ecn.is_some(),
        }
    }

    /// The three colours with their names.
    pub(super) fn curves(&self) -> [(&'static str, Curve); 3] {
        [
            ("green", self.green),
            ("yellow", self.yellow),
            ("red", self.red),
        ]
    }
}

/// A row of `SCHEDULER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// Scheduling of the queue.
    pub kind: SchedulerKind,
    /// Its share in a round robin.
    pub weight: u32,
    /// True if the row has the field `weight`.
    pub weight_given: bool,
    /// Bytes per second that it may send at most; packets where `meter_type` says so.
    pub pir: Option<u64>,
    /// Bytes that it may send at once.
    pub pbs: Option<u64>,
    /// True if rates are in packets.
    pub in_packets: bool,
    /// True if `cir`, `cbs` or `priority` are given, which nothing here follows.
    pub more: bool,
}

/// Scheduling of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchedulerKind {
    /// Before all queues of lower number, and before all that are not strict.
    Strict,
    /// Deficit weighted round robin.
    Dwrr,
    /// Weighted round robin.
    Wrr,
}

impl SchedulerKind {
    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Strict => "STRICT",
            Self::Dwrr => "DWRR",
            Self::Wrr => "WRR",
        }
    }
}

impl Scheduler {
    pub(super) const FIELDS: [&str; 8] = [
        "type",
        "weight",
        "priority",
        "meter_type",
        "cir",
        "pir",
        "cbs",
        "pbs",
    ];

    pub(super) fn read(row: &Row<'_>, problems: &mut Problems) -> Self {
        let kinds = [
            SchedulerKind::Strict,
            SchedulerKind::Dwrr,
            SchedulerKind::Wrr,
        ];
        let kinds = kinds.map(|kind| (kind.word(), kind));
        let meters = [("bytes", false), ("packets", true)];
        let weight = row.number("weight", 0..=i64::from(u32::MAX), problems);
        let priority = row.number("priority", 0..=9, problems);
        let cir = row.bytes("cir", problems);
        let cbs = row.bytes("cbs", problems);
        Self {
            kind: row
                .word("type", &kinds, problems)
                .unwrap_or(SchedulerKind::Wrr),
            weight: weight.unwrap_or(1) as u32,
            weight_given: weight.is_some(),
            pir: row.bytes("pir", problems),
            pbs: row.bytes("pbs", problems),
            in_packets: row.word("meter_type", &meters, problems).unwrap_or(false),
            more: priority.is_some() || cir.is_some() || cbs.is_some(),
        }
    }
}

/// A row of `QUEUE` or `BUFFER_QUEUE`: what some queues of some ports have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRow {
    /// The key.
    pub key: String,
    /// The ports.
    pub ports: Vec<PortName>,
    /// The queues.
    pub queues: RangeInclusive<u8>,
    /// `scheduler` in `QUEUE`.
    pub scheduler: Option<String>,
    /// `wred_profile` in `QUEUE`.
    pub wred: Option<String>,
    /// `profile` in `BUFFER_QUEUE`.
    pub buffer: Option<String>,
}

impl QueueRow {
    pub(super) const FIELDS: [&str; 2] = ["scheduler", "wred_profile"];
    pub(super) const BUFFER_FIELDS: [&str; 1] = ["profile"];

    /// Reads a row of `QUEUE` or `BUFFER_QUEUE`; nothing if its key cannot be read.
    pub(super) fn read(row: &Row<'_>, problems: &mut Problems) -> Option<Self> {
        let (ports, queues) = match members(row.key) {
            Ok(members) => members,
            Err(reason) => {
                problems.add(row.place(), reason);
                return None;
            }
        };
        Some(Self {
            key: row.key.to_owned(),
            ports,
            queues,
            scheduler: row.reference("scheduler", "SCHEDULER", problems),
            wred: row.reference("wred_profile", "WRED_PROFILE", problems),
            buffer: row.reference("profile", "BUFFER_PROFILE", problems),
        })
    }
}

impl QueueRow {
    /// Each port with each queue.
    pub(super) fn members(&self) -> impl Iterator<Item = (&PortName, u8)> {
        let ports = self.ports.iter();
        ports.flat_map(|port| self.queues.clone().map(move |queue| (port, queue)))
    }
}

/// The ports and queues of a key such as `Ethernet0,Ethernet4|3-4`.
fn members(key: &str) -> Result<(Vec<PortName>, RangeInclusive<u8>), String> {
    let expected = "write a key such as \"Ethernet0|3\" or \"Ethernet0|3-4\"";
    let Some((ports, queues)) = key.rsplit_once('|') else {
        return Err(format!("the key names no queue; {expected}"));
    };
    let queue = |text: &str| match text.parse() {
        Ok(queue) if queue <= LAST_QUEUE => Ok(queue),
        _ => Err(format!(
            "{text:?} is not a queue from 0 to {LAST_QUEUE}; {expected}"
        )),
    };
    let queues = match queues.split_once('-') {
        Some((first, last)) => queue(first)?..=queue(last)?,
        None => queue(queues)?..=queue(queues)?,
    };
    if queues.is_empty() {
        return Err(format!("the queues run backwards; {expected}"));
    }
    let (chassis, ports) = match ports.rsplit_once('|') {
        Some((chassis, ports)) => (format!("{chassis}|"), ports),
        None => (String::new(), ports),
    };
    let names: Vec<PortName> = ports
        .split(',')
        .filter(|port| !port.is_empty())
        .map(|port| PortName::new(format!("{chassis}{port}")))
        .collect();
    if names.is_empty() {
        return Err(format!("the key names no port; {expected}"));
    }
    Ok((names, queues))
}

/// A row of `BUFFER_POOL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferPool {
    /// Bytes; a dynamic buffer model computes it at run time if it is not given.
    pub size: Option<u64>,
    /// True if packets are counted as they leave.
    pub egress: bool,
}

impl BufferPool {
    pub(super) const FIELDS: [&str; 5] = ["type", "mode", "size", "xoff", "percentage"];

    pub(super) fn read(row: &Row<'_>, problems: &mut Problems) -> Self {
        let sides = [("ingress", false), ("egress", true), ("both", true)];
        row.word("mode", &[("static", ()), ("dynamic", ())], problems);
        row.number("percentage", 0..=100, problems);
        row.bytes("xoff", problems);
        Self {
            size: row.bytes("size", problems),
            egress: row.word("type", &sides, problems).unwrap_or(true),
        }
    }
}

/// A row of `BUFFER_PROFILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferProfile {
    /// The pool.
    pub pool: Option<String>,
    /// Bytes that are reserved.
    pub reserved: u64,
    /// The limit beyond them, if it is given.
    pub threshold: Option<Threshold>,
    /// True if packets that find no room are cut rather than dropped.
    pub trims: bool,
}

/// Share of a pool that a queue may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Threshold {
    /// At most 2^n times what is free.
    Dynamic(i8),
    /// At most this number of bytes.
    Static(u64),
}

impl BufferProfile {
    pub(super) const FIELDS: [&str; 9] = [
        "pool",
        "size",
        "dynamic_th",
        "static_th",
        "xon",
        "xoff",
        "xon_offset",
        "headroom_type",
        "packet_discard_action",
    ];

    pub(super) fn read(row: &Row<'_>, problems: &mut Problems) -> Self {
        for field in ["xon", "xoff", "xon_offset"] {
            row.bytes(field, problems);
        }
        row.word(
            "headroom_type",
            &[("static", ()), ("dynamic", ())],
            problems,
        );
        let actions = [("drop", false), ("trim", true)];
        let dynamic = row.number("dynamic_th", -8..=7, problems);
        let fixed = row.bytes("static_th", problems);
        if dynamic.is_some() && fixed.is_some() {
            let reason = "dynamic_th and static_th exclude each other; keep one of the two";
            problems.add(row.place(), reason);
        }
        let dynamic = dynamic.map(|exponent| Threshold::Dynamic(exponent as i8));
        Self {
            pool: row.reference("pool", "BUFFER_POOL", problems),
            reserved: row.bytes("size", problems).unwrap_or(0),
            threshold: dynamic.or(fixed.map(Threshold::Static)),
            trims: row
                .word("packet_discard_action", &actions, problems)
                .unwrap_or(false),
        }
    }
}

/// A row of `PORT_QOS_MAP`, which is that of a port or `global`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortQosMap {
    /// The map from DSCP to traffic class.
    pub dscp_to_tc: Option<String>,
    /// The map from traffic class to queue.
    pub tc_to_queue: Option<String>,
    /// Queues with priority flow control.
    pub pfc: Vec<u8>,
    /// The scheduler of the port as a whole.
    pub scheduler: Option<String>,
}

impl PortQosMap {
    pub(super) const FIELDS: [&str; 10] = [
        "dscp_to_tc_map",
        "tc_to_queue_map",
        "tc_to_pg_map",
        "tc_to_dscp_map",
        "dot1p_to_tc_map",
        "pfc_to_queue_map",
        "pfc_to_pg_map",
        "pfc_enable",
        "pfcwd_sw_enable",
        "scheduler",
    ];

    pub(super) fn read(row: &Row<'_>, problems: &mut Problems) -> Self {
        let mut queues = |field: &str| {
            let text = row.text(field, problems).unwrap_or_default();
            let mut queues = Vec::new();
            for part in text.split(',').filter(|part| !part.is_empty()) {
                if let Ok(queue @ 0..=7) = part.parse() {
                    queues.push(queue);
                } else {
                    let reason = format!("{part:?} is not a priority from 0 to 7");
                    problems.add(row.place().field(field), reason);
                }
            }
            queues
        };
        let pfc = queues("pfc_enable");
        queues("pfcwd_sw_enable");
        Self {
            dscp_to_tc: row.reference("dscp_to_tc_map", "DSCP_TO_TC_MAP", problems),
            tc_to_queue: row.reference("tc_to_queue_map", "TC_TO_QUEUE_MAP", problems),
            pfc,
            scheduler: row.reference("scheduler", "SCHEDULER", problems),
        }
    }
}

/// A row of a table of maps: from numbers up to `last_key` to numbers up to `last_value`.
pub(super) fn number_map(
    row: &Row<'_>,
    (last_key, last_value): (u8, u8),
    problems: &mut Problems,
) -> BTreeMap<u8, u8> {
    let mut map = BTreeMap::new();
    for field in row.fields.keys() {
        let value = row.number(field, 0..=i64::from(last_value), problems);
        // "01" would be a second entry for 1.
        let key = (0..=last_key).find(|key| key.to_string() == *field);
        match (key, value) {
            (Some(key), Some(value)) => drop(map.insert(key, value as u8)),
            (Some(_), None) => {}
            (None, _) => {
                let reason = format!("{field:?} is not a number from 0 to {last_key}");
                problems.add(row.place().field(field), reason);
            }
        }
    }
    map
}
