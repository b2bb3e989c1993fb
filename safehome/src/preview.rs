//! A prediction of the effects of a routine, before it is submitted.

use alloc::vec::Vec;

use selvedge_core::{
    Choose, Context, Effect, Input, Machine, NodeId, Outbox, Ratio, Time, Weights,
};

use crate::{
    AbortReason, Command, Event, Hub, Reject, Routine, RoutineId, Terms, Value, Wait, WaitCause,
};

/// The effects on a routine and on others if it were submitted now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Preview {
    /// The number that it would have.
    pub routine: RoutineId,
    /// The runs of its key that it would supersede.
    pub superseded: Vec<RoutineId>,
    /// The less urgent routines that it would preempt, each with the device that it would take.
    pub preempted: Vec<(RoutineId, NodeId)>,
    /// The routines with a hold that it would cut short, each with the device that is held.
    pub cut_short: Vec<(RoutineId, NodeId)>,
    /// The reason why it would wait; `None` if it began at once.
    pub wait: Option<Wait>,
}

impl<V: Value> Hub<V> {
    /// Predicts the effects of submitting this routine with these terms at this time, without any
    /// change. The prediction is exact if that is the next input. Takes time and memory in
    /// proportion to the state.
    ///
    /// # Errors
    /// Why it would be refused.
    pub fn preview(&self, now: Time, routine: Routine<V>, terms: Terms) -> Result<Preview, Reject> {
        let mut hub = self.clone();
        let (mut first, mut outbox) = (First, Outbox::new());
        let mut cx = Context::new(now, &mut first, &mut outbox);
        let command = Command::SubmitAs { routine, terms };
        hub.handle(Input::Command(command), &mut cx)?;
        let id = hub.last;
        let mut found = Preview {
            routine: id,
            superseded: Vec::new(),
            preempted: Vec::new(),
            cut_short: Vec::new(),
            wait: hub.wait(id).filter(|it| !it.cause.is_own()),
        };
        for effect in outbox.effects() {
            match effect {
                Effect::Event(Event::Aborting {
                    routine,
                    why: AbortReason::Superseded(by),
                }) if *by == id => found.superseded.push(*routine),
                Effect::Event(Event::Aborting {
                    routine,
                    why: AbortReason::Preempted { device, by, .. },
                }) if *by == Some(id) => found.preempted.push((*routine, *device)),
                Effect::Event(Event::CutShort {
                    routine,
                    device,
                    by,
                }) if *by == Some(id) => found.cut_short.push((*routine, *device)),
                // It has no messages.
                Effect::Event(_) | Effect::Send { .. } | Effect::Multicast { .. } => {}
            }
        }
        Ok(found)
    }
}

impl WaitCause {
    /// Returns true if it waits for its own command or hold.
    const fn is_own(self) -> bool {
        matches!(self, Self::Outcome | Self::Hold)
    }
}

/// Choices of a machine that makes none.
struct First;

impl Choose for First {
    fn below(&mut self, _: u64) -> u64 {
        0
    }

    fn chance(&mut self, _: Ratio) -> bool {
        false
    }

    fn weighted(&mut self, _: &dyn Weights) -> Option<usize> {
        None
    }
}
