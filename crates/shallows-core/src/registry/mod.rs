//! Schemes from other crates: markers, schedulers and congestion controllers by name.
//!
//! A [`Registry`] maps names to functions that build a scheme from the parameters in a file. A
//! configuration that names a scheme which this crate does not have is read as a [`Custom`] one;
//! [`Registry::resolve_port`] and [`Registry::resolve_transport`] then look it up. There is no
//! global list: whoever loads a configuration passes the registry in.
//!
//! ```
//! use shallows_core::port::marker::{Marking, PortContext, Seen};
//! use shallows_core::port::{ConfigError, MarkReason, PortConfig, Queues};
//! use shallows_core::registry::{Parameters, Registry};
//!
//! /// Marks every packet while the port holds more than `limit` packets.
//! #[derive(Debug)]
//! struct Crowd {
//!     limit: u32,
//! }
//!
//! impl Marking for Crowd {
//!     fn decide(&mut self, _: Seen, queues: &Queues) -> Option<MarkReason> {
//!         (queues.packets() > self.limit).then_some(MarkReason::Port)
//!     }
//! }
//!
//! let mut registry = Registry::default();
//! registry.marker("crowd", |parameters: &Parameters, _: &PortContext<'_>| {
//!     #[derive(serde::Deserialize)]
//!     struct Config {
//!         limit: u32,
//!     }
//!     let Config { limit } = parameters.read()?;
//!     Ok(Box::new(Crowd { limit }))
//! });
//! let mut config: PortConfig = toml::from_str(
//!     r#"
//!     buffer = "unlimited"
//!     scheduler = "fifo"
//!     marker = { scheme = { crowd = { limit = 10 } } }
//!     "#,
//! )?;
//! registry.resolve_port(&mut config)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A custom scheme costs a virtual call where one of this crate is inlined.

pub(crate) mod open;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::port::marker::{Marking, PortContext};
use crate::port::scheduler::Scheduling;
use crate::port::{ConfigError, PortConfig, SchedulerConfig, SchemeConfig};
use crate::tcp::congestion::{Control, Window};
use crate::tcp::{ControllerConfig, EcnEcho, TcpConfig};

/// The parameters of a custom scheme, as they stand in the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(serde_json::Map<String, serde_json::Value>);

impl Parameters {
    /// Reads the parameters as a type, which may use the [units](crate::units) of this crate.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ParameterError> {
        let value = serde_json::Value::Object(self.0.clone());
        serde_json::from_value(value).map_err(|error| ParameterError(error.to_string()))
    }
}

/// Parameters do not fit their scheme.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ParameterError(pub String);

/// A name and parameters in a configuration that are not those of a scheme of this crate.
pub struct Custom<M: ?Sized> {
    /// The name in the file.
    pub name: String,
    /// The parameters in the file.
    pub parameters: Parameters,
    /// Constructor of the scheme, once the name has been found in a [`Registry`].
    pub(crate) maker: Option<Arc<M>>,
}

impl<M: ?Sized> Custom<M> {
    pub(crate) fn new(name: String, parameters: Parameters) -> Self {
        Self {
            name,
            parameters,
            maker: None,
        }
    }

    fn resolve(
        &mut self,
        kind: &'static str,
        known: &'static [&'static str],
        makers: &BTreeMap<String, Arc<M>>,
    ) -> Result<(), UnknownName> {
        self.maker = makers.get(&self.name).cloned();
        if self.maker.is_some() {
            return Ok(());
        }
        let mut names: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
        names.extend(makers.keys().cloned());
        Err(UnknownName {
            kind,
            name: self.name.clone(),
            known: names,
        })
    }

    /// The error of a name that no registry has resolved.
    pub(crate) fn unknown(
        &self,
        kind: &'static str,
        known: &'static [&'static str],
    ) -> UnknownName {
        UnknownName {
            kind,
            name: self.name.clone(),
            known: known.iter().map(|&name| name.to_owned()).collect(),
        }
    }
}

impl<M: ?Sized> Clone for Custom<M> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            parameters: self.parameters.clone(),
            maker: self.maker.clone(),
        }
    }
}

impl<M: ?Sized> Debug for Custom<M> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.parameters)
    }
}

/// Equal as written; two registries are taken to mean the same by a name.
impl<M: ?Sized> PartialEq for Custom<M> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.parameters == other.parameters
    }
}

/// A name that no scheme has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {kind} `{name}`, expected one of `{}`", known.join("`, `"))]
pub struct UnknownName {
    /// Kind of scheme: a marker, a scheduler or a congestion controller.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// All names that there are.
    pub known: Vec<String>,
}

/// Builds a custom marker for a port.
pub type MakeMarker =
    dyn Fn(&Parameters, &PortContext<'_>) -> Result<Box<dyn Marking>, ConfigError> + Send + Sync;

/// Builds a custom scheduler for a port with this many queues.
pub type MakeScheduler =
    dyn Fn(&Parameters, usize) -> Result<Box<dyn Scheduling>, ConfigError> + Send + Sync;

/// Builds a custom congestion controller for a connection that starts with a window.
type ControllerMaker =
    dyn Fn(&Parameters, &mut Window) -> Result<Box<dyn Control>, ParameterError> + Send + Sync;

/// A registered congestion controller.
pub struct MakeController {
    pub(crate) echo: EcnEcho,
    pub(crate) make: Box<ControllerMaker>,
}

/// Schemes by name.
#[derive(Clone, Default)]
pub struct Registry {
    markers: BTreeMap<String, Arc<MakeMarker>>,
    schedulers: BTreeMap<String, Arc<MakeScheduler>>,
    controllers: BTreeMap<String, Arc<MakeController>>,
}

impl Registry {
    /// Registers a marker. A name of this crate's own cannot be taken over: it never gets here.
    pub fn marker<F>(&mut self, name: impl Into<String>, make: F)
    where
        F: Fn(&Parameters, &PortContext<'_>) -> Result<Box<dyn Marking>, ConfigError>
            + Send
            + Sync
            + 'static,
    {
        self.markers.insert(name.into(), Arc::new(make));
    }

    /// Registers a scheduler, built for a number of queues.
    pub fn scheduler<F>(&mut self, name: impl Into<String>, make: F)
    where
        F: Fn(&Parameters, usize) -> Result<Box<dyn Scheduling>, ConfigError>
            + Send
            + Sync
            + 'static,
    {
        self.schedulers.insert(name.into(), Arc::new(make));
    }

    /// Registers a congestion controller and the ECN echo that it is made for.
    pub fn controller<F>(&mut self, name: impl Into<String>, echo: EcnEcho, make: F)
    where
        F: Fn(&Parameters, &mut Window) -> Result<Box<dyn Control>, ParameterError>
            + Send
            + Sync
            + 'static,
    {
        let make = Box::new(make);
        self.controllers
            .insert(name.into(), Arc::new(MakeController { echo, make }));
    }

    /// Finds the custom schemes of a port.
    pub fn resolve_port(&self, config: &mut PortConfig) -> Result<(), ConfigError> {
        if let SchemeConfig::Custom(custom) = &mut config.marker.scheme {
            custom.resolve("marker", SchemeConfig::names(), &self.markers)?;
        }
        if let SchedulerConfig::Custom(custom) = &mut config.scheduler {
            custom.resolve("scheduler", SchedulerConfig::names(), &self.schedulers)?;
        }
        Ok(())
    }

    /// Finds the custom congestion controller of a transport.
    pub fn resolve_transport(&self, config: &mut TcpConfig) -> Result<(), UnknownName> {
        if let ControllerConfig::Custom(custom) = &mut config.controller {
            let known = ControllerConfig::names();
            custom.resolve("congestion controller", known, &self.controllers)?;
        }
        Ok(())
    }
}

impl Debug for Registry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = self.markers.keys().chain(self.schedulers.keys());
        f.debug_set()
            .entries(names.chain(self.controllers.keys()))
            .finish()
    }
}
