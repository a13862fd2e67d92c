//! The programs, compiled ahead by `bpf/compile`.

use super::kernel;
use crate::loader::{Kernel, Object};
use crate::{Controller, Error};

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!("../../objects/", $name, ".bpf.o"))
    };
}

/// Loads the programs of a controller.
pub(super) fn open(controller: Controller, types: &Kernel) -> Result<Object, Error> {
    let bytes: &[u8] = match controller {
        Controller::Dctcp => object!("dctcp"),
        Controller::Ear => object!("ear"),
        Controller::EcnStar => object!("ecn_star"),
        Controller::DelayDctcp => object!("delay_dctcp"),
    };
    load(bytes, types)
}

/// Loads the program that reads sockets.
pub(super) fn open_sockets() -> Result<Object, Error> {
    load(object!("sockets"), &read_types()?)
}

/// Loads QJUMP's limiter.
pub(super) fn open_qjump() -> Result<Object, Error> {
    load(object!("qjump"), &read_types()?)
}

/// Loads the programs that mark sockets.
pub(super) fn open_mark() -> Result<Object, Error> {
    load(object!("mark"), &read_types()?)
}

/// Loads the stage tagger.
pub(super) fn open_stage() -> Result<Object, Error> {
    load(object!("stage"), &read_types()?)
}

/// Loads the control law, for a test.
#[cfg(test)]
pub(crate) fn open_model() -> Result<Object, Error> {
    load(object!("model"), &read_types()?)
}

/// The types of the running kernel.
pub(super) fn read_types() -> Result<Kernel, Error> {
    Kernel::read().map_err(kernel("read the kernel's types"))
}

fn load(bytes: &[u8], types: &Kernel) -> Result<Object, Error> {
    Object::load(bytes, types).map_err(kernel("load the BPF programs"))
}
