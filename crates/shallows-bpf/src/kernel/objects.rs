//! The compiled programs.

use libbpf_rs::{Object, ObjectBuilder};

use super::kernel;
use crate::{Controller, Error};

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

const SOCKETS: &[u8] = object!("sockets");
pub(super) const QJUMP: &[u8] = object!("qjump");
#[cfg(test)]
pub(crate) const MODEL: &[u8] = object!("model");

/// Whether there was no clang to build them.
pub(super) fn are_missing() -> bool {
    SOCKETS.is_empty()
}

/// Loads the programs of a controller.
pub(super) fn open(controller: Controller) -> Result<Object, Error> {
    open_bytes(match controller {
        Controller::Dctcp => object!("dctcp"),
        Controller::Ear => object!("ear"),
        Controller::EcnStar => object!("ecn_star"),
        Controller::DelayDctcp => object!("delay_dctcp"),
    })
}

/// Loads the program that reads sockets.
pub(super) fn open_sockets() -> Result<Object, Error> {
    open_bytes(SOCKETS)
}

/// Loads QJUMP's limiter.
pub(super) fn open_qjump() -> Result<Object, Error> {
    open_bytes(QJUMP)
}

/// Loads the programs that mark sockets.
pub(super) fn open_mark() -> Result<Object, Error> {
    open_bytes(object!("mark"))
}

pub(crate) fn open_bytes(bytes: &[u8]) -> Result<Object, Error> {
    ObjectBuilder::default()
        .open_memory(bytes)
        .and_then(libbpf_rs::OpenObject::load)
        .map_err(kernel("load the BPF programs"))
}
