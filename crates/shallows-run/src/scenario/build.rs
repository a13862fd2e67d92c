//! From a scenario to the plan of its run, with every check before any work.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use shallows_core::packet::Descriptor;
use shallows_core::port::pause::{PauseGauge, PauseScope};
use shallows_core::port::{ClassifierConfig, EgressPort, PerIndex, PortConfig, SchedulerConfig};
use shallows_core::tcp::TcpConfig;
use shallows_core::units::{Bytes, Time};
use shallows_model::routing::Router;
use shallows_model::topology::{Fabric, LONGEST_DELAY, Node};
use shallows_model::workload::{FlowSpec, MOST_FLOWS, Workload, WorkloadConfig, WorkloadError};
use shallows_model::{
    ApplicationEntry, ApplicationSetup, FlowId, Interrupt, Model, PortSetup, QjumpError,
    TransportOverride,
};
use shallows_results::size_class::SizeClasses;
use shallows_sim::Control;

use super::{
    Diagnostic, Faults, HostPort, Report, Scenario, ScenarioConfig, TransportFor, link_name, value,
};
use crate::failure::Failure;
use crate::plan::RunPlan;

impl Scenario {
    /// The plan of a run.
    pub fn build(&self) -> Result<RunPlan, Diagnostic> {
        let built = self.build_unless(Interrupt::Never);
        built.map_err(|failure| match failure {
            Failure::Scenario(diagnostic) => diagnostic,
            other => Diagnostic::new(other.to_string()),
        })
    }

    /// The plan of a run, unless it is interrupted: many flows take a while.
    pub fn build_unless(&self, interrupt: Interrupt<'_>) -> Result<RunPlan, Failure> {
        let fabric = self.fabric()?;
        let workload = self.workload(&fabric, interrupt)?;
        if interrupt.is_set() {
            return Err(Failure::NotBegun);
        }
        Ok(self.build_with(fabric, workload)?)
    }

    /// The plan with another workload.
    pub fn build_with(&self, fabric: Fabric, workload: Workload) -> Result<RunPlan, Diagnostic> {
        // A new key has to become part of the plan here.
        let ScenarioConfig {
            seed,
            until,
            completion,
            connections,
            routing,
            hosts,
            transport,
            report,
            // The fabric and the workload are given.
            topology: _,
            workload: _,
            // Read below by functions of their own.
            measure: _,
            links: _,
            ports: _,
            transports: _,
            application: _,
            probes: _,
            // Of live runs; their world reads them.
            live: _,
            // Of the file and its results.
            version: _,
            name: _,
        } = &self.config;
        let router = Router::new(&fabric, routing, *seed)
            .map_err(|error| self.error_in("routing", &error))?;
        let checked = transport.validate();
        checked.map_err(|error| self.error_in("transport", &error))?;
        self.check_transport_keys("transport", transport)?;
        if let Some(jitter) = &self.config.hosts.jitter {
            self.check_times("hosts.jitter.mean", &jitter.mean, fabric.hosts())?;
        }
        self.check_qjump(&fabric)?;
        let ports = self.ports(&fabric)?;
        self.control(&fabric, &router, &ports)?;
        self.check_measure(&workload)?;
        let (small, medium) = (report.small_max, report.medium_max);
        let size_classes = SizeClasses::new(small, medium).map_err(|_| {
            let problem = format!(
                "size classes must grow: small-max is {small} and medium-max {medium}; write for \
                 example small-max = \"100KB\" and medium-max = \"10MB\""
            );
            self.error("report.small-max", problem)
        })?;
        self.check_services(report)?;
        let Faults { faults, changes } = self.faults(&fabric)?;
        let model = Model {
            overrides: self.overrides(&fabric)?,
            applications: self.applications(&fabric)?,
            ports,
            transport: transport.clone(),
            connections: *connections,
            completion: *completion,
            hosts: hosts.clone(),
            fabric,
            router,
            workload: Arc::new(workload),
            faults,
            changes,
            seed: *seed,
            until: *until,
        };
        Ok(RunPlan {
            probes: self.probes(&model.fabric, model.workload.flows.len())?,
            scenario: self.clone(),
            model,
            size_classes,
        })
    }

    /// Checks QJUMP's limits.
    /// Refuses names of services that no metric could have.
    fn check_services(&self, report: &Report) -> Result<(), Diagnostic> {
        for name in report.services.keys() {
            let is_word =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            let is_name = name.starts_with(|first: char| first.is_ascii_lowercase());
            if !is_name || !name.bytes().all(is_word) {
                let problem = format!(
                    "{name:?} cannot be the name of a service: names have small letters, digits and \
                     hyphens, and begin with a letter"
                );
                return Err(self.error("report.services", problem));
            }
        }
        Ok(())
    }

    fn check_qjump(&self, fabric: &Fabric) -> Result<(), Diagnostic> {
        let Some(qjump) = &self.config.hosts.qjump else {
            return Ok(());
        };
        let limits = qjump.limits(fabric);
        let limits = limits.map_err(|error| self.error_in("hosts.qjump", &error))?;
        if let Some(error) = reversed(&limits.levels, &self.config.ports.switch) {
            return Err(self.error_in("hosts.qjump", &error));
        }
        if qjump.automatic.is_some() && self.config.hosts.stages.is_some() {
            let error = QjumpError::TwoChoices("stages");
            return Err(self.error_in("hosts.qjump", &error));
        }
        Ok(())
    }

    /// Refuses a measuring window that is empty or has no flows.
    fn check_measure(&self, workload: &Workload) -> Result<(), Diagnostic> {
        let Some(measure) = self.config.measure else {
            return Ok(());
        };
        if measure.to.is_some_and(|to| to <= measure.from) {
            let problem = format!("the window ends before it begins, at {}", measure.from);
            return Err(self.error("measure.to", problem));
        }
        let starts = || workload.flows.iter().map(|flow| flow.start);
        if starts().any(|start| start == FlowSpec::AT_BARRIER) {
            let problem = "flows that wait for others have no start to compare with the window";
            return Err(self.error("measure", problem));
        }
        if !workload.flows.is_empty() && !starts().any(|start| measure.counts(start)) {
            let last = starts().max().unwrap_or_default();
            let problem = format!("no flow starts in the window; the last one starts at {last}");
            return Err(self.error("measure.from", problem));
        }
        Ok(())
    }

    /// The fabric alone.
    pub fn fabric(&self) -> Result<Fabric, Diagnostic> {
        let fabric = self.config.topology.build();
        fabric.map_err(|error| self.error_in("topology", &error))
    }

    /// The agents of control protocols.
    pub(crate) fn control(
        &self,
        fabric: &Fabric,
        router: &Router,
        ports: &PortSetup,
    ) -> Result<Control, Diagnostic> {
        let Some(xco) = &self.config.hosts.xco else {
            return Ok(Control::default());
        };
        if self.config.until.is_none() {
            let problem = "hosts keep reporting to the controller, so the run would not end";
            let error = self.error("hosts.xco", problem);
            return Err(error.help("set until = \"1s\" at the top of the file, or use --until"));
        }
        if xco.gate.pass_dscp.is_some() && self.config.hosts.qjump.is_none() {
            let problem = "nothing limits the packets that pass XCo's gate by their DSCP";
            let error = self.error("hosts.xco.gate.pass-dscp", problem);
            return Err(error.help("limit them by [hosts.qjump], or leave pass-dscp out"));
        }
        let control = Control::xco(xco, fabric, router, ports);
        control.map_err(|error| self.error_in("hosts.xco", &error))
    }

    fn workload(&self, fabric: &Fabric, interrupt: Interrupt<'_>) -> Result<Workload, Failure> {
        let Self { config, .. } = self;
        let configs = &config.workload.0;
        self.check_applications(fabric)?;
        let is_silent = config.application.is_empty() && config.live.commands.is_empty();
        if configs.is_empty() && is_silent {
            let error = self.error("workload", "there is no workload, and no flows are given");
            let help = "add [workload.poisson] or another one, or use --flows FILE.csv";
            return Err(error.help(help).into());
        }
        // More than are possible on any machine are refused below.
        let known = Some(self.known_flows()).filter(|&flows| flows <= MOST_FLOWS);
        self.check_memory(fabric, known.unwrap_or_default())?;
        let workload = WorkloadConfig::generate_all_unless(configs, fabric, config.seed, interrupt);
        let workload = workload.map_err(|error| match error {
            WorkloadError::Interrupted(_) => Failure::NotBegun,
            WorkloadError::At { index, error } if self.source.has(&format!("workload.{index}")) => {
                self.error_in(&format!("workload.{index}"), &*error).into()
            }
            WorkloadError::At { error, .. } => self.error_in("workload", &*error).into(),
            error => self.error_in("workload", &error).into(),
        })?;
        self.check_memory(fabric, workload.flows.len() as u64)?;
        let never_ends = |(flow, spec): (FlowId, &FlowSpec)| {
            spec.bytes == FlowSpec::ENDLESS && workload.stop(flow).is_none()
        };
        if config.until.is_none() && workload.flows.numbered().any(never_ends) {
            let error = self.error(
                "workload",
                "some flows never stop, so the run would not end",
            );
            let help = "set until = \"100ms\" at the top of the file, or give a stop";
            return Err(error.help(help).into());
        }
        Ok(workload)
    }

    /// The applications on a fabric.
    fn applications(&self, fabric: &Fabric) -> Result<Vec<ApplicationSetup>, Diagnostic> {
        let build = |(index, entry): (usize, &ApplicationEntry)| {
            let path = format!("application.{index}");
            entry
                .build(fabric)
                .map_err(|error| self.error_in(&path, &error))
        };
        let entries = self.config.application.iter().enumerate();
        entries.map(build).collect()
    }

    /// Checks that applications can run, and that the run ends.
    fn check_applications(&self, fabric: &Fabric) -> Result<(), Diagnostic> {
        self.applications(fabric)?;
        let mut entries = self.config.application.iter();
        match entries.position(|entry| !entry.ends()) {
            Some(index) if self.config.until.is_none() => {
                let problem = "the application never stops, so the run would not end";
                let error = self.error(&format!("application.{index}"), problem);
                Err(error.help("set until = \"100ms\" at the top of the file, a stop or a count"))
            }
            _ => Ok(()),
        }
    }

    /// The transports of some services or hosts: `[transport]` with the keys that they set.
    fn overrides(&self, fabric: &Fabric) -> Result<Vec<TransportOverride>, Diagnostic> {
        let build = |(index, special): (usize, &TransportFor)| {
            let path = format!("transports.{index}");
            let at_keys = |problem: String| self.error(&format!("{path}.set"), problem);
            let usual = toml::Table::try_from(&self.config.transport);
            let mut keys = usual.map_err(|error| at_keys(error.to_string()))?;
            keys.extend(special.set.clone());
            let transport = value::read_table::<TcpConfig>(&keys);
            let mut transport = transport.map_err(|error| at_keys(error.to_string()))?;
            let known = self.registry.resolve_transport(&mut transport);
            known.map_err(|error| at_keys(error.to_string()))?;
            let checked = transport.validate();
            checked.map_err(|error| self.error_in(&format!("{path}.set"), &error))?;
            self.check_transport_keys(&format!("{path}.set"), &transport)?;
            let hosts = match &special.hosts {
                Some(hosts) => hosts.resolve(fabric),
                None => Ok(Vec::new()),
            };
            if special.services.is_empty() && special.hosts.is_none() {
                return Err(self
                    .error(&path, "these settings are for all flows")
                    .help("give services or hosts, or set them in [transport]"));
            }
            Ok(TransportOverride {
                services: special.services.clone(),
                hosts: hosts.map_err(|error| self.error_in(&path, &error))?,
                transport,
            })
        };
        let special = self.config.transports.iter().enumerate();
        special.map(build).collect()
    }

    /// Refuses keys at `path` that the transport has no use for.
    fn check_transport_keys(&self, path: &str, transport: &TcpConfig) -> Result<(), Diagnostic> {
        match self.source.keys_of(path).find(|key| !transport.uses(key)) {
            None => Ok(()),
            Some(key) => {
                let problem = format!("{key} is a key of TCP, and the controller runs over RoCE");
                let help = "leave it out: RoCE has segment, header, rto and controller";
                Err(self.error(&format!("{path}.{key}"), problem).help(help))
            }
        }
    }

    /// Checks times of hosts: one for all, or one for each.
    fn check_times(&self, key: &str, times: &PerIndex<Time>, hosts: u32) -> Result<(), Diagnostic> {
        let name = key.rsplit('.').next().unwrap_or(key);
        let times = match times {
            PerIndex::Each(times) if times.len() != hosts as usize => {
                let given = times.len();
                let problem = format!("{name} has {given} values, there are {hosts} hosts");
                return Err(self.error(key, problem));
            }
            PerIndex::Each(times) => &times[..],
            PerIndex::All(time) => slice::from_ref(time),
        };
        if let Some(time) = times.iter().find(|&&time| time > LONGEST_DELAY) {
            let problem = format!("{name} is {time}, it can be at most {LONGEST_DELAY}");
            return Err(self.error(key, problem));
        }
        Ok(())
    }

    /// Checks that pauses can be kept.
    fn check_pause(&self, fabric: &Fabric, setup: &PortSetup) -> Result<(), Diagnostic> {
        let Some(pause) = setup.pause else {
            return Ok(());
        };
        let broadcasts = |entry: &ApplicationEntry| entry.run.broadcasts();
        if self.config.application.iter().any(broadcasts) {
            let problem =
                "pauses follow packets from port to port, and a broadcast is copied there";
            let help = "leave ports.pause out, or set fan-out = \"unicast\"";
            return Err(self.error("ports.pause", problem).help(help));
        }
        PauseGauge::new(pause, 1).map_err(|error| self.error_in("ports.pause", &error))?;
        let links = fabric.links().ids();
        let queues: BTreeSet<_> = links
            .map(|link| setup.config(fabric, link).queues)
            .collect();
        if pause.per == PauseScope::Queue && queues.len() > 1 {
            let problem = "a pause of one queue needs ports with equally many queues";
            let help = "set ports.host = \"as-switch\", or pause.per = \"link\"";
            return Err(self.error("ports.pause.per", problem).help(help));
        }
        Ok(())
    }

    /// The ports, each tried on every rate that it will have.
    fn ports(&self, fabric: &Fabric) -> Result<PortSetup, Diagnostic> {
        let ports = &self.config.ports;
        self.check_times("ports.host-delay", &ports.host_delay, fabric.hosts())?;
        if let Some(pool) = ports.pool.filter(|pool| *pool < ports.switch.packet) {
            let problem = format!(
                "a pool of {pool} does not hold one packet of {}",
                ports.switch.packet
            );
            return Err(self.error("ports.pool", problem));
        }
        let mut setup = PortSetup {
            switches: ports.switch.clone(),
            hosts: ports.host(),
            special: BTreeMap::new(),
            pool: ports.pool,
            pause: ports.pause,
            host_delay: ports.host_delay.clone(),
        };
        // Which entry each special port is from.
        let mut entries = BTreeMap::new();
        for (index, special) in ports.special.iter().enumerate() {
            let path = format!("ports.special.{index}.links");
            let links = special.links.find(fabric);
            for link in links.map_err(|problem| self.error(&path, problem))? {
                if entries.insert(link, index).is_some() {
                    let name = link_name(fabric, fabric.link(link));
                    return Err(self.error(&path, format!("{name} has a port by an entry before")));
                }
                setup.special.insert(link, special.port.clone());
            }
        }
        self.check_pause(fabric, &setup)?;
        let mut tried = BTreeSet::new();
        for (number, link) in fabric.links().numbered() {
            let entry = entries.get(&number).copied();
            if tried.insert((entry, matches!(link.from, Node::Switch(_)), link.rate.bps())) {
                let config = setup.config(fabric, number);
                let port = EgressPort::<Descriptor>::new(link.rate, config, 0, 0);
                port.map_err(|error| match (entry, link.from) {
                    (Some(index), _) => {
                        self.error_in(&format!("ports.special.{index}.port"), &error)
                    }
                    (None, Node::Switch(_)) => self.error_in("ports.switch", &error),
                    (None, Node::Host(_)) if ports.host == HostPort::AsSwitch => {
                        self.error_in("ports.switch", &error)
                    }
                    (None, Node::Host(_)) => self.error_in("ports.host", &error),
                })?;
            }
        }
        Ok(setup)
    }
}

/// QJUMP gives the levels that switches serve first the least bytes; whoever writes them in the
/// paper's order gives them the most.
fn reversed(levels: &[Bytes], switch: &PortConfig) -> Option<QjumpError> {
    let by_service = switch.classifier == ClassifierConfig::Dscp;
    if !by_service || switch.scheduler != SchedulerConfig::Strict {
        return None;
    }
    let mut pairs = levels.windows(2);
    let first = pairs.position(|pair| pair[0] > pair[1])?;
    Some(QjumpError::Reversed(first, first + 1))
}

#[cfg(test)]
mod tests;
