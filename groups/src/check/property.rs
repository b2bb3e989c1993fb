//! The promises as properties.

use selvedge_replica::Replica;
use selvedge_sim::check::{Model, State};

use super::setup::{Setup, Sight};
use super::watch::Watch;
use super::{Inner, Journal};
use crate::GroupId;

type Mesh = State<Inner, Watch>;

impl Setup {
    pub(super) fn with_properties(
        self,
        model: Model<Inner, Watch>,
        group: GroupId,
    ) -> Model<Inner, Watch> {
        let model = model.always("a version applies one update everywhere", |mesh: &Mesh| {
            !mesh.observer().differs
        });
        if self.safety_only {
            return model;
        }
        let mut model = model
            .always("an update is applied by one version", |mesh: &Mesh| {
                !mesh.observer().doubles
            })
            .always("states of one version are equal", move |mesh: &Mesh| {
                all_pairs(mesh, group, |one, other| {
                    let states = one.state().zip(other.state());
                    one.version() != other.version()
                        || states.is_none_or(|(one, other)| one == other)
                })
            })
            .always("links of one number are equal", move |mesh: &Mesh| {
                all_pairs(mesh, group, |one, other| {
                    let [one, other] = [one, other].map(Replica::configuration);
                    one.number != other.number || one == other
                })
            })
            .always("a ballot has one leader, once", |mesh: &Mesh| {
                !mesh.observer().leads_again
            })
            .always(
                "no node votes in a configuration and has forgotten a vote there",
                |mesh: &Mesh| !mesh.observer().forgets,
            )
            .always("memory is bounded", |mesh: &Mesh| {
                mesh.machines().all(Inner::is_bounded)
            })
            .never_rejects("no message is refused");
        if let Some(ticks) = self.ends_within {
            let may_end = move |mesh: &Mesh| mesh.left().ticks.is_none_or(|it| it >= ticks);
            let is_done = move |mesh: &Mesh| self.is_done(mesh, group);
            let name = "the latest members have a leader, and what was proposed is decided";
            model = model.progress_when(name, may_end, is_done);
        }
        for &sight in self.sees {
            let name = match sight {
                Sight::Applied(_) => "updates are applied",
                Sight::Leaders(_) => "another node leads",
                Sight::Configured(_) => "the next link counts",
                Sight::Asked => "a question reaches the leader",
                Sight::Left => "a node gives its part up",
                Sight::InAgain(_) => "a node is in the group again",
            };
            model = model.sometimes(name, move |mesh: &Mesh| is_seen(mesh, group, sight));
        }
        model
    }

    /// Returns true if a node leads the latest configuration, no node waits for a decision, and a
    /// leader has received any question that was asked.
    fn is_done(self, mesh: &Mesh, group: GroupId) -> bool {
        let parts = || mesh.machines().filter_map(|it| it.replica(group));
        let latest = parts().map(|it| it.configuration().number).max();
        let leads = |it: &Replica<Journal>| it.leads() && Some(it.configuration().number) == latest;
        parts().any(leads)
            && parts().all(|it| it.waiting() == 0)
            && (!self.is_asked() || mesh.observer().is_asked)
    }
}

fn all_pairs(
    mesh: &Mesh,
    group: GroupId,
    holds: impl Fn(&Replica<Journal>, &Replica<Journal>) -> bool,
) -> bool {
    let parts = || mesh.machines().filter_map(|it| it.replica(group));
    let mut pairs = parts()
        .enumerate()
        .flat_map(|(at, one)| parts().skip(at + 1).map(move |it| (one, it)));
    pairs.all(|(one, other)| holds(one, other))
}

fn is_seen(mesh: &Mesh, group: GroupId, sight: Sight) -> bool {
    let watch = mesh.observer();
    match sight {
        Sight::Applied(count) => watch.applied.len() >= count,
        Sight::Leaders(count) => watch.led.len() >= count,
        Sight::Configured(number) => watch.numbers.iter().any(|it| *it >= number),
        Sight::Asked => watch.is_asked,
        Sight::Left => watch.has_left,
        Sight::InAgain(node) => mesh.machines().any(|it| {
            let is_in = |it: &Replica<Journal>| it.votes() && it.mark() > 1;
            it.me().id.0 == node && it.replica(group).is_some_and(is_in)
        }),
    }
}
