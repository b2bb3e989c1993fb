//! Facts of a node's k-groups as a damaged disk returns them.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge::{Command, Coordination, Event, Fact, Message, Node, encode};
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Sha256Sortition, Time};
use selvedge_groups::store::StoreCommand;
use selvedge_groups::{GroupId, Item, Place, Selection};
use selvedge_kgroup::routines::Definition;
use selvedge_kgroup::{self as kgroup, Outcome, Site, TriggerId};
use selvedge_membership as membership;
use selvedge_routine::{Routine, Step};

use crate::seeds::{operation, requests};

/// The nodes of the site are 1 to this one.
const NODES: u64 = 2;
/// The node in the life that stored, and in the next ones. It holds the registry.
const LIVES: [Member; 3] = [Member::new(2, 0), Member::new(2, 1), Member::new(2, 2)];
/// The devices of the site are 1,000 to this one.
pub(crate) const LAST_DEVICE: u64 = 1_005;
const BUDGET: u16 = 1_400;

/// The number of maps, and of routines: node 2 leads about half of each.
const GROUPS: u32 = 8;

pub(crate) fn maps() -> impl Iterator<Item = GroupId> {
    (0..GROUPS).map(|it| GroupId::map(&it.to_string(), &Sha256Sortition))
}

/// Two nodes with devices, each a cluster, and routines. A node alone is a group, so that one node leads
/// some.
pub(crate) fn coordination() -> Option<Coordination> {
    let place = |at: u64| Place([at as i32, 0, 0]);
    let nodes = (1..=NODES).map(|id| selvedge_groups::Node::new(id, place(id)));
    let devices = (1_000..=LAST_DEVICE).map(|it| (NodeId(it), place(it)));
    let mut site = Site::new(Selection::new().with_failures(0), nodes, devices, 1).ok()?;
    for first in 0..u64::from(GROUPS) {
        let device = |it: u64| NodeId(1_000 + it % (LAST_DEVICE - 999));
        let steps = [first, first + 1].map(|it| Step::new(device(it), "on".into()));
        let steps = steps.to_vec();
        site = site.with_routine(Definition::new(Routine { steps })).ok()?;
    }
    Some(Coordination::new(site))
}

/// Reads `data` as the stored facts of a node, restores the node from them, and has it take part: it joins,
/// other nodes ask, devices answer, and time goes by.
///
/// Any facts are refused with an error, or the node runs, reports that it runs, sends no longer
/// frames than its budget, and stores facts that a later life takes; nothing panics.
///
/// # Panics
/// When one of these does not hold.
pub fn group_facts(data: &[u8]) {
    let facts = postcard::from_bytes::<Vec<Fact>>(data).ok();
    if let Some(node) = facts.and_then(|it| Run::restore(LIVES[1], it)) {
        node.take_part();
    }
}

/// A node, and its effects.
pub(crate) struct Run {
    driver: Driver<Node>,
    rng: ChaCha8Rng,
    now: Time,
    pub(crate) facts: Vec<Fact>,
    /// The answers to inquiries.
    here: u32,
}

impl Run {
    pub(crate) fn restore(me: Member, facts: Vec<Fact>) -> Option<Self> {
        let mut config = membership::Config::default();
        config.frame_budget = BUDGET;
        let node = Node::builder(me).membership(config);
        let node = node.restored_groups(coordination()?, facts).build().ok()?;
        Some(Self {
            driver: Driver::new(node),
            rng: ChaCha8Rng::seed_from_u64(0),
            now: Time::ZERO,
            facts: Vec::new(),
            here: 0,
        })
    }

    pub(crate) fn first() -> Option<Self> {
        Self::restore(LIVES[0], Vec::new())
    }

    /// The facts that replace all earlier ones.
    pub(crate) fn stored(&self) -> Vec<Fact> {
        let node = self.driver.machine().kgroup();
        node.map_or_else(Vec::new, |it| it.groups().stored().collect())
    }

    /// The groups that the node leads.
    fn leads(&self) -> Vec<GroupId> {
        let node = self.driver.machine().kgroup();
        node.map_or_else(Vec::new, |it| it.leads().collect())
    }

    pub(crate) fn take_part(mut self) -> Self {
        self.command(kgroup::Command::SetEpoch(1));
        let seeds = Vec::new();
        self.input(Input::Command(Command::Membership(
            membership::Command::Join { seeds },
        )));
        self.wait();
        for epoch in 2..4 {
            for group in self.leads() {
                self.ask_all(group);
            }
            for routine in (0..GROUPS).map(Site::routine) {
                let id = TriggerId(epoch);
                self.command(kgroup::Command::Trigger { routine, id });
            }
            for map in maps() {
                let watch = StoreCommand::Watch("front".into());
                let (ticket, operation) = (epoch, operation());
                let change = StoreCommand::Change { ticket, operation };
                for command in [watch, change] {
                    self.command(kgroup::Command::Map { map, command });
                }
            }
            self.wait();
            self.command(kgroup::Command::SetEpoch(epoch));
            self.wait();
        }
        let asked = self.inquire();
        assert_eq!(self.here, asked, "it is not here, for a disk");
        let again = Self::restore(LIVES[2], self.stored());
        assert!(again.is_some(), "it stores facts that it refuses");
        self
    }

    fn command(&mut self, command: kgroup::Command) {
        self.input(Input::Command(Command::Groups(command)));
    }

    /// Another node sends every kind of request.
    fn ask_all(&mut self, group: GroupId) {
        for asked in requests() {
            let asked = kgroup::Payload::Request(asked);
            self.receive(1, Item::Ask { group, asked });
        }
    }

    /// The others ask whether the node runs. Returns the number of questions.
    fn inquire(&mut self) -> u32 {
        self.here = 0;
        for other in 1..NODES {
            let ask = Item::Inquire {
                group: Site::cluster(0),
                number: 7,
                configuration: 2,
            };
            self.receive(other, ask);
        }
        NODES as u32 - 1
    }

    fn receive(&mut self, from: u64, item: Item<kgroup::Update, kgroup::Payload>) {
        let Some(plan) = coordination().and_then(|it| it.site.plan().ok()) else {
            return;
        };
        let (from, plan) = (Member::new(from, 0), plan.digest());
        let items = [item].into_iter().collect();
        let message = Message::Groups(kgroup::Message {
            plan,
            generation: 0,
            items,
        });
        self.input(Input::Message { from, message });
    }

    fn input(&mut self, input: Input<Node>) {
        let mut effects = Vec::new();
        let _refused = self
            .driver
            .step_into(self.now, &mut self.rng, input, &mut effects);
        self.on_effects(effects);
    }

    /// Some timers.
    fn wait(&mut self) {
        for _ in 0..32 {
            let mut effects = Vec::new();
            self.now = self.driver.deadline().unwrap_or(self.now).max(self.now);
            self.driver
                .expire_into(self.now, &mut self.rng, &mut effects);
            self.on_effects(effects);
        }
    }

    /// Messages are lost, and devices carry out their commands.
    fn on_effects(&mut self, effects: Vec<Effect<Node>>) {
        let mut frame = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { message, .. } | Effect::Multicast { message } => {
                    let me = self.driver.machine().membership().me();
                    let written = encode(me, &message, BUDGET.into(), &mut frame);
                    assert!(written.is_ok(), "{written:?}: {message:?}");
                    if let Message::Groups(message) = message {
                        let items = message.items.iter();
                        let here = items.filter(|it| matches!(it, Item::Here { .. })).count();
                        self.here += here as u32;
                    }
                }
                Effect::Event(Event::Groups(event)) => self.on_event(event),
                Effect::Event(_) => {}
            }
        }
    }

    fn on_event(&mut self, event: kgroup::Event) {
        if let kgroup::Event::Groups(selvedge_groups::Event::Fact(fact)) = &event {
            self.facts.push(fact.clone());
        }
        let kgroup::Event::Leader {
            event: kgroup::LeaderEvent::Devices(event),
            ..
        } = event
        else {
            return;
        };
        if let kgroup::devices::Event::Ping { device } = event {
            let value = Some("off".into());
            self.command(kgroup::Command::Reported { device, value });
        } else if let kgroup::devices::Event::Act { ticket, .. } = event {
            let outcome = Outcome::Done;
            self.command(kgroup::Command::Acted { ticket, outcome });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    /// A seed that is refused, or of a node that leads nothing, would test nothing.
    #[test]
    fn a_node_is_restored_from_each_seed_and_leads_again() {
        for seed in seeds().filter(|it| it.target == "group_facts") {
            let facts: Vec<Fact> = postcard::from_bytes(&seed.bytes).unwrap();
            let node = Run::restore(LIVES[1], facts).unwrap().take_part();
            let leads = node.leads();
            let leads_any =
                |mut of: Box<dyn Iterator<Item = GroupId>>| of.any(|it| leads.contains(&it));
            assert!(leads_any(Box::new((0..6).map(Site::cluster))));
            assert!(leads_any(Box::new((0..GROUPS).map(Site::routine))));
            assert!(leads_any(Box::new(maps())), "{:?}", seed.name);
        }
    }
}
