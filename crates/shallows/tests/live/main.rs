//! The command on the real kernel. These tests are a program of their own, so that the others do not
//! take their CPUs: cargo runs one test program at a time, and each test here waits until it is alone.
#![cfg(live)]

mod agent;
mod cc;
mod cluster;
mod exec;
mod hierarchy;
mod migration;
mod repro;
mod runs;
#[path = "../support/mod.rs"]
mod support;
mod together;
