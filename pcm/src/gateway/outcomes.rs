//! The effects of the gateways' decisions.
//!
//! All gateways apply the same updates, so each finds which of its own followers got a task, and puts the
//! request into their mailboxes. No request is relayed, a new resource manager repeats nothing, and a
//! follower that moves to another gateway gets its open tasks there. A lost message is repeated by the node
//! that needs it: by a follower in its next period, by a client when its answer is overdue, by the resource
//! manager when a unit has not answered in time.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, NodeId};
use selvedge_replica::Event as Notified;

use super::Gateway;
use super::event::{Event, Timer};
use crate::{Assignment, Message, Outcome, Refusal, Tables, TaskId};

impl Gateway {
    /// Handles an event of the replica.
    pub(super) fn on_answered(&mut self, event: Notified<Tables>, cx: &mut Context<'_, Self>) {
        match event {
            Notified::Applied { outcome, .. } => self.on_outcome(outcome, cx),
            Notified::Installed(_) => self.on_installed(cx),
            Notified::Elected { .. } | Notified::Deposed(_) => self.look_whether_it_manages(cx),
            Notified::Configured { .. } => {
                self.on_configured(cx);
                // It may be a voter again, with its old tables. Meanwhile it watched no follower.
                self.watch_own(cx);
                self.look_whether_it_manages(cx);
                self.look_for_orphans(cx);
            }
            Notified::Unavailable { .. } => self.is_stalled = true,
            Notified::Available => self.is_stalled = false,
            // The outcome of a proposal is in the tables, or it is proposed again.
            Notified::Fact(_)
            | Notified::Overtaken { .. }
            | Notified::Forgotten { .. }
            | Notified::Abandoned { .. }
            | Notified::Unreadable(_)
            | Notified::Readable { .. }
            | _ => {}
        }
    }

    fn on_outcome(&mut self, outcome: Outcome, cx: &mut Context<'_, Self>) {
        match outcome {
            Outcome::Attached {
                follower,
                tasks,
                is_other,
            } => {
                self.on_attached(follower, &tasks, cx);
                if is_other {
                    self.on_followers_changed(cx);
                }
            }
            Outcome::Purged { follower, tasks } => self.on_purged(follower, &tasks, cx),
            Outcome::NoRoom(follower) => {
                self.counters.0.no_room += 1;
                self.unwatch(follower, cx);
            }
            Outcome::Assigned { task, former } => self.on_assigned(task, former.as_ref(), cx),
            Outcome::Ended { task, former } => self.on_ended(task, former.as_ref(), cx),
            Outcome::Full(task) => self.refuse(task, Refusal::Full, cx),
            Outcome::Forgotten(task) => self.refuse(task, Refusal::Forgotten, cx),
            Outcome::Done(task) => self.answer(task, cx),
            Outcome::Clustered => self.on_clustered(cx),
            Outcome::Voted { task, attempt, by } => {
                self.send_counted(task, attempt, by, cx);
            }
            Outcome::Open(_) | Outcome::Measured | Outcome::Stale => {}
        }
    }

    fn on_attached(&mut self, id: NodeId, tasks: &[TaskId], cx: &mut Context<'_, Self>) {
        let known = self.tables().and_then(|it| it.follower(id)).cloned();
        let Some(known) = known else {
            return;
        };
        if known.gateway == self.me.id {
            cx.event(Event::Attached(known.member));
            self.watch_own_one(&known, cx);
            // Messages in its mailbox at another gateway may be lost.
            let own: Vec<TaskId> = self.tasks_of(id);
            for task in own {
                self.send_runs(task, Some(known.member), cx);
            }
        } else if self.own.get(&id).is_some_and(|it| known.is_later(it)) {
            self.unwatch(id, cx);
        }
        if self.manages && !self.serves(known.gateway) {
            // Its gateway has failed after it proposed the attachment.
            cx.arm(Timer::Purge(id), self.config.patience(known.duty));
        }
        self.on_withdrawn(tasks, cx);
    }

    fn on_purged(&mut self, id: NodeId, tasks: &[TaskId], cx: &mut Context<'_, Self>) {
        self.unwatch(id, cx);
        cx.event(Event::Purged(id));
        self.on_withdrawn(tasks, cx);
        self.on_followers_changed(cx);
    }

    fn tasks_of(&self, id: NodeId) -> Vec<TaskId> {
        let tables = self.tables().into_iter();
        tables.flat_map(|it| it.tasks_of(id)).collect()
    }

    /// Sends requests without a follower that left these tasks to the other followers: they may have a new
    /// orchestrator, and fewer votes decide.
    fn on_withdrawn(&mut self, tasks: &[TaskId], cx: &mut Context<'_, Self>) {
        for &task in tasks {
            self.send_runs(task, None, cx);
            self.expect_answer(task, cx);
        }
    }

    fn on_assigned(
        &mut self,
        task: TaskId,
        former: Option<&Assignment>,
        cx: &mut Context<'_, Self>,
    ) {
        if let Some(former) = former {
            // Followers of both attempts keep running the function, for the new one.
            let present = self.tables().and_then(|it| it.assignment(task));
            let is_present =
                |it: &Member| present.is_some_and(|present| present.electors.contains(it));
            let electors = former.electors.iter().copied();
            let left: Vec<Member> = electors.filter(|it| !is_present(it)).collect();
            self.send_over(task, former.attempt, &left, cx);
        }
        self.send_runs(task, None, cx);
        self.expect_answer(task, cx);
    }

    fn on_ended(&mut self, task: TaskId, former: Option<&Assignment>, cx: &mut Context<'_, Self>) {
        if let Some(former) = former {
            self.send_over(task, former.attempt, &former.electors, cx);
        }
        if self.manages {
            cx.disarm(Timer::Offload(task));
        }
        cx.event(Event::Ended(task));
        self.answer(task, cx);
    }

    fn send_counted(&self, task: TaskId, attempt: u16, by: Member, cx: &mut Context<'_, Self>) {
        let is_own = self.own.get(&by.id).is_some_and(|it| it.member == by);
        if is_own {
            cx.send(by, Message::Counted { task, attempt });
        }
    }

    fn on_clustered(&mut self, cx: &mut Context<'_, Self>) {
        self.has_changed = false;
        let units = self.tables().map_or(0, Tables::units);
        cx.event(Event::Clustered(units));
        // Does nothing unless a unit is still broken (erratum Q9).
        self.look_at_units(cx);
        self.retry_waiting(cx);
    }

    /// The tables were received whole, without the events that led to them.
    fn on_installed(&mut self, cx: &mut Context<'_, Self>) {
        self.watch_own(cx);
        let Some(tables) = self.tables() else {
            return;
        };
        let me = self.me.id;
        let is_elsewhere = |id: &NodeId| {
            let known = tables.follower(*id);
            known.is_some_and(|it| {
                it.gateway != me && self.own.get(id).is_some_and(|own| it.is_later(own))
            })
        };
        let elsewhere: Vec<NodeId> = self.own.keys().copied().filter(is_elsewhere).collect();
        let open: Vec<TaskId> = tables.open().map(|it| it.0).collect();
        for id in elsewhere {
            self.unwatch(id, cx);
        }
        for task in open {
            self.send_runs(task, None, cx);
            self.expect_answer(task, cx);
        }
        let asked: Vec<TaskId> = self.asked.iter().copied().collect();
        for task in asked {
            self.answer(task, cx);
        }
        self.look_whether_it_manages(cx);
    }

    /// Answers the client of a task that has ended, if it waits here.
    pub(super) fn answer(&mut self, task: TaskId, cx: &mut Context<'_, Self>) {
        let Some(tables) = self.tables() else {
            return;
        };
        let Some(answer) = tables.answer(task).cloned() else {
            return;
        };
        let voters = tables.voters(task).iter().copied().collect();
        if self.asked.remove(&task) {
            let notified = Message::Answer {
                task,
                answer,
                voters,
            };
            cx.send(task.client, notified);
        }
    }

    /// Forgets the clients of tasks that are not open here: their proposals were lost, or the tasks are
    /// forgotten. Clients that still wait ask again.
    pub(super) fn forget_clients(&mut self, cx: &mut Context<'_, Self>) {
        let asked: Vec<TaskId> = self.asked.iter().copied().collect();
        for task in asked {
            self.answer(task, cx);
            if self.tables().and_then(|it| it.open_task(task)).is_none() {
                self.asked.remove(&task);
            }
        }
    }

    pub(super) fn refuse(&mut self, task: TaskId, why: Refusal, cx: &mut Context<'_, Self>) {
        if self.asked.remove(&task) {
            cx.send(task.client, Message::Refused { task, why });
        }
    }
}
