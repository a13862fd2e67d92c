//! XCo's controller, standby and coordinators in a deterministic world with faults, and its
//! messages under attack.
//!
//! Every run is a function of its seed. `cargo test -p shallows-core --test xco` runs
//! thousands; for millions:
//! `XCO_SEEDS=0..1000000 cargo test --release -p shallows-core --test xco -- --ignored --nocapture`

mod attack;
mod clock;
mod faults;
mod network;
mod world;
