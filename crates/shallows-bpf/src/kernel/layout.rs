//! The structs that programs and user space share, as `law.h`, `control.h` and `sockets.bpf.c` have
//! them.

use bytemuck::{Pod, Zeroable};
use shallows_core::units::Time;

use crate::parameters::{bits, fraction, whole_ms, whole_us};
use crate::{Counters, Delay, Parameters};

/// `struct parameters`.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RawParameters {
    g: u32,
    initial_alpha: u32,
    t_us: u32,
    delay: u32,
    base_lifetime_ms: u32,
}

impl From<&Parameters> for RawParameters {
    fn from(parameters: &Parameters) -> Self {
        Self {
            g: bits(parameters.g),
            initial_alpha: bits(parameters.initial_alpha),
            t_us: whole_us(parameters.threshold).unwrap_or(u32::MAX),
            delay: match parameters.delay {
                Delay::Rtt => 0,
                Delay::OneWay => 1,
            },
            base_lifetime_ms: match parameters.base_lifetime {
                None => 0,
                Some(lifetime) => whole_ms(lifetime).unwrap_or(u32::MAX),
            },
        }
    }
}

impl From<RawParameters> for Parameters {
    fn from(raw: RawParameters) -> Self {
        Self {
            g: fraction(raw.g),
            initial_alpha: fraction(raw.initial_alpha),
            threshold: Time::from_us(raw.t_us.into()),
            delay: delay(raw.delay),
            base_lifetime: match raw.base_lifetime_ms {
                0 => None,
                ms => Some(Time::from_ms(ms.into())),
            },
        }
    }
}

/// `enum delay_kind`.
pub(super) fn delay(kind: u32) -> Delay {
    match kind {
        1 => Delay::OneWay,
        _ => Delay::Rtt,
    }
}

/// `struct control`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RawControl {
    pub(super) alpha: u32,
    window_end: u32,
    acked: u32,
    marked: u32,
    reduced_until: u32,
    pub(super) base: u32,
    pub(super) over_us: u32,
    rtt_us: u32,
    una: u32,
    delivered: u32,
    delivered_ce: u32,
    high_seq: u32,
    cwnd: u32,
    cnt: u32,
    ssthresh: u32,
    loss_cwnd: u32,
    loss_ssthresh: u32,
    rcv_nxt: u32,
    late_since_ms: u32,
    least_late: u32,
    ce: u8,
    state: u8,
    pub(super) ready: u8,
    reduced: u8,
    pub(super) base_known: u8,
    pub(super) base_kind: u8,
    all_late: u8,
    padding: u8,
}

/// `struct record`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RawSocket {
    pub(super) local: [u8; 16],
    pub(super) remote: [u8; 16],
    pub(super) name: [u8; 16],
    pub(super) namespace: u32,
    pub(super) local_port: u16,
    pub(super) remote_port: u16,
    pub(super) family: u16,
    pub(super) state: u8,
    padding: u8,
    pub(super) mss: u32,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    pub(super) srtt_us: u32,
    pub(super) delivered: u32,
    pub(super) delivered_ce: u32,
    pub(super) received_ce: u32,
    pub(super) retransmits: u32,
    pub(super) control: RawControl,
}

/// A value of a map, which has the size of its type.
pub(super) fn read<T: Pod>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(bytes)
}

/// The counters of all CPUs together.
pub(super) fn sum(of_cpus: &[Counters]) -> Counters {
    let mut sums = [0u64; size_of::<Counters>() / 8];
    for counters in of_cpus {
        let counts: [u64; size_of::<Counters>() / 8] = bytemuck::cast(*counters);
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    bytemuck::cast(sums)
}
