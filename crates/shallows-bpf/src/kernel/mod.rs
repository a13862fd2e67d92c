//! The operations, through libbpf.

mod cgroups;
pub(crate) mod layout;
pub(crate) mod mark;
mod namespaces;
pub(crate) mod objects;
mod pins;
pub(crate) mod qjump;
mod sockets;

use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{ErrorKind, Link, MapCore as _, MapFlags, MapHandle, MapMut, Object};
use nix::unistd::geteuid;

use crate::{Controller, Counters, Error, Parameters};
use layout::RawParameters;
use pins::Pins;
pub use sockets::sockets;

/// The one key of each map.
const KEY: [u8; 4] = [0; 4];

/// Whether controllers can be loaded: whether the programs were built, whether this is root, and
/// whether the kernel has what it takes.
pub fn check() -> Result<(), Error> {
    check_readable()?;
    let btf = Btf::from_vmlinux().map_err(|_| Error::NoBtf)?;
    match btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops") {
        Some(_) => Ok(()),
        None => Err(Error::NoStructOps),
    }
}

/// What it takes to look at sockets and at what is loaded.
fn check_readable() -> Result<(), Error> {
    if objects::are_missing() {
        return Err(Error::NoClang);
    }
    if !geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Error::NoBtf);
    }
    Ok(())
}

/// Registers a controller with the kernel, where it stays until [`unload`].
pub fn load(controller: Controller, parameters: &Parameters) -> Result<(), Error> {
    check()?;
    let pins = Pins::of(controller)?;
    if pins.are_complete() {
        return Err(Error::AlreadyLoaded(controller));
    }
    pins.clear()?;
    let mut object = objects::open(controller)?;
    let result = register_and_pin(controller, parameters, &mut object, &pins);
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
    check()?;
    let mut object = objects::open(controller)?;
    let link = register(controller, parameters, &mut object)?;
    Ok(Held { _link: link })
}

fn register_and_pin(
    controller: Controller,
    parameters: &Parameters,
    object: &mut Object,
    pins: &Pins,
) -> Result<(), Error> {
    pins.create()?;
    let pin = kernel("pin a map of the controller");
    for (name, path) in [
        ("parameters", &pins.parameters),
        ("counters", &pins.counters),
    ] {
        map(object, name).pin(path).map_err(&pin)?;
    }
    let mut link = register(controller, parameters, object)?;
    link.pin(&pins.link).map_err(kernel("pin the controller"))
}

fn register(
    controller: Controller,
    parameters: &Parameters,
    object: &mut Object,
) -> Result<Link, Error> {
    write(&map(object, "parameters"), parameters)?;
    map(object, "controller")
        .attach_struct_ops()
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::NameTaken(controller),
            _ => kernel("register the controller")(error),
        })
}

/// Removes a controller. Connections that run it keep it until they end; new ones get the default.
pub fn unload(controller: Controller) -> Result<(), Error> {
    let pins = pins_of_loaded(controller)?;
    // At once, where the kernel can (Linux 6.11); else a moment after the pin is gone.
    if let Ok(link) = Link::open(&pins.link) {
        let _ = link.detach();
    }
    pins.clear()
}

/// Whether a controller is loaded.
pub fn is_loaded(controller: Controller) -> Result<bool, Error> {
    check_readable()?;
    Ok(Pins::of(controller)?.are_complete())
}

/// The parameters of a loaded controller.
pub fn parameters(controller: Controller) -> Result<Parameters, Error> {
    let pins = pins_of_loaded(controller)?;
    let value = open(&pins.parameters)?
        .lookup(&KEY, MapFlags::ANY)
        .map_err(kernel("read the parameters"))?
        .unwrap_or_default();
    Ok(layout::read::<RawParameters>(&value).into())
}

/// Changes the parameters of a loaded controller, for its connections too.
pub fn set_parameters(controller: Controller, parameters: &Parameters) -> Result<(), Error> {
    let pins = pins_of_loaded(controller)?;
    write(&open(&pins.parameters)?, parameters)
}

/// What a loaded controller has seen and done.
pub fn counters(controller: Controller) -> Result<Counters, Error> {
    let pins = pins_of_loaded(controller)?;
    let of_cpus = open(&pins.counters)?
        .lookup_percpu(&KEY, MapFlags::ANY)
        .map_err(kernel("read the counters"))?
        .unwrap_or_default();
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

fn open(path: &Path) -> Result<MapHandle, Error> {
    MapHandle::from_pinned_path(path).map_err(kernel("open a map of the controller"))
}

fn write(map: &impl libbpf_rs::MapCore, parameters: &Parameters) -> Result<(), Error> {
    let raw = RawParameters::from(parameters);
    map.update(&KEY, bytemuck::bytes_of(&raw), MapFlags::ANY)
        .map_err(kernel("set the parameters"))
}

/// A map of a controller's object, all of which have the same.
fn map<'obj>(object: &'obj mut Object, name: &str) -> MapMut<'obj> {
    object
        .maps_mut()
        .find(|map| map.name() == name)
        .unwrap_or_else(|| panic!("control.h defines {name}"))
}

fn kernel(doing: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |source| Error::Kernel { doing, source }
}
