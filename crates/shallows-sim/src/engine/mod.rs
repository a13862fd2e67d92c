//! The event queue and the order of simultaneous events.

mod order;
mod wheel;

pub(crate) use order::{Class, Key};
pub(crate) use wheel::Wheel;
