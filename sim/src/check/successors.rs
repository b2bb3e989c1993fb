//! All possible successors of a state.

use alloc::sync::Arc;

use selvedge_core::{Delta, Input, Machine};

use super::model::TickWhen;
use super::state::Host;
use super::step::{Attempt, Found, Scratch, Transition, refused_start};
use super::{Action, Bounds, Incomplete, Letter, Model, Node, Observer, State};
use crate::panics::caught;

impl<M: Machine, O: Observer<M>> Model<M, O> {
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
                self.store(state, index, node, scratch, sink)?;
                if !self.is_behind(node) {
                    self.ticks(state, index, node, early, scratch, sink)?;
                    self.command(state, index, node, scratch, sink)?;
                    self.deltas_of(state, index, node, scratch, sink)?;
                }
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
            // Down, or restarted under another id.
            let up = state.position(letter.to()).and_then(|index| {
                let node = state.node(index).filter(|node| node.is_up())?;
                Some((index, node))
            });
            let Some((index, node)) = up else {
                sink(plain(
                    Action::Miss { letter: at },
                    without(state, at, state.left),
                ))?;
                continue;
            };
            if !self.is_behind(node) {
                self.deliver(state, index, node, at, scratch, sink)?;
            }
            if let Some(drops) = state.left.drops.checked_sub(1) {
                let left = Bounds {
                    drops,
                    ..state.left
                };
                sink(plain(Action::Drop { letter: at }, without(state, at, left)))?;
            }
        }
        Ok(())
    }

    /// The letter at `at` arrives at this node.
    fn deliver(
        &self,
        state: &State<M, O>,
        index: usize,
        node: &Node<M>,
        at: usize,
        scratch: &mut Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let Some(letter) = state.letters.get(at) else {
            return Ok(());
        };
        let mut attempt = Attempt {
            node: index,
            action: Action::Deliver {
                letter: at,
                again: false,
            },
            machine: node.machine(),
            host: &node.host,
            base: &|| without(state, at, state.left),
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
            let may_fire = |when: &TickWhen<M, O>| when(state, index, timer);
            if !self.tick_when.as_ref().is_none_or(may_fire) {
                continue;
            }
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
            base: &|| {
                let mut next = state.clone();
                next.observer.commanded(index, command);
                next
            },
            call: &|machine, cx| machine.handle(Input::Command(command.clone()), cx),
        };
        self.branch(&attempt, scratch, &mut |found| {
            // It waits for a later attempt.
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
            if node.host.notified & bit != 0 || !self.may_tell(state, index, delta) {
                continue;
            }
            let mut host = node.host.clone();
            host.notified |= bit;
            let attempt = Attempt {
                node: index,
                action: Action::Notify {
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
        for (stored, done) in self.places(node) {
            let action = match stored {
                0 => Action::Crash { node: index },
                stored => Action::CrashAmid {
                    node: index,
                    stored,
                    done,
                },
            };
            let machine = match caught(|| self.left_behind(index, node, stored)) {
                Ok(machine) => machine?,
                Err(why) => {
                    sink(panicked(action, state, why))?;
                    continue;
                }
            };
            let mut next = state.clone();
            next.left.crashes = crashes;
            for effect in node.waiting().iter().take(done).cloned() {
                self.carry_out(&mut next, index, node.member(), effect);
            }
            let host = Host {
                up: false,
                timers: Vec::new(),
                ..node.host.clone()
            };
            let storage = self.empty_storage(&machine);
            // A node that is down keeps the name under which it went down.
            let down = Node::new(machine, node.member(), host, storage);
            replace(&mut next, index, down);
            next.observer.crashed(index);
            self.bury(&mut next);
            sink(plain(action, next))?;
        }
        Ok(())
    }

    /// Returns the machine that remains of a node after a crash with the first `stored` facts stored.
    fn left_behind(&self, index: usize, node: &Node<M>, stored: usize) -> Result<M, Incomplete> {
        let image = self.fold(index, node, stored)?;
        let machine = image.as_ref().unwrap_or_else(|| node.machine());
        Ok(match &self.remains {
            Some(remains) => remains(machine),
            None => machine.clone(),
        })
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
        let machine = match caught(|| restart(index, life, node.machine())) {
            Ok(machine) => machine,
            Err(why) => return sink(panicked(Action::Restart { node: index }, state, why)),
        };
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
                    *slot = self.begin(index, machine.clone(), host.clone());
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

    fn may_tell(&self, state: &State<M, O>, index: usize, delta: Delta) -> bool {
        if let Some(when) = &self.delta_when {
            return when(state, index, delta);
        }
        match delta {
            // A life that runs has not ended, and a later life has not begun.
            Delta::Confirmed(over) => !state.nodes().any(|node| {
                let now = node.member();
                let is_later = over.incarnation.newer_than(now.incarnation);
                now.id == over.id && (is_later || now == over && node.is_up())
            }),
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
}

fn with_left<M: Machine, O: Clone>(state: &State<M, O>, left: Bounds) -> State<M, O> {
    let mut next = state.clone();
    next.left = left;
    next
}

/// The state without the letter at `at`.
fn without<M: Machine, O: Clone>(state: &State<M, O>, at: usize, left: Bounds) -> State<M, O> {
    let mut next = state.clone();
    next.letters.remove(at);
    next.left = left;
    next
}

pub(super) fn replace<M: Machine, O>(state: &mut State<M, O>, index: usize, node: Node<M>) {
    if let Some(slot) = state.nodes.get_mut(index) {
        *slot = Arc::new(node);
    }
}

/// A transition without a machine's step.
pub(super) const fn plain<M: Machine, O>(
    action: Action<M::Timer>,
    next: State<M, O>,
) -> Transition<M, O> {
    Transition {
        action,
        choices: Vec::new(),
        next,
        refused: None,
        panicked: None,
        effects: Vec::new(),
    }
}

/// A transition that ends in a panic while the machine is restored from its facts.
pub(super) fn panicked<M: Machine, O: Clone>(
    action: Action<M::Timer>,
    state: &State<M, O>,
    why: String,
) -> Transition<M, O> {
    Transition {
        panicked: Some(why),
        ..plain(action, state.clone())
    }
}

/// Takes one from a budget. Returns false when it is used up.
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
