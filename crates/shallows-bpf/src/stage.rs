//! ML-ECN's stage tags at the egress of devices.

pub use crate::kernel::stage::StageTags;

#[cfg(test)]
mod tests;
