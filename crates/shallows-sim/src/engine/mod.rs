//! The event queue and the order of simultaneous events.

mod order;
mod prefetch;
mod wheel;

pub(crate) use order::{Class, Key};
pub(crate) use prefetch::prefetch;
pub(crate) use wheel::Wheel;
