use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::{Bytes, Rate, Time};

/// Parameters of a network that QJUMP needs (§5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// n, the hosts that may send to one destination at once.
    pub hosts: u32,
    /// P, the most a host sends at the guaranteed level in one epoch.
    pub packet: Bytes,
    /// R, the rate of the slowest edge link.
    pub rate: Rate,
    /// ε, what all switches on a path add together.
    pub processing: Time,
}

/// Alignment of the hosts' epochs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// All hosts begin their epochs at the same instant.
    Synchronized,
    /// Epochs start at different times, so a switch may receive two packets of a host within one
    /// epoch.
    #[default]
    Mesochronous,
}

/// The reason why a [`Network`] makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// n is zero.
    #[error("a network needs at least one host")]
    NoHosts,
    /// P is zero.
    #[error("a packet needs at least one byte")]
    EmptyPacket,
    /// The epoch does not fit in a [`Time`].
    #[error("{hosts} packets of {packet} at {rate} take longer than time can count")]
    EpochTooLong {
        /// n.
        hosts: u32,
        /// P, the largest packet of the guaranteed level on the wire.
        packet: Bytes,
        /// R.
        rate: Rate,
    },
}

impl Network {
    /// Checks that the epoch exists; the other methods are meant for networks that pass.
    ///
    /// # Errors
    /// If there is nobody to send, nothing to send, or no end to it.
    pub fn validate(&self) -> Result<(), NetworkError> {
        let &Self {
            hosts,
            packet,
            rate,
            ..
        } = self;
        if hosts == 0 {
            return Err(NetworkError::NoHosts);
        }
        if packet == Bytes::ZERO {
            return Err(NetworkError::EmptyPacket);
        }
        if self.network_epoch(Phase::Mesochronous) == Time::MAX {
            return Err(NetworkError::EpochTooLong {
                hosts,
                packet,
                rate,
            });
        }
        Ok(())
    }

    /// The longest that a packet is delayed by one packet of every host, n × P / R + ε (eq. 1).
    pub fn worst_case_delay(&self) -> Time {
        self.delay_behind(u64::from(self.hosts))
    }

    /// The epoch in which a host may send P: eq. 1 if epochs are synchronized, 2n × P / R + ε if
    /// they are not (eq. 2).
    pub fn network_epoch(&self, phase: Phase) -> Time {
        match phase {
            Phase::Synchronized => self.worst_case_delay(),
            Phase::Mesochronous => self.delay_behind(2 * u64::from(self.hosts)),
        }
    }

    /// Rounded up, for it is a bound.
    fn delay_behind(&self, packets: u64) -> Time {
        let bytes = Bytes::new(self.packet.get().saturating_mul(packets));
        self.rate
            .transmission_time(bytes)
            .saturating_add(self.processing)
    }

    /// Rate at which a host may send with guaranteed latency, P / network epoch (eq. 3), rounded
    /// down.
    pub fn guaranteed_rate(&self, phase: Phase) -> Rate {
        self.level_rate(1.0, phase)
    }

    /// Rate of a level of factor f, f × P / network epoch (eq. 3 with eq. 4), rounded down.
    ///
    /// Less than [`rate_for_factor`](Self::rate_for_factor) says, by ε and, if epochs are
    /// mesochronous, by their doubling: at most half the link even at f = n.
    pub fn level_rate(&self, factor: f64, phase: Phase) -> Rate {
        Rate::from_bytes_per(self.bytes_per_epoch(factor), self.network_epoch(phase))
    }

    /// The senders n' = n / f that a level of factor f assumes (eq. 4); 1 <= f <= n.
    pub fn assumed_senders(&self, factor: f64) -> f64 {
        f64::from(self.hosts) / factor
    }

    /// The factor that the paper gives to a level of this rate, f = n T / R (§6.5).
    pub fn factor_for_rate(&self, rate: Rate) -> f64 {
        f64::from(self.hosts) * rate.bps() as f64 / self.rate.bps() as f64
    }

    /// The rate T = f R / n that the paper gives to a factor (§6.5), rounded down.
    pub fn rate_for_factor(&self, factor: f64) -> Rate {
        Rate::from_bps((factor * self.rate.bps() as f64 / f64::from(self.hosts)) as u64)
    }

    /// Bytes per epoch of a level of factor f, f × P, rounded down.
    pub fn bytes_per_epoch(&self, factor: f64) -> Bytes {
        Bytes::new((factor * self.packet.get() as f64) as u64)
    }
}
