//! One step of one machine, in all its ways.

use alloc::sync::Arc;

use selvedge_core::{Context, Effect, Machine, Member, NodeId, Outbox, Time};

use super::durable::Storage;
use super::odometer::Fault;
use super::state::Host;
use super::{Action, Choice, Incomplete, Letter, Model, Node, Observer, Odometer, State};
use crate::panics::caught;

/// An action, the choices made in it, and where they lead.
pub(super) struct Transition<M: Machine, O> {
    pub(super) action: Action<M::Timer>,
    pub(super) choices: Vec<Choice>,
    pub(super) next: State<M, O>,
    pub(super) refused: Option<M::Reject>,
    /// The place and text of the machine's panic. Then `next` is the state without this step.
    pub(super) panicked: Option<String>,
    /// Empty unless the scratch records.
    pub(super) effects: Vec<Effect<M>>,
}

/// Buffers that live from step to step.
pub(super) struct Scratch<M: Machine> {
    odometer: Odometer,
    outbox: Outbox<M>,
    /// The limit on sequences of choices in a step.
    limit: usize,
    /// True if the effects are kept, for a trace.
    pub(super) record: bool,
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

pub(super) type Found = Result<(), Incomplete>;

type Call<'a, M> = &'a dyn Fn(&mut M, &mut Context<'_, M>) -> Result<(), <M as Machine>::Reject>;

/// A step to be taken.
pub(super) struct Attempt<'a, M: Machine, O> {
    pub(super) node: usize,
    pub(super) action: Action<M::Timer>,
    /// The machine before the step.
    pub(super) machine: &'a M,
    /// The host's part once the input is taken: the timer fired, the command issued.
    pub(super) host: &'a Host<M::Timer>,
    /// The rest of the state, once the input is taken.
    pub(super) base: &'a dyn Fn() -> State<M, O>,
    pub(super) call: Call<'a, M>,
}

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// All initial states: one, unless starts make choices.
    pub(super) fn initial(&self, scratch: &mut Scratch<M>) -> Result<Vec<State<M, O>>, Incomplete> {
        let host = Host {
            up: true,
            life: 0,
            timers: Vec::new(),
            issued: 0,
            notified: 0,
        };
        let nodes = self.machines.iter().enumerate();
        let nodes = nodes.map(|(index, machine)| self.begin(index, machine.clone(), host.clone()));
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
                    if let Some(panic) = found.panicked {
                        return Err(Incomplete::Panicked { node, panic });
                    }
                    started.push(found.next);
                    Ok(())
                })?;
            }
            states = started;
        }
        Ok(states)
    }

    /// Takes one step of one machine, once for each sequence of choices. `attempt.base` is the
    /// state around it.
    pub(super) fn branch(
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
            let mut cx = Context::new(Time::ZERO, &mut scratch.odometer, &mut scratch.outbox);
            let outcome = caught(|| (attempt.call)(&mut machine, &mut cx));
            match scratch.odometer.fault() {
                Some(Fault::Endless) => return Err(Incomplete::Endless { node }),
                Some(Fault::Unrepeatable) => return Err(Incomplete::Unrepeatable { node }),
                None => {}
            }
            let mut effects = Vec::new();
            let mut panicked = None;
            let refused = match outcome {
                Ok(Ok(())) => {
                    if scratch.record {
                        effects = scratch.outbox.effects().to_vec();
                    }
                    None
                }
                Err(why) => {
                    panicked = Some(why);
                    machine = attempt.machine.clone();
                    scratch.outbox.clear();
                    None
                }
                Ok(Err(_)) if machine != *attempt.machine || !scratch.outbox.is_empty() => {
                    return Err(Incomplete::RefusedAndChanged { node });
                }
                Ok(Err(reject)) => Some(reject),
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
                panicked,
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

    /// Carries out the effects of a step, as a host would.
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
        let (storage, out) = self.keep_back(next.node(index), outbox);
        let node = self.node(index, machine, host, storage);
        let from = node.member();
        if let Some(slot) = next.nodes.get_mut(index) {
            *slot = node;
        }
        for effect in out.into_iter().chain(outbox.drain_effects()) {
            self.carry_out(next, index, from, effect);
        }
    }

    pub(super) fn carry_out(
        &self,
        next: &mut State<M, O>,
        index: usize,
        from: Member,
        effect: Effect<M>,
    ) {
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

    fn post(&self, next: &mut State<M, O>, letter: Letter<M>) {
        if self.may_arrive(next, letter.to()) {
            next.post(letter);
        }
    }

    /// Returns true if a letter to this node can ever be read.
    fn may_arrive(&self, state: &State<M, O>, to: NodeId) -> bool {
        state
            .position(to)
            .and_then(|index| state.node(index))
            .is_some_and(|node| node.is_up() || state.left.restarts > 0)
    }

    /// Removes letters that can never be read: states that differ in them alone are one.
    pub(super) fn bury(&self, state: &mut State<M, O>) {
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

    /// A node at the beginning of a life.
    pub(super) fn begin(&self, index: usize, machine: M, host: Host<M::Timer>) -> Arc<Node<M>> {
        let storage = self.empty_storage(&machine);
        self.node(index, machine, host, storage)
    }

    fn node(
        &self,
        index: usize,
        machine: M,
        host: Host<M::Timer>,
        storage: Option<Arc<Storage<M>>>,
    ) -> Arc<Node<M>> {
        let member = (self.identity)(index, host.life, &machine);
        Arc::new(Node::new(machine, member, host, storage))
    }
}

pub(super) fn refused_start<M: Machine>(node: usize, reject: &M::Reject) -> Incomplete {
    Incomplete::Start {
        node,
        reject: format!("{reject:?}"),
    }
}
