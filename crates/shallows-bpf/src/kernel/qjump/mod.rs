//! The limiter in the kernel.

mod attachment;
pub(crate) mod automatic;
mod clsact;
mod device;
mod layout;
mod pins;
pub(crate) mod qdisc;
pub(crate) mod trial;

#[cfg(test)]
mod tests;

use nix::time::ClockId;
use shallows_core::host::qjump::MAX_LEVELS;
use shallows_core::units::{Bytes, Time};

use super::{check_readable, kernel, lock, namespaces, objects};
use crate::loader::{LOCK, Map, Object};
use crate::qjump::{Device, Error, Limits, Options, Report, Side, Status};
use device::Found;
use layout::{RawBucket, RawInstallation, RawLimits};
use pins::Pins;
use qdisc::Service;

/// The `SO_PRIORITY` that carries a level.
pub fn priority_of(level: u8) -> u32 {
    qdisc::carrier(level)
}

/// Puts a limiter at a device, where it stays until [`remove`]; one that is there gets the new
/// limits and keeps its counts.
pub fn apply(device: &Device, limits: &Limits, options: &Options) -> Result<Report, Error> {
    limits.validate()?;
    check_readable()?;
    let _lock = lock::exclusive()?;
    apply_alone(device, limits, options)
}

/// [`apply`] for whoever has the lock.
fn apply_alone(device: &Device, limits: &Limits, options: &Options) -> Result<Report, Error> {
    sweep()?;
    let (found, pins, there) = look(device, limits, options)?;
    within(device, || {
        let service = service(&found, limits, options)?;
        let until = options.trial.map(trial::deadline).transpose()?;
        let hook = if there.is_some() {
            change(&found, limits, &service, until, &pins)?
        } else {
            pins.clear()?;
            let installed = install(&found, limits, options, &service, until, &pins);
            if installed.is_err() {
                pins.clear()?;
            }
            installed?
        };
        Ok(Report {
            hook: Some(hook),
            frame: found.frame(),
            queue: service.queue,
            replaced: confirmed(there),
            until_ns: until,
        })
    })?
}

/// The report that [`apply`] would give, without any change.
pub fn check(device: &Device, limits: &Limits, options: &Options) -> Result<Report, Error> {
    let (found, _, there) = look(device, limits, options)?;
    let service = within(device, || service(&found, limits, options))??;
    Ok(Report {
        hook: there.as_ref().map_or(options.hook, |there| there.hook),
        frame: found.frame(),
        queue: service.queue,
        replaced: confirmed(there),
        until_ns: None,
    })
}

/// The limits to return to after a trial. Those of a trial that has ended never counted.
fn confirmed(there: Option<Status>) -> Option<Limits> {
    let there = there.filter(|there| there.trial.is_none());
    there.map(|there| there.limits)
}

/// Finds a device and the limiter that it has, and refuses what is impossible there.
fn look(
    device: &Device,
    limits: &Limits,
    options: &Options,
) -> Result<(Found, Pins, Option<Status>), Error> {
    limits.validate()?;
    if options.side == Side::Guest && limits.hold_limit().is_some() {
        return Err(Error::GuestsWait);
    }
    check_readable()?;
    check_clock(limits.epoch)?;
    let found = Found::find(device)?;
    found.check_ethernet()?;
    let pins = Pins::of(found.namespace, found.index)?;
    let there = read(&pins).ok().filter(|there| there.hook.is_some());
    let other = |problem| Error::Other {
        device: device.clone(),
        problem,
    };
    if there.is_none() && pins.link().exists() {
        return Err(other("of another version"));
    }
    match &there {
        Some(there) if there.side != options.side => Err(other("of the other direction")),
        Some(there) if options.hook.is_some() && options.hook != there.hook => {
            Err(other("at the other hook"))
        }
        // Which limits to return to would be anybody's guess.
        Some(there) if options.trial.is_some() && there.trial > Some(Time::ZERO) => {
            Err(Error::OnTrial(device.clone()))
        }
        _ => Ok((found, pins, there)),
    }
}

fn service(found: &Found, limits: &Limits, options: &Options) -> Result<Service, Error> {
    match options.side {
        Side::Egress => qdisc::choose(found, limits, options.queue),
        Side::Guest => Ok(Service::of_guest()),
    }
}

/// In the device's network namespace.
fn install(
    found: &Found,
    limits: &Limits,
    options: &Options,
    service: &Service,
    until: Option<u64>,
    pins: &Pins,
) -> Result<crate::qjump::Hook, Error> {
    let object = objects::open_qjump()?;
    set_up(&object, limits, service, until)?;
    let mut installation = RawInstallation::new(&found.device.name, found.index);
    installation.created_clsact = u32::from(!found.has_clsact()?);
    installation.created_root = u32::from(service.ours);
    installation.ingress = u32::from(options.side == Side::Guest);
    installation.hold_limit = hold_limit(limits);
    write(object.map("installation"), 0, &installation)?;
    pins.create(&object)?;
    if service.ours
        && let Err(error) = qdisc::install(&found.device.name, limits)
    {
        qdisc::uninstall(&found.device.name)?;
        return Err(error);
    }
    let attached = attachment::attach(&object, &installation, options.hook, pins);
    if attached.is_err() && service.ours {
        qdisc::uninstall(&found.device.name)?;
    }
    attached
}

/// Gives a limiter new limits without a moment in which nothing is limited; in the device's network
/// namespace.
fn change(
    found: &Found,
    limits: &Limits,
    service: &Service,
    until: Option<u64>,
    pins: &Pins,
) -> Result<crate::qjump::Hook, Error> {
    let mut installation = installation(pins)?;
    if service.ours {
        qdisc::install(&found.device.name, limits)?;
    }
    let start = epoch_start(limits, now_ns()?);
    let buckets = pins.open("buckets")?;
    for level in 0..limits.levels.len() {
        let before: RawBucket = value(&buckets, level as u32, LOCK)?;
        let bucket = before.changed(limits, level, start);
        let set = buckets.set_with(level as u32, &bucket, LOCK);
        set.map_err(kernel("change the limiter"))?;
    }
    let raw = RawLimits::new(limits, service.priorities, until.unwrap_or(0));
    write(&pins.open("limits")?, 0, &raw)?;
    installation.created_root = u32::from(service.ours);
    installation.hold_limit = hold_limit(limits);
    write(&pins.open("installation")?, 0, &installation)?;
    let (hook, _) = attachment::find(pins);
    hook.ok_or_else(|| Error::NotThere(found.device.clone()))
}

fn hold_limit(limits: &Limits) -> u32 {
    let limit = limits.hold_limit().map_or(0, Bytes::get);
    u32::try_from(limit).unwrap_or(u32::MAX)
}

fn set_up(
    object: &Object,
    limits: &Limits,
    service: &Service,
    until: Option<u64>,
) -> Result<(), Error> {
    let raw = RawLimits::new(limits, service.priorities, until.unwrap_or(0));
    write(object.map("limits"), 0, &raw)?;
    let start = epoch_start(limits, now_ns()?);
    let buckets = object.map("buckets");
    for level in 0..MAX_LEVELS.min(limits.levels.len()) {
        let bucket = RawBucket::new(limits, level, start);
        write(buckets, level as u32, &bucket)?;
    }
    Ok(())
}

/// On the grid of whole epochs since the clock's zero, by which applications are counted too.
fn epoch_start(limits: &Limits, now_ns: u64) -> u64 {
    let epoch_ns = limits.epoch.ps() / Time::from_ns(1).ps();
    now_ns - now_ns % epoch_ns.max(1)
}

fn pins_of(device: &Device) -> Result<Pins, Error> {
    let found = Found::find(device)?;
    let pins = Pins::of(found.namespace, found.index)?;
    if installation(&pins).is_err() {
        return Err(Error::NotThere(device.clone()));
    }
    Ok(pins)
}

/// Removes the limiter of a device, also of one that is gone.
pub fn remove(device: &Device) -> Result<(), Error> {
    check_readable()?;
    let _lock = lock::exclusive()?;
    remove_alone(device)
}

/// [`remove`] for whoever has the lock.
fn remove_alone(device: &Device) -> Result<(), Error> {
    let namespace = device::inode(device)?;
    let mut removed = false;
    for pins in Pins::all()?
        .iter()
        .filter(|pins| pins.namespace == namespace)
    {
        let Ok(installation) = installation(pins) else {
            // Somebody was killed half-way, or it is of another version.
            pins.clear()?;
            continue;
        };
        if installation.device() == device.name {
            within(device, || attachment::detach(device, pins, &installation))??;
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

/// Clears away what is left of limiters whose devices or network namespaces are gone; how many there
/// were. The kernel has removed the programs with the devices; what is left are their maps.
pub fn clean() -> Result<usize, Error> {
    check_readable()?;
    let _lock = lock::exclusive()?;
    sweep()
}

/// Under the lock: what another process is just making has no hook yet.
fn sweep() -> Result<usize, Error> {
    let mut removed = 0;
    for pins in Pins::all()? {
        let was_attached = pins.link().exists() || pins.program().exists();
        if was_attached && attachment::find(&pins).0.is_none() {
            pins.clear()?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The limiters of this machine, in all network namespaces.
pub fn status() -> Result<Vec<Status>, Error> {
    clean()?;
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
    let (hook, program) = attachment::find(pins);
    let installation = installation(pins)?;
    let name = installation.device();
    let qdiscs = match installation.side() {
        Side::Egress => attachment::within(pins, || qdisc::show(&name).ok()).flatten(),
        Side::Guest => None,
    };
    let mut levels: Vec<_> = buckets.iter().map(|bucket| bucket.status(now)).collect();
    for (number, level) in levels.iter_mut().enumerate() {
        if let Some((bytes, drops)) = qdiscs
            .as_ref()
            .and_then(|qdiscs| qdisc::waiting(qdiscs, number))
        {
            level.waiting_bytes = Some(bytes);
            level.dropped_packets += drops;
        }
    }
    Ok(Status {
        device: Device {
            name,
            netns: netns(pins.namespace)?,
        },
        hook,
        side: installation.side(),
        queue: qdiscs.map(|qdiscs| qdisc::judge(&qdiscs, buckets.len()).0),
        trial: match limits.until_ns {
            0 => None,
            until => Some(Time::from_ns(until.saturating_sub(now))),
        },
        limits: limits.limits(&buckets, installation.hold_limit),
        levels,
        cost: program.and_then(attachment::cost),
        applications: automatic::status(pins, now)?,
    })
}

fn installation(pins: &Pins) -> Result<RawInstallation, Error> {
    value(&pins.open("installation")?, 0, 0)
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
