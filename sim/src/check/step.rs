//! What can happen next.

use alloc::sync::Arc;

use selvedge_core::{Context, Delta, Effect, Input, Machine, NodeId, Outbox, Time};

use super::odometer::Fault;
use super::state::Host;
use super::{Bounds, Choice, Incomplete, Letter, Model, Node, Observer, Odometer, State};

/// Something that can happen in a state. Letters are named by their place in
/// [`State::letters`], nodes by their place in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action<T> {
    /// A letter arrives.
    Deliver {
        /// Which letter.
        letter: usize,
        /// Whether a copy stays on its way.
        again: bool,
    },
    /// A letter is lost.
    Drop {
        /// Which letter.
        letter: usize,
    },
    /// A letter arrives at a node that is down.
    Miss {
        /// Which letter.
        letter: usize,
    },
    /// A timer fires.
    Tick {
        /// Whose.
        node: usize,
        /// Which timer.
        timer: T,
    },
    /// The application asks what is next on its list.
    Command {
        /// Whom.
        node: usize,
    },
    /// The membership service tells one of the listed deltas.
    Tell {
        /// Whom.
        node: usize,
        /// Which of the node's list.
        delta: usize,
    },
    /// A node stops.
    Crash {
        /// Which one.
        node: usize,
    },
    /// A node that is down begins its next life.
    Restart {
        /// Which one.
        node: usize,
    },
}

impl<T> Action<T> {
    /// Whether something goes wrong, so that progress must not depend on it.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        match self {
            Self::Drop { .. } | Self::Crash { .. } | Self::Deliver { again: true, .. } => true,
            Self::Deliver { again: false, .. }
            | Self::Miss { .. }
            | Self::Tick { .. }
            | Self::Command { .. }
            | Self::Tell { .. }
            | Self::Restart { .. } => false,
        }
    }
}

/// An action, the choices made in it, and where they lead.
pub(super) struct Transition<M: Machine, O> {
    pub(super) action: Action<M::Timer>,
    pub(super) choices: Vec<Choice>,
    pub(super) next: State<M, O>,
    pub(super) refused: Option<M::Reject>,
    /// Empty unless the scratch records.
    pub(super) effects: Vec<Effect<M>>,
}

/// Buffers that live from step to step.
pub(super) struct Scratch<M: Machine> {
    odometer: Odometer,
    outbox: Outbox<M>,
    /// How many sequences of choices a step may have.
    limit: usize,
    /// Whether to keep the effects, for a trace.
    record: bool,
}

impl<M: Machine> Scratch<M> {
    pub(super) const fn new(limit: usize, record: bool) -> Self {
        Self {
            odometer: Odometer::new(),
            outbox: Outbox::new(),
            limit,
            record,
        }
    }
}

type Found = Result<(), Incomplete>;

type Call<'a, M> = &'a dyn Fn(&mut M, &mut Context<'_, M>) -> Result<(), <M as Machine>::Reject>;

/// A step to be taken.
struct Attempt<'a, M: Machine, O> {
    node: usize,
    action: Action<M::Timer>,
    /// The machine before it.
    machine: &'a M,
    /// The host's part once the input is taken: the timer fired, the command issued.
    host: &'a Host<M::Timer>,
    /// The rest of the state, once the input is taken.
    base: &'a dyn Fn() -> State<M, O>,
    call: Call<'a, M>,
}

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// All initial states: one, unless starts make choices.
    pub(super) fn initial(&self, scratch: &mut Scratch<M>) -> Result<Vec<State<M, O>>, Incomplete> {
        let host = Host {
            up: true,
            life: 0,
            timers: Vec::new(),
            issued: 0,
            told: 0,
        };
        let nodes = self.machines.iter().enumerate();
        let nodes = nodes.map(|(index, machine)| self.node(index, machine.clone(), host.clone()));
        let mut states = vec![State {
            nodes: nodes.collect(),
            letters: Vec::new(),
            left: self.bounds,
            observer: self.observer.clone(),
        }];
        let Some(start) = &self.start else {
            return Ok(states);
        };
        for node in 0..self.machines.len() {
            let mut started = Vec::new();
            for state in &states {
                let Some(old) = state.node(node) else {
                    continue;
                };
                let attempt = Attempt {
                    node,
                    action: Action::Restart { node },
                    machine: old.machine(),
                    host: &old.host,
                    base: &|| state.clone(),
                    call: &|machine, cx| start(node, 0, machine, cx),
                };
                self.branch(&attempt, scratch, &mut |found| {
                    if let Some(reject) = found.refused {
                        return Err(refused_start::<M>(node, &reject));
                    }
                    started.push(found.next);
                    Ok(())
                })?;
            }
            states = started;
        }
        Ok(states)
    }

    /// Hands every transition out of `state` to `sink`, always in the same order.
    pub(super) fn successors(
        &self,
        state: &State<M, O>,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        self.letters(state, scratch, sink)?;
        let early = state.is_busy();
        for (index, node) in state.nodes().enumerate() {
            if node.is_up() {
                self.ticks(state, index, node, early, scratch, sink)?;
                self.command(state, index, node, scratch, sink)?;
                self.deltas_of(state, index, node, scratch, sink)?;
                self.crash(state, index, node, sink)?;
            } else {
                self.come_back(state, index, node, scratch, sink)?;
            }
        }
        Ok(())
    }

    fn letters(
        &self,
        state: &State<M, O>,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let mut before: Option<&Arc<Letter<M>>> = None;
        for (at, letter) in state.letters.iter().enumerate() {
            // Which of two copies arrives makes no difference.
            if before.replace(letter) == Some(letter) {
                continue;
            }
            let without = |left: Bounds| {
                let mut next = state.clone();
                next.letters.remove(at);
                next.left = left;
                next
            };
            // Down, or gone under another id.
            let up = state.position(letter.to()).and_then(|index| {
                let node = state.node(index).filter(|node| node.is_up())?;
                Some((index, node))
            });
            let Some((index, node)) = up else {
                sink(plain(Action::Miss { letter: at }, without(state.left)))?;
                continue;
            };
            let mut attempt = Attempt {
                node: index,
                action: Action::Deliver {
                    letter: at,
                    again: false,
                },
                machine: node.machine(),
                host: &node.host,
                base: &|| without(state.left),
                call: &|machine, cx| {
                    let input = Input::Message {
                        from: letter.from(),
                        message: letter.message().clone(),
                    };
                    machine.handle(input, cx)
                },
            };
            self.branch(&attempt, scratch, sink)?;
            if let Some(duplicates) = state.left.duplicates.checked_sub(1) {
                let base = || {
                    let mut next = state.clone();
                    next.left.duplicates = duplicates;
                    next
                };
                attempt.action = Action::Deliver {
                    letter: at,
                    again: true,
                };
                attempt.base = &base;
                self.branch(&attempt, scratch, sink)?;
            }
            if let Some(drops) = state.left.drops.checked_sub(1) {
                let left = Bounds {
                    drops,
                    ..state.left
                };
                sink(plain(Action::Drop { letter: at }, without(left)))?;
            }
        }
        Ok(())
    }

    fn ticks(
        &self,
        state: &State<M, O>,
        index: usize,
        node: &Node<M>,
        early: bool,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let mut left = state.left;
        if !spend(&mut left.ticks) || early && !spend(&mut left.early_ticks) {
            return Ok(());
        }
        for &timer in node.timers() {
            let mut host = node.host.clone();
            host.timers.retain(|&other| other != timer);
            let attempt = Attempt {
                node: index,
                action: Action::Tick { node: index, timer },
                machine: node.machine(),
                host: &host,
                base: &|| with_left(state, left),
                call: &|machine, cx| machine.handle(Input::Tick(timer), cx),
            };
            self.branch(&attempt, scratch, sink)?;
        }
        Ok(())
    }

    fn command(
        &self,
        state: &State<M, O>,
        index: usize,
        node: &Node<M>,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let Some(command) = self.next_command(index, node) else {
            return Ok(());
        };
        let mut host = node.host.clone();
        host.issued += 1;
        let attempt = Attempt {
            node: index,
            action: Action::Command { node: index },
            machine: node.machine(),
            host: &host,
            base: &|| state.clone(),
            call: &|machine, cx| machine.handle(Input::Command(command.clone()), cx),
        };
        self.branch(&attempt, scratch, &mut |found| {
            // It waits for another time.
            if found.refused.is_some() {
                Ok(())
            } else {
                sink(found)
            }
        })
    }

    fn deltas_of(
        &self,
        state: &State<M, O>,
        index: usize,
        node: &Node<M>,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let mut left = state.left;
        if !spend(&mut left.deltas) {
            return Ok(());
        }
        let listed = self
            .deltas
            .get(index)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (which, &delta) in listed.iter().enumerate() {
            let bit = 1_u64 << (which & 63);
            if node.host.told & bit != 0 || !self.may_tell(state, index, delta) {
                continue;
            }
            let mut host = node.host.clone();
            host.told |= bit;
            let attempt = Attempt {
                node: index,
                action: Action::Tell {
                    node: index,
                    delta: which,
                },
                machine: node.machine(),
                host: &host,
                base: &|| with_left(state, left),
                call: &|machine, cx| machine.handle(Input::Membership(delta), cx),
            };
            self.branch(&attempt, scratch, sink)?;
        }
        Ok(())
    }

    fn crash(
        &self,
        state: &State<M, O>,
        index: usize,
        node: &Node<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let Some(crashes) = state.left.crashes.checked_sub(1) else {
            return Ok(());
        };
        if self
            .crash_when
            .as_ref()
            .is_some_and(|when| !when(state, index))
        {
            return Ok(());
        }
        let machine = match &self.remains {
            Some(remains) => remains(node.machine()),
            None => node.machine().clone(),
        };
        let host = Host {
            up: false,
            timers: Vec::new(),
            ..node.host.clone()
        };
        let mut next = state.clone();
        // Whoever is down keeps the name under which it went down.
        replace(&mut next, index, Node::new(machine, node.member(), host));
        next.left.crashes = crashes;
        next.observer.crashed(index);
        self.bury(&mut next);
        sink(plain(Action::Crash { node: index }, next))
    }

    fn come_back(
        &self,
        state: &State<M, O>,
        index: usize,
        node: &Node<M>,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let (Some(restarts), Some(restart)) = (state.left.restarts.checked_sub(1), &self.restart)
        else {
            return Ok(());
        };
        let life = node.life() + 1;
        let machine = restart(index, life, node.machine());
        let host = Host {
            up: true,
            life,
            ..node.host.clone()
        };
        let attempt = Attempt {
            node: index,
            action: Action::Restart { node: index },
            machine: &machine,
            host: &host,
            base: &|| {
                let mut next = state.clone();
                if let Some(slot) = next.nodes.get_mut(index) {
                    *slot = self.node(index, machine.clone(), host.clone());
                }
                next.left.restarts = restarts;
                next.observer.restarted(index);
                self.bury(&mut next);
                next
            },
            call: &|machine, cx| match &self.start {
                Some(start) => start(index, life, machine, cx),
                None => Ok(()),
            },
        };
        self.branch(&attempt, scratch, &mut |found| match found.refused {
            Some(reject) => Err(refused_start::<M>(index, &reject)),
            None => sink(found),
        })
    }

    /// One step of one machine, once for each sequence of choices. `attempt.base` is the state
    /// around it.
    fn branch(
        &self,
        attempt: &Attempt<'_, M, O>,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let node = attempt.node;
        scratch.odometer.reset();
        let mut sequences = 0_usize;
        loop {
            let mut machine = attempt.machine.clone();
            scratch.outbox.clear();
            let outcome = (attempt.call)(
                &mut machine,
                &mut Context::new(Time::ZERO, &mut scratch.odometer, &mut scratch.outbox),
            );
            match scratch.odometer.fault() {
                Some(Fault::Endless) => return Err(Incomplete::Endless { node }),
                Some(Fault::Unrepeatable) => return Err(Incomplete::Unrepeatable { node }),
                None => {}
            }
            let mut effects = Vec::new();
            let refused = match outcome {
                Ok(()) => {
                    if scratch.record {
                        effects = scratch.outbox.effects().to_vec();
                    }
                    None
                }
                Err(_) if machine != *attempt.machine || !scratch.outbox.is_empty() => {
                    return Err(Incomplete::RefusedAndChanged { node });
                }
                Err(reject) => Some(reject),
            };
            let mut next = (attempt.base)();
            self.commit(
                &mut next,
                node,
                machine,
                attempt.host.clone(),
                &mut scratch.outbox,
            );
            sink(Transition {
                action: attempt.action,
                choices: scratch.odometer.choices().to_vec(),
                next,
                refused,
                effects,
            })?;
            if !scratch.odometer.advance() {
                return Ok(());
            }
            sequences += 1;
            if sequences >= scratch.limit {
                let limit = scratch.limit;
                return Err(Incomplete::Choices { node, limit });
            }
        }
    }

    /// Carries out what a step wants, as a host would.
    fn commit(
        &self,
        next: &mut State<M, O>,
        index: usize,
        machine: M,
        mut host: Host<M::Timer>,
        outbox: &mut Outbox<M>,
    ) {
        for (timer, after) in outbox.drain_timers() {
            match (host.timers.binary_search(&timer), after) {
                (Err(at), Some(_)) => host.timers.insert(at, timer),
                (Ok(at), None) => {
                    host.timers.remove(at);
                }
                (Ok(_), Some(_)) | (Err(_), None) => {}
            }
        }
        let node = self.node(index, machine, host);
        let from = node.member();
        if let Some(slot) = next.nodes.get_mut(index) {
            *slot = node;
        }
        for effect in outbox.drain_effects() {
            match effect {
                Effect::Send { to, message } => self.post(next, Letter::new(from, to.id, message)),
                Effect::Multicast { message } => {
                    for other in 0..next.nodes.len() {
                        if self.reaches(index, other)
                            && let Some(to) = next.node(other).map(|node| node.member().id)
                        {
                            self.post(next, Letter::new(from, to, message.clone()));
                        }
                    }
                }
                Effect::Event(event) => next.observer.event(index, &event),
            }
        }
    }

    fn post(&self, next: &mut State<M, O>, letter: Letter<M>) {
        if self.may_arrive(next, letter.to()) {
            next.post(letter);
        }
    }

    /// Whether a letter to this node can ever be read.
    fn may_arrive(&self, state: &State<M, O>, to: NodeId) -> bool {
        state
            .position(to)
            .and_then(|index| state.node(index))
            .is_some_and(|node| node.is_up() || state.left.restarts > 0)
    }

    /// Throws away letters that can never be read: states that differ in them alone are one.
    fn bury(&self, state: &mut State<M, O>) {
        if state.left.restarts > 0 {
            return;
        }
        let mut letters = core::mem::take(&mut state.letters);
        letters.retain(|letter| self.may_arrive(state, letter.to()));
        state.letters = letters;
    }

    fn reaches(&self, index: usize, other: usize) -> bool {
        match self.reach.get(index) {
            Some(Some(others)) => others.contains(&other),
            Some(None) | None => other != index,
        }
    }

    fn may_tell(&self, state: &State<M, O>, index: usize, delta: Delta) -> bool {
        if let Some(when) = &self.delta_when {
            return when(state, index, delta);
        }
        match delta {
            Delta::Confirmed(member) => !state
                .nodes()
                .any(|node| node.is_up() && node.member() == member),
            Delta::Joined(_)
            | Delta::Suspected(_)
            | Delta::Refuted(_)
            | Delta::Failed(_)
            | Delta::Left(_) => true,
        }
    }

    pub(super) fn next_command(&self, index: usize, node: &Node<M>) -> Option<&M::Command> {
        let issued = usize::try_from(node.issued()).ok()?;
        self.commands.get(index)?.get(issued)
    }

    fn node(&self, index: usize, machine: M, host: Host<M::Timer>) -> Arc<Node<M>> {
        let member = (self.identity)(index, host.life, &machine);
        Arc::new(Node::new(machine, member, host))
    }
}

fn with_left<M: Machine, O: Clone>(state: &State<M, O>, left: Bounds) -> State<M, O> {
    let mut next = state.clone();
    next.left = left;
    next
}

fn replace<M: Machine, O>(state: &mut State<M, O>, index: usize, node: Node<M>) {
    if let Some(slot) = state.nodes.get_mut(index) {
        *slot = Arc::new(node);
    }
}

/// A transition without a machine's step.
const fn plain<M: Machine, O>(action: Action<M::Timer>, next: State<M, O>) -> Transition<M, O> {
    Transition {
        action,
        choices: Vec::new(),
        next,
        refused: None,
        effects: Vec::new(),
    }
}

/// Takes one from a budget. `false` when it is used up.
const fn spend(budget: &mut Option<u32>) -> bool {
    match budget {
        None => true,
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
    }
}

fn refused_start<M: Machine>(node: usize, reject: &M::Reject) -> Incomplete {
    Incomplete::Start {
        node,
        reject: format!("{reject:?}"),
    }
}
