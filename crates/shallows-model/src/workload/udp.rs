//! Datagrams that nothing holds back.

use serde::{Deserialize, Serialize};
use shallows_core::host::udp::UdpConfig;
use shallows_core::units::Time;

use super::patterns::LongLivedConfig;
use super::{DatagramFlow, HostSet, Workload, WorkloadError};
use crate::interrupt::Interrupt;
use crate::topology::Fabric;

/// UDP streams from each source to each destination.
///
/// ```
/// # use shallows_model::workload::WorkloadConfig;
/// let config: WorkloadConfig = toml::from_str(
///     r#"
///     [udp]
///     src = "0-7"
///     dst = 8
///     stop = "1s"
///     stream = { send = { message = { size = "64KB" } } }
///     "#,
/// )?;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UdpFlowsConfig {
    /// The sources.
    pub src: HostSet,
    /// The destinations.
    pub dst: HostSet,
    /// Flows of each pair.
    #[serde(default = "one")]
    pub count: u32,
    /// Start time.
    #[serde(default)]
    pub start: Time,
    /// Stop time; the end of the run if not given.
    pub stop: Option<Time>,
    /// Service of the flows.
    #[serde(default)]
    pub service: u16,
    /// Parameters of each stream.
    #[serde(default)]
    pub stream: UdpConfig,
}

fn one() -> u32 {
    1
}

impl UdpFlowsConfig {
    pub(super) fn generate(
        &self,
        fabric: &Fabric,
        interrupt: Interrupt<'_>,
    ) -> Result<Workload, WorkloadError> {
        self.stream.validate()?;
        let flows = LongLivedConfig {
            src: self.src.clone(),
            dst: self.dst.clone(),
            count: self.count,
            start: self.start,
            stop: self.stop,
            service: self.service,
        };
        let mut workload = Workload {
            streams: vec![self.stream.clone()],
            ..Workload::default()
        };
        flows.add_to(&mut workload, fabric, interrupt)?;
        let flows = workload.flows.ids();
        workload.datagrams = flows.map(|flow| DatagramFlow { flow, stream: 0 }).collect();
        Ok(workload)
    }
}
