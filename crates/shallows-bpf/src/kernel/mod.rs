//! The operations on the kernel.

mod cgroups;
pub(crate) mod layout;
mod lock;
pub(crate) mod mark;
mod namespaces;
pub(crate) mod objects;
mod pins;
pub(crate) mod qjump;
mod sockets;
pub(crate) mod stage;

use std::io;
use std::path::Path;

use nix::unistd::geteuid;

use crate::loader::{Kernel, Link, Map, Object};
use crate::{Controller, Counters, Error, Parameters};
use layout::RawParameters;
use pins::Pins;
pub use sockets::sockets;

/// Returns whether controllers can be loaded: whether this is root, and whether the kernel has what it
/// takes.
pub fn check() -> Result<(), Error> {
    types_with_struct_ops().map(drop)
}

/// The types of a kernel that takes controllers.
fn types_with_struct_ops() -> Result<Kernel, Error> {
    check_readable()?;
    let types = objects::read_types()?;
    if types.has_struct("bpf_struct_ops_tcp_congestion_ops") {
        Ok(types)
    } else {
        Err(Error::NoStructOps)
    }
}

/// Checks the permission to read sockets and loaded programs.
fn check_readable() -> Result<(), Error> {
    if !geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if !Path::new(Kernel::BTF).exists() {
        return Err(Error::NoBtf);
    }
    Ok(())
}

/// Registers a controller with the kernel, where it stays until [`unload`].
pub fn load(controller: Controller, parameters: &Parameters) -> Result<(), Error> {
    let types = types_with_struct_ops()?;
    let _lock = lock::exclusive()?;
    let pins = Pins::of(controller)?;
    if pins.are_complete() {
        return Err(Error::AlreadyLoaded(controller));
    }
    pins.clear()?;
    let object = objects::open(controller, &types)?;
    let result = register_and_pin(controller, parameters, &object, &pins);
    if result.is_err() {
        pins.clear()?;
    }
    result
}

/// A controller that the kernel has for as long as this lives. It goes with the process, however
/// that ends, because nothing is pinned.
#[derive(Debug)]
pub struct Held {
    _link: Link,
}

/// Registers a controller with the kernel until the answer is dropped.
pub fn hold(controller: Controller, parameters: &Parameters) -> Result<Held, Error> {
    let types = types_with_struct_ops()?;
    let object = objects::open(controller, &types)?;
    let link = register(controller, parameters, &object)?;
    Ok(Held { _link: link })
}

fn register_and_pin(
    controller: Controller,
    parameters: &Parameters,
    object: &Object,
    pins: &Pins,
) -> Result<(), Error> {
    pins.create()?;
    let pin = kernel("pin a map of the controller");
    for (name, path) in [
        ("parameters", &pins.parameters),
        ("counters", &pins.counters),
    ] {
        object.map(name).pin(path).map_err(&pin)?;
    }
    let link = register(controller, parameters, object)?;
    link.pin(&pins.link).map_err(kernel("pin the controller"))
}

fn register(
    controller: Controller,
    parameters: &Parameters,
    object: &Object,
) -> Result<Link, Error> {
    write(object.map("parameters"), parameters)?;
    object.register().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::NameTaken(controller),
        _ => kernel("register the controller")(error),
    })
}

/// Removes a controller. Connections that run it keep it until they end; new ones get the default.
pub fn unload(controller: Controller) -> Result<(), Error> {
    check_readable()?;
    let _lock = lock::exclusive()?;
    let pins = pins_of_loaded(controller)?;
    // At once, where the kernel can (Linux 6.11); else a moment after the pin is gone.
    if let Ok(link) = Link::open(&pins.link) {
        let _ = link.detach();
    }
    pins.clear()
}

/// Returns whether a controller is loaded.
pub fn is_loaded(controller: Controller) -> Result<bool, Error> {
    check_readable()?;
    Ok(Pins::of(controller)?.are_complete())
}

/// The parameters of a loaded controller.
pub fn parameters(controller: Controller) -> Result<Parameters, Error> {
    let pins = pins_of_loaded(controller)?;
    let raw: Result<RawParameters, _> = open(&pins.parameters)?.get(0u32, 0);
    Ok(raw.map_err(kernel("read the parameters"))?.into())
}

/// Changes the parameters of a loaded controller, for its connections too.
pub fn set_parameters(controller: Controller, parameters: &Parameters) -> Result<(), Error> {
    let pins = pins_of_loaded(controller)?;
    write(&open(&pins.parameters)?, parameters)
}

/// Counters of a loaded controller.
pub fn counters(controller: Controller) -> Result<Counters, Error> {
    let pins = pins_of_loaded(controller)?;
    let of_cpus = open(&pins.counters)?
        .get_of_cpus(0u32)
        .map_err(kernel("read the counters"))?;
    Ok(layout::sum(&of_cpus))
}

fn pins_of_loaded(controller: Controller) -> Result<Pins, Error> {
    check_readable()?;
    let pins = Pins::of(controller)?;
    if pins.are_complete() {
        Ok(pins)
    } else {
        Err(Error::NotLoaded(controller))
    }
}

fn open(path: &Path) -> Result<Map, Error> {
    Map::open(path).map_err(kernel("open a map of the controller"))
}

fn write(map: &Map, parameters: &Parameters) -> Result<(), Error> {
    let raw = RawParameters::from(parameters);
    map.set(0u32, &raw).map_err(kernel("set the parameters"))
}

fn kernel(doing: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Kernel { doing, source }
}
