//! The queue between the limiter and the driver: what the device's qdiscs make of levels, and one of
//! ours where they make nothing of them.
//!
//! Tried: pfifo_fast, tbf and mq over it, noqueue, and our own HTB. Of prio, ets and mqprio only the
//! output of `tc` has been read.

use serde::Deserialize;
use shallows_core::host::qjump::MAX_LEVELS;
use shallows_core::units::Time;

use super::device::{Found, run};
use crate::qjump::{Allotment, Error, Limits, Queue, QueueChoice};

/// The handle of our qdisc. Priorities with this major number are levels and nothing else: the
/// kernel makes small numbers of `IP_TOS`, and nobody else has this one.
pub(crate) const MAJOR: u32 = 0x514A;
const HANDLE: &str = "514a:";

/// A priority for each level.
pub(super) type Priorities = [u32; MAX_LEVELS];

/// The priority that carries a level: the id of its class in our qdisc.
pub(crate) fn carrier(level: u8) -> u32 {
    MAJOR << 16 | (u32::from(level) + 1)
}

fn carriers() -> Priorities {
    std::array::from_fn(|level| carrier(level as u8))
}

/// Changes of a device's queue that the limiter needs.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) queue: Queue,
    pub(super) priorities: Priorities,
    /// The root has to be ours.
    pub(super) ours: bool,
}

impl Service {
    /// Service at the ingress from a guest: the queue behind it belongs to another device.
    pub(super) fn of_guest() -> Self {
        Self {
            queue: Queue {
                qdisc: "noqueue".to_owned(),
                problem: None,
            },
            priorities: carriers(),
            ours: false,
        }
    }
}

/// A qdisc as `tc -json` shows it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Qdisc {
    kind: String,
    handle: String,
    #[serde(default)]
    parent: String,
    #[serde(default)]
    root: bool,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    drops: u64,
    #[serde(default)]
    backlog: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Options {
    /// Of pfifo_fast, prio and ets.
    priomap: Vec<u8>,
    /// Of ets.
    strict: Option<u8>,
    /// Of mqprio.
    map: Vec<u8>,
}

/// The qdiscs of a device, in the network namespace of the thread.
pub(super) fn show(name: &str) -> Result<Vec<Qdisc>, Error> {
    let shown = run(None, "tc", &["-s", "-json", "qdisc", "show", "dev", name])?;
    serde_json::from_str(&shown).map_err(|error| Error::Command {
        command: "tc -json qdisc show".to_owned(),
        problem: error.to_string(),
    })
}

/// Chooses the queue behind a limiter, in the network namespace of the thread; changes nothing.
pub(super) fn choose(
    found: &Found,
    limits: &Limits,
    choice: QueueChoice,
) -> Result<Service, Error> {
    let qdiscs = show(&found.device.name)?;
    let refused = |qdisc: &str, problem: &str| Error::Queue {
        device: found.device.clone(),
        qdisc: qdisc.to_owned(),
        problem: problem.to_owned(),
    };
    let root = root(&qdiscs);
    let is_ours = root.is_some_and(|root| root.handle == HANDLE);
    let holds = limits.hold_limit().is_some();
    if choice == QueueChoice::Install || holds || is_ours {
        let name = root.map_or("noqueue", |root| &root.kind);
        if root.is_some_and(|root| root.handle != "0:") && !is_ours {
            let problem = "it was configured by hand, so it is not replaced; delete it first";
            return Err(refused(name, problem));
        }
        return Ok(Service {
            queue: Queue {
                qdisc: "htb (ours)".to_owned(),
                problem: None,
            },
            priorities: carriers(),
            ours: true,
        });
    }
    let (queue, priorities) = judge(&qdiscs, limits.levels.len());
    match &queue.problem {
        Some(problem) if choice == QueueChoice::Keep => Err(refused(&queue.qdisc, problem)),
        _ => Ok(Service {
            queue,
            priorities,
            ours: false,
        }),
    }
}

/// Judges how the qdiscs of a device serve levels.
pub(super) fn judge(qdiscs: &[Qdisc], levels: usize) -> (Queue, Priorities) {
    let Some(root) = root(qdiscs) else {
        let qdisc = "noqueue".to_owned();
        let problem = None;
        return (Queue { qdisc, problem }, carriers());
    };
    let (qdisc, served) = serve(qdiscs, root, levels);
    match served {
        Ok(priorities) => {
            let problem = None;
            (Queue { qdisc, problem }, priorities)
        }
        Err(problem) => {
            let problem = Some(problem);
            (Queue { qdisc, problem }, carriers())
        }
    }
}

/// The first qdisc of outgoing packets.
fn root(qdiscs: &[Qdisc]) -> Option<&Qdisc> {
    qdiscs
        .iter()
        .find(|qdisc| qdisc.root && !matches!(&*qdisc.kind, "clsact" | "ingress" | "noqueue"))
}

/// The name of a qdisc with those in it, and the priorities by which it serves levels.
fn serve(all: &[Qdisc], of: &Qdisc, levels: usize) -> (String, Result<Priorities, String>) {
    let name = of.kind.clone();
    let too_few =
        |ranks: usize| format!("there are {levels} levels, and it has {ranks} strict bands");
    let bands = |map: &[u8], rank: &dyn Fn(u8) -> u8| by_rank(map, rank, levels).map_err(too_few);
    match &*of.kind {
        "htb" if of.handle == HANDLE => (format!("{name} (ours)"), Ok(carriers())),
        "pfifo_fast" | "prio" => (name, bands(&of.options.priomap, &|band| band)),
        "ets" => {
            let strict = of.options.strict.unwrap_or(0);
            (name, bands(&of.options.priomap, &|band| band.min(strict)))
        }
        // The higher class is served first (802.1Q).
        "mqprio" => (name, bands(&of.options.map, &|class| u8::MAX - class)),
        "tbf" => match inside(all, of).next() {
            Some(child) => {
                let (inner, served) = serve(all, child, levels);
                (format!("{name}, {inner}"), served)
            }
            None => (name, Err("it has one queue for all".to_owned())),
        },
        "mq" => {
            let mut children = inside(all, of).map(|child| serve(all, child, levels));
            let Some((inner, first)) = children.next() else {
                return (name, Err("its queues are not shown".to_owned()));
            };
            let same = children.all(|(_, served)| served == first);
            let served = if same {
                first
            } else {
                Err("its queues differ".to_owned())
            };
            (format!("{name}, {inner}"), served)
        }
        _ => (name, Err("it does not go by priorities".to_owned())),
    }
}

/// The qdiscs inside one.
fn inside<'a>(all: &'a [Qdisc], of: &'a Qdisc) -> impl Iterator<Item = &'a Qdisc> {
    // The kernel's own have no number, and those inside of them no number before the colon.
    let handle = of.handle.strip_prefix('0').unwrap_or(&of.handle);
    all.iter()
        .filter(move |qdisc| !qdisc.root && qdisc.parent.starts_with(handle))
}

/// A priority for each level, so that a higher level has a lower rank, which is served first; or the
/// number of ranks if they are too few.
fn by_rank(map: &[u8], rank: &dyn Fn(u8) -> u8, levels: usize) -> Result<Priorities, usize> {
    let mut ranks: Vec<u8> = map.iter().map(|&band| rank(band)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.len() < levels {
        return Err(ranks.len());
    }
    let mut priorities = [0; MAX_LEVELS];
    for (level, priority) in priorities.iter_mut().enumerate().take(levels) {
        let wanted = ranks[levels - 1 - level];
        let first = map.iter().position(|&band| rank(band) == wanted);
        *priority = first.unwrap_or_default() as u32;
    }
    Ok(priorities)
}

/// Makes the root ours, or changes it if it is: a class for each level, served in strict priority,
/// and a token bucket for each level whose excess waits. Nothing is lost that waits at a level
/// which stays.
///
/// HTB serves the class of the first `prio` that has something to send and is within its rate, which
/// none ever exceeds here. The bucket counts bytes on the wire, and cuts GSO packets that exceed it
/// into frames.
pub(super) fn install(name: &str, limits: &Limits) -> Result<(), Error> {
    let is_ours = root(&show(name)?).is_some_and(|root| root.handle == HANDLE);
    if !is_ours {
        let htb = ["root", "handle", HANDLE, "htb", "default", "1"];
        tc(&["qdisc", "replace", "dev", name], &htb)?;
    }
    let count = limits.levels.len();
    for (level, &allotment) in limits.levels.iter().enumerate() {
        let class = format!("{HANDLE}{}", level + 1);
        let prio = (count - 1 - level).to_string();
        let rate = ["rate", "1tbit", "burst", "1mb", "cburst", "1mb"];
        let place = ["parent", HANDLE, "classid", &class, "htb"];
        let options = [&place[..], &rate, &["quantum", "60000", "prio", &prio]].concat();
        tc(&["class", "replace", "dev", name], &options)?;
        // Ours are 5151: and so on.
        let handle = format!("{:x}:", 0x5150 + level + 1);
        let there = show(name)?.iter().any(|qdisc| qdisc.handle == handle);
        match (allotment, limits.hold_limit()) {
            (Allotment::Bytes(bytes), Some(limit)) => {
                let place = ["parent", &class, "handle", &handle];
                let bucket = bucket(limits.epoch, bytes.get(), limit.get());
                let bucket: Vec<&str> = bucket.iter().map(String::as_str).collect();
                tc(
                    &["qdisc", "replace", "dev", name],
                    &[&place[..], &bucket].concat(),
                )?;
            }
            _ if there => tc(&["qdisc", "del", "dev", name], &["parent", &class])?,
            _ => {}
        }
    }
    Ok(())
}

/// The token bucket of a level: its bytes per epoch as rate and burst.
fn bucket(epoch: Time, bytes: u64, limit: u64) -> Vec<String> {
    let second = u128::from(Time::from_secs(1).ps());
    let rate = (u128::from(bytes) * second).div_ceil(u128::from(epoch.ps()));
    // The kernel counts bursts in steps of 64 ns, and rounds them down.
    let step = (rate * 64).div_ceil(1_000_000_000);
    let burst = u128::from(bytes) + step + 1;
    // `bps` are bytes here.
    let options = format!("tbf rate {rate}bps burst {burst}b limit {limit}b overhead 24 mpu 84");
    options.split(' ').map(str::to_owned).collect()
}

/// Removes our root, after which the kernel puts its default there.
pub(super) fn uninstall(name: &str) -> Result<(), Error> {
    if root(&show(name)?).is_some_and(|root| root.handle == HANDLE) {
        tc(&["qdisc", "del", "dev", name], &["root"])?;
    }
    Ok(())
}

/// Bytes that wait at a level in our root, and packets that found it full.
pub(super) fn waiting(qdiscs: &[Qdisc], level: usize) -> Option<(u64, u64)> {
    let class = format!("{HANDLE}{}", level + 1);
    let bucket = qdiscs
        .iter()
        .find(|qdisc| qdisc.parent == class && qdisc.kind == "tbf")?;
    Some((bucket.backlog, bucket.drops))
}

fn tc(what: &[&str], options: &[&str]) -> Result<(), Error> {
    run(None, "tc", &[what, options].concat()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(json: &str, levels: usize) -> (Queue, Priorities) {
        judge(&serde_json::from_str::<Vec<Qdisc>>(json).unwrap(), levels)
    }

    const PFIFO_FAST: &str = r#"{"kind":"pfifo_fast","handle":"0:","root":true,"refcnt":2,"options":{"bands":3,"priomap":[1,2,2,2,1,2,0,0,1,1,1,1,1,1,1,1]}}"#;

    #[test]
    fn pfifo_fast_serves_three_levels() {
        let json = format!("[{PFIFO_FAST}]");
        let (queue, priorities) = judged(&json, 3);
        assert_eq!(queue.problem, None);
        // Bands 2, 1 and 0.
        assert_eq!(priorities[..3], [1, 0, 6]);
        assert_eq!(judged(&json, 2).1[..2], [0, 6]);
        let (queue, _) = judged(&json, 4);
        let problem = "there are 4 levels, and it has 3 strict bands";
        assert_eq!(queue.problem.as_deref(), Some(problem));
    }

    #[test]
    fn what_is_inside_decides() {
        let child = PFIFO_FAST
            .replace("\"root\":true", "\"parent\":\"1:1\"")
            .replace("\"0:\"", "\"10:\"");
        let tbf = r#"{"kind":"tbf","handle":"1:","root":true,"options":{"rate":2500000}}"#;
        let clsact = r#"{"kind":"clsact","handle":"ffff:","parent":"ffff:fff1","options":{}}"#;
        let (queue, priorities) = judged(&format!("[{clsact},{tbf},{child}]"), 3);
        assert_eq!(
            (queue.qdisc.as_str(), queue.problem),
            ("tbf, pfifo_fast", None)
        );
        assert_eq!(priorities[2], 6);
        assert!(judged(&format!("[{tbf}]"), 3).0.problem.is_some());

        let mq = r#"{"kind":"mq","handle":"0:","root":true,"options":{}}"#;
        let of_mq =
            |number: u8| PFIFO_FAST.replace("\"root\":true", &format!("\"parent\":\":{number}\""));
        let two = format!("[{mq},{},{}]", of_mq(1), of_mq(2));
        assert_eq!(judged(&two, 3).0.problem, None);
        let fair = r#"{"kind":"fq_codel","handle":"0:","parent":":2","options":{}}"#;
        let mixed = format!("[{mq},{},{fair}]", of_mq(1));
        assert!(judged(&mixed, 3).0.problem.is_some());
    }

    #[test]
    fn other_strict_qdiscs_are_understood() {
        let prio = r#"[{"kind":"prio","handle":"1:","root":true,"options":{"bands":8,"priomap":[7,6,5,4,3,2,1,0,0,0,0,0,0,0,0,0]}}]"#;
        assert_eq!(judged(prio, 8).1, [0, 1, 2, 3, 4, 5, 6, 7]);
        let ets = r#"[{"kind":"ets","handle":"1:","root":true,"options":{"bands":4,"strict":2,"quanta":[1514,1514],"priomap":[3,2,1,0,3,3,3,3,3,3,3,3,3,3,3,3]}}]"#;
        // Two strict bands, and the others together.
        assert_eq!(judged(ets, 3).1[..3], [0, 2, 3]);
        assert!(judged(ets, 4).0.problem.is_some());
        let mqprio = r#"[{"kind":"mqprio","handle":"8001:","root":true,"options":{"tc":3,"map":[0,1,2,0,0,0,0,0,0,0,0,0,0,0,0,0],"queues":[[0,0],[1,1],[2,2]]}}]"#;
        assert_eq!(judged(mqprio, 3).1[..3], [0, 1, 2]);
        let fair = r#"[{"kind":"fq_codel","handle":"0:","root":true,"options":{}}]"#;
        assert!(judged(fair, 2).0.problem.is_some());
        let none = r#"[{"kind":"noqueue","handle":"0:","root":true,"options":{}}]"#;
        assert_eq!(judged(none, 8).0.problem, None);
    }

    #[test]
    fn a_bucket_has_the_bytes_of_an_epoch() {
        // 1,538 B in 10 us are 153.8 MB/s, of which 64 ns are 10 B.
        let bucket = bucket(Time::from_us(10), 1538, 128_000).join(" ");
        assert_eq!(
            bucket,
            "tbf rate 153800000bps burst 1549b limit 128000b overhead 24 mpu 84"
        );
    }
}
