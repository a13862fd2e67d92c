//! Sets of hosts as written in a scenario.

use std::fmt::{self, Formatter};

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use super::WorkloadError;
use crate::ids::HostId;
use crate::topology::{Fabric, Nic, Node};

/// Some hosts: `"all"`, a number, a range with both ends such as `"0-7"`, the name of a host, the
/// name of a switch for the hosts at it, or several of these with commas between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct HostSet(String);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for HostSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HostSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["string", "integer"],
            "minimum": 0,
            "description": "Hosts such as \"all\", 3, \"0-7\" or \"leaf0\"",
        })
    }
}

impl HostSet {
    /// The set that a text describes, which is checked once the fabric is known.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The hosts, in ascending order and each once.
    pub fn resolve(&self, fabric: &Fabric) -> Result<Vec<HostId>, WorkloadError> {
        let mut hosts = Vec::new();
        for item in self.0.split(',').map(str::trim) {
            resolve_item(item, fabric, &mut hosts)?;
        }
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.is_empty() {
            return Err(WorkloadError::NoHosts(self.0.clone()));
        }
        Ok(hosts)
    }

    /// The host, if it is one.
    pub fn one(&self, fabric: &Fabric) -> Result<HostId, WorkloadError> {
        match self.resolve(fabric)?[..] {
            [host] => Ok(host),
            ref hosts => Err(WorkloadError::OneHost {
                text: self.0.clone(),
                count: hosts.len(),
            }),
        }
    }
}

impl Default for HostSet {
    /// All hosts.
    fn default() -> Self {
        Self::new("all")
    }
}

fn resolve_item(item: &str, fabric: &Fabric, hosts: &mut Vec<HostId>) -> Result<(), WorkloadError> {
    let all = fabric.host_ids();
    if item == "all" {
        hosts.extend(all);
        return Ok(());
    }
    if let Some((first, last)) = numbers(item) {
        for end in [first, last] {
            if end >= fabric.hosts() {
                return Err(WorkloadError::NoSuchHost {
                    host: end,
                    hosts: fabric.hosts(),
                });
            }
        }
        hosts.extend((first..=last).map(HostId));
        return Ok(());
    }
    match fabric.node(item).map_err(WorkloadError::UnknownHost)? {
        Node::Host(host) => hosts.push(host),
        Node::Switch(rack) => {
            let is_at = |nic: Nic| nic.switch == rack;
            hosts.extend(all.filter(|&host| fabric.nics(host).any(is_at)));
        }
    }
    Ok(())
}

fn numbers(item: &str) -> Option<(u32, u32)> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

impl<'de> Deserialize<'de> for HostSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = HostSet;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("hosts such as \"all\", 3, \"0-7\" or \"leaf0\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<HostSet, E> {
                Ok(HostSet::new(text))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<HostSet, E> {
                Ok(HostSet::new(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<HostSet, E> {
                Ok(HostSet::new(number.to_string()))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
