//! The congestion controller of the hosts: one that the kernel has, or ours while the run lasts.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use shallows_bpf::{Controller, Held, Parameters};
use shallows_core::tcp::ControllerConfig;
use shallows_core::tcp::congestion::{CubicConfig, DctcpConfig, DelayDctcpConfig};
use shallows_core::units::Time;

use crate::scenario::{Diagnostic, Scenario};

/// Time that the kernel may take to forget a controller after its program has ended.
const LONGEST_RELEASE: Duration = Duration::from_secs(3);

/// A controller that the kernel has. One that was loaded for the run goes as this is dropped, or
/// as the program is killed.
#[derive(Debug)]
pub(super) struct Chosen {
    /// Its name in the kernel.
    pub(super) name: String,
    _held: Option<Held>,
}

/// The controller that a scenario asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Wanted {
    /// One of the kernel's, by name.
    Kernel(&'static str),
    /// One of our BPF programs.
    Ours(Controller, Parameters),
}

impl Wanted {
    /// The wish behind a key of the scenario. Refuses what the kernel cannot have.
    pub(super) fn of(
        scenario: &Scenario,
        key: &str,
        controller: &ControllerConfig,
    ) -> Result<Self, Diagnostic> {
        match controller {
            ControllerConfig::Reno {} => Ok(Self::Kernel("reno")),
            ControllerConfig::Cubic(config) if *config == CubicConfig::default() => {
                Ok(Self::Kernel("cubic"))
            }
            ControllerConfig::Cubic(_) => {
                let problem = "the kernel's cubic has beta, c and fast convergence of its own";
                let help = "leave out the parameters of cubic, or simulate them";
                Err(scenario.error(key, problem).help(help))
            }
            ControllerConfig::Dctcp(config) => Ok(Self::Ours(Controller::Dctcp, dctcp(config))),
            ControllerConfig::EcnStar {} => {
                Ok(Self::Ours(Controller::EcnStar, Parameters::default()))
            }
            ControllerConfig::DelayDctcp(config) => {
                Ok(Self::Ours(Controller::DelayDctcp, delay_dctcp(config)))
            }
            ControllerConfig::Ear(config) => Ok(Self::Ours(Controller::Ear, delay_dctcp(config))),
            ControllerConfig::Custom(custom) => {
                let problem = format!("{} is not in the kernel", custom.name);
                Err(scenario.error(key, problem))
            }
            ControllerConfig::Dcqcn(_) | ControllerConfig::Timely(_) => {
                let problem = "RoCE with dcqcn or timely is simulated only: the kernel has TCP";
                let help = "choose dctcp, ear, cubic or reno, or simulate it";
                Err(scenario.error("transport.controller", problem).help(help))
            }
            _ => {
                let problem = "the kernel has no such congestion controller";
                let help = "choose dctcp, ear, cubic or reno, or simulate it";
                Err(scenario.error(key, problem).help(help))
            }
        }
    }

    /// The program that both are, if they are one with different parameters.
    pub(super) fn differs_from(&self, other: &Self) -> Option<Controller> {
        match (self, other) {
            (Self::Ours(one, mine), Self::Ours(other, theirs)) if one == other => {
                (mine != theirs).then_some(*one)
            }
            _ => None,
        }
    }
}

impl Chosen {
    /// The controller behind a key of the scenario, loaded if the kernel does not have it.
    pub(super) fn new(scenario: &Scenario, key: &str, wanted: &Wanted) -> Result<Self, Diagnostic> {
        match *wanted {
            Wanted::Kernel(name) => Self::of_the_kernel(scenario, key, name),
            Wanted::Ours(controller, parameters) => {
                Self::ours(scenario, key, controller, parameters)
            }
        }
    }

    /// Returns whether a namespace may have it as its default.
    pub(super) fn may_be_default(&self) -> bool {
        controllers("allowed").contains(&self.name)
    }

    fn of_the_kernel(scenario: &Scenario, key: &str, name: &str) -> Result<Self, Diagnostic> {
        let available = controllers("available");
        if available.iter().any(|known| known == name) {
            return Ok(Self::named(name));
        }
        let problem = format!("the kernel has no {name}; it has {}", available.join(", "));
        Err(scenario.error(key, problem))
    }

    /// One of ours: as the user has loaded it, or else loaded now, or else the kernel's own of that
    /// name.
    fn ours(
        scenario: &Scenario,
        key: &str,
        controller: Controller,
        parameters: Parameters,
    ) -> Result<Self, Diagnostic> {
        wait_for_others(scenario, key, controller)?;
        let available = controllers("available");
        let has = |name: &str| available.iter().any(|known| known == name);
        if has(controller.kernel_name()) {
            refuse_other_parameters(scenario, key, controller, &parameters)?;
            return Ok(Self::named(controller.kernel_name()));
        }
        match shallows_bpf::hold(controller, &parameters) {
            Ok(held) => Ok(Self {
                name: controller.kernel_name().to_owned(),
                _held: Some(held),
            }),
            // The kernel's own has parameters of its own.
            Err(_) if has(controller.name()) && parameters == Parameters::default() => {
                Ok(Self::named(controller.name()))
            }
            Err(error) => {
                let available = available.join(", ");
                let problem = format!("the kernel has no {controller}; it has {available}");
                let help = format!(
                    "ours cannot be loaded: {:#}; or run with --set transport.controller=cubic \
                     --set transport.ecn=classic",
                    anyhow::Error::from(error)
                );
                Err(scenario.error(key, problem).help(help))
            }
        }
    }

    pub(super) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            _held: None,
        }
    }
}

fn dctcp(config: &DctcpConfig) -> Parameters {
    let DctcpConfig { g, initial_alpha } = *config;
    Parameters {
        g,
        initial_alpha,
        ..Parameters::default()
    }
}

fn delay_dctcp(config: &DelayDctcpConfig) -> Parameters {
    let DelayDctcpConfig {
        t,
        g,
        initial_alpha,
        base_lifetime,
    } = *config;
    Parameters {
        g,
        initial_alpha,
        // The kernel's clock has whole ones.
        threshold: Time::from_us(t.ps().div_ceil(1_000_000)),
        base_lifetime: base_lifetime.map(whole_ms),
        ..Parameters::default()
    }
}

/// Rounded up to what the kernel counts in.
fn whole_ms(time: Time) -> Time {
    Time::from_ms(time.ps().div_ceil(1_000_000_000))
}

/// A controller that another live run has brought along goes with that run, in the middle of ours:
/// waits a moment for its end, in which the kernel forgets it, or refuses.
fn wait_for_others(
    scenario: &Scenario,
    key: &str,
    controller: Controller,
) -> Result<(), Diagnostic> {
    let deadline = Instant::now() + LONGEST_RELEASE;
    let has = || controllers("available").contains(&controller.kernel_name().to_owned());
    let pinned = || shallows_bpf::is_loaded(controller).unwrap_or(true);
    while has() && !pinned() {
        if Instant::now() >= deadline {
            let problem = format!("another live run has loaded {controller} and takes it along");
            let help = format!(
                "wait for its end; `shallows cc load {controller}` before the next runs lets them \
                 share it"
            );
            return Err(scenario.error(key, problem).help(help));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Refuses to replace a controller that the user has loaded, since it may be in use.
fn refuse_other_parameters(
    scenario: &Scenario,
    key: &str,
    controller: Controller,
    wanted: &Parameters,
) -> Result<(), Diagnostic> {
    // Without root it cannot be asked.
    let Ok(loaded) = shallows_bpf::parameters(controller) else {
        return Ok(());
    };
    // In the kernel they are multiples of 2^-20.
    let same = |a: f64, b: f64| (a - b).abs() < 1e-5;
    let equal = (!controller.has_alpha()
        || (same(loaded.g, wanted.g) && same(loaded.initial_alpha, wanted.initial_alpha)))
        && (!controller.hears_delay()
            || (loaded.threshold == wanted.threshold
                && loaded.base_lifetime == wanted.base_lifetime));
    if equal {
        return Ok(());
    }
    let settings = |of: &Parameters| {
        let of = of.of(controller).into_iter();
        let of: Vec<String> = of.map(|(name, value)| format!("{name}={value}")).collect();
        of.join(" ")
    };
    let problem = format!(
        "{controller} is loaded with {}, and the scenario has {}",
        settings(&loaded),
        settings(wanted)
    );
    let help = format!("`shallows cc unload {controller}` lets the run load its own");
    Err(scenario.error(key, problem).help(help))
}

/// The kernel's list of `available` or of `allowed` controllers.
fn controllers(kind: &str) -> Vec<String> {
    let path = format!("/proc/sys/net/ipv4/tcp_{kind}_congestion_control");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
