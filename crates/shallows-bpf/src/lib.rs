//! BPF programs for the parts of the papers that belong in the Linux kernel: congestion controllers
//! (struct_ops), QJUMP's limiter and ML-ECN's stage tags.
//!
//! [`load`] registers a controller under its [kernel name](Controller::kernel_name). From then on a
//! socket (`TCP_CONGESTION`), a route (`congctl`) or a network namespace
//! (`net.ipv4.tcp_congestion_control`) can choose it, until [`unload`]. It stays when the process
//! ends, because it is pinned in the BPF file system; one that is only [held](hold) goes with it.
//!
//! The programs are in `bpf/`: one file a controller, `control.h` between the kernel and the control
//! law, `law.h` with the arithmetic of `shallows_core::tcp::congestion` in fixed point. A test runs
//! both over the same ACKs. `bpf/compile` makes `objects/` of them, which are committed: to build and
//! to load takes neither clang nor libbpf.
//!
//! [`Redirect`] hands the frames of a device to an AF_XDP socket.
//! [`qjump`] has QJUMP's rate limiter for the egress of a device, [`mark`] gives the sockets of
//! unmodified programs a level. [`StageTags`] tags packets with the stage of their flow.

#![deny(unsafe_code)]
// They panic when nobody reads the pipe or the disk of a log is full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod controller;
mod counters;
mod error;
mod kernel;
mod loader;
pub mod mark;
mod parameters;
pub mod qjump;
mod socket;
mod stage;

pub use controller::{Controller, UnknownController};
pub use counters::Counters;
pub use error::Error;
pub use kernel::{
    Held, check, counters, hold, is_loaded, load, parameters, set_parameters, sockets, unload,
};
pub use loader::Redirect;
pub use parameters::{Delay, ParameterError, Parameters};
pub use socket::{Socket, TcpState};
pub use stage::StageTags;

#[cfg(test)]
mod model;
