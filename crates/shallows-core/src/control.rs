//! The contract of a control protocol.
//!
//! An [`Agent`] is one end of it: a controller, its standby, the coordinator of a host. It sees
//! messages and time and nothing else. The simulator carries its messages as packets of the fabric
//! or out of band, the live world by UDP or raw frames, a fault simulation loses and reorders them.

use crate::units::Time;

/// One end of a control protocol, without I/O.
pub trait Agent {
    /// Takes a message from the agent at `from`. Any bytes are possible, and none may panic.
    fn handle(&mut self, now: Time, from: u32, message: &[u8]);

    /// Appends the next message to `buffer`, which is empty, and says whom it is for.
    ///
    /// Call it until there is none, after every [`handle`](Self::handle) and
    /// [`handle_timeout`](Self::handle_timeout).
    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<u32>;

    /// Time of the next call of [`handle_timeout`](Self::handle_timeout), unless something else
    /// happens first.
    fn timeout(&self) -> Option<Time>;

    /// The time of [`timeout`](Self::timeout) has come. Being early is harmless.
    fn handle_timeout(&mut self, now: Time);

    /// Tells an agent that knows the fabric that a link has gone down or come back.
    fn link_changed(&mut self, now: Time, link: u32, state: LinkState) {
        let _ = (now, link, state);
    }
}

/// State of a link: up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It does.
    Up,
    /// It does not, and no path leads over it.
    Down,
}
