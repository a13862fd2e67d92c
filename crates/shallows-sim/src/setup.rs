//! From a [`Setup`] to the hosts, connections and paths of a run.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use shallows_core::application::{ApplicationError, Protocol};
use shallows_core::host::qjump::LimiterConfig;
use shallows_core::host::stack::{HostStack, Seat};
use shallows_core::host::udp::{self, UdpConfig};
use shallows_core::tcp::TcpConfig;
use shallows_core::units::{Bytes, Time};
use shallows_model::{
    ApplicationSetup, Carriage, Channel, Fault, FlowId, HostId, IdVec, LinkChange, LinkId, Model,
};

use crate::applications::{ApplicationPlan, PlannedConnection};
use crate::connections::{Directory, Routes};
use crate::control::{AgentSetup, Control, HostAgent};
use crate::hosts::{HostSetup, QjumpError};
use crate::ids::{ConnectionId, LaneId, ShardId};
use crate::interrupt::{Interrupt, Interrupted};
use crate::layers::EngineChoice;
use crate::partition::Partition;
use crate::paths::Paths;
use crate::ports::PortSetup;
use crate::routing::{Router, Selection, selectors};
use crate::shard::{ControlPlan, HostPlace, Hosts, World};
use crate::simulation::{Settings, SetupError};
use crate::ticket::Ticket;
use crate::topology::Fabric;
use crate::transport::{Completion, Connections, TransportOverride};
use crate::watch::Watch;
use crate::workload::{Ends, Workload};

/// Start state of a simulation: a model and settings, whose applications and agents become
/// connections.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) fabric: Fabric,
    pub(crate) router: Router,
    pub(crate) ports: PortSetup,
    pub(crate) transport: TcpConfig,
    pub(crate) overrides: Vec<TransportOverride>,
    pub(crate) connections: Connections,
    pub(crate) hosts: HostSetup,
    pub(crate) control: Control,
    pub(crate) applications: Vec<ApplicationSetup>,
    /// Switches copy datagrams of applications.
    pub(crate) has_broadcasts: bool,
    pub(crate) workload: Arc<Workload>,
    pub(crate) directory: Directory,
    pub(crate) completion: Completion,
    pub(crate) faults: BTreeMap<LinkId, Fault>,
    pub(crate) changes: Vec<LinkChange>,
    pub(crate) watch: Watch,
    pub(crate) seed: u64,
    pub(crate) threads: u32,
    pub(crate) engine: EngineChoice,
}

impl Setup {
    pub(crate) fn new(model: Model, settings: Settings) -> Self {
        let Model {
            fabric,
            router,
            ports,
            transport,
            overrides,
            connections,
            completion,
            hosts,
            applications,
            workload,
            faults,
            changes,
            seed,
            // Of those who drive the simulation.
            until: _,
        } = model;
        let Settings {
            control,
            watch,
            threads,
            engine,
        } = settings;
        Self {
            fabric,
            router,
            ports,
            transport,
            overrides,
            connections,
            hosts,
            control,
            has_broadcasts: applications.iter().any(|of| of.run.broadcasts()),
            applications,
            directory: Directory::new(&workload),
            workload,
            completion,
            faults,
            changes,
            watch,
            seed,
            threads,
            engine,
        }
    }

    /// Refuses what no run can be made of.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        self.transport.validate()?;
        for special in &self.overrides {
            special.transport.validate()?;
        }
        if self.workload.flows.is_empty() && self.applications.is_empty() {
            return Err(SetupError::NoFlows);
        }
        for stream in &self.workload.streams {
            stream.validate()?;
        }
        Ok(())
    }

    /// Flows that wait for others far away, paths that are found packet by packet, records of
    /// packets in their order, packets that enter several ports at once and control messages that
    /// take next to no time are for one thread.
    pub(crate) fn usable_threads(&self) -> u32 {
        let sprays = self.router.selection() == Selection::Packet;
        let watches = self.watch != Watch::default();
        let waits = !self.workload.barriers.is_empty();
        let copies = self.has_broadcasts;
        if sprays || watches || waits || copies || self.control.is_immediate() {
            return 1;
        }
        self.threads
    }

    /// Puts the gates in their hosts that need no controller.
    pub(crate) fn add_gates(
        &self,
        hosts: &mut BTreeMap<HostId, HostStack<Ticket>>,
        interrupt: Interrupt<'_>,
    ) -> Result<(), SetupError> {
        if let Some(qjump) = &self.hosts.qjump {
            if qjump.automatic.is_some() && self.hosts.stages.is_some() {
                return Err(QjumpError::TwoChoices("stages").into());
            }
            self.check_levels(&qjump.limits(&self.fabric)?, interrupt)?;
        }
        let framing = self.ports.hosts.framing;
        let gates = self.hosts.gates(&self.fabric, framing, self.seed)?;
        for (host, gates) in gates.numbered() {
            for gate in gates {
                let gate = gate.build().map_err(QjumpError::from)?;
                hosts.entry(host).or_default().add_gate(gate);
            }
        }
        Ok(())
    }

    /// Gives each TCP flow the level of its size, where hosts choose levels by size.
    pub(crate) fn choose_levels(&mut self) {
        let qjump = self.hosts.qjump.as_ref();
        if let Some(qjump) = qjump.filter(|qjump| qjump.by_size.is_some()) {
            qjump.choose_levels(Arc::make_mut(&mut self.workload));
        }
    }

    /// Puts the parts of applications in their hosts, and their connections into the directory.
    pub(crate) fn add_applications(
        &mut self,
        stacks: &mut BTreeMap<HostId, HostStack<Ticket>>,
    ) -> Result<ApplicationPlan, ApplicationError> {
        let mut plan = ApplicationPlan::default();
        for (number, application) in (0..).zip(mem::take(&mut self.applications)) {
            let hosts = &application.hosts;
            let own = application.plan()?;
            let first_connection = plan.connections.len() as u32;
            plan.first_connections.push(first_connection);
            let forth = |connection| {
                let lane = LaneId(2 * (first_connection + connection));
                self.directory.of_lane(lane)
            };
            let groups = own.broadcasts.iter().cloned();
            let groups = groups.map(|of| of.map(forth).collect());
            plan.broadcasts.groups.extend(groups);
            for connection in &own.connections {
                let (from, to) = (connection.from, connection.to);
                plan.connections.push(PlannedConnection {
                    application: number,
                    from,
                    to,
                    protocol: connection.protocol,
                });
                let lane = |from: u32, to: u32| Ends {
                    src: hosts[from as usize],
                    dst: hosts[to as usize],
                    service: application.service,
                };
                self.directory.add_lanes([lane(from, to), lane(to, from)]);
            }
            for ((member, &host), part) in (0..).zip(hosts).zip(own.parts) {
                let application = number;
                let seat = Seat {
                    application,
                    member,
                };
                stacks.entry(host).or_default().add_member(seat, part);
            }
            plan.hosts.push(application.hosts);
        }
        if !plan.broadcasts.groups.is_empty() {
            let links = self.fabric.links().iter();
            plan.broadcasts.ends = links.map(|link| (link.from, link.to)).collect();
        }
        Ok(plan)
    }

    /// Puts the agents in their hosts, and the channels between them into the directory.
    pub(crate) fn add_agents(
        &mut self,
        hosts: &mut BTreeMap<HostId, HostStack<Ticket>>,
    ) -> ControlPlan {
        let is_immediate = self.control.is_immediate();
        let control = &mut self.control;
        let agents = mem::take(&mut control.agents);
        let at: Vec<HostId> = agents.iter().map(|agent| agent.host).collect();
        for (address, AgentSetup { host, agent }) in (0..).zip(agents) {
            let stack = hosts.entry(host).or_default();
            match agent {
                HostAgent::Alone(agent) => stack.add_agent(address, agent),
                HostAgent::Gate(agent) => stack.add_gate_agent(address, agent),
            }
        }
        let channels = mem::take(&mut control.channels);
        let slot = |&channel: &Channel| {
            let ends = Ends {
                src: at[channel.from as usize],
                dst: at[channel.to as usize],
                service: 0,
            };
            (channel, self.directory.add_channel(ends))
        };
        ControlPlan {
            carriage: control.carriage,
            slots: channels.iter().map(slot).collect(),
            hosts: at,
            channels: channels.into(),
            is_immediate,
        }
    }

    /// Checks that the limits let something of every flow pass at some time.
    fn check_levels(
        &self,
        limits: &LimiterConfig,
        interrupt: Interrupt<'_>,
    ) -> Result<(), SetupError> {
        let qjump = self.hosts.qjump.as_ref();
        let is_automatic = qjump.is_some_and(|qjump| qjump.automatic.is_some());
        let lowest = limits.levels.len() as u16 - 1;
        for (flow, ends) in self.directory.all(&self.workload).enumerate() {
            interrupt.check_at(flow)?;
            let size = match self.workload.stream(FlowId(flow as u32)) {
                Some(_) => udp::IP_HEADER + 1,
                None => self.transport(ends).header,
            };
            let levels = match &self.hosts.stages {
                Some(stages) => 1..=u16::from(stages.greatest_tag()),
                None if is_automatic => lowest..=lowest,
                None => ends.service..=ends.service,
            };
            for level in levels {
                let allotment = limits.levels.get(usize::from(level)).copied();
                if allotment.is_none_or(|bytes| bytes.get() < u64::from(size)) {
                    return Err(SetupError::NeverPasses {
                        flow,
                        level,
                        size,
                        allotment,
                    });
                }
            }
        }
        Ok(())
    }

    /// The constants of the run; takes what only they have.
    pub(crate) fn world(
        &mut self,
        control: ControlPlan,
        applications: ApplicationPlan,
        warm_ups: IdVec<ConnectionId, [Time; 2]>,
        places: IdVec<HostId, HostPlace>,
    ) -> World {
        World {
            workload: Arc::clone(&self.workload),
            directory: mem::take(&mut self.directory),
            has_pace: self.has_pace(),
            transport: self.transport.clone(),
            overrides: mem::take(&mut self.overrides),
            connections: self.connections,
            warm_ups,
            completion: self.completion,
            stages: self.hosts.stages.take(),
            control,
            applications,
            places,
            seed: self.seed,
        }
    }

    /// No packet is smaller: an ACK, the last fragment of a message, or an empty control message.
    pub(crate) fn smallest_packet(
        &self,
        control: &ControlPlan,
        applications: &ApplicationPlan,
    ) -> u32 {
        let streams = self.workload.streams.iter();
        let streams = streams.map(UdpConfig::smallest_packet).min();
        let mut protocols = applications.connections.iter().map(|of| of.protocol);
        let has_datagrams = protocols.any(|protocol| protocol == Protocol::Datagram);
        // The last fragment of a message of any size.
        let fragments = has_datagrams.then_some(udp::IP_HEADER + 1);
        let datagrams = [streams, fragments].into_iter().flatten().min();
        let messages = match control.carriage {
            Carriage::Fabric { header, .. } if !control.channels.is_empty() => {
                Some(u32::from(header))
            }
            _ => None,
        };
        let special = self.overrides.iter().map(|of| of.transport.header);
        let others = [datagrams, messages].into_iter().flatten();
        special.chain(others).fold(self.transport.header, u32::min)
    }

    pub(crate) fn transport(&self, flow: Ends) -> &TcpConfig {
        TransportOverride::choose(&self.overrides, &self.transport, flow)
    }

    /// Returns whether some connections are paced.
    pub(crate) fn has_pace(&self) -> bool {
        let special = self.overrides.iter().map(|special| &special.transport);
        special.chain([&self.transport]).any(TcpConfig::is_paced)
    }

    /// All paths in use, and where those of each connection begin.
    pub(crate) fn routes(
        &self,
        interrupt: Interrupt<'_>,
    ) -> Result<(Paths<LinkId>, Routes), SetupError> {
        let mut paths = Paths::default();
        let mut routes = Vec::with_capacity(self.directory.len());
        let mut links = Vec::new();
        let all = || self.directory.all(&self.workload);
        let selectors = selectors(&self.router, all(), self.connections);
        for (flow, (ends, selector)) in all().zip(selectors).enumerate() {
            interrupt.check_at(flow)?;
            let mut find = |from, to| {
                let found = self.router.path(from, to, selector, &mut links);
                found.map_err(|reason| SetupError::NoPath { flow, reason })?;
                Ok::<_, SetupError>(paths.intern(links.iter().copied(), self.fabric.uplink(to)))
            };
            routes.push([find(ends.src, ends.dst)?, find(ends.dst, ends.src)?]);
        }
        if self.changes.is_empty() && self.router.selection() != Selection::Packet {
            paths.seal();
        }
        Ok((paths, routes.into()))
    }

    /// The pairs of links that sprayed packets may take one after the other.
    pub(crate) fn sprayed_steps(&self) -> Vec<(LinkId, LinkId)> {
        let all = self.directory.all(&self.workload);
        self.router
            .steps(all.flat_map(|ends| [(ends.src, ends.dst), (ends.dst, ends.src)]))
    }

    /// For each connection, how long a full segment and its ACK take on the idle fabric; nothing if
    /// connections are not warmed up.
    pub(crate) fn warm_ups(
        &self,
        (paths, routes): (&Paths<LinkId>, &Routes),
        interrupt: Interrupt<'_>,
    ) -> Result<IdVec<ConnectionId, [Time; 2]>, Interrupted> {
        if self.connections != Connections::WarmedUp {
            return Ok(IdVec::new());
        }
        let pass = |route: u32, size: u32| {
            let links = paths.links(route).map(|link| {
                let framing = self.ports.config(&self.fabric, link).framing;
                let size = Bytes::new(u64::from(framing.wire_size(size)));
                let rate = self.fabric.link(link).rate;
                rate.transmission_time(size) + self.ports.delay(&self.fabric, link)
            });
            links.fold(Time::ZERO, |sum, time| sum + time)
        };
        let delays = (0..routes.len()).map(|number| {
            let connection = ConnectionId(number as u32);
            let ends = self.directory.ends(&self.workload, connection);
            let [forth, back] = routes[connection];
            let TcpConfig {
                segment, header, ..
            } = *self.transport(ends);
            [pass(forth, segment + header), pass(back, header)]
        });
        Ok(interrupt.collect(delays)?.into())
    }
}

/// Shard and NIC port of each host.
pub(crate) fn places(fabric: &Fabric, partition: &Partition) -> IdVec<HostId, HostPlace> {
    let place = |host| {
        let uplink = fabric.uplink(host);
        let (part, port) = partition.place(uplink);
        let rate = fabric.link(uplink).rate;
        HostPlace { part, port, rate }
    };
    fabric.host_ids().map(place).collect()
}

/// Takes the hosts of a part.
pub(crate) fn take_hosts(
    shard: ShardId,
    places: &IdVec<HostId, HostPlace>,
    hosts: &mut BTreeMap<HostId, HostStack<Ticket>>,
) -> Hosts {
    let own = places.numbered().filter(|(_, place)| place.part == shard);
    own.filter_map(|(host, place)| Some((place.port, hosts.remove(&host)?)))
        .collect()
}
