use std::io;

use shallows_core::host::qjump::AutomaticError;
use shallows_core::units::Time;
use thiserror::Error as ThisError;

use super::{Device, LimitsError};

/// The reason why a limiter is not applied, found or removed.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The limits are impossible.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// BPF is not possible here.
    #[error(transparent)]
    Bpf(#[from] crate::Error),
    /// Inside of `ip netns exec`.
    #[error(
        "this is the network namespace {0}, which has no /sys/fs/bpf: run the command outside of \
         `ip netns exec`, with --netns {0}"
    )]
    InNamespace(String),
    /// No such namespace.
    #[error("there is no network namespace called {name}")]
    NoNamespace {
        /// Its name.
        name: String,
        /// The reason why not.
        source: io::Error,
    },
    /// No such device.
    #[error("there is no device {0}")]
    NoDevice(Device),
    /// Frames of the device have no Ethernet header.
    #[error("{0} is no Ethernet device")]
    NotEthernet(Device),
    /// Neither tcx nor clsact.
    #[error(
        "the kernel has no place for a program at the egress of a device: it needs Linux 6.6 \
         (tcx), or CONFIG_NET_CLS_ACT with CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF: {0}"
    )]
    NoHook(String),
    /// The device's queue does not serve levels.
    #[error(
        "the queue of {device} is {qdisc}, which does not serve levels in strict priority: \
         {problem}. A high level would wait behind bulk in this host; `--qdisc install` puts a \
         queue that serves levels there, `--qdisc ignore` leaves it as it is"
    )]
    Queue {
        /// The device.
        device: Device,
        /// Its qdiscs.
        qdisc: String,
        /// The reason why not.
        problem: String,
    },
    /// A limiter that cannot be changed in place.
    #[error("{device} has a limiter {problem}; `shallows qjump remove` removes it")]
    Other {
        /// The device.
        device: Device,
        /// In which way it is another one.
        problem: &'static str,
    },
    /// A second trial has no defined limits to return to.
    #[error(
        "{0} has limits on trial already: run `shallows qjump confirm` or `remove` first, or apply \
         without --for"
    )]
    OnTrial(Device),
    /// There is nothing to confirm.
    #[error("the limiter of {0} is not on trial")]
    NotOnTrial(Device),
    /// Everything passes already.
    #[error("the trial of {0} has ended; apply the limits again")]
    TrialEnded(Device),
    /// Excess of guests cannot be held.
    #[error(
        "what a guest sends too much is dropped where it comes in: leave out excess = \"hold\""
    )]
    GuestsWait,
    /// The device has none.
    #[error("{0} has no limiter; `shallows qjump apply` makes one")]
    NotThere(Device),
    /// Levels cannot be told apart by what is sent.
    #[error(transparent)]
    Automatic(#[from] AutomaticError),
    /// Somebody else chooses.
    #[error("levels are chosen at {0} already; one `shallows qjump auto` a device")]
    AlreadyChosen(Device),
    /// Too few epochs to judge by.
    #[error("epochs of this length take a time to settle of at least {least}, not {settle}")]
    Settle {
        /// The time to settle.
        settle: Time,
        /// The least that is possible.
        least: Time,
    },
    /// The clock is too coarse.
    #[error("the kernel's clock advances by {resolution_ns} ns, which is longer than the epoch")]
    CoarseClock {
        /// By how much at a time.
        resolution_ns: u64,
    },
    /// `ip` or `tc` failed.
    #[error("`{command}` failed: {problem}")]
    Command {
        /// The command line.
        command: String,
        /// Message of the program.
        problem: String,
    },
}
