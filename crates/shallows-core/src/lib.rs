//! Datacenter queueing mechanisms, each written once and without I/O.
//!
//! This crate is the part of Shallows that the simulated and the live world share. Nothing in it
//! reads a clock, opens a socket, starts a thread or keeps global state: time is an argument,
//! randomness a seeded stream, and the result a pure function of what was asked.
//!
//! | module | what it holds |
//! |---|---|
//! | [`units`] | picoseconds, bits per second and bytes, exact between each other |
//! | [`packet`] | what a mechanism may know of a packet |
//! | [`port`] | the egress port: classifier, buffer, marker, scheduler, shaper, pause |
//! | [`application`] | applications: who sends which message when, and how long it took |
//! | [`control`] | the contract of agents that exchange control messages |
//! | [`keyed`] | errors that say which key of a configuration they are about |
//! | [`host`] | what a host does before it sends: gates, QJUMP's limiter, ML-ECN's stage tags, UDP |
//! | [`tcp`] | TCP sender and receiver, and the congestion controllers |
//! | [`transport`] | the contract of reliable transports: TCP, and RoCE with DCQCN or TIMELY |
//! | [`xco`] | XCo: who may send when, decided by a controller |
//! | [`random`] | a biased coin with a stream of its own |
//! | [`registry`] | schemes of other crates by name |
//! | [`tally`] | packets and bytes, counted |
//!
//! Each mechanism's file cites the sections and equations of the paper that it implements, and
//! says where it had to choose because the paper is silent.

#![forbid(unsafe_code)]

pub mod application;
pub mod control;
pub mod host;
pub mod keyed;
pub mod packet;
pub mod port;
pub mod random;
pub mod registry;
pub mod tally;
pub mod tcp;
pub mod transport;
pub mod units;
pub mod xco;
