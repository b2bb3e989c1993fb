//! Later definitions of the first routine.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;

use super::World;
use crate::routines::Stage;

impl World {
    /// The node that leads the first routine adopts the next generation of the site.
    pub(super) fn adopts(&mut self) {
        let seat = self.routines.first().map_or(0, |it| it.present);
        let Some(generation) = self.adopted.get_mut(seat) else {
            return;
        };
        *generation += 1;
        let generation = *generation;
        let edition = self.setup.editions.get(generation as usize - 1);
        let definition = edition.map(|it| it.definition(0, self.setup.locking));
        // The node leads all routines that this seat leads, and all of them follow its site.
        for number in 0..self.routines.len() {
            let group_of = self.group_of();
            let definition = definition.as_ref().filter(|_| number == 0);
            self.with_routine(number, seat, |group| {
                group.step(seat, |leader, state, out| {
                    leader.sync(state, generation, definition, out);
                    leader.renew(state, group_of, out);
                })
            });
        }
    }

    /// The leader of a routine begins anew under another definition.
    pub(super) fn renews(&mut self, number: usize, seat: usize) {
        let group_of = self.group_of();
        self.with_routine(number, seat, |group| {
            group.step(seat, |leader, state, out| {
                if leader.is_outdated(state) {
                    leader.renew(state, group_of, out);
                }
            })
        });
    }

    fn group_of(&self) -> impl Fn(NodeId) -> Option<GroupId> + use<> {
        let is_one = self.setup.one_cluster;
        move |device| Some(GroupId(if is_one { 0 } else { device.0 }))
    }

    pub(super) fn may_adopt(&self) -> bool {
        let seat = self.routines.first().map_or(0, |it| it.present);
        let adopted = self.adopted.get(seat).copied().unwrap_or_default();
        (adopted as usize) < self.setup.editions.len()
    }

    /// Returns true if the first routine has its last definition.
    pub(super) fn is_defined(&self) -> bool {
        let first = self.routines.first().map(|it| it.state.since() as usize);
        first.is_none_or(|it| it == self.setup.editions.len())
    }

    pub(super) fn watch_definition(&mut self) {
        let Some(group) = self.routines.first() else {
            return;
        };
        let state = &group.state;
        if self.setup.editions.is_empty() {
            return;
        }
        self.watch.redefined |= state.generation() < self.watch.newest;
        self.watch.newest = state.generation();
        if *state.stage() == Stage::NotTriggered {
            return;
        }
        let (run, since) = (state.instance(), state.since());
        let before = self.watch.defined.replace((run, since));
        self.watch.redefined |= before.is_some_and(|it| it.0 == run && it.1 != since);
    }
}
