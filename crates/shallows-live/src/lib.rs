//! The live world: real frames and real Linux TCP around the egress port of `shallows-core`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`frame`] | what the switch reads of an Ethernet frame, CE marking, frame memory |
//! | [`io`] | frames in and out of network devices: AF_PACKET and TAP |
//! | [`switch`] | the userspace switch: configuration, forwarding, the loop, its counters |

pub mod frame;
pub mod io;
pub mod switch;
