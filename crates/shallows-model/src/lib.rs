//! The model of a run: what a scenario says of both worlds, as plain data, with its checks.
//!
//! | module | contents |
//! |---|---|
//! | [`model`] | all of the following, as one run has it |
//! | [`topology`] | hosts, switches and links |
//! | [`routing`] | shortest paths, and the choice between equal ones |
//! | [`workload`] | flows: their sizes, arrivals, hosts and services |
//! | [`barriers`] | flows that wait for others |
//! | [`applications`] | applications at hosts |
//! | [`transport`] | lifetime of connections, ends of flows, transports of some flows |
//! | [`ports`] | egress ports of a fabric |
//! | [`hosts`] | stage tags and QJUMP's limits |
//! | [`xco`], [`control`] | XCo's configuration, and the transport of control messages |
//! | [`faults`] | links that lose packets or go down |
//! | [`mod@ids`] | numbers of hosts, flows, links and the like, each kind with a type of its own |
//! | [`interrupt`] | requests to give up long work |

#![forbid(unsafe_code)]

pub mod applications;
pub mod barriers;
pub mod control;
pub mod faults;
pub mod hosts;
pub mod ids;
pub mod interrupt;
pub mod model;
pub mod ports;
pub mod routing;
pub mod topology;
pub mod transport;
pub mod workload;
pub mod xco;

pub use applications::{ApplicationEntry, ApplicationEntryError, ApplicationSetup};
pub use barriers::Barriers;
pub use control::{Carriage, Channel, ControlError};
pub use faults::{Fault, LinkChange};
pub use hosts::{HostSetup, JitterConfig, NetworkConfig, QjumpConfig, QjumpError};
pub use ids::{FlowId, HostId, Id, IdVec, LinkId};
pub use interrupt::{Interrupt, Interrupted};
pub use model::Model;
pub use ports::PortSetup;
pub use shallows_core::xco::controller::Directives;
pub use transport::{Completion, Connections, TransportOverride};
pub use xco::{Forgery, HierarchyConfig, Outage, Weight, XcoConfig, XcoError};
