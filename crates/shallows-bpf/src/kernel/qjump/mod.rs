//! The limiter in the kernel.

pub(crate) mod automatic;
mod clsact;
mod device;
mod layout;
mod pins;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use nix::time::ClockId;
use shallows_core::host::qjump::MAX_LEVELS;
use shallows_core::units::Time;

use super::{check_readable, kernel, namespaces, objects};
use crate::loader::{LOCK, Link, Map, Object, Program};
use crate::qjump::{Cost, Device, Error, Hook, Limits, Report, Status};
use device::Found;
use layout::{RawBucket, RawInstallation, RawLimits};
use pins::Pins;

/// Puts a limiter at the egress of a device, where it stays until [`remove`].
///
/// `only` asks for one hook; without it the best that the kernel has is taken.
pub fn apply(device: &Device, limits: &Limits, only: Option<Hook>) -> Result<Report, Error> {
    limits.validate()?;
    check_readable()?;
    check_clock(limits.epoch)?;
    sweep()?;
    let found = Found::find(device)?;
    found.check_ethernet()?;
    let pins = Pins::of(found.namespace, found.index)?;
    if read(&pins).is_ok_and(|there| there.hook.is_some()) {
        return Err(Error::AlreadyThere(device.clone()));
    }
    pins.clear()?;
    let installed = within(device, || install(&found, limits, only, &pins))?;
    if installed.is_err() {
        pins.clear()?;
    }
    installed
}

/// In the device's network namespace.
fn install(
    found: &Found,
    limits: &Limits,
    only: Option<Hook>,
    pins: &Pins,
) -> Result<Report, Error> {
    let object = objects::open_qjump()?;
    set_up(&object, limits)?;
    let frame = found.frame();
    let most_segments = limits
        .most_segments(frame)
        .filter(|&segments| segments < found.segments);
    let mut installation = RawInstallation::new(&found.device.name, found.index);
    installation.created_qdisc = u32::from(!found.has_clsact()?);
    if most_segments.is_some() {
        installation.segments_before = found.segments;
    }
    write(object.map("installation"), 0, &installation)?;
    pins.create(&object)?;
    let hook = attach(&object, &installation, only, pins)?;
    if let Some(segments) = most_segments
        && let Err(error) = found.set_segments(segments)
    {
        detach(&found.device, pins, &installation)?;
        return Err(error);
    }
    Ok(Report {
        hook,
        frame,
        most_segments,
    })
}

fn set_up(object: &Object, limits: &Limits) -> Result<(), Error> {
    write(object.map("limits"), 0, &RawLimits::from(limits))?;
    // On the grid of whole epochs since the clock's zero, by which applications are counted too.
    let now = Time::from_ns(now_ns()?).ps();
    let start = (now - now % limits.epoch.ps()) / Time::from_ns(1).ps();
    let buckets = object.map("buckets");
    for level in 0..limits.levels.len() {
        let bucket = RawBucket::new(limits, level, start);
        write(buckets, level as u32, &bucket)?;
    }
    Ok(())
}

fn attach(
    object: &Object,
    installation: &RawInstallation,
    only: Option<Hook>,
    pins: &Pins,
) -> Result<Hook, Error> {
    let program = program(object);
    let index = installation.ifindex;
    if only != Some(Hook::Clsact) {
        match program.attach_to_egress(index) {
            Ok(link) => {
                let pinned = link.pin(&pins.link());
                pinned.map_err(kernel("pin the limiter"))?;
                return Ok(Hook::Tcx);
            }
            Err(error) if only == Some(Hook::Tcx) => return Err(Error::NoHook(error.to_string())),
            Err(_) => {}
        }
    }
    let pinned = program.pin(&pins.program());
    pinned.map_err(kernel("pin the limiter"))?;
    clsact::attach(index, &pins.program(), installation.created_qdisc == 1)
        .map_err(|error| Error::NoHook(error.to_string()))?;
    Ok(Hook::Clsact)
}

/// Removes the limiter of a device, also of one that is gone.
pub fn remove(device: &Device) -> Result<(), Error> {
    check_readable()?;
    let namespace = device::inode(device)?;
    let mut removed = false;
    for pins in Pins::all()?
        .iter()
        .filter(|pins| pins.namespace == namespace)
    {
        let Ok(installation) = installation(pins) else {
            // Somebody was killed half-way, before anything was attached.
            pins.clear()?;
            continue;
        };
        if installation.device() == device.name {
            within(device, || detach(device, pins, &installation))??;
            removed = true;
        }
    }
    sweep()?;
    if removed {
        Ok(())
    } else {
        Err(Error::NotThere(device.clone()))
    }
}

/// In the device's network namespace.
fn detach(device: &Device, pins: &Pins, installation: &RawInstallation) -> Result<(), Error> {
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
        if installation.created_qdisc == 1 && found.has_clsact()? && !found.has_filters()? {
            clsact::destroy(found.index)?;
        }
    }
    if let Some(found) = found
        && installation.segments_before > 0
    {
        found.set_segments(installation.segments_before)?;
    }
    pins.clear()
}

/// Clears away what is left of limiters whose devices are gone.
fn sweep() -> Result<(), Error> {
    for pins in Pins::all()? {
        if read(&pins).is_ok_and(|there| there.hook.is_none()) {
            pins.clear()?;
        }
    }
    Ok(())
}

/// The limiters of this machine, in all network namespaces.
pub fn status() -> Result<Vec<Status>, Error> {
    check_readable()?;
    let mut limiters: Vec<Status> = Pins::all()?
        .iter()
        // One that is just being made or removed.
        .filter_map(|pins| read(pins).ok())
        .collect();
    limiters.sort_by_cached_key(|limiter| limiter.device.to_string());
    Ok(limiters)
}

fn read(pins: &Pins) -> Result<Status, Error> {
    let limits = pins.open("limits")?;
    let limits: RawLimits = value(&limits, 0, 0)?;
    let map = pins.open("buckets")?;
    // With the lock, or a level might be seen between two packets.
    let buckets = (0..limits.levels().min(MAX_LEVELS as u32))
        .map(|level| value(&map, level, LOCK))
        .collect::<Result<Vec<RawBucket>, Error>>()?;
    let now = now_ns()?;
    let (hook, program) = attachment(pins);
    Ok(Status {
        device: Device {
            name: installation(pins)?.device(),
            netns: netns(pins.namespace)?,
        },
        hook,
        limits: limits.limits(&buckets),
        levels: buckets.iter().map(|bucket| bucket.status(now)).collect(),
        cost: program.and_then(cost),
        applications: automatic::status(pins, now)?,
    })
}

fn installation(pins: &Pins) -> Result<RawInstallation, Error> {
    value(&pins.open("installation")?, 0, 0)
}

/// How a limiter is attached, with the number of its program.
fn attachment(pins: &Pins) -> (Option<Hook>, Option<u32>) {
    if let Ok(info) = Link::open(&pins.link()).and_then(|link| link.info()) {
        return match info.ifindex {
            0 => (None, None),
            _ => (Some(Hook::Tcx), Some(info.program)),
        };
    }
    let Ok(program) = Program::open(&pins.program()).and_then(|program| program.info()) else {
        return (None, None);
    };
    let files = namespaces::all().unwrap_or_default().into_iter();
    let is_its = |file: &File| file.metadata().is_ok_and(|of| of.ino() == pins.namespace);
    let there = files
        .filter(is_its)
        .find_map(|namespace| namespaces::within(namespace, || clsact::query(pins.index))?);
    match there {
        Some(id) if id == program.id => (Some(Hook::Clsact), Some(id)),
        _ => (None, None),
    }
}

fn cost(program: u32) -> Option<Cost> {
    let info = Program::with_id(program).ok()?.info().ok()?;
    (info.runs > 0).then(|| Cost {
        time: Time::from_ns(info.run_time_ns),
        packets: info.runs,
    })
}

/// The name of a network namespace that is not ours.
fn netns(inode: u64) -> Result<Option<String>, Error> {
    if inode == device::inode(&Device::named(""))? {
        return Ok(None);
    }
    let name = namespaces::name_of(inode);
    Ok(Some(name.unwrap_or_else(|| format!("net:[{inode}]"))))
}

fn within<T: Send>(device: &Device, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let namespace = device::namespace(device)?;
    let name = device.netns.clone().unwrap_or_default();
    namespaces::within(namespace, work).ok_or_else(|| Error::NoNamespace {
        name,
        source: std::io::Error::last_os_error(),
    })
}

fn check_clock(epoch: Time) -> Result<(), Error> {
    let resolution = nix::time::clock_getres(ClockId::CLOCK_MONOTONIC).map_err(clock)?;
    let resolution_ns = ns(&resolution);
    if Time::from_ns(resolution_ns) > epoch {
        return Err(Error::CoarseClock { resolution_ns });
    }
    Ok(())
}

/// The program's clock.
fn now_ns() -> Result<u64, Error> {
    let now = nix::time::clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(clock)?;
    Ok(ns(&now))
}

fn ns(time: &nix::sys::time::TimeSpec) -> u64 {
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

fn clock(errno: nix::Error) -> Error {
    kernel("read the clock")(errno.into()).into()
}

fn write(map: &Map, key: u32, value: &impl bytemuck::Pod) -> Result<(), Error> {
    Ok(map.set(key, value).map_err(kernel("set up the limiter"))?)
}

fn value<T: bytemuck::Pod>(map: &Map, key: u32, flags: u64) -> Result<T, Error> {
    Ok(map.get(key, flags).map_err(kernel("read the limiter"))?)
}

fn program(object: &Object) -> &Program {
    object
        .programs()
        .first()
        .expect("qjump.bpf.c has one program")
}
