//! Whole runs, from a fabric and flows to completion times.

mod applications;
mod bottleneck;
mod connections;
mod conservation;
mod control;
mod dctcp;
mod exact;
mod hosts;
mod links;
mod nics;
mod pauses;
mod properties;
mod qjump_bound;
mod roce;
mod sharing;
mod sparse;
mod udp;
mod world;
mod xco;
