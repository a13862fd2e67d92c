//! `[[transports]]` of a live run: some flows have a congestion controller of their own.
//!
//! A controller is chosen by socket, before the handshake. All other settings of TCP are those of a
//! host, so they are refused here. ECN follows the controller where the controller demands it
//! (dctcp, ear, ecn-star), and is one setting of the hosts for all others.

use shallows_core::tcp::{ControllerConfig, EcnEcho, TcpConfig};
use shallows_live::traffic::FlowControllers;
use shallows_model::TransportOverride;

use super::controller::{Chosen, Wanted};
use crate::plan::RunPlan;
use crate::scenario::Diagnostic;

/// Keys of `[transport]` that flows of one host can differ in.
const BY_FLOW: [&str; 2] = ["controller", "ecn"];

/// The controllers that a plan asks for: that of the hosts and those of `[[transports]]`.
#[derive(Debug)]
pub(super) struct Wishes {
    usual: Wanted,
    special: Vec<Wanted>,
}

impl Wishes {
    /// Refuses what the kernel cannot have.
    pub(super) fn of(plan: &RunPlan) -> Result<Self, Diagnostic> {
        let scenario = &plan.scenario;
        let usual = &scenario.config.transport;
        let wishes = Self {
            usual: Wanted::of(scenario, "transport.controller", &usual.controller)?,
            special: (0..)
                .zip(&plan.overrides)
                .map(|(index, of)| Wanted::of(scenario, &key(index), &of.transport.controller))
                .collect::<Result<_, _>>()?,
        };
        if plan.overrides.is_empty() {
            return Ok(wishes);
        }
        if !plan.applications.is_empty() {
            let problem = "live, transports of some services or hosts are those of flows, not of \
                           applications";
            let help = "set [transport] for all, or simulate it";
            return Err(scenario.error("transports", problem).help(help));
        }
        refuse_settings_of_hosts(plan)?;
        wishes.refuse_two_of_a_kind(plan)?;
        Ok(wishes)
    }

    /// The kernel knows a controller by its name, with one set of parameters.
    fn refuse_two_of_a_kind(&self, plan: &RunPlan) -> Result<(), Diagnostic> {
        for (index, wanted) in self.special.iter().enumerate() {
            let mut others = self.special[..index].iter().chain([&self.usual]);
            if let Some(controller) = others.find_map(|other| wanted.differs_from(other)) {
                let problem = format!("the kernel has one {controller} at a time");
                let help = "give both transports the same parameters, or simulate it";
                return Err(plan.scenario.error(&key(index), problem).help(help));
            }
        }
        Ok(())
    }
}

fn key(index: usize) -> String {
    format!("transports.{index}.set.controller")
}

/// Refuses what the hosts of a lab have for all their flows.
fn refuse_settings_of_hosts(plan: &RunPlan) -> Result<(), Diagnostic> {
    let scenario = &plan.scenario;
    for (index, special) in scenario.config.transports.iter().enumerate() {
        let mut keys = special.set.keys();
        if let Some(key) = keys.find(|key| !BY_FLOW.contains(&key.as_str())) {
            let problem = format!("live, {key} is the same for all flows of a host");
            let path = format!("transports.{index}.set.{key}");
            let help =
                "set it in [transport], or simulate it; live, flows differ in controller and ecn";
            return Err(scenario.error(&path, problem).help(help));
        }
    }
    let mut choosing = transports(plan).filter(|(_, transport)| !demands_ecn(transport));
    let Some((_, first)) = choosing.next() else {
        return Ok(());
    };
    match choosing.find(|(_, other)| uses_ecn(other) != uses_ecn(first)) {
        Some((Some(index), _)) => {
            let problem = "live, either all of reno, cubic and delay-dctcp use ECN or none does: \
                           the hosts of a lab have one setting";
            let path = format!("transports.{index}.set");
            let help = "give them the same ecn, or simulate it";
            Err(scenario.error(&path, problem).help(help))
        }
        _ => Ok(()),
    }
}

/// The usual transport, and the special ones with their index.
fn transports(plan: &RunPlan) -> impl Iterator<Item = (Option<usize>, &TcpConfig)> {
    let special = plan.overrides.iter().map(|of| &of.transport).enumerate();
    let special = special.map(|(index, transport)| (Some(index), transport));
    [(None, &plan.transport)].into_iter().chain(special)
}

fn uses_ecn(transport: &TcpConfig) -> bool {
    transport.echo() != EcnEcho::Off
}

/// Returns whether the kernel negotiates ECN for this controller, whatever the host's setting.
fn demands_ecn(transport: &TcpConfig) -> bool {
    use ControllerConfig::{Dctcp, Ear, EcnStar};
    matches!(transport.controller, Dctcp(_) | Ear(_) | EcnStar {})
}

/// Returns whether hosts negotiate ECN for connections whose controller leaves that to them.
pub(super) fn hosts_use_ecn(plan: &RunPlan) -> bool {
    if plan.overrides.is_empty() {
        return uses_ecn(&plan.transport);
    }
    transports(plan).any(|(_, transport)| !demands_ecn(transport) && uses_ecn(transport))
}

/// The controllers of a live run, which the kernel has while this lives.
#[derive(Debug)]
pub(super) struct Controllers {
    /// That of the hosts.
    pub(super) usual: Chosen,
    /// Names of those of `[[transports]]`, in their order.
    special: Vec<String>,
    _held: Vec<Chosen>,
}

impl Controllers {
    /// The controllers of a plan, loaded if the kernel does not have them.
    pub(super) fn load(plan: &RunPlan) -> Result<Self, Diagnostic> {
        let scenario = &plan.scenario;
        let Wishes { usual, special } = Wishes::of(plan)?;
        let chosen = Chosen::new(scenario, "transport.controller", &usual)?;
        if !special.is_empty() && !chosen.may_be_default() {
            let problem = format!(
                "the kernel lets hosts have {} for all flows or for none",
                chosen.name
            );
            let help = "`sysctl net.ipv4.tcp_allowed_congestion_control` can allow it";
            return Err(scenario.error("transports", problem).help(help));
        }
        let mut names = vec![chosen.name.clone()];
        let mut held = Vec::new();
        for (index, wanted) in special.iter().enumerate() {
            let mut known = [&usual].into_iter().chain(&special[..index]);
            if let Some(same) = known.position(|known| known == wanted) {
                names.push(names[same].clone());
            } else {
                let chosen = Chosen::new(scenario, &key(index), wanted)?;
                names.push(chosen.name.clone());
                held.push(chosen);
            }
        }
        Ok(Self {
            usual: chosen,
            special: names.split_off(1),
            _held: held,
        })
    }

    /// Controllers that nobody has loaded.
    #[cfg(test)]
    pub(super) fn named(plan: &RunPlan) -> Self {
        Self {
            usual: Chosen::named("reno"),
            special: vec!["reno".to_owned(); plan.overrides.len()],
            _held: Vec::new(),
        }
    }

    /// The controllers of flows that do not have the hosts'.
    pub(super) fn of_flows(&self, plan: &RunPlan) -> FlowControllers {
        if self.special.is_empty() {
            return FlowControllers::default();
        }
        let flows = plan.workload.flows.iter();
        FlowControllers {
            names: self.special.clone(),
            of_flow: flows
                .map(|flow| TransportOverride::position(&plan.overrides, flow))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(keys: &str) -> RunPlan {
        let text = format!(
            r#"
topology.star = {{ hosts = 3, rate = "100Mbps", delay = "5us" }}
ports.switch = {{ buffer = "unlimited", scheduler = "fifo" }}
workload.flows = [
    {{ start = "0s", src = 0, dst = 1, size = "1MB", service = 0 }},
    {{ start = "0s", src = 0, dst = 1, size = "1MB", service = 1 }},
]
{keys}"#
        );
        let scenario: crate::Scenario = text.parse().unwrap();
        scenario.build().unwrap()
    }

    fn refusal(keys: &str) -> String {
        Wishes::of(&plan(keys)).unwrap_err().to_string()
    }

    #[test]
    fn a_flow_has_the_controller_of_its_service() {
        let plan =
            plan("[[transports]]\nservices = [1]\nset = { controller = 'cubic', ecn = 'off' }\n");
        Wishes::of(&plan).unwrap();
        let controllers = Controllers::named(&plan).of_flows(&plan);
        assert_eq!(controllers.of_flow.as_slice(), [None, Some(0)]);
        // DCTCP, which is the usual one, demands ECN by itself.
        assert!(!hosts_use_ecn(&plan));
    }

    #[test]
    fn settings_of_hosts_cannot_differ_by_flow() {
        let refused = refusal("[[transports]]\nservices = [1]\nset = { segment = 1000 }\n");
        assert!(
            refused.contains("segment is the same for all flows"),
            "{refused}"
        );
        let refused = refusal(
            "transport = { controller = 'reno', ecn = 'off' }\n\
             [[transports]]\nservices = [1]\nset = { controller = 'cubic', ecn = 'classic' }\n",
        );
        assert!(refused.contains("use ECN or none does"), "{refused}");
    }

    #[test]
    fn the_kernel_has_one_controller_of_a_name() {
        let refused = refusal(
            "transport.controller.ear = { t = '100us' }\n\
             [[transports]]\nservices = [1]\nset = { controller.ear = { t = '200us' } }\n",
        );
        assert!(refused.contains("one ear at a time"), "{refused}");
        let same = plan(
            "transport.controller.ear = { t = '100us' }\n\
             [[transports]]\nservices = [1]\nset = { controller.ear = { t = '100us' } }\n",
        );
        Wishes::of(&same).unwrap();
    }

    #[test]
    fn applications_have_the_transport_of_the_hosts() {
        let refused = refusal(
            "until = '1s'\n\
             [[transports]]\nservices = [1]\nset = { controller = 'reno' }\n\
             [[application]]\nclients = 0\nservers = 1\n\
             run.ping = { interval = '10ms' }\n",
        );
        assert!(refused.contains("not of applications"), "{refused}");
    }
}
