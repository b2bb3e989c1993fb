//! A building: nodes on a network, devices that carry out commands, and faults.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Input, Machine, Member, NodeId, Span, Time};
use selvedge_groups::{Fact, GroupId, Item, Message, Node, Place, Selection, Start};
use selvedge_kgroup::routines::{Definition, RoutineEvent, RoutineState};
use selvedge_kgroup::{
    Command, Config, Event, GroupState, Kgroup, LeaderEvent, Outcome, Payload, Site, TriggerId,
    Update, devices,
};
use selvedge_routine::{Routine, State, Step};
use selvedge_sim::network::{Link, Network, Topology};

/// The time that a device takes to answer, and to do something.
const DEVICE: Span = Span::millis(3);

/// The purpose of a command to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) at: Time,
    pub(crate) device: NodeId,
    pub(crate) ticket: devices::Ticket,
    pub(crate) value: State,
}

pub(crate) struct Building {
    pub(crate) net: Network<Kgroup>,
    pub(crate) site: Arc<Site>,
    config: Config,
    members: Vec<Member>,
    /// The state of each device, and whether it answers.
    pub(crate) devices: BTreeMap<NodeId, (State, bool)>,
    /// The reports of devices that have not been received yet.
    answers: BTreeMap<(Time, u64), (usize, Command)>,
    asked: u64,
    /// The time that a device takes for a command.
    pub(crate) takes: Span,
    pub(crate) done: Vec<Done>,
    pub(crate) events: Vec<(Time, usize, Event)>,
}

pub(crate) fn device(number: u64) -> NodeId {
    NodeId(1_000 + number)
}

/// Brings devices into a state, one after another.
pub(crate) fn switching(devices: &[u64], value: &str) -> Definition {
    let steps = devices
        .iter()
        .map(|it| Step::new(device(*it), value.into()));
    Definition::new(Routine {
        steps: steps.collect(),
    })
}

impl Building {
    /// Nodes and devices in these numbers in a row, one metre apart.
    pub(crate) fn new(
        seed: u64,
        nodes: u64,
        devices: u64,
        failures: u8,
        link: Link,
        routines: impl IntoIterator<Item = Definition>,
    ) -> Self {
        let config = Config::new();
        Self::with_config(config, seed, (nodes, devices, failures), link, routines)
    }

    /// A building with these numbers of nodes, devices and failures.
    pub(crate) fn with_config(
        config: Config,
        seed: u64,
        (nodes, devices, failures): (u64, u64, u8),
        link: Link,
        routines: impl IntoIterator<Item = Definition>,
    ) -> Self {
        let place = |at: u64| Place([at as i32 * 100, 0, 0]);
        let selection = Selection::new().with_failures(failures);
        let smart = (1..=nodes).map(|id| Node::new(id, place(id)));
        let simple = (1..=devices).map(|it| (device(it), place(it)));
        let mut site = Site::new(selection, smart, simple, 2).unwrap();
        for routine in routines {
            site = site.with_routine(routine).unwrap();
        }
        Self::of_site(config, seed, site, link)
    }

    /// A building that begins with this site.
    pub(crate) fn of_site(config: Config, seed: u64, site: Site, link: Link) -> Self {
        let nodes = site.nodes().len() as u64;
        let devices = site.clusters().flat_map(|it| it.1.devices.clone());
        let devices = devices.map(|it| (it, ("off".into(), true))).collect();
        let site = Arc::new(site);
        // There is room for one node more.
        let topology = Topology::full_mesh(nodes as usize + 1).unwrap();
        let mut building = Self {
            net: Network::new(seed, topology, link).unwrap(),
            site,
            config,
            members: (1..=nodes).map(|id| Member::new(id, 0)).collect(),
            devices,
            answers: BTreeMap::new(),
            asked: 0,
            takes: DEVICE,
            done: Vec::new(),
            events: Vec::new(),
        };
        for me in building.members.clone() {
            let machine = building.machine(me, Start::Fresh);
            building.net.add(me, machine).unwrap();
        }
        for at in 0..building.members.len() {
            building.meet(at);
            building.net.command(at, Command::SetEpoch(1)).unwrap();
        }
        building
    }

    fn machine(&self, me: Member, start: Start) -> Kgroup {
        Kgroup::new(me, self.config, Arc::clone(&self.site), start).unwrap()
    }

    /// A node learns of all others.
    fn meet(&mut self, at: usize) {
        for other in self.members.clone() {
            if other.id != self.members[at].id {
                self.net.membership(at, Delta::Joined(other)).unwrap();
            }
        }
    }

    /// A node has the building take these nodes, devices and routines.
    pub(crate) fn change(&mut self, at: usize, wanted: Site) {
        for device in wanted.clusters().flat_map(|it| &it.1.devices) {
            let known = self.devices.entry(*device);
            known.or_insert_with(|| ("off".into(), true));
        }
        let wanted = Command::ChangeSite(Box::new(wanted));
        self.net.command(at, wanted).unwrap();
    }

    /// One node more begins, with this site in its program.
    pub(crate) fn join(&mut self, site: Site) {
        let me = Member::new(self.members.len() as u64 + 1, 0);
        let machine = Kgroup::new(me, self.config, Arc::new(site), Start::Fresh).unwrap();
        let at = self.net.add(me, machine).unwrap();
        self.members.push(me);
        self.meet(at);
        self.net.command(at, Command::SetEpoch(1)).unwrap();
        for other in (0..at).filter(|it| self.net.is_up(*it)).collect::<Vec<_>>() {
            self.net.membership(other, Delta::Joined(me)).unwrap();
        }
    }

    /// A node stops, and the others learn of it.
    pub(crate) fn kill(&mut self, at: usize) {
        self.net.crash(at).unwrap();
        let ended = self.members[at];
        for other in 0..self.members.len() {
            if other != at && self.net.is_up(other) {
                self.net.membership(other, Delta::Failed(ended)).unwrap();
            }
        }
    }

    /// A node begins again, without its memory, and the others learn of it.
    pub(crate) fn revive(&mut self, at: usize) {
        let Member { id, incarnation } = self.members[at];
        let me = Member::new(id.0, incarnation.0 + 1);
        self.members[at] = me;
        let machine = self.machine(me, Start::Restarted);
        self.net.restart(at, me, machine).unwrap();
        self.meet(at);
        self.net.command(at, Command::SetEpoch(1)).unwrap();
        for other in 0..self.members.len() {
            if other != at && self.net.is_up(other) {
                self.net.membership(other, Delta::Joined(me)).unwrap();
            }
        }
    }

    /// A node begins again, without its memory, and no node learns of it.
    pub(crate) fn begin_again_unnoticed(&mut self, at: usize) {
        self.net.crash(at).unwrap();
        let Member { id, incarnation } = self.members[at];
        let me = Member::new(id.0, incarnation.0 + 1);
        self.members[at] = me;
        let machine = self.machine(me, Start::Restarted);
        self.net.restart(at, me, machine).unwrap();
        self.meet(at);
    }

    /// A message arrives at a node.
    pub(crate) fn deliver(&mut self, from: Member, to: usize, item: Item<Update, Payload>) {
        let plan = self.site.plan().unwrap().digest();
        let items = [item].into_iter().collect();
        let message = Message {
            plan,
            generation: 0,
            items,
        };
        let input = Input::Message { from, message };
        let taken = self.net.with(to, |node, cx| node.handle(input, cx));
        taken.unwrap();
        self.receive();
    }

    pub(crate) fn member(&self, at: usize) -> Member {
        self.members[at]
    }

    /// All nodes lose power at once, and begin again from the facts that `stored` returns for each.
    pub(crate) fn black_out(&mut self, stored: impl Fn(&Self, usize) -> Vec<Fact<GroupState>>) {
        let nodes = 0..self.members.len();
        for at in nodes.clone() {
            self.net.crash(at).unwrap();
        }
        self.answers.clear();
        for at in nodes.clone() {
            let Member { id, incarnation } = self.members[at];
            let me = Member::new(id.0, incarnation.0 + 1);
            self.members[at] = me;
            let mut machine = self.machine(me, Start::Fresh);
            for fact in stored(self, at) {
                machine.fold(&fact).unwrap();
            }
            self.net.restart(at, me, machine).unwrap();
        }
        for at in nodes {
            self.net.command(at, Command::SetEpoch(1)).unwrap();
            self.meet(at);
        }
    }

    /// A node begins again from these facts, and the others learn of it.
    pub(crate) fn begin_again_with(&mut self, at: usize, facts: &[Fact<GroupState>]) {
        self.net.crash(at).unwrap();
        let Member { id, incarnation } = self.members[at];
        let me = Member::new(id.0, incarnation.0 + 1);
        self.members[at] = me;
        let mut machine = self.machine(me, Start::Fresh);
        for fact in facts {
            machine.fold(fact).unwrap();
        }
        self.net.restart(at, me, machine).unwrap();
        self.net.command(at, Command::SetEpoch(1)).unwrap();
        self.meet(at);
        for other in 0..self.members.len() {
            if other != at {
                self.net.membership(other, Delta::Joined(me)).unwrap();
            }
        }
    }

    pub(crate) fn trigger(&mut self, at: usize, routine: u32, id: u64) {
        let routine = Site::routine(routine);
        let id = TriggerId(id);
        let trigger = Command::Trigger { routine, id };
        self.net.command(at, trigger).unwrap();
    }

    /// Runs until then.
    pub(crate) fn run(&mut self, span: Span) {
        let until = self.net.now() + span;
        loop {
            self.receive();
            let answer = self.answers.first_key_value().map(|it| it.0.0);
            let next = [answer, self.net.next_at()].into_iter().flatten().min();
            let Some(next) = next.filter(|it| *it <= until) else {
                self.net.run_until(until);
                return self.receive();
            };
            self.net.run_until(next);
            self.receive();
            while let Some(entry) = self.answers.first_entry() {
                if entry.key().0 > next {
                    break;
                }
                let (at, command) = entry.remove();
                // The node may have stopped, or lead no more.
                let _taken = self.net.command(at, command).is_ok();
            }
        }
    }

    fn receive(&mut self) {
        let events: Vec<_> = self.net.drain_events().collect();
        for (at, node, event) in events {
            if let Event::Leader {
                event: LeaderEvent::Devices(event),
                ..
            } = &event
            {
                self.on_device_event(at, node, event);
            }
            self.events.push((at, node, event));
        }
    }

    fn on_device_event(&mut self, at: Time, node: usize, event: &devices::Event) {
        let answer = match event {
            devices::Event::Ping { device } => {
                let (value, is_up) = &self.devices[device];
                is_up.then(|| Command::Reported {
                    device: *device,
                    value: Some(value.clone()),
                })
            }
            devices::Event::Act { ticket, value } => {
                let (state, is_up) = self.devices.get_mut(&ticket.device).unwrap();
                is_up.then(|| {
                    state.clone_from(value);
                    self.done.push(Done {
                        at,
                        device: ticket.device,
                        ticket: *ticket,
                        value: value.clone(),
                    });
                    Command::Acted {
                        ticket: *ticket,
                        outcome: Outcome::Done,
                    }
                })
            }
            _ => None,
        };
        if let Some(command) = answer {
            self.asked += 1;
            let takes = match command {
                Command::Acted { .. } => self.takes,
                _ => DEVICE,
            };
            self.answers
                .insert((at + takes, self.asked), (node, command));
        }
    }

    pub(crate) fn routine(&self, routine: u32) -> RoutineState {
        let group = Site::routine(routine);
        let all = self.net.machines().filter(|(at, _)| self.net.is_up(*at));
        let all = all.filter_map(|(_, node)| {
            let version = node.groups().replica(group)?.version();
            match node.held(group)? {
                GroupState::Routine(it) => Some((version, it)),
                _ => None,
            }
        });
        let latest = all.max_by_key(|it| it.0).unwrap();
        (**latest.1).clone()
    }

    pub(crate) fn leader(&self, group: GroupId) -> Vec<usize> {
        let all = self.net.machines().filter(|(at, _)| self.net.is_up(*at));
        let leads = all.filter(|(_, node)| node.leads().any(|it| it == group));
        leads.map(|it| it.0).collect()
    }

    pub(crate) fn reports(&self, routine: u32) -> usize {
        let reported = self.events.iter().filter(|(_, _, event)| {
            matches!(
                event,
                Event::Leader { group, event: LeaderEvent::Routine(RoutineEvent::Reports(_)) }
                    if *group == Site::routine(routine)
            )
        });
        reported.count()
    }
}
