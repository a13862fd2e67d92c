//! Whole runs, from a fabric and flows to completion times.

mod bottleneck;
mod conservation;
mod dctcp;
mod exact;

mod properties;
mod world;
