//! The event queue, the order of simultaneous events, and where packets stay in between.

mod arena;
mod order;
mod wheel;

pub(crate) use arena::Arena;
pub(crate) use order::{Key, Occasion};
pub(crate) use wheel::{Collision, Event, SLOT, Wheel};
