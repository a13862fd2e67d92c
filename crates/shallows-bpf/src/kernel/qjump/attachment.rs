//! Attachment of a limiter in the path of packets.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use shallows_core::units::Time;

use super::device::Found;
use super::layout::RawInstallation;
use super::pins::Pins;
use super::{clsact, namespaces, qdisc};
use crate::kernel::kernel;
use crate::loader::{Link, Object, Program};
use crate::qjump::{Cost, Device, Error, Hook, Side};

/// In the device's network namespace.
pub(super) fn attach(
    object: &Object,
    installation: &RawInstallation,
    only: Option<Hook>,
    pins: &Pins,
) -> Result<Hook, Error> {
    let side = installation.side();
    let program = program(object, side);
    let index = installation.ifindex;
    if only != Some(Hook::Clsact) {
        let link = match side {
            Side::Egress => program.attach_to_egress(index),
            Side::Guest => program.attach_to_ingress(index),
        };
        match link {
            Ok(link) => {
                let pinned = link.pin(&pins.link());
                pinned.map_err(kernel("pin the limiter"))?;
                return Ok(Hook::Tcx);
            }
            Err(error) if only == Some(Hook::Tcx) || side == Side::Guest => {
                return Err(Error::NoHook(error.to_string()));
            }
            Err(_) => {}
        }
    } else if side == Side::Guest {
        let problem = "frames of guests are limited at tcx only";
        return Err(Error::NoHook(problem.to_owned()));
    }
    let pinned = program.pin(&pins.program());
    pinned.map_err(kernel("pin the limiter"))?;
    clsact::attach(index, &pins.program(), installation.created_clsact == 1)
        .map_err(|error| Error::NoHook(error.to_string()))?;
    Ok(Hook::Clsact)
}

/// In the device's network namespace.
pub(super) fn detach(
    device: &Device,
    pins: &Pins,
    installation: &RawInstallation,
) -> Result<(), Error> {
    // At once; else it goes a moment after its pin.
    if let Ok(link) = Link::open(&pins.link()) {
        let _ = link.detach();
    }
    let found = Found::find(device).ok();
    let found = found.filter(|found| found.index == installation.ifindex);
    if pins.program().exists()
        && let Some(found) = &found
    {
        if clsact::query(found.index).is_some() {
            clsact::detach(found.index)?;
        }
        if installation.created_clsact == 1 && found.has_clsact()? && !found.has_filters()? {
            clsact::destroy(found.index)?;
        }
    }
    if found.is_some() && installation.created_root == 1 {
        qdisc::uninstall(&device.name)?;
    }
    pins.clear()
}

/// Attachment point of a limiter, with the number of its program.
pub(super) fn find(pins: &Pins) -> (Option<Hook>, Option<u32>) {
    if let Ok(info) = Link::open(&pins.link()).and_then(|link| link.info()) {
        return match info.ifindex {
            0 => (None, None),
            _ => (Some(Hook::Tcx), Some(info.program)),
        };
    }
    let Ok(program) = Program::open(&pins.program()).and_then(|program| program.info()) else {
        return (None, None);
    };
    match within(pins, || clsact::query(pins.index)).flatten() {
        Some(id) if id == program.id => (Some(Hook::Clsact), Some(id)),
        _ => (None, None),
    }
}

/// Does `work` in the network namespace of a limiter; nothing if it has no name and is not ours.
pub(super) fn within<T: Send>(pins: &Pins, work: impl FnOnce() -> T + Send) -> Option<T> {
    let is_its = |file: &File| file.metadata().is_ok_and(|of| of.ino() == pins.namespace);
    let namespace = namespaces::all().ok()?.into_iter().find(is_its)?;
    namespaces::within(namespace, work)
}

pub(super) fn cost(program: u32) -> Option<Cost> {
    let info = Program::with_id(program).ok()?.info().ok()?;
    (info.runs > 0).then(|| Cost {
        time: Time::from_ns(info.run_time_ns),
        packets: info.runs,
    })
}

/// The program of a side, in the order of qjump.bpf.c.
pub(super) fn program(object: &Object, side: Side) -> &Program {
    &object.programs()[match side {
        Side::Egress => 0,
        Side::Guest => 1,
    }]
}
