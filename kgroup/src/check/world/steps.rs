//! Actions of groups, and their effects.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_routine::State;

use super::{CLOCKS, World, member, of_routines, routine_group, who};
use crate::check::ideal::Group;
use crate::check::letter::{Body, Letter, To};
use crate::check::setup::Who;
use crate::devices::{DeviceLeader, Ticket};
use crate::effect::{Effect, Effects};
use crate::routines::{RoutineConfig, RoutineLeader, RoutineTimer};
use crate::{Answer, Claim, Request, devices};

impl World {
    pub(super) fn applies(&mut self, who: Who) {
        match who {
            Who::Routine(number) => {
                let seat = self.routines.get(number).map_or(0, |it| it.present);
                self.with_routine(number, seat, Group::apply);
                self.renews(number, seat);
            }
            Who::Cluster(number) => {
                let seat = self.clusters.get(number).map_or(0, |it| it.present);
                self.with_cluster(number, seat, Group::apply);
                self.follows(number, seat);
            }
        }
    }

    pub(super) fn sits(&mut self, who: Who, keeps_pending: bool) {
        match who {
            Who::Routine(number) => {
                let Some(group) = self.routines.get(number) else {
                    return;
                };
                let seat = usize::from(group.seats.first().is_some_and(Option::is_some));
                let cluster_of = |device| self.cluster_of(device);
                let leader = RoutineLeader::new(
                    RoutineConfig::new(),
                    routine_group(number),
                    &group.state,
                    |device| Some(GroupId(cluster_of(device)? as u64)),
                );
                let group_of = routine_group(number);
                let is_watching = |device: &NodeId| {
                    let cluster = cluster_of(*device).and_then(|it| self.clusters.get(it));
                    cluster.is_some_and(|it| it.state.watchers(*device).any(|it| it == group_of))
                };
                let is_first =
                    seat == 0 || !group.state.definition().watches().iter().all(is_watching);
                let leader = leader.published(&of_routines(&self.setup), is_first);
                self.with_routine(number, seat, |group| group.sit(leader, keeps_pending));
            }
            Who::Cluster(number) => {
                let Some(group) = self.clusters.get(number) else {
                    return;
                };
                let seat = usize::from(group.seats.first().is_some_and(Option::is_some));
                let me = member(GroupId(number as u64), seat);
                let config = devices::Config::new();
                let config = match self.setup.begins_anew {
                    // A device is held in one part.
                    true => config.with_resend(config.act_timeout * 16),
                    false => config,
                };
                // Lost messages are repeated at each tick, so that ticks are not counted.
                let config = config.with_resend_most(config.resend);
                let leader = DeviceLeader::new(me, config, &group.state);
                self.with_cluster(number, seat, |group| group.sit(leader, keeps_pending));
            }
        }
    }

    pub(super) fn arrives(&mut self, letter: Letter, seat: usize) {
        let group = match letter.to {
            To::Group(group) => group,
            To::Node(node) => GroupId(node.id.0 / 2),
        };
        match (who(group), letter.body) {
            (Who::Routine(number), Body::Asks { from, request }) => {
                self.with_routine(number, seat, |group| {
                    group.step(seat, |leader, state, out| {
                        if let Request::Due(due) = request {
                            return leader.on_due(state, from, due, &CLOCKS, out);
                        }
                        leader.on_asked(state, from, &request, out);
                    })
                });
            }
            (Who::Routine(number), Body::Answers { group: of, answer }) => {
                self.with_routine(number, seat, |group| {
                    group.step(seat, |leader, state, out| {
                        leader.on_answered(state, of, &answer, out);
                    })
                });
            }
            (Who::Cluster(number), Body::Asks { from, request }) => {
                self.with_cluster(number, seat, |group| {
                    group.step(seat, |leader, state, out| {
                        leader.on_asked(state, from, request, out);
                    })
                });
            }
            (Who::Cluster(number), Body::Answers { group: of, answer }) => {
                self.progresses(number, seat, of, &answer);
            }
        }
    }

    pub(super) fn with_routine(
        &mut self,
        number: usize,
        seat: usize,
        call: impl FnOnce(
            &mut Group<RoutineLeader>,
        ) -> Effects<
            crate::routines::Update,
            RoutineTimer,
            crate::routines::RoutineEvent,
        >,
    ) {
        let Some(group) = self.routines.get_mut(number) else {
            return;
        };
        let effects = call(group);
        for node in group.seats.iter_mut().flatten() {
            node.leader.forget_questions();
        }
        let own = routine_group(number);
        for effect in effects {
            self.send(own, seat, effect);
        }
    }

    pub(super) fn with_cluster(
        &mut self,
        number: usize,
        seat: usize,
        call: impl FnOnce(
            &mut Group<DeviceLeader>,
        ) -> Effects<devices::Update, devices::Timer, devices::Event>,
    ) {
        let Some(group) = self.clusters.get_mut(number) else {
            return;
        };
        let effects = call(group);
        // The present leader has got its answers to reads at once, and a former one never gets
        // them.
        for node in group.seats.iter_mut().flatten() {
            node.leader.forget_questions();
        }
        for effect in effects {
            if let Effect::Event(devices::Event::Act { ticket, value }) = effect {
                self.given(number, seat, ticket, value);
            } else {
                self.send(GroupId(number as u64), seat, effect);
            }
        }
    }

    /// A device gets a command.
    pub(super) fn given(&mut self, cluster: usize, seat: usize, ticket: Ticket, value: State) {
        let act = self
            .clusters
            .get(cluster)
            .and_then(|it| it.state.act(ticket.device));
        if let Some(act) = act {
            let (claim, step, number) = (act.claim, u64::from(act.step), act.number);
            self.judge(claim, step, number);
        }
        let thing = usize::try_from(ticket.device.0).ok();
        if let Some(thing) = thing.and_then(|it| self.things.get_mut(it)) {
            thing.notified.insert((ticket, value, seat));
        }
    }

    pub(super) fn judge(&mut self, claim: Claim, step: u64, number: u64) {
        let Who::Routine(routine) = who(claim.routine) else {
            return;
        };
        let step = step % crate::routines::STEPS_MAX as u64;
        let executing = self.executes(routine);
        // Under published rules parts of a claim are 0.
        let is_executing = executing.is_some_and(|it| {
            let is_instance = claim.instance == 0 || claim.instance == it.instance;
            is_instance && (claim.attempt == 0 || claim.attempt == it.attempt)
        });
        self.watch.strays |= !is_executing && !self.setup.timeouts;
        let Some(instance) = executing.map(|it| it.instance) else {
            return;
        };
        let may_repeat = self.may_repeat(routine);
        if let Some(last) = self.watch.steps.get_mut(routine) {
            // The same decision may be carried out again.
            let is_next = match *last {
                Some((run, at, by)) if run == instance => {
                    let is_same = number == by || may_repeat;
                    step == at + 1 || step == at && is_same
                }
                _ => step == 0,
            };
            self.watch.repeats |= !is_next;
            *last = Some((instance, step, number));
        }
    }

    pub(super) fn send<U, T, E>(&mut self, own: GroupId, seat: usize, effect: Effect<U, T, E>) {
        let from = member(own, seat);
        let letter = match effect {
            Effect::Ask { group, request } => Letter {
                to: To::Group(group),
                body: Body::Asks { from, request },
            },
            Effect::Answer {
                answer: Answer::Triggered(_) | Answer::Counted(_),
                ..
            } => return, // The application that triggers receives it, or the node with the clock.
            Effect::Answer { to, answer } => Letter {
                to: To::Node(to),
                body: Body::Answers { group: own, answer },
            },
            Effect::Inform { group, answer } => Letter {
                to: To::Group(group),
                body: Body::Answers { group: own, answer },
            },
            Effect::Propose(_)
            | Effect::Read(_)
            | Effect::Arm { .. }
            | Effect::ArmAbout { .. }
            | Effect::Disarm(_)
            | Effect::Event(_) => return,
        };
        self.letters.insert(letter);
    }
}
