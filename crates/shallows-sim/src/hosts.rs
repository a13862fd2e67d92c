//! What hosts do to their packets before the NIC has them.

use serde::{Deserialize, Serialize};
use shallows_core::host::qjump::{EpochClock, Excess, Limiter, LimiterConfig, LimiterError, Phase};
use shallows_core::host::stage::StageTagger;
use shallows_core::units::{Bytes, Time};

use crate::workload::random::{Purpose, Stream};

/// All hosts are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HostSetup {
    /// Data carries the stage of its flow in the DSCP field, in place of the service, and ACKs the
    /// first stage (ML-ECN, PIAS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageTagger>,
    /// How much each level may send: that of a packet is its DSCP field, which is the service of
    /// its flow unless there are stages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qjump: Option<QjumpConfig>,
}

/// The limits of QJUMP's hosts.
///
/// ```
/// # use shallows_sim::HostSetup;
/// let hosts: HostSetup = toml::from_str(
///     r#"
///     qjump = { epoch = "20us", levels = ["256B", "20KB"] }
///     "#,
/// )?;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QjumpConfig {
    /// The length of an epoch.
    pub epoch: Time,
    /// Bytes per epoch, for each level.
    pub levels: Vec<Bytes>,
    /// What happens to packets over the limit.
    #[serde(default = "hold")]
    pub excess: Excess,
    /// Where epochs begin.
    #[serde(default)]
    pub clock: EpochClock,
    /// Whether all hosts begin their first epoch at time zero, or each somewhere in that epoch,
    /// before which it sends nothing.
    #[serde(default)]
    pub phase: Phase,
}

fn hold() -> Excess {
    Excess::Hold
}

impl QjumpConfig {
    /// The limiter of a host.
    pub(crate) fn limiter(&self, host: u32, seed: u64) -> Result<Limiter, LimiterError> {
        let &Self {
            epoch,
            excess,
            clock,
            phase,
            ..
        } = self;
        let config = LimiterConfig {
            epoch,
            levels: self.levels.clone(),
            excess,
            clock,
        };
        config.validate()?;
        let start = match phase {
            Phase::Synchronized => Time::ZERO,
            Phase::Mesochronous => {
                let mut stream = Stream::new(seed, Purpose::Epoch, u64::from(host));
                Time::from_ps(stream.below(epoch.ps()))
            }
        };
        Limiter::new(&config, start)
    }
}
