//! Many Shallows runs at once.
//!
//! [`repro`] makes the figures of papers and compares their claims with what comes out;
//! [`compare`] shows a scenario simulated and live, side by side.

#![forbid(unsafe_code)]

#[cfg(all(feature = "live", target_os = "linux"))]
pub mod compare;
pub mod repro;
pub mod validate;
