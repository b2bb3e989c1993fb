//! The promises as properties.

use alloc::sync::Arc;

use selvedge_replica::Replica;

use super::setup::{Kind, Machine, Mesh, ModelOf, Setup, Watches as _};
use super::watch::Watch;
use crate::GroupId;
use crate::registry::instance;

impl<K: Kind> Setup<K> {
    pub(super) fn with_properties(self, model: ModelOf<K>, groups: &Arc<[GroupId]>) -> ModelOf<K> {
        let [safe, equal, linked, ended] = [(); 4].map(|()| Arc::clone(groups));
        let model = model.always(K::SAFETY, move |mesh| K::is_safe(mesh, &safe));
        if self.safety_only {
            return model;
        }
        let mut model = K::with_promises(model)
            .always("an update is applied by one version", |mesh| {
                none::<K>(mesh, |it| it.doubles)
            })
            .always("no update is lost", |mesh| none::<K>(mesh, |it| it.loses))
            .always("states of one version are equal", move |mesh| {
                are_equal::<K>(mesh, &equal)
            })
            .always("links of one number are equal", move |mesh| {
                all_pairs::<K>(mesh, &linked, |one, other| {
                    let [one, other] = [one, other].map(Replica::configuration);
                    one.number != other.number || one == other
                })
            })
            .always("a ballot has one leader, once", |mesh| {
                none::<K>(mesh, |it| it.leads_again)
            })
            .always(
                "no node votes in a configuration and has forgotten a vote there",
                |mesh| none::<K>(mesh, |it| it.forgets),
            )
            .always("memory is bounded", |mesh| {
                mesh.machines().all(Machine::<K>::is_bounded)
            })
            .never_rejects("no message is refused");
        if let Some(ticks) = self.ends_within {
            let may_end = move |mesh: &Mesh<K>| {
                mesh.left().ticks.is_none_or(|it| it >= ticks) && K::may_end(&self, mesh)
            };
            let is_done = move |mesh: &Mesh<K>| K::is_done(&self, mesh, &ended);
            model = model.progress_when(K::GOAL, may_end, is_done);
        }
        for &sight in self.sees {
            let groups = Arc::clone(groups);
            model = model.sometimes(K::name(sight), move |mesh| K::is_seen(mesh, &groups, sight));
        }
        model
    }
}

pub(super) fn none<K: Kind>(mesh: &Mesh<K>, is_broken: impl Fn(&Watch) -> bool) -> bool {
    !mesh.observer().of_groups().iter().any(is_broken)
}

/// Returns true if members in one beginning of a group, with one version, have equal states.
pub(super) fn are_equal<K: Kind>(mesh: &Mesh<K>, groups: &[GroupId]) -> bool {
    all_pairs::<K>(mesh, groups, |one, other| {
        let states = one.state().zip(other.state());
        let of = |it: &Replica<_>| (instance(it.configuration().number), it.version());
        of(one) != of(other) || states.is_none_or(|(one, other)| one == other)
    })
}

fn all_pairs<K: Kind>(
    mesh: &Mesh<K>,
    groups: &[GroupId],
    holds: impl Fn(&Replica<K::State>, &Replica<K::State>) -> bool,
) -> bool {
    groups.iter().all(|group| {
        let parts = || mesh.machines().filter_map(|it| it.replica(*group));
        let mut pairs = parts()
            .enumerate()
            .flat_map(|(at, one)| parts().skip(at + 1).map(move |it| (one, it)));
        pairs.all(|(one, other)| holds(one, other))
    })
}
