//! A leader's memory of a device.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_routine::State;

use super::device::is_news;
use super::reclaim::Reclaim;
use super::update::Update;
use crate::{Outcome, Status};

/// The number of reports of a device that wait for the group to decide.
const REPORTS: usize = 8;

/// A leader's memory of a device. Another leader begins without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Probe {
    /// A ping is not answered.
    pub(super) is_asked: bool,
    /// The number of pings in a row that were not answered.
    pub(super) silent: u8,
    /// Routines that have not confirmed the latest status, in order.
    unseen: Vec<Unseen>,
    /// The command that this leader waits for.
    pub(super) given: Option<Given>,
    /// The reports that the group has not decided yet, in order. The first one is proposed.
    reports: VecDeque<Report>,
    /// The version of the status behind which the first one is proposed.
    after: u64,
    /// The answers of routines, while the device is closed.
    pub(super) reclaim: Reclaim,
}

/// A command that this leader handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Given {
    pub(super) number: u64,
    /// The turn of this leader; `None` until the group has decided it.
    pub(super) turn: Option<u32>,
    /// The outcome that the host reported, which may not be decided yet.
    pub(super) outcome: Option<Outcome>,
    /// The time of the hold under the leaders before this one.
    pub(super) before: Span,
    /// The time of the hold under this leader, and the interval for which its timer is armed.
    pub(super) held: Span,
    pub(super) next: Span,
}

/// A routine that receives a status again, at growing intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Unseen {
    routine: GroupId,
    /// The number of ticks of [`Timer::Resend`](super::Timer::Resend) between two transmissions.
    gap: u64,
    /// The number of ticks that are left.
    left: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Report {
    pub(super) is_up: bool,
    pub(super) value: Option<State>,
}

impl Probe {
    /// A device reports: returns the update to propose now.
    pub(super) fn on_report(
        &mut self,
        device: NodeId,
        status: &Status,
        report: Report,
    ) -> Option<Update> {
        if self.reports.is_empty() {
            if !report.is_news(status) {
                return None;
            }
            self.reports.push_back(report);
            return self.propose(device, status);
        }
        if self.reports.back() == Some(&report) {
            return None;
        }
        if self.reports.len() >= REPORTS {
            self.reports.pop_back(); // The latest report has the device's present state.
        }
        self.reports.push_back(report);
        None
    }

    /// A device has carried its command out: its earlier reports are out of date.
    pub(super) fn on_done(&mut self) {
        self.reports.clear();
    }

    /// The status may have changed: returns the update to propose now.
    pub(super) fn on_status(&mut self, device: NodeId, status: &Status) -> Option<Update> {
        if self.reports.is_empty() || status.version == self.after {
            return None;
        }
        // After any change, the first report is proposed once more if it is still news.
        while self.reports.front().is_some_and(|it| !it.is_news(status)) {
            self.reports.pop_front();
        }
        self.propose(device, status)
    }

    /// A status was sent to a routine, and is sent again until the routine has seen it.
    pub(super) fn show(&mut self, routine: GroupId) {
        if let Err(at) = self.place(routine) {
            self.unseen.insert(at, Unseen::new(routine));
        }
    }

    /// A routine has seen the latest status.
    pub(super) fn on_seen(&mut self, routine: GroupId) {
        self.unseen.retain(|it| it.routine != routine);
    }

    /// A message of a routine arrived: its interval is reset to the first one.
    pub(super) fn on_received(&mut self, routine: GroupId) {
        if let Ok(at) = self.place(routine)
            && let Some(unseen) = self.unseen.get_mut(at)
        {
            *unseen = Unseen::new(routine);
        }
    }

    /// [`Timer::Resend`](super::Timer::Resend) ticks: returns the routines that receive the status
    /// again. The interval between two transmissions is at most `most` ticks.
    pub(super) fn on_resend(&mut self, most: u64) -> impl Iterator<Item = GroupId> + '_ {
        self.unseen.iter_mut().filter_map(move |it| it.tick(most))
    }

    fn place(&self, routine: GroupId) -> Result<usize, usize> {
        self.unseen.binary_search_by_key(&routine, |it| it.routine)
    }

    /// Returns true if nothing has to be sent or proposed again.
    pub(super) fn is_settled(&self) -> bool {
        self.unseen.is_empty() && self.reports.is_empty()
    }

    /// The update that is proposed and not decided.
    pub(super) fn proposed(&self, device: NodeId) -> Option<Update> {
        let Report { is_up, value } = self.reports.front()?.clone();
        Some(Update::Observed {
            device,
            after: self.after,
            is_up,
            value,
        })
    }

    fn propose(&mut self, device: NodeId, status: &Status) -> Option<Update> {
        self.after = status.version;
        self.proposed(device)
    }
}

impl Unseen {
    const fn new(routine: GroupId) -> Self {
        Self {
            routine,
            gap: 1,
            left: 1,
        }
    }

    fn tick(&mut self, most: u64) -> Option<GroupId> {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return None;
        }
        self.gap = self.gap.saturating_mul(2).min(most).max(1);
        self.left = self.gap;
        Some(self.routine)
    }
}

impl Report {
    fn is_news(&self, status: &Status) -> bool {
        is_news(status, self.is_up, self.value.as_ref())
    }
}
