//! Nodes and the messages between them, in virtual time.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::check::ById;
use selvedge_celect::{Celect, Command, Config, Event, Message, Reject};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, Span, Time};

/// A sender, a receiver, and a message.
pub(crate) type Letter = (Member, Member, Message);

/// The number of copies of a message that arrive.
type Fate = Box<dyn FnMut(&Letter, &mut ChaCha8Rng) -> usize>;

/// Nodes 1 to n, whose messages arrive in the order in which they were sent.
pub(crate) struct Mesh {
    pub(crate) nodes: Vec<Driver<Celect<ById>>>,
    rng: ChaCha8Rng,
    now: Time,
    pub(crate) wire: Vec<Letter>,
    pub(crate) events: Vec<(u64, Event)>,
    pub(crate) unicasts: usize,
    pub(crate) multicasts: usize,
    /// Nodes that no message reaches or leaves.
    pub(crate) cut: Vec<u64>,
    pub(crate) fate: Fate,
    /// True if messages arrive in any order.
    pub(crate) shuffled: bool,
}

pub(crate) const fn member(id: u64) -> Member {
    Member::new(id, 0)
}

impl Mesh {
    /// Returns a mesh with a node for each list of known nodes.
    pub(crate) fn with_lists(lists: &[Vec<u64>], config: Config) -> Self {
        let node =
            |nth: usize| Driver::new(Celect::new(member(nth as u64 + 1), config, ById).unwrap());
        let mut mesh = Self {
            nodes: (0..lists.len()).map(node).collect(),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            wire: Vec::new(),
            events: Vec::new(),
            unicasts: 0,
            multicasts: 0,
            cut: Vec::new(),
            fate: Box::new(|_, _| 1),
            shuffled: false,
        };
        for (nth, list) in lists.iter().enumerate() {
            for &id in list.iter().filter(|&&id| id != nth as u64 + 1) {
                mesh.notify(nth as u64 + 1, Delta::Joined(member(id)));
            }
        }
        mesh
    }

    pub(crate) fn step(&mut self, id: u64, input: Input<Celect<ById>>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        let node = &mut self.nodes[id as usize - 1];
        let outcome = node.step_into(self.now, &mut self.rng, input, &mut effects);
        self.carry_out(id, effects);
        outcome
    }

    pub(crate) fn notify(&mut self, id: u64, delta: Delta) {
        self.step(id, Input::Membership(delta)).unwrap();
    }

    pub(crate) fn command(&mut self, id: u64, command: Command) {
        self.step(id, Input::Command(command)).unwrap();
    }

    pub(crate) fn deliver(&mut self) {
        while !self.wire.is_empty() {
            let at = if self.shuffled {
                self.rng.below(self.wire.len() as u64)
            } else {
                0
            };
            let (from, to, message) = self.wire.remove(at as usize);
            if !self.cut.contains(&from.id.0) && !self.cut.contains(&to.id.0) {
                self.step(to.id.0, Input::Message { from, message })
                    .unwrap();
            }
        }
    }

    /// Lets time pass, message by message and timer by timer.
    pub(crate) fn pass(&mut self, span: Span) {
        let end = self.now + span;
        self.deliver();
        while let Some(due) = self.nodes.iter().filter_map(Driver::deadline).min() {
            if due > end {
                break;
            }
            self.now = due;
            for nth in 0..self.nodes.len() {
                let mut effects = Vec::new();
                let (node, rng) = (&mut self.nodes[nth], &mut self.rng);
                node.expire_into(self.now, rng, &mut effects);
                self.carry_out(nth as u64 + 1, effects);
            }
            self.deliver();
        }
        self.now = end;
    }

    fn carry_out(&mut self, id: u64, effects: Vec<Effect<Celect<ById>>>) {
        let from = self.nodes[id as usize - 1].machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.unicasts += 1;
                    self.post((from, to, message));
                }
                Effect::Multicast { message } => {
                    self.multicasts += 1;
                    for to in (1..=self.nodes.len() as u64).filter(|&to| to != id) {
                        self.post((from, member(to), message.clone()));
                    }
                }
                Effect::Event(event) => self.events.push((id, event)),
            }
        }
    }

    fn post(&mut self, letter: Letter) {
        for _ in 0..(self.fate)(&letter, &mut self.rng) {
            self.wire.push(letter.clone());
        }
    }
}
