//! The egress port, driven from outside as a simulator or a switch would drive it.

mod ahead;
mod behaviour;
mod config;
mod driver;
mod model;
mod mq_ecn;
mod pfabric;
mod reference;
mod scheduling;
mod windows;
