//! The sockets of the network namespaces, read by a BPF iterator.

use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use shallows_core::units::Time;

use super::layout::{self, RawSocket};
use super::{check_readable, kernel, namespaces, objects};
use crate::loader::Link;
use crate::parameters::fraction;
use crate::{Controller, Error, Socket, TcpState};

/// The sockets that run a controller, in this network namespace and in those with a name.
#[expect(clippy::missing_panics_doc, reason = "the object has its program")]
pub fn sockets() -> Result<Vec<Socket>, Error> {
    check_readable()?;
    let object = objects::open_sockets()?;
    let program = object.programs().first().expect("there is one program");
    let link = program.attach_iterator().map_err(kernel("read sockets"))?;
    let mut found = Vec::new();
    let namespaces = namespaces::all().map_err(kernel("find network namespaces"))?;
    for namespace in namespaces {
        if let Some(bytes) = namespaces::within(namespace, || read(&link)) {
            let records = bytes?;
            let records = records.chunks_exact(size_of::<RawSocket>());
            found.extend(records.filter_map(|record| socket(&layout::read(record))));
        }
    }
    Ok(found)
}

fn read(link: &Link) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    link.iterate()
        .and_then(|mut iterator| iterator.read_to_end(&mut bytes))
        .map_err(kernel("read sockets"))?;
    Ok(bytes)
}

fn socket(raw: &RawSocket) -> Option<Socket> {
    let name = raw.name.split(|&byte| byte == 0).next()?;
    let controller: Controller = std::str::from_utf8(name).ok()?.parse().ok()?;
    let control = (raw.control.ready != 0).then_some(raw.control);
    let delay = control
        .filter(|control| control.base_known != 0)
        .map(|control| layout::delay(control.base_kind.into()));
    let address = |bytes: &[u8; 16], port| {
        let [a, b, c, d, ..] = *bytes;
        let ip: IpAddr = match raw.family {
            2 => Ipv4Addr::new(a, b, c, d).into(),
            _ => Ipv6Addr::from(*bytes).into(),
        };
        SocketAddr::new(ip.to_canonical(), port)
    };
    let us = |us: u32| Time::from_us(us.into());
    Some(Socket {
        controller,
        namespace: raw.namespace,
        local: address(&raw.local, raw.local_port),
        remote: address(&raw.remote, u16::from_be(raw.remote_port)),
        state: match raw.state {
            1 => TcpState::Established,
            10 => TcpState::Listen,
            _ => TcpState::Other,
        },
        cwnd: raw.cwnd,
        // TCP_INFINITE_SSTHRESH
        ssthresh: Some(raw.ssthresh).filter(|&ssthresh| ssthresh < 0x7fff_ffff),
        segment: raw.mss,
        alpha: control
            .filter(|_| controller.has_alpha())
            .map(|control| fraction(control.alpha)),
        srtt: Time::from_ns(u64::from(raw.srtt_us) * 125),
        base_rtt: control
            .filter(|_| delay == Some(crate::Delay::Rtt))
            .map(|control| us(control.base)),
        queueing: delay.and(control).map(|control| us(control.over_us)),
        delay,
        delivered: raw.delivered,
        delivered_ce: raw.delivered_ce,
        received_ce: raw.received_ce,
        retransmits: raw.retransmits,
    })
}
