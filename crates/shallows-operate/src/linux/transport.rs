//! Transport settings of a host.

use shallows_core::tcp::{AfterIdle, ControllerConfig, EcnEcho, TcpConfig};

use super::Command;
use crate::sonic::Fidelity;

/// The commands that give the sockets of a host this transport: for all of them, and by route to
/// `prefix` through `device`.
pub fn transport(tcp: &TcpConfig, device: &str, prefix: &str) -> Vec<Command> {
    use Fidelity::{Exact, Nearest};
    let (name, load, says) = match &tcp.controller {
        ControllerConfig::Reno {} => ("reno", None, "Reno"),
        ControllerConfig::Cubic(_) => ("cubic", None, "CUBIC, with the kernel's constants"),
        ControllerConfig::Dctcp(_) => ("dctcp", None, "DCTCP of the kernel's module tcp_dctcp"),
        ControllerConfig::EcnStar {} => ("shl_ecn_star", Some("ecn-star"), "ECN*"),
        ControllerConfig::DelayDctcp(_) => {
            let says = "delay-based DCTCP";
            ("shl_delay_dctcp", Some("delay-dctcp"), says)
        }
        ControllerConfig::Ear(_) => ("shl_ear", Some("ear"), "EAR"),
        _ => {
            let says = "the kernel has no such congestion controller; the present one stays";
            return vec![Command::missing(says)];
        }
    };
    let mut commands = Vec::new();
    if let Some(load) = load {
        let words = format!("shallows cc load {load}");
        let says = format!("{says} as a BPF program; docs/cc.md has its parameters");
        commands.push(Command::new(words, Exact, says));
    }
    let words = format!("sysctl -w net.ipv4.tcp_congestion_control={name}");
    commands.push(Command::new(
        words,
        Exact,
        format!("{says} for all connections"),
    ));
    let by_default = !matches!(
        tcp.controller,
        ControllerConfig::Reno {} | ControllerConfig::Cubic(_) | ControllerConfig::DelayDctcp(_)
    );
    let ecn = tcp.ecn.map_or(by_default, |echo| echo != EcnEcho::Off);
    let words = format!("sysctl -w net.ipv4.tcp_ecn={}", u8::from(ecn));
    commands.push(Command::new(
        words,
        Exact,
        "whether connections ask for ECN",
    ));
    let restart = u8::from(tcp.after_idle != AfterIdle::Keep);
    let words = format!("sysctl -w net.ipv4.tcp_slow_start_after_idle={restart}");
    commands.push(Command::new(words, Exact, "the window after an idle time"));
    let minimum = tcp.rto.minimum.ps().div_ceil(1_000_000_000).max(1);
    let features = if ecn { " features ecn" } else { "" };
    let words = format!(
        "ip route replace {prefix} dev {device} congctl {name}{features} initcwnd {} rto_min {minimum}ms",
        tcp.initial_window
    );
    let says = "the same for one route only, with the initial window and the least timeout in whole milliseconds";
    commands.push(Command::new(words, Nearest, says));
    commands
}
