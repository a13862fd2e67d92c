//! Datagrams that nothing holds back.

use serde::{Deserialize, Serialize};
use shallows_core::host::udp::UdpConfig;
use shallows_core::units::Time;

use super::patterns::LongLivedConfig;
use super::{DatagramFlow, HostSet, Workload, WorkloadError};
use crate::topology::Fabric;

/// UDP from each of some hosts to each of others.
///
/// ```
/// # use shallows_sim::workload::WorkloadConfig;
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
    /// When the first messages are due.
    #[serde(default)]
    pub start: Time,
    /// When no more messages are sent, if before the end of the run.
    pub stop: Option<Time>,
    /// Their service.
    #[serde(default)]
    pub service: u16,
    /// What is sent, and how it is put together again.
    #[serde(default)]
    pub stream: UdpConfig,
}

fn one() -> u32 {
    1
}

impl UdpFlowsConfig {
    pub(super) fn generate(&self, fabric: &Fabric) -> Result<Workload, WorkloadError> {
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
        flows.add_to(&mut workload, fabric)?;
        let flows = 0..workload.flows.len() as u32;
        workload.datagrams = flows.map(|flow| DatagramFlow { flow, stream: 0 }).collect();
        Ok(workload)
    }
}
