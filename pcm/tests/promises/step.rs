//! Checks after each step of a machine.

use selvedge_core::durable::Durable as _;
use selvedge_core::{Effect, Input, Member};
use selvedge_pcm::check::operations::accused;
use selvedge_pcm::follower::Phase;
use selvedge_pcm::node::{Command, Event, Reject};
use selvedge_pcm::{Message, TaskId, client, gateway};
use selvedge_replica::Fact;
use selvedge_sim::histories::{Step, Waiting};

use crate::node::{In, Machine, Observed, Part};
use crate::world::World;

impl World {
    /// Takes the next input for a node. While a follower sleeps its commands wait, and its messages wait or
    /// are lost.
    pub(crate) fn next_awake(&mut self, id: u64) -> Option<Waiting<Self>> {
        let drops = self.habits.drops_asleep;
        let host = self.nodes.get_mut(&id)?.host.as_mut()?;
        let asleep = host.own.work.phase == Some(Phase::Asleep);
        if asleep && drops {
            (host.inbox).retain(|it| !matches!(it.input, Input::Message { .. }));
        }
        let at = host
            .inbox
            .iter()
            .position(|it| !asleep || !waits(&it.input));
        host.inbox.remove(at?)
    }

    pub(crate) fn examine(&mut self, step: &Step<'_, Self>) -> Vec<Observed> {
        let me = step.me;
        let accusation = step.refusal.filter(|it| accused(it).is_some());
        if let (Some(from), Some(why)) = (step.from, accusation) {
            self.is_accused(me, from, why);
        }
        let host = self.nodes.get_mut(&me.id.0).unwrap().host.as_mut().unwrap();
        let Some(gateway) = host.driver.machine().gateway() else {
            return Vec::new();
        };
        check_answers(gateway, step.effects);
        check_facts(gateway, host.own.folded.as_mut().unwrap(), step.effects);
        let version = gateway.replica().version();
        if version == host.own.shown {
            return Vec::new();
        }
        host.own.shown = version;
        let tables = gateway.tables().cloned().map(Box::new);
        let tables = tables.map(|tables| Observed { version, tables });
        tables.into_iter().collect()
    }

    /// Checks that no honest node accuses an honest peer. A liar gets answers to questions that its own machine
    /// did not send.
    fn is_accused(&mut self, me: Member, from: Member, why: &Reject) {
        let is_honest = |id: u64| self.nodes.get(&id).is_some_and(|it| !it.is_liar());
        let are_honest = is_honest(me.id.0) && is_honest(from.id.0);
        assert!(!are_honest, "{me:?} accuses {from:?}: {why:?}");
        self.oracle.count("accused");
    }

    pub(crate) fn client_event(&mut self, me: Member, event: client::Event) {
        match event {
            client::Event::Answered {
                number,
                answer,
                voters,
            } => {
                let task = TaskId { client: me, number };
                self.oracle.answered(task, &(answer, voters));
            }
            client::Event::Refused { number, why } => {
                self.oracle.refused(TaskId { client: me, number }, why);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Returns true if a follower that sleeps cannot take this input.
const fn waits(input: &In) -> bool {
    matches!(
        input,
        Input::Message { .. } | Input::Command(Command::Follower(_))
    )
}

/// A gateway's answers are the answers in its tables.
fn check_answers(gateway: &gateway::Gateway, effects: &[Effect<Machine>]) {
    for effect in effects {
        let Effect::Send {
            message:
                Message::Answer {
                    task,
                    answer,
                    voters,
                },
            ..
        } = effect
        else {
            continue;
        };
        let known = gateway
            .tables()
            .and_then(|it| Some((it.answer(*task)?, it.voters(*task))));
        assert!(
            known.is_none_or(|it| it == (answer, &**voters)),
            "{task:?}: sends {answer:?} of {voters:?}, and knows {known:?}"
        );
    }
}

/// Compares the facts of a gateway with its state. Versions that it has committed without a fact are among the
/// entries that it has accepted.
fn check_facts(
    gateway: &gateway::Gateway,
    folded: &mut gateway::Gateway,
    effects: &[Effect<Machine>],
) {
    let mut is_other = false;
    for effect in effects {
        if let Effect::Event(Event::Gateway(gateway::Event::Fact(fact))) = effect {
            let taken = folded.fold(fact);
            assert_eq!(taken, Ok(()), "{:?}: {fact:?}", gateway.me());
            is_other = true;
        }
    }
    if is_other {
        let mut folded = folded.clone();
        let committed = Fact::Committed(gateway.replica().version());
        assert_eq!(folded.fold(&committed), Ok(()), "{:?}", gateway.me());
        assert_eq!(folded.replica().stored(), gateway.replica().stored());
    }
}
