//! Applications at hosts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use shallows_core::application::{ApplicationConfig, ApplicationError, Members, Plan, Span};
use shallows_core::keyed::Keyed;
use shallows_core::units::Time;
use thiserror::Error;

use crate::ids::HostId;
use crate::topology::{Fabric, Node};
use crate::workload::{HostSet, WorkloadError};

/// An application as written in a scenario.
///
/// ```
/// # use shallows_model::ApplicationEntry;
/// let entry: ApplicationEntry = toml::from_str(
///     r#"
///     clients = "0-3"
///     servers = 4
///     service = 1
///     run = { requests = { value = "1KB", count = 1000 } }
///     "#,
/// )?;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ApplicationEntry {
    /// Name of the application in results; the kind of application if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hosts that send requests, or all members of a symmetric application.
    pub clients: HostSet,
    /// Hosts that answer requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<HostSet>,
    /// Service of the application's packets.
    #[serde(default)]
    pub service: u16,
    /// Start time.
    #[serde(default)]
    pub start: Time,
    /// Time after which no new operation starts; the end of the run if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// The kind of application and its parameters.
    pub run: ApplicationConfig,
}

/// An application on a fabric, whose parameters make sense.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationSetup {
    /// Name of its latency series.
    pub name: String,
    /// Service of the application's packets.
    pub service: u16,
    /// The host of each member, clients first.
    pub hosts: Vec<HostId>,
    /// Numbers of clients and servers.
    pub members: Members,
    /// Start and end.
    pub span: Span,
    /// The kind of application and its parameters.
    pub run: ApplicationConfig,
}

impl ApplicationSetup {
    /// Its connections, and its part at each member.
    ///
    /// # Errors
    /// If its parameters make no sense.
    pub fn plan(&self) -> Result<Plan, ApplicationError> {
        self.run.plan(self.members, self.span)
    }
}

/// The reason why an application cannot be built.
#[derive(Debug, Error)]
pub enum ApplicationEntryError {
    /// Hosts that do not exist.
    #[error(transparent)]
    Hosts(#[from] WorkloadError),
    /// Parameters or members that make no sense.
    #[error(transparent)]
    Application(#[from] ApplicationError),
    /// A client that is its own server.
    #[error("{0} is a client and a server, which needs no network")]
    ToItself(String),
    /// It begins after its end.
    #[error("stop must be after start")]
    StopsBeforeStart,
}

impl Keyed for ApplicationEntryError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let key = match self {
            Self::Hosts(error) => return error.keys(),
            Self::Application(error) => match error {
                ApplicationError::NeedsServers(_) | ApplicationError::NeedsPeers(_) => {
                    return vec!["servers".into(), "clients".into()];
                }
                ApplicationError::Zero(name) | ApplicationError::TooLarge { name, .. } => name,
                ApplicationError::Share(_) => "get-share",
                ApplicationError::BroadcastStream => "fan-out",
                ApplicationError::UnusedConnections { .. } => "connections",
            },
            Self::ToItself(_) => "servers",
            Self::StopsBeforeStart => "stop",
        };
        vec![key.into()]
    }
}

impl ApplicationEntry {
    /// The application on a fabric.
    ///
    /// # Errors
    /// If its hosts or its parameters make no sense.
    pub fn build(&self, fabric: &Fabric) -> Result<ApplicationSetup, ApplicationEntryError> {
        let clients = self.clients.resolve(fabric)?;
        let servers = match &self.servers {
            Some(servers) => servers.resolve(fabric)?,
            None => Vec::new(),
        };
        if let Some(&host) = servers.iter().find(|host| clients.contains(host)) {
            let name = fabric.name(Node::Host(host)).to_owned();
            return Err(ApplicationEntryError::ToItself(name));
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return Err(ApplicationEntryError::StopsBeforeStart);
        }
        let members = Members {
            clients: clients.len() as u32,
            servers: servers.len() as u32,
        };
        let span = Span {
            start: self.start,
            stop: self.stop,
        };
        let setup = ApplicationSetup {
            name: self.name().to_owned(),
            service: self.service,
            hosts: clients.into_iter().chain(servers).collect(),
            members,
            span,
            run: self.run.clone(),
        };
        setup.plan()?;
        Ok(setup)
    }

    /// Name of its latency series.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.run.name())
    }

    /// Returns whether it ends by itself.
    pub fn ends(&self) -> bool {
        self.stop.is_some() || self.run.count().is_some()
    }
}
