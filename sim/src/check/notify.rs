//! Replays a counterexample and writes it as a trace.

use selvedge_core::{Effect, Machine};

use super::explore::Search;
use super::step::{Scratch, Transition};
use super::{Action, Limits, Model, Node, Observer, State, Trace, TraceStep};

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// Writes the way to a state, and one more step out of it if `last` is set.
    pub(super) fn notify(
        &self,
        search: &Search,
        state: u32,
        last: Option<u32>,
        limits: &Limits,
    ) -> Trace {
        let mut trace = Trace::default();
        let mut scratch = Scratch::new(limits.choices, true);
        let (start, mut way) = search.way(state);
        way.extend(last);
        let Ok(initial) = self.initial(&mut scratch) else {
            return trace;
        };
        let Some(mut state) = initial.into_iter().nth(start) else {
            return trace;
        };
        trace.start = state.nodes().map(|node| self.picture(node)).collect();
        for by in way {
            let Some(found) = self.transition(&state, by, &mut scratch) else {
                return trace;
            };
            trace.steps.push(self.step(&state, &found));
            state = found.next;
        }
        trace.end = match last {
            Some(_) => "it was refused".to_owned(),
            None => "here it breaks".to_owned(),
        };
        trace
    }

    fn transition(
        &self,
        state: &State<M, O>,
        by: u32,
        scratch: &mut Scratch<M>,
    ) -> Option<Transition<M, O>> {
        let mut number = 0_u32;
        let mut wanted = None;
        // The same search found this transition here before, so it cannot fail before it.
        let _complete = self.successors(state, scratch, &mut |found| {
            if number == by {
                wanted = Some(found);
            }
            number += 1;
            Ok(())
        });
        wanted
    }

    /// Writes the step out of a state that has this place among its steps.
    #[cfg(feature = "stateright")]
    pub(super) fn tell_step(
        &self,
        before: &State<M, O>,
        by: u32,
        choices: usize,
    ) -> Option<TraceStep> {
        let found = self.transition(before, by, &mut Scratch::new(choices, true))?;
        Some(self.step(before, &found))
    }

    fn step(&self, before: &State<M, O>, found: &Transition<M, O>) -> TraceStep {
        let actor = self.actor(before, found.action);
        let waiting = |state: &State<M, O>| {
            let node = actor.and_then(|index| state.node(index));
            node.map_or(0, |node| node.waiting().len())
        };
        // The effects that a step adds to the waiting ones are the last of its effects.
        let kept_back = waiting(&found.next).saturating_sub(waiting(before));
        let out = found.effects.len().saturating_sub(kept_back);
        let effects = found.effects.iter().enumerate();
        let mut effects: Vec<String> = effects
            .map(|(nth, effect)| match tell_effect(effect) {
                text if nth < out => text,
                text => format!("{text}, once storage is done"),
            })
            .collect();
        if let Some(reject) = &found.refused {
            effects.push(format!("refused: {reject:?}"));
        }
        effects.extend(found.panicked.clone());
        let after = actor
            .and_then(|index| Some((before.node(index)?, found.next.node(index)?)))
            .map(|(before, after)| (self.picture(before), self.picture(after)))
            .filter(|(before, after)| before != after);
        TraceStep {
            what: self.describe_action(before, found.action),
            choices: found
                .choices
                .iter()
                .map(|choice| format!("{choice:?}"))
                .collect(),
            effects,
            after: after.map_or_else(String::new, |(_, after)| after),
        }
    }

    /// The node with the state that an action changes.
    fn actor(&self, state: &State<M, O>, action: Action<M::Timer>) -> Option<usize> {
        match action {
            Action::Deliver { letter, .. } => {
                let letter = state.letters().nth(letter)?;
                state.position(letter.to())
            }
            Action::Drop { .. } | Action::Miss { .. } => None,
            Action::Tick { node, .. }
            | Action::Command { node }
            | Action::Notify { node, .. }
            | Action::Store { node }
            | Action::Crash { node }
            | Action::CrashAmid { node, .. }
            | Action::Restart { node } => Some(node),
        }
    }

    /// An action in words.
    pub(super) fn describe_action(&self, state: &State<M, O>, action: Action<M::Timer>) -> String {
        let name = |index: usize| {
            state
                .node(index)
                .map_or_else(String::new, |node| format!("{:?}", node.member()))
        };
        let letter = |at: usize| {
            state
                .letters()
                .nth(at)
                .map_or_else(String::new, |letter| format!("{letter:?}"))
        };
        match action {
            Action::Deliver {
                letter: at,
                again: false,
            } => format!("{} arrives", letter(at)),
            Action::Deliver {
                letter: at,
                again: true,
            } => {
                format!("{} arrives, and a copy stays on its way", letter(at))
            }
            Action::Drop { letter: at } => format!("{} is lost", letter(at)),
            Action::Miss { letter: at } => format!("{} finds no receiver", letter(at)),
            Action::Tick { node, timer } => format!("timer {timer:?} fires at {}", name(node)),
            Action::Command { node } => {
                let command = state.node(node).and_then(|at| self.next_command(node, at));
                match command {
                    Some(command) => format!("{} is asked to {command:?}", name(node)),
                    None => format!("{} is asked for nothing", name(node)),
                }
            }
            Action::Notify { node, delta } => {
                let delta = self.deltas.get(node).and_then(|deltas| deltas.get(delta));
                match delta {
                    Some(delta) => format!("{} learns {delta:?}", name(node)),
                    None => format!("{} learns nothing", name(node)),
                }
            }
            Action::Crash { node } => format!("{} crashes", name(node)),
            Action::Store { node } => {
                let first = state.node(node).and_then(|at| at.waiting().first());
                match first {
                    Some(Effect::Event(fact)) => format!("{} has stored {fact:?}", name(node)),
                    _ => format!("{} has stored nothing", name(node)),
                }
            }
            Action::CrashAmid { node, stored, done } => {
                let all = state.node(node).map_or(0, |at| at.waiting().len());
                let name = name(node);
                format!(
                    "{name} crashes with {stored} more facts stored, and {done} of {all} waiting effects carried out"
                )
            }
            Action::Restart { node } => format!("{} restarts", name(node)),
        }
    }

    pub(super) fn picture(&self, node: &Node<M>) -> String {
        match &self.show {
            None => format!("{:?} = {node:?}", node.member()),
            Some(show) => {
                let down = if node.is_up() { "" } else { "down, " };
                let mut text = format!("{:?} = {down}{}", node.member(), show(node.machine()));
                if !node.timers().is_empty() {
                    text.push_str(&format!(", armed {:?}", node.timers()));
                }
                if !node.waiting().is_empty() {
                    text.push_str(&format!(", {} wait for storage", node.waiting().len()));
                }
                text
            }
        }
    }
}

fn tell_effect<M: Machine>(effect: &Effect<M>) -> String {
    match effect {
        Effect::Send { to, message } => format!("sends {message:?} to {to:?}"),
        Effect::Multicast { message } => format!("sends {message:?} to all it can reach"),
        Effect::Event(event) => format!("reports {event:?}"),
    }
}
