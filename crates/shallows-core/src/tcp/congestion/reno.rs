//! Reno: slow start, congestion avoidance and halving (RFC 5681).
//!
//! All of it is the default of the controller's hooks and of the window. With ECN a marked ACK
//! halves the window like a loss, once a window of data (RFC 3168 §6.1.2).
//!
//! Differences: congestion avoidance counts bytes instead of ACKs, up to a segment an ACK, or as
//! many as the receiver delays (RFC 3465 with its L). A window that the application does not fill
//! grows all the same, as RFC 5681 has it; RFC 7661 would hold it.

use super::Control;

/// A running Reno, which remembers nothing.
#[derive(Clone, Debug)]
pub(crate) struct Reno;

impl Control for Reno {}

#[cfg(test)]
mod tests {
    use super::super::{Loss, Window};
    use super::*;

    fn loss(flight: u64, answered: bool) -> Loss {
        Loss {
            flight,
            answered,
            next: 0,
        }
    }

    #[test]
    fn halves_what_was_in_flight_once() {
        let mut window = Window::new(1_000, 20, 1_000_000, 1);
        Reno.on_loss(&mut window, &loss(16_000, false));
        assert_eq!((window.cwnd(), window.ssthresh()), (8_000.0, 8_000.0));
        Reno.on_loss(&mut window, &loss(16_000, true));
        assert_eq!((window.cwnd(), window.ssthresh()), (8_000.0, 8_000.0));
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_first_threshold() {
        let mut window = Window::new(1_000, 20, 1_000_000, 1);
        Reno.on_timeout(&mut window, &loss(20_000, false));
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000.0, 10_000.0));
        Reno.on_timeout(&mut window, &loss(1_000, true));
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000.0, 10_000.0));
    }
}
