//! The promises as properties.
//!
//! Together they state that every history is linearizable: updates are in one order, each once, and
//! have their place before they are known to be applied; a read sees every update that was applied
//! or read anywhere before it was asked, and a state holds the updates of the versions up to its
//! own.

use alloc::vec::Vec;

use selvedge_sim::check::{Letter, Model, State};

use super::Journal;
use super::invariant::broken;
use super::setup::{Memory, Setup, Sight};
use super::watch::Watch;
use crate::Replica;
use crate::replica::Role;

type Mesh = State<Replica<Journal>, Watch>;

impl Setup {
    pub(super) fn with_properties(
        self,
        model: Model<Replica<Journal>, Watch>,
    ) -> Model<Replica<Journal>, Watch> {
        let mut model = model.always("a version applies one update everywhere", |state: &Mesh| {
            !state.observer().differs
        });
        if self.safety_only {
            return model;
        }
        model = model
            .always("an update is applied by one version", |state: &Mesh| {
                !state.observer().doubles
            })
            .always(
                "states hold what the versions up to theirs say",
                move |state: &Mesh| are_states_right(state, self.memory),
            );
        model = model
            .always(
                "a ballot has one sequence, of which nobody claims too much",
                |state: &Mesh| {
                    let machines: Vec<_> = state.machines().collect();
                    broken(&machines, state.letters().map(Letter::message)).is_none()
                },
            )
            .always("a ballot has one leader, once", |state: &Mesh| {
                !state.observer().leads_again
            })
            .always(
                "a read sees what was applied and read before it",
                |state: &Mesh| !state.observer().reads_late,
            )
            .never_rejects("no message is refused");
        if let Some(ticks) = self.ends_within {
            let name = "what was asked is done, and all members know it";
            let may_end = move |state: &Mesh| state.left().ticks.is_none_or(|it| it >= ticks);
            model = model.progress_when(name, may_end, is_done);
        }
        for &sight in self.sees {
            let name = match sight {
                Sight::AllApplied(_) => "all updates are applied",
                Sight::Leaders(_) => "another leader leads",
                Sight::Configured(_) => "the next configuration counts",
                Sight::Read => "a read is answered",
                Sight::ReadByLease => "a read is answered without a round",
                Sight::Installed => "a state is received whole",
                Sight::VotesAgain => "a node votes in a later life",
            };
            model = model.sometimes(name, move |state: &Mesh| is_seen(state, sight));
        }
        model
    }
}

fn is_seen(state: &Mesh, sight: Sight) -> bool {
    let watch = state.observer();
    match sight {
        Sight::AllApplied(count) => watch.applied.len() >= count,
        Sight::Leaders(count) => watch.led.len() >= count,
        Sight::Configured(number) => watch.numbers.iter().any(|it| *it >= number),
        Sight::Read => watch.read.is_some(),
        Sight::ReadByLease => {
            // The first round is that of the ballot itself.
            let is_first = |it: &Replica<Journal>| match &it.role {
                Role::Leader(leadership) => leadership.round == 1,
                Role::Follower | Role::Candidate(_) => false,
            };
            watch.read.is_some() && state.machines().any(is_first)
        }
        Sight::Installed => watch.has_installed,
        Sight::VotesAgain => state
            .machines()
            .any(|it| it.me().incarnation.0 > 0 && it.votes() && it.version() > 0),
    }
}

/// Returns true if nothing waits, and all members that are up and hold a state hold the same one.
fn is_done(state: &Mesh) -> bool {
    let waits = |it: &Replica<Journal>| it.waiting() > 0;
    let number = state.machines().map(|it| it.configuration().number).max();
    let newest = state
        .machines()
        .find(|it| Some(it.configuration().number) == number);
    let Some(newest) = newest.map(Replica::configuration) else {
        return true;
    };
    let highest = state.machines().map(Replica::version).max();
    let is_behind = |it: &Replica<Journal>| {
        newest.voter(it.me().id).is_some()
            && (Some(it.configuration().number) != number || Some(it.version()) != highest)
    };
    !state.machines().any(waits) && !state.machines().any(is_behind)
}

/// Returns true if of any two states one is the beginning of the other, with no update twice; and,
/// where effects do not wait for storage, if each holds as many updates as the versions up to its
/// own.
fn are_states_right(state: &Mesh, memory: Memory) -> bool {
    let applied = &state.observer().applied;
    let states = || {
        state
            .machines()
            .filter_map(|it| Some((it.state()?, it.version())))
    };
    let mut longest: &[u16] = &[];
    for (journal, version) in states() {
        let journal = &journal.0;
        let is_counted = memory != Memory::None
            || journal.len() == applied.iter().filter(|it| it.version <= version).count();
        if !is_counted || !journal.iter().zip(longest).all(|(one, other)| one == other) {
            return false;
        }
        if journal.len() > longest.len() {
            longest = journal;
        }
    }
    let is_twice = |(at, it): (usize, &u16)| longest.iter().skip(at + 1).any(|other| other == it);
    !longest.iter().enumerate().any(is_twice)
}
