//! Quantities and lists as people read them.

use shallows_core::units::{Rate, Time};

/// With three digits.
fn three(value: f64) -> String {
    let decimals = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number of bytes: exact in KiB or MiB if it is a multiple, else with three digits.
pub(super) fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        0 => "0 B".to_owned(),
        bytes if bytes % MIB == 0 => format!("{} MiB", bytes / MIB),
        bytes if bytes % 1024 == 0 => format!("{} KiB", bytes / 1024),
        bytes if bytes >= 1_000_000 => format!("{} MB", three(bytes as f64 / 1e6)),
        bytes if bytes >= 10_000 => format!("{} KB", three(bytes as f64 / 1e3)),
        bytes => format!("{bytes} B"),
    }
}

/// A time with three digits.
pub(super) fn time(time: Time) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{} s", three(s)),
        s if s >= 1e-3 => format!("{} ms", three(s * 1e3)),
        s if s >= 1e-6 => format!("{} us", three(s * 1e6)),
        s => format!("{} ns", three(s * 1e9)),
    }
}

/// A rate as switches are sold by it.
pub(super) fn rate(rate: Rate) -> String {
    format!("{}G", three(rate.bps() as f64 / 1e9))
}

/// A factor with two digits behind the point at most.
pub(super) fn factor(value: f64) -> String {
    three(value)
}

/// Numbers with ranges: `0, 3 to 5 and 46`.
pub(super) fn numbers(numbers: &[u8]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if u16::from(*last) + 1 == u16::from(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first} to {last}")],
        })
        .collect();
    list(&runs)
}

/// Queues by their numbers: `queue 3`, `queues 3 and 4`.
pub(super) fn queues(queues: &[u8]) -> String {
    let noun = if queues.len() == 1 { "queue" } else { "queues" };
    format!("{noun} {}", numbers(queues))
}

/// Words with commas and an `and`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits() {
        assert_eq!(size(1 << 20), "1 MiB");
        assert_eq!(size(262_144), "256 KiB");
        assert_eq!(size(62_500), "62.5 KB");
        assert_eq!(size(12_000_144), "12 MB");
        assert_eq!(size(1_500), "1500 B");
        let fill = |bytes, gbps| {
            Rate::from_gbps(gbps).transmission_time(shallows_core::units::Bytes::new(bytes))
        };
        assert_eq!(time(fill(1 << 20, 25)), "336 us");
        assert_eq!(time(fill(1 << 20, 100)), "83.9 us");
        assert_eq!(rate(Rate::from_mbps(11_100)), "11.1G");
    }

    #[test]
    fn runs_of_numbers_are_ranges() {
        assert_eq!(numbers(&[0, 3, 4, 5, 46]), "0, 3 to 5 and 46");
        assert_eq!(numbers(&[3, 4]), "3 and 4");
        assert_eq!(numbers(&[]), "");
    }
}
