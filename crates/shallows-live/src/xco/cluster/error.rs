//! Problems of a cluster's file.

use std::net::SocketAddr;

use shallows_core::xco::config::SettingsError;
use shallows_core::xco::controller::MOST_WEIGHT;
use shallows_core::xco::fabric::FabricError;
use shallows_core::xco::hierarchy::HierarchyError;
use thiserror::Error;

use super::MOST_HOSTS;

/// The reason why a cluster's file makes no sense.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// It is not what such a file is.
    #[error(transparent)]
    Syntax(#[from] toml::de::Error),
    /// Nobody decides.
    #[error("the cluster has no controller: write [[controller]] with a name and an address")]
    NoControllers,
    /// More hosts than there are numbers.
    #[error("the cluster has {0} hosts; {MOST_HOSTS} are the most")]
    TooManyHosts(usize),
    /// Any guest could set the field.
    #[error(
        "gate.pass-dscp is for scenarios: an agent cannot know that a limiter has set the DSCP"
    )]
    PassDscp,
    /// A name that a key file or a message could not show.
    #[error("{0:?} is not a name: use letters, digits, and - _ . after the first")]
    Name(String),
    /// A name that is given to two.
    #[error("{0} is the name of two: names must differ")]
    TwiceTheName(String),
    /// An address that is given to two.
    #[error("{0} is the address of two controllers or hosts")]
    TwiceTheAddress(SocketAddr),
    /// Frames to it would be for two hosts.
    #[error("host {host}: {address} is behind another host too")]
    TwiceTheStation {
        /// The host.
        host: String,
        /// The station or network.
        address: String,
    },
    /// Nobody knows which frames are for it.
    #[error(
        "host {0} has neither stations nor networks, so that nothing is known to go to it: give \
         them, or write learn-places = true"
    )]
    NoStations(String),
    /// An address that does not read as one.
    #[error("host {host}: {problem}")]
    Station {
        /// The host.
        host: String,
        /// Description of the problem.
        problem: String,
    },
    /// A weight out of range.
    #[error("host {host} has weight {weight}; use 1 to {MOST_WEIGHT}")]
    Weight {
        /// The host.
        host: String,
        /// The weight.
        weight: u32,
    },
    /// Switches and trunks are no tree.
    #[error(
        "switches and trunks must form a tree with all hosts in it: {switches} switches need {} \
         trunks between different ones", .switches - 1
    )]
    NoTree {
        /// Number of switches.
        switches: usize,
    },
    /// Nobody of this name.
    #[error("there is no {kind} {name:?} in the file, it has {known}: choose one with --name")]
    NoSuchName {
        /// A controller or a host.
        kind: &'static str,
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// An agent needs devices.
    #[error("host {0} has no {1}, so that its agent has nothing to do")]
    NoDevice(String, &'static str),
    /// A part of a hierarchy that is not there.
    #[error(
        "{0} has a pod, and the file no [hierarchy]: add one, or leave pod and pod-address out"
    )]
    NoHierarchy(String),
    /// Keys that a hierarchy does not have.
    #[error("{0} does not work with a [hierarchy]: leave one of them out")]
    NotInHierarchy(&'static str),
    /// A controller of nobody.
    #[error("no host is in pod {0:?}, which has a controller: give hosts pod or switch = {0:?}")]
    NoSuchPod(String),
    /// Nobody decides inside a pod.
    #[error("pod {0:?} has no controller: write [[controller]] with pod = {0:?}")]
    NoPodController(String),
    /// Nobody decides between pods.
    #[error("the hierarchy has no root: write [[controller]] without a pod")]
    NoRoot,
    /// The pod's controllers cannot reach a host.
    #[error("host {0} has no pod-address, where its agent takes messages of its pod's controllers")]
    NoPodAddress(String),
    /// Pods and their parts of links.
    #[error(transparent)]
    Hierarchy(#[from] HierarchyError),
    /// The settings as such.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}
