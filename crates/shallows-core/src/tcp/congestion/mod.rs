//! Congestion control: one file per scheme.
//!
//! The sender decides *when* something happened (an ACK, the one reduction a window, a loss, a
//! timeout) and the controller *what* becomes of the window. The hooks have defaults, which are
//! those of standard TCP; a scheme overrides what it changes.
//!
//! | scheme | module | signal |
//! |---|---|---|
//! | Reno | [`reno`] | loss; marks if ECN is on |
//! | CUBIC | [`cubic`] | loss; marks if ECN is on |
//! | DCTCP | [`dctcp`] | fraction of marked bytes |
//! | ECN* | [`ecn_star`] | marks, each like a loss |
//! | delay-based DCTCP | [`delay_dctcp`] | fraction of late bytes |
//! | EAR | [`ear`] | fraction of marked or late bytes |
//! | DX | [`dx`] | mean queueing delay of a window |
//! | pFabric's minimal transport | [`pfabric`] | timeouts |
//!
//! Schemes that set a rate instead of a window are in [`roce`](crate::transport::roce).

pub mod cubic;
pub mod dctcp;
pub mod delay_dctcp;
pub mod dx;
pub mod ear;
pub mod ecn_star;
pub mod pfabric;
pub mod reno;
mod window;

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::Error;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ConfigError, EcnEcho};
use crate::registry::open::{self, OpenEnum};
use crate::registry::{Custom, MakeController, Parameters};
use crate::transport::roce::dcqcn::DcqcnConfig;
use crate::transport::roce::timely::TimelyConfig;
use crate::units::Time;
pub use cubic::CubicConfig;
use dctcp::Dctcp;
pub use dctcp::DctcpConfig;
pub use delay_dctcp::DelayDctcpConfig;
use delay_dctcp::DelayThreshold;
pub use dx::DxConfig;
use ear::MarksAndDelay;
pub use pfabric::PfabricConfig;
pub use window::{Growth, Window};

/// One ACK of new data, as the controller sees it.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Arrival time.
    pub now: Time,
    /// Bytes that it acknowledged.
    pub acked: u64,
    /// The next byte that the receiver expects.
    pub ack: u64,
    /// The next byte to send (SND.NXT): where a window of data that starts now will end.
    pub next: u64,
    /// Bytes in flight before it arrived.
    pub flight: u64,
    /// ECN-Echo.
    pub ece: bool,
    /// One-way delay of the segment that it answers.
    pub one_way_delay: Time,
    /// Round-trip time of that segment.
    pub rtt: Time,
    /// Smoothed round-trip time.
    pub srtt: Time,
}

/// Congestion signal of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Nothing.
    Clear,
    /// A queue is too long: the segment was marked.
    Mark,
    /// Queues are too long: the segment was late, and perhaps marked as well.
    Delay,
}

impl Signal {
    /// The signal of ECN-Echo alone.
    #[inline]
    pub fn of_echo(ece: bool) -> Self {
        if ece { Self::Mark } else { Self::Clear }
    }

    /// Returns whether the signal is one of congestion.
    #[inline]
    pub fn is_congestion(self) -> bool {
        self != Self::Clear
    }
}

/// A loss found by duplicate ACKs, or by the timer.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// FlightSize of RFC 5681.
    pub flight: u64,
    /// True if this window of data has already been answered: with a reduction for its marks, by
    /// fast recovery, or by a timeout before this one.
    pub answered: bool,
    /// The next byte to send.
    pub next: u64,
}

/// A congestion controller. The sender calls [`observe`](Self::observe) for each ACK of new data,
/// then at most once a window [`on_congestion`](Self::on_congestion), and [`grow`](Self::grow) if
/// the ACK may grow the window.
pub trait Control: Debug + Send {
    /// Takes the measurements of an ACK and judges it.
    fn observe(&mut self, ack: &AckSample) -> Signal {
        Signal::of_echo(ack.ece)
    }

    /// Grows the window for an ACK.
    fn grow(&mut self, window: &mut Window, ack: &AckSample) {
        window.grow(ack.acked);
    }

    /// Reduces the window for the signals of one window of data.
    fn on_congestion(&mut self, window: &mut Window, _ack: &AckSample) {
        window.reduce(window.cwnd() / 2.0);
    }

    /// Reduces the window as fast recovery begins.
    fn on_loss(&mut self, window: &mut Window, loss: &Loss) {
        // RFC 3168 §6.1.2: once for the marks and losses of a window.
        if !loss.answered {
            window.halve_flight(loss.flight);
        }
    }

    /// Reduces the window to one segment. A repeated timeout (RFC 5681 §3.1) and one in fast recovery
    /// keep the threshold.
    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        if !loss.answered {
            window.set_ssthresh(loss.flight as f64 / 2.0);
        }
        window.collapse();
    }

    /// Nothing was sent for this long, and nothing is in flight.
    fn on_idle(&mut self, _idle: Time) {}

    /// The smoothed fraction of congestion, where there is one.
    fn alpha(&self) -> Option<f64> {
        None
    }

    /// The number of timeouts in a row after which only probes are sent.
    fn probe_after(&self) -> u32 {
        u32::MAX
    }
}

/// A congestion controller, as written in a scenario: a name such as `"dctcp"`, or a name with
/// parameters such as `{ dctcp = { g = 0.0625 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(!remote, transform = allow_names))]
pub enum ControllerConfig {
    /// See [`reno`].
    Reno {},
    /// See [`cubic`].
    Cubic(CubicConfig),
    /// See [`dctcp`].
    Dctcp(DctcpConfig),
    /// See [`ecn_star`].
    EcnStar {},
    /// See [`delay_dctcp`].
    DelayDctcp(DelayDctcpConfig),
    /// See [`ear`].
    Ear(DelayDctcpConfig),
    /// See [`dx`].
    Dx(DxConfig),
    /// See [`pfabric`].
    Pfabric(PfabricConfig),
    /// RoCE instead of TCP: see [`dcqcn`](crate::transport::roce::dcqcn).
    Dcqcn(DcqcnConfig),
    /// RoCE instead of TCP: see [`timely`](crate::transport::roce::timely).
    Timely(TimelyConfig),
    /// A controller of another crate.
    #[serde(skip)]
    Custom(Custom<MakeController>),
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self::Dctcp(DctcpConfig::default())
    }
}

impl Serialize for ControllerConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Custom(custom) => open::write(custom, serializer),
            known => Self::serialize(known, serializer),
        }
    }
}

impl<'de> OpenEnum<'de> for ControllerConfig {
    const EXPECTED: &'static str =
        "the name of a congestion controller or { name = { parameters } }";

    fn known<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }

    fn custom(name: String, parameters: Parameters) -> Self {
        Self::Custom(Custom::new(name, parameters))
    }

    /// A bare name has the default parameters.
    fn bare<E: Error>(name: &str) -> Result<Self, E> {
        let no_parameters = BTreeMap::<&str, ()>::new();
        let map = MapDeserializer::new(std::iter::once((name, no_parameters)));
        Self::deserialize(MapAccessDeserializer::new(map))
    }
}

impl<'de> Deserialize<'de> for ControllerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        open::read(deserializer)
    }
}

impl ControllerConfig {
    /// The names of the controllers in this crate, each of which stands for its defaults too.
    pub fn names() -> &'static [&'static str] {
        open::names::<Self>()
    }

    /// The echo that the controller is made for.
    pub fn native_echo(&self) -> EcnEcho {
        match self {
            // The receivers of DCQCN notify instead of an echo.
            Self::Reno {}
            | Self::Cubic(_)
            | Self::DelayDctcp(_)
            | Self::Dx(_)
            | Self::Pfabric(_)
            | Self::Dcqcn(_)
            | Self::Timely(_) => EcnEcho::Off,
            Self::EcnStar {} => EcnEcho::Classic,
            Self::Dctcp(_) | Self::Ear(_) => EcnEcho::Precise,
            Self::Custom(custom) => custom
                .maker
                .as_ref()
                .map_or(EcnEcho::Off, |maker| maker.echo),
        }
    }

    /// Returns whether congestion avoidance is the controller's own, whatever [`Growth`] says.
    pub(super) fn has_own_growth(&self) -> bool {
        matches!(self, Self::Cubic(_) | Self::Dx(_))
    }

    /// Returns whether the parameters are possible and the controller can read this echo.
    pub(super) fn validate(&self, echo: EcnEcho) -> Result<(), ConfigError> {
        let need_precise = |controller| match echo {
            EcnEcho::Precise => Ok(()),
            _ => Err(ConfigError::Echo {
                controller,
                needed: "\"precise\"",
            }),
        };
        match self {
            Self::EcnStar {} if echo == EcnEcho::Off => Err(ConfigError::Echo {
                controller: "ecn-star",
                needed: "\"classic\" or \"precise\"",
            }),
            Self::Reno {} | Self::EcnStar {} => Ok(()),
            Self::Cubic(config) => config.validate(),
            Self::Dctcp(config) => config.validate().and(need_precise("dctcp")),
            Self::DelayDctcp(config) => config.validate(),
            Self::Ear(config) => config.validate().and(need_precise("ear")),
            Self::Dx(config) => config.validate(),
            Self::Pfabric(config) => config.validate(),
            Self::Dcqcn(config) => config.validate(),
            Self::Timely(config) => config.validate(),
            Self::Custom(custom) => {
                let Some(maker) = &custom.maker else {
                    return Err(custom
                        .unknown("congestion controller", Self::names())
                        .into());
                };
                (maker.make)(&custom.parameters, &mut Window::new(1, 1, 1, 1))?;
                Ok(())
            }
        }
    }
}

/// A bare name stands for the defaults.
#[cfg(feature = "schema")]
fn allow_names(schema: &mut schemars::Schema) {
    if let Some(serde_json::Value::Array(choices)) = schema.get_mut("oneOf") {
        choices.push(serde_json::json!({ "enum": ControllerConfig::names() }));
    }
}

/// A running controller. With a tag of its own: one hidden in a field would have to be decoded at
/// every dispatch.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Controller {
    Reno(reno::Reno),
    Cubic(cubic::Cubic),
    Dctcp(Dctcp<dctcp::Marks>),
    EcnStar(ecn_star::EcnStar),
    DelayDctcp(Dctcp<DelayThreshold>),
    Ear(Dctcp<MarksAndDelay>),
    Dx(Box<dx::Dx>),
    Pfabric(pfabric::Pfabric),
    Custom(Box<dyn Control>),
}

impl Controller {
    pub(super) fn new(config: &ControllerConfig, window: &mut Window) -> Self {
        match config {
            ControllerConfig::Reno {} => Self::Reno(reno::Reno),
            ControllerConfig::Cubic(config) => Self::Cubic(cubic::Cubic::new(*config)),
            ControllerConfig::Dctcp(config) => Self::Dctcp(Dctcp::new(config, dctcp::Marks)),
            ControllerConfig::EcnStar {} => Self::EcnStar(ecn_star::EcnStar),
            ControllerConfig::DelayDctcp(config) => {
                let late = DelayThreshold::new(config, window.segment() as u64);
                Self::DelayDctcp(Dctcp::new(&config.dctcp(), late))
            }
            ControllerConfig::Ear(config) => {
                let late = DelayThreshold::new(config, window.segment() as u64);
                let signal = MarksAndDelay(late);
                Self::Ear(Dctcp::new(&config.dctcp(), signal))
            }
            ControllerConfig::Dx(config) => {
                Self::Dx(Box::new(dx::Dx::new(*config, window.segment() as u64)))
            }
            ControllerConfig::Pfabric(config) => {
                Self::Pfabric(pfabric::Pfabric::new(*config, window))
            }
            ControllerConfig::Dcqcn(_) | ControllerConfig::Timely(_) => {
                unreachable!("transport::Sender makes no TCP of paced controllers")
            }
            ControllerConfig::Custom(custom) => {
                let maker = custom
                    .maker
                    .as_ref()
                    .expect("validated configurations have one");
                let made = (maker.make)(&custom.parameters, window);
                Self::Custom(made.expect("validated parameters fit"))
            }
        }
    }
}

/// Hands a call to whichever controller is running, without a virtual call on the packet path.
macro_rules! each_controller {
    ($self:expr, $controller:ident => $call:expr) => {
        match $self {
            Controller::Reno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Dctcp($controller) => $call,
            Controller::EcnStar($controller) => $call,
            Controller::DelayDctcp($controller) => $call,
            Controller::Ear($controller) => $call,
            Controller::Dx($controller) => $call,
            Controller::Pfabric($controller) => $call,
            Controller::Custom($controller) => $call,
        }
    };
}

impl Control for Controller {
    #[inline]
    fn observe(&mut self, ack: &AckSample) -> Signal {
        each_controller!(self, controller => controller.observe(ack))
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &AckSample) {
        each_controller!(self, controller => controller.grow(window, ack));
    }

    fn on_congestion(&mut self, window: &mut Window, ack: &AckSample) {
        each_controller!(self, controller => controller.on_congestion(window, ack));
    }

    fn on_loss(&mut self, window: &mut Window, loss: &Loss) {
        each_controller!(self, controller => controller.on_loss(window, loss));
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        each_controller!(self, controller => controller.on_timeout(window, loss));
    }

    fn on_idle(&mut self, idle: Time) {
        each_controller!(self, controller => controller.on_idle(idle));
    }

    fn alpha(&self) -> Option<f64> {
        each_controller!(self, controller => controller.alpha())
    }

    fn probe_after(&self) -> u32 {
        each_controller!(self, controller => controller.probe_after())
    }
}
