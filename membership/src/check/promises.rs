//! The promises, as conditions on a whole mesh.

use alloc::collections::BTreeSet;

use selvedge_core::{Member, NodeId};
use selvedge_sim::check::{Model, Node, State};

use super::Witness;
use crate::{Membership, Phase, Timer};

/// A mesh under check.
pub type Checked = Model<Membership, Witness>;
type Mesh = State<Membership, Witness>;

/// Adds all promises to a model.
#[must_use]
pub fn promised(model: Checked) -> Checked {
    lists_become_the_truth(never_stuck(removable(forward(used_once(timed(model))))))
}

/// Safety: every suspicion ends, and a refuted one never acts.
#[must_use]
pub fn timed(model: Checked) -> Checked {
    model.always(
        "a suspicion has a timer, and nothing else has",
        every_suspicion_is_timed,
    )
}

/// Safety: a restarted node is never taken for its former life.
#[must_use]
pub fn used_once(model: Checked) -> Checked {
    model.always("no life is used twice", |mesh| !mesh.observer().reused)
}

/// Safety: no list goes back behind a known state of a life.
#[must_use]
pub fn forward(model: Checked) -> Checked {
    model
        .always("incarnations never go back", |mesh| {
            !mesh.observer().went_back
        })
        .always("a node that left stays left", |mesh| {
            !mesh.observer().came_back
        })
}

/// Progress: the dead can always be removed.
#[must_use]
pub fn removable(model: Checked) -> Checked {
    model.progress(
        "a crashed member can be removed everywhere",
        the_dead_are_gone,
    )
}

/// Progress: a live member can always return.
#[must_use]
pub fn never_stuck(model: Checked) -> Checked {
    model.progress(
        "a live member is never stuck as suspect or failed",
        the_living_are_listed,
    )
}

/// Progress: both at once.
#[must_use]
pub fn lists_become_the_truth(model: Checked) -> Checked {
    model.progress("all lists can become the truth", |mesh| {
        the_dead_are_gone(mesh) && the_living_are_listed(mesh)
    })
}

fn every_suspicion_is_timed(mesh: &Mesh) -> bool {
    mesh.nodes()
        .filter(|node| node.is_up())
        .all(|node| is_timed(node.machine(), node.timers().iter().copied()))
}

/// Returns true if each suspicion of this node is among its timers, and no timer is of anything
/// else.
pub(super) fn is_timed(machine: &Membership, timers: impl Iterator<Item = Timer>) -> bool {
    let entries = machine.list.all().filter_map(|it| machine.list.entry(it));
    let timed = entries.filter(|entry| entry.standing().is_timed());
    let suspects: BTreeSet<NodeId> = timed.map(|entry| entry.member().id).collect();
    let timers = timers.filter_map(|timer| match timer {
        Timer::Suspicion(id) => Some(id),
        Timer::Period | Timer::Probe => None,
    });
    suspects == timers.collect()
}

/// The nodes that are up and in the mesh.
fn those_here(mesh: &Mesh) -> impl Iterator<Item = &Membership> {
    mesh.machines()
        .filter(|machine| machine.phase() == Phase::Joined)
}

/// Their lives.
fn truth(mesh: &Mesh) -> impl Iterator<Item = Member> {
    those_here(mesh).map(Membership::me)
}

/// No node lists a life that is over.
fn the_dead_are_gone(mesh: &Mesh) -> bool {
    mesh.machines().all(|machine| {
        let mut live = machine.members().filter(|view| view.status.is_live());
        live.all(|view| {
            view.member == machine.me() || truth(mesh).any(|member| member == view.member)
        })
    })
}

/// Each node that takes part lists all nodes that do, as alive and trusted and with their present
/// metadata; each node that is up and wants to join has joined.
fn the_living_are_listed(mesh: &Mesh) -> bool {
    let is_content = |node: &Node<Membership>| match node.machine().phase() {
        Phase::Joined => those_here(mesh).all(|there| {
            let me = there.me();
            node.machine().member(me.id).is_some_and(|view| {
                view.member == me
                    && view.status == crate::Status::Alive
                    && Some(view.metadata) == there.metadata(me.id)
            })
        }),
        Phase::Joining => false,
        Phase::Idle | Phase::Leaving => true,
    };
    mesh.nodes().filter(|node| node.is_up()).all(is_content)
}
