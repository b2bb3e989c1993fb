//! A node's clock, and its reports to routines that time triggers.
//!
//! A node reports for each routine whose state it holds, whether it leads or not: the group counts the clocks
//! of its members ([`crate::routines`]). One timer serves all routines. It expires when a clock shows another
//! occurrence, and while reports are open: after a time that doubles, since a group without a quorum may be
//! without one for long.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::{Context, Member, NodeId, Span, Time};
use selvedge_groups::GroupId;

use crate::Kgroup;
use crate::event::Timer;
use crate::leading::LeaderInput;
use crate::message::{Due, Payload, Request};
use crate::routines::{RoutineState, Update, WallClock};
use crate::state::GroupState;

/// The most doublings of the wait before a report is repeated.
const DOUBLINGS: u32 = 6;

/// The clock of a node's host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Clock {
    /// The time that the host's clock showed, and when.
    set: Option<(Time, WallClock)>,
    /// The reports of the last round.
    open: Vec<(GroupId, Due)>,
    /// The triggers of which a leader may have a wrong report of this node: from before its clock was
    /// set back, or from a former life.
    unconfirmed: BTreeSet<(GroupId, u16)>,
    /// The rounds with these reports, up to [`DOUBLINGS`].
    rounds: u32,
}

impl Clock {
    fn at(&self, now: Time) -> Option<WallClock> {
        let (set, shown) = self.set?;
        Some(shown.after(now.since(set)))
    }
}

impl Kgroup {
    /// The time that its host's clock shows, if the host has set it.
    #[must_use]
    pub fn clock(&self, now: Time) -> Option<WallClock> {
        self.clock.at(now)
    }

    pub(crate) fn set_clock(&mut self, shown: WallClock, cx: &mut Context<'_, Self>) {
        let is_first = self.clock.set.replace((cx.now(), shown)).is_none();
        let now_due =
            |(group, was): &(GroupId, Due)| self.routine(*group)?.due(was.trigger, &shown);
        // Else another clock that is wrong could find the report at the leader, much later.
        let wrong = self.clock.open.iter().filter(|it| now_due(it) < Some(it.1));
        let wrong: Vec<_> = wrong.map(|it| (it.0, it.1.trigger)).collect();
        if is_first || !wrong.is_empty() {
            self.clock.rounds = 0;
        }
        self.clock.unconfirmed.extend(wrong);
        if is_first {
            let all: Vec<GroupId> = self.groups().groups().collect();
            all.into_iter().for_each(|it| self.confirm_clock(it));
        }
        self.report_due(cx);
    }

    /// The state of a routine's group, if this node holds it.
    fn routine(&self, group: GroupId) -> Option<&RoutineState> {
        match self.held(group) {
            Some(GroupState::Routine(state)) => Some(state),
            _ => None,
        }
    }

    /// A group's state or leader is another one: reports may be missing there.
    pub(crate) fn look_at_clock(&self, group: GroupId, cx: &mut Context<'_, Self>) {
        let has_times = |it: &RoutineState| !it.definition().triggers.is_empty();
        if self.clock.set.is_some() && self.routine(group).is_some_and(has_times) {
            cx.arm(Timer::Clock, Span::ZERO);
        }
    }

    /// Reports what has come by the clock and is not decided, as far as this node knows.
    pub(crate) fn report_due(&mut self, cx: &mut Context<'_, Self>) {
        let Some(shown) = self.clock.at(cx.now()) else {
            return;
        };
        let mut open = Vec::new();
        let mut next: Option<Span> = None;
        for group in self.groups().groups() {
            let Some(state) = self.routine(group) else {
                continue;
            };
            for trigger in state.definition().timed() {
                let change = state.definition().until_due_changes(trigger, &shown);
                next = next.into_iter().chain(change).min();
                let due = state.due(trigger, &shown);
                let due = due.filter(|it| state.is_due(&Update::Due(*it)));
                open.extend(due.map(|it| (group, it)));
            }
        }
        self.clock.rounds = match open == self.clock.open {
            true => (self.clock.rounds + 1).min(DOUBLINGS),
            false => 0,
        };
        let confirmed = self.confirmations(&open, &shown);
        if !(open.is_empty() && confirmed.is_empty()) {
            let wait = self.config.routines.resend * (1 << self.clock.rounds);
            next = next.into_iter().chain([wait]).min();
        }
        for &(group, due) in open.iter().chain(&confirmed) {
            let payload = Payload::Request(Request::Due(due));
            self.command_groups(selvedge_groups::Command::Ask { group, payload }, cx);
        }
        self.clock.open = open;
        if let Some(after) = next {
            cx.arm(Timer::Clock, after);
        }
    }

    /// Reports the latest occurrence of each trigger of a group, also if it is decided.
    pub(crate) fn confirm_clock(&mut self, group: GroupId) {
        let timed = self.routine(group).into_iter();
        let timed = timed.flat_map(|it| it.definition().timed());
        let timed: Vec<_> = timed.map(|it| (group, it)).collect();
        self.clock.unconfirmed.extend(timed);
    }

    /// The reports of what has come and is decided, where a leader may have a wrong one. An open
    /// report takes the place of a wrong one by itself.
    fn confirmations(&mut self, open: &[(GroupId, Due)], shown: &WallClock) -> Vec<(GroupId, Due)> {
        let mut all = Vec::new();
        let unconfirmed = core::mem::take(&mut self.clock.unconfirmed);
        for (group, trigger) in unconfirmed {
            let is_open = open
                .iter()
                .any(|it| (it.0, it.1.trigger) == (group, trigger));
            let Some(state) = self.routine(group).filter(|_| !is_open) else {
                continue;
            };
            // Before the first decision what has come is open.
            if state.occurrence(trigger).is_none() {
                continue;
            }
            let none = Due {
                since: state.since(),
                trigger,
                occurrence: 0,
                is_late: true,
            };
            let due = state.due(trigger, shown);
            all.push((group, due.unwrap_or(none)));
        }
        let kept = all.iter().map(|it| (it.0, it.1.trigger));
        self.clock.unconfirmed.extend(kept);
        all
    }

    /// The leader of a group has this node's report.
    pub(crate) fn on_counted(&mut self, group: GroupId, due: Due, now: Time) {
        let shown = self.clock.at(now);
        let state = self.routine(group);
        let is_right = shown.zip(state).is_some_and(|(shown, state)| {
            // A late answer may be one to the wrong report.
            due.occurrence == 0 || Some(due) <= state.due(due.trigger, &shown)
        });
        if is_right {
            self.clock.unconfirmed.remove(&(group, due.trigger));
        }
    }

    /// A node asks the leader of a group, which this node is. A clock counts for a voter of the group.
    pub(crate) fn on_asked(
        &mut self,
        group: GroupId,
        from: Member,
        request: Request,
        cx: &mut Context<'_, Self>,
    ) {
        let Request::Due(due) = request else {
            return self.on(group, LeaderInput::Asked(from, request), cx);
        };
        let replica = self.groups().replica(group);
        let voters = replica
            .into_iter()
            .flat_map(|it| &it.configuration().voters);
        let voters: Vec<NodeId> = voters.map(|it| it.member.id).collect();
        self.on(group, LeaderInput::Due(from, due, &voters), cx);
    }
}
