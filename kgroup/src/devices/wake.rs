//! A leader's part in devices that sleep, and wake at an interval
//! ([`Site::wake_interval`](crate::Site::wake_interval)).
//!
//! Such a device receives a command for a short time after its report. So a command is proposed, and a former
//! leader's command is taken over, when the device has reported: what is decided earlier would be given to a
//! device that sleeps, and its outcome would be unknown. The leader keeps the request that waits in its memory
//! alone, since the routine repeats it.
//!
//! A leader may lead for less time than a device sleeps, as it does where each epoch has another one. So the group
//! decides how long a device has not reported ([`Devices::silent`]), as it does for the hold of a command: a new
//! leader counts on from there. The sum is never more than the time that has passed, so a device that reports in
//! time is not counted as down.

use alloc::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Member, NodeId, Span};

use super::act::Act;
use super::decision::Decision;
use super::event::Timer;
use super::machine::{DeviceLeader, Out};
use super::state::Devices;
use super::update::Update;
use crate::Answer;
use crate::effect::Effect;

/// The devices of the cluster that sleep, by the site of this node; the group may not have all of them yet.
pub(super) type Sleepers = BTreeMap<NodeId, Sleeper>;

/// The first interval of the count is this part of the wake interval, or [`FIRST_MOST`] if that is less.
const PARTS: u64 = 32;
const FIRST_MOST: Span = Span::secs(10);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sleeper {
    /// The longest time between two reports.
    interval: Span,
    /// The command that waits for the next report. There is one at most, for one claim holds the device, and its
    /// routine does one step after another.
    waiting: Option<Update>,
    /// The time without a report, under this leader and those before, and the interval for which the timer is
    /// armed.
    silent: Span,
    next: Span,
    /// True if the device has reported to this leader.
    has_reported: bool,
}

impl Sleeper {
    /// Begins with short intervals.
    fn begin(&mut self) {
        self.next = Span((self.interval.0 / PARTS).max(1)).min(FIRST_MOST);
    }
}

impl DeviceLeader {
    /// The devices of the cluster that sleep, by the site of this node: before it begins to lead, and when the
    /// site is another one.
    pub fn follow_wake_intervals(
        &mut self,
        state: &Devices,
        intervals: impl IntoIterator<Item = (NodeId, Span)>,
        out: &mut Out,
    ) {
        let mut former: BTreeSet<NodeId> = self.sleepers().collect();
        for (device, interval) in intervals {
            let is_new = !former.remove(&device);
            let sleeper = self.sleepers.entry(device).or_default();
            if is_new {
                sleeper.silent = state.silent(device);
            }
            if sleeper.interval != interval {
                sleeper.interval = interval;
                sleeper.begin();
                if state.status(device).is_some() {
                    self.arm(Timer::Wake(device), out);
                }
            }
            if let Some(probe) = self.probe(device) {
                probe.is_asked = false; // It was pinged before.
            }
        }
        for device in former {
            self.sleepers.remove(&device);
            out.push(Effect::Disarm(Timer::Wake(device)));
        }
        for device in state.ids().filter(|it| !self.sleepers.contains_key(it)) {
            propose_silent(state, device, Span::ZERO, out);
        }
    }

    /// The devices of the cluster that sleep.
    pub fn sleepers(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.sleepers.keys().copied()
    }

    pub(super) fn next_count(&self, device: NodeId) -> Span {
        let sleeper = self.sleepers.get(&device);
        sleeper.map_or(FIRST_MOST, |it| it.next)
    }

    /// Counts the time without a report from the beginning.
    pub(super) fn count_anew(&mut self, device: NodeId, out: &mut Out) {
        if let Some(sleeper) = self.sleepers.get_mut(&device) {
            sleeper.silent = Span::ZERO;
            sleeper.begin();
            self.arm(Timer::Wake(device), out);
        }
    }

    /// Keeps a command for the next report of its device, and answers that it waits. Returns true if it does;
    /// false also where the device is down, so that the command fails at once.
    pub(super) fn waits_for_wake(
        &mut self,
        state: &Devices,
        from: Member,
        update: &Update,
        out: &mut Out,
    ) -> bool {
        let Update::Act {
            device,
            claim,
            step,
            ..
        } = *update
        else {
            return false;
        };
        let is_down = is_down(state, device);
        let is_found = self.awaited_act(state, device).is_some();
        let Some(sleeper) = self.sleepers.get_mut(&device).filter(|_| !is_down) else {
            return false;
        };
        match state.judge(update).map(|it| it.decision) {
            None if sleeper.waiting.as_ref() == Some(update) => {}
            None => sleeper.waiting = Some(update.clone()),
            Some(Decision::Waits) if is_found => {}
            Some(_) => return false,
        }
        let answer = Answer::Asleep {
            device,
            claim,
            step,
        };
        out.push(Effect::Answer { to: from, answer });
        true
    }

    /// Returns true if this leader takes a command over, and gives it again, when its device reports.
    pub(super) fn gives_on_wake(&self, device: NodeId, act: &Act) -> bool {
        let sleeps = self.sleepers.contains_key(&device);
        sleeps && act.is_under_way() && act.is_given_again()
    }

    /// A device has reported. If it sleeps, what waits for it is proposed.
    pub(super) fn on_woke(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let Some(sleeper) = self.sleepers.get_mut(&device) else {
            return;
        };
        let waiting = sleeper.waiting.take();
        sleeper.has_reported = true;
        self.count_anew(device, out);
        propose_silent(state, device, Span::ZERO, out);
        let is_new = |it: &Update| state.judge(it).is_none();
        out.extend(waiting.filter(is_new).map(Effect::Propose));
        if let Some(act) = self.awaited_act(state, device) {
            self.take_over(device, act, out);
        }
    }

    /// Counts the time without a report, and has it decided after intervals that double.
    pub(super) fn on_wake_overdue(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let intervals = u64::from(self.config.misses).saturating_add(1);
        let sleeper = self.sleepers.get_mut(&device);
        let Some(sleeper) = sleeper.filter(|_| !is_down(state, device)) else {
            return;
        };
        let patience = sleeper.interval.0.saturating_mul(intervals);
        let silent = sleeper.silent.0.saturating_add(sleeper.next.0);
        sleeper.silent = Span(silent);
        if silent >= patience {
            return self.on_silent(state, device, out);
        }
        sleeper.next = (sleeper.next * 2).min(Span(patience - silent));
        propose_silent(state, device, Span(silent), out);
        self.arm(Timer::Wake(device), out);
    }

    /// Another time without a report was decided.
    pub(super) fn on_silence(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let decided = state.silent(device);
        let Some(sleeper) = self.sleepers.get_mut(&device) else {
            return propose_silent(state, device, Span::ZERO, out);
        };
        if decided <= sleeper.silent {
            return;
        }
        if sleeper.has_reported {
            // It was proposed before the report.
            return propose_silent(state, device, sleeper.silent, out);
        }
        sleeper.silent = decided; // By the leader before, and applied late.
    }

    /// A device has left the group.
    pub(super) fn on_left(&mut self, device: NodeId, out: &mut Out) {
        if let Some(sleeper) = self.sleepers.get_mut(&device) {
            *sleeper = Sleeper {
                interval: sleeper.interval,
                ..Sleeper::default()
            };
            out.push(Effect::Disarm(Timer::Wake(device)));
        }
    }

    /// The command of a former leader that this one takes over when the device reports.
    fn awaited_act<'a>(&self, state: &'a Devices, device: NodeId) -> Option<&'a Act> {
        let act = state.act(device).filter(|it| !it.is_settled)?;
        let probe = self.probes.get(self.place(device).ok()?);
        let is_own = probe.and_then(|it| it.1.given?.turn).is_some();
        Some(act).filter(|it| !is_own && self.gives_on_wake(device, it))
    }
}

/// Returns true for a device that is known to be down, or not in the group.
fn is_down(state: &Devices, device: NodeId) -> bool {
    let status = state.status(device);
    status.is_none_or(|it| it.version > 0 && !it.is_up)
}

fn propose_silent(state: &Devices, device: NodeId, silent: Span, out: &mut Out) {
    let after = state.silent(device);
    if after != silent {
        out.push(Effect::Propose(Update::Silent {
            device,
            after,
            silent,
        }));
    }
}
