//! The live world: real frames and real Linux TCP around the egress port of `shallows-core`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`frame`] | what the switch reads of an Ethernet frame, CE marking, frame memory |
//! | [`io`] | frames in and out of network devices: AF_PACKET, AF_XDP and TAP |
//! | [`switch`] | the userspace switch: configuration, forwarding, the loop, its counters |
//! | [`lab`] | hosts as network namespaces, cabled to a switch and removed on every way out |
//! | [`traffic`] | flows over persistent connections between the hosts of a lab, and ping |
//! | [`command`] | programs at the hosts |
//! | [`experiment`] | one run of all that |
//! | [`xco`] | XCo's controller and agent, as daemons and in a lab |
//! | [`mod@bench`] | how many frames a second the switch carries |

#![deny(unsafe_code)]
// They panic when nobody reads the pipe or the disk of a log is full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod bench;
pub mod command;
pub mod experiment;
pub mod frame;
pub mod io;
pub mod lab;
pub mod switch;
pub mod traffic;
pub mod xco;

use std::time::Instant;

use shallows_core::units::Time;

/// Time since an instant, by the clock of this machine.
///
/// # Panics
/// After 213 days, which is as far as [`Time`] counts: a daemon whose time stands still would drop
/// everything without a word, and one that ends is started again.
fn since(epoch: Instant) -> Time {
    let elapsed = Time::from_duration(epoch.elapsed());
    assert!(
        elapsed < Time::MAX,
        "this process has run for 213 days, which is as far as its clock counts: start it again"
    );
    elapsed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    #[should_panic(expected = "start it again")]
    fn a_process_ends_before_its_clock_stands_still() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let ago = |days| {
            Instant::now()
                .checked_sub(days)
                .expect("clocks count below zero")
        };
        assert!(since(ago(days(213))) > Time::from_secs(213 * 86_400));
        since(ago(days(214)));
    }
}
