//! The leader of a cluster's group.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Member, NodeId};
use selvedge_groups::GroupId;

use super::config::Config;
use super::decision::{Decision, Verdict};
use super::event::{Event, Timer};
use super::probe::Probe;
use super::state::Devices;
use super::update::Update;
use super::wake::Sleepers;
use crate::effect::{Effect, Effects};
use crate::{Answer, Claim, Request};

/// The number of routines for which a leader remembers the node that asked last. Others are
/// answered through their group.
const ASKERS: usize = 1_024;

/// The number of questions for a device's state that wait until the state is up to date.
const QUESTIONS: usize = 256;

/// The node that asks, the device, the claim, and the index of the command in the routine.
type Question = (Member, NodeId, Claim, u16);

pub(crate) type Out = Effects<Update, Timer, Event>;

/// The leader's memory. Another leader begins without it.
///
/// The work to be done follows from the state. This memory holds the work that was begun, and the
/// last known places of routines' leaders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceLeader {
    pub(super) me: Member,
    pub(super) config: Config,
    /// The node at which the leader of a routine was last.
    askers: BoundedMap<GroupId, Member>,
    questions: BoundedMap<u64, Question>,
    /// The number of the last question.
    pub(crate) last: u64,
    /// In order of devices, one for each.
    pub(super) probes: Vec<(NodeId, Probe)>,
    /// True if [`Timer::Resend`] is armed.
    pub(super) resends: bool,
    /// The generation of its node's site.
    pub(super) generation: u32,
    /// The devices of that site which the group does not have yet.
    pub(super) awaited: Vec<NodeId>,
    pub(super) sleepers: Sleepers,
}

impl DeviceLeader {
    /// The node `me` leads now. [`on_leads`](Self::on_leads) follows.
    pub fn new(me: Member, config: Config, state: &Devices) -> Self {
        debug_assert!(config.check().is_ok(), "the node checks the settings");
        Self {
            me,
            config,
            askers: BoundedMap::new(ASKERS),
            questions: BoundedMap::new(QUESTIONS),
            last: 0,
            probes: state.ids().map(|it| (it, Probe::default())).collect(),
            resends: false,
            generation: 0,
            awaited: Vec::new(),
            sleepers: Sleepers::new(),
        }
    }

    /// The devices of its cluster.
    pub fn devices(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.probes.iter().map(|it| it.0)
    }

    /// Goes on from the state: handles commands that are under way, sends the status to all
    /// routines that watch, and pings.
    pub fn on_leads(&mut self, state: &Devices, out: &mut Out) {
        for device in state.ids() {
            if let Some(act) = state.act(device) {
                self.on_found(device, act, out);
            }
            if !state.rules().notified_once() {
                self.on_changed(state, device, out);
            }
        }
        self.ping(out);
    }

    /// An update was applied, from any proposer; `state` has it, and may have later ones.
    pub fn on_applied(&mut self, state: &Devices, verdict: &Verdict, out: &mut Out) {
        let device = verdict.device;
        if let Some((routine, answer)) = verdict.answer() {
            self.notify(routine, answer, out);
        }
        if let Some(claim) = verdict.granted {
            self.notify(claim.routine, Answer::Granted { device, claim }, out);
        }
        match verdict.decision {
            Decision::Gives { number } | Decision::TakenOver { number } => {
                self.on_turn(state, device, number, out);
            }
            Decision::Acted { .. } | Decision::Settled { .. } => self.on_ended(state, device, out),
            Decision::Watched(routine) => self.show(state, device, routine, out),
            Decision::Unwatched(routine) => {
                self.report_status(state, device, routine, out);
                out.push(Effect::Event(Event::Full { device, routine }));
            }
            Decision::Full(Claim { routine, .. }) => {
                out.push(Effect::Event(Event::Full { device, routine }));
            }
            Decision::Entered | Decision::Exited => self.on_listed(state, device, out),
            Decision::Forgotten(routine) => self.on_forgotten(routine, device),
            Decision::Reclaimed(_) => self.on_reclaimed(device, verdict.decision),
            Decision::Opened => self.on_opened(device),
            Decision::Silent => self.on_silence(state, device, out),
            Decision::NoDevice
            | Decision::Granted(_)
            | Decision::Queued(_)
            | Decision::Busy(_)
            | Decision::Over(_)
            | Decision::Released(_)
            | Decision::Waits
            | Decision::Waited { .. }
            | Decision::Observed
            | Decision::Outdated
            | Decision::Nothing => {}
        }
        if verdict.version.is_some()
            && let Some(status) = state.status(device).cloned()
        {
            out.push(Effect::Event(Event::Status { device, status }));
            self.on_changed(state, device, out);
        }
        self.go_on_with_reports(state, device, out);
    }

    /// A routine's leader asks, at node `from`.
    pub fn on_asked(&mut self, state: &Devices, from: Member, request: Request, out: &mut Out) {
        let (routine, update) = match request {
            Request::Lock {
                device,
                claim,
                patience,
                generation,
            } => {
                let update = Update::Lock {
                    device,
                    claim,
                    patience,
                    generation,
                };
                (claim.routine, update)
            }
            Request::Release {
                device,
                claim,
                generation,
            } => {
                let update = Update::Release {
                    device,
                    claim,
                    generation,
                };
                (claim.routine, update)
            }
            Request::Act {
                device,
                claim,
                step,
                value,
                delivery,
            } => {
                let update = Update::Act {
                    device,
                    claim,
                    step,
                    value,
                    delivery,
                    by: self.me,
                };
                (claim.routine, update)
            }
            Request::Watch {
                device,
                routine,
                generation,
            } => {
                let update = Update::Watch {
                    device,
                    routine,
                    generation,
                };
                (routine, update)
            }
            Request::Seen {
                device,
                routine,
                version,
            } => {
                // A request of a former leader may come later than a request of the present one.
                self.remember(routine, from);
                return self.on_seen(state, device, routine, version);
            }
            Request::Read {
                device,
                claim,
                step,
            } => {
                self.remember(claim.routine, from);
                let question = (from, device, claim, step);
                return self.on_question(state, question, out);
            }
            // For other leaders.
            Request::Store(_)
            | Request::Trigger(_)
            | Request::Due(_)
            | Request::Progress { .. } => return,
        };
        self.remember(routine, from);
        if self.waits_for_wake(state, from, &update, out) {
            return;
        }
        let Some(verdict) = state.judge(&update) else {
            out.push(Effect::Propose(update));
            return;
        };
        if verdict.decision == Decision::NoDevice {
            return self.lacks(from, (routine, verdict.device), out);
        }
        // Nothing changes, so it is answered as if it had been applied.
        self.on_applied(state, &verdict, out);
    }

    /// No question waits, so their numbers may start from the beginning: for checks; their number
    /// of states is bounded then.
    #[cfg(feature = "check")]
    pub(crate) fn forget_questions(&mut self) {
        self.questions.retain(|_, _| false);
        self.last = 0;
    }

    /// The state is up to date.
    pub fn on_readable(&mut self, state: &Devices, read: u64, out: &mut Out) {
        let Some((to, device, claim, step)) = self.questions.remove(&read) else {
            return; // Another question took its place.
        };
        let Some(status) = state.status(device).cloned() else {
            return self.lacks(to, (claim.routine, device), out); // It left meanwhile.
        };
        if !state.is_open(device) {
            return; // It is asked again.
        }
        let answer = if state.is_held_by(device, claim) {
            Answer::Read {
                device,
                claim,
                step,
                status,
            }
        } else {
            Answer::Over { device, claim }
        };
        out.push(Effect::Answer { to, answer });
    }

    /// A timer is due.
    pub fn on_tick(&mut self, state: &Devices, timer: Timer, out: &mut Out) {
        match timer {
            Timer::Ping => self.ping(out),
            Timer::Unanswered => self.on_unanswered(state, out),
            Timer::Resend => self.resend(state, out),
            Timer::Act(device) => self.on_act_overdue(state, device, out),
            Timer::Wake(device) => self.on_wake_overdue(state, device, out),
        }
    }

    fn on_question(&mut self, state: &Devices, question: Question, out: &mut Out) {
        let (to, device, claim, _) = question;
        if state.status(device).is_none() {
            return self.lacks(to, (claim.routine, device), out);
        }
        if self.questions.len() >= QUESTIONS
            && let Some((&oldest, _)) = self.questions.nth(0)
        {
            self.questions.remove(&oldest); // It is asked again, if it still waits.
        }
        self.last += 1;
        let inserted = self.questions.insert(self.last, question);
        debug_assert!(inserted.is_ok(), "there is room");
        out.push(Effect::Read(self.last));
    }

    /// Sends an answer to the leader of a routine: to the node that asked last, if it is known.
    pub(super) fn notify(&self, routine: GroupId, answer: Answer, out: &mut Out) {
        out.push(match self.askers.get(&routine) {
            Some(&to) => Effect::Answer { to, answer },
            None => Effect::Inform {
                group: routine,
                answer,
            },
        });
    }

    fn remember(&mut self, routine: GroupId, from: Member) {
        // Where there is no room, the routine is answered through its group.
        let _full = self.askers.insert(routine, from);
        for (_, probe) in &mut self.probes {
            probe.on_received(routine);
        }
    }

    pub(super) fn arm(&self, timer: Timer, out: &mut Out) {
        let after = match timer {
            Timer::Ping => self.config.ping,
            Timer::Unanswered => self.config.ping_timeout,
            Timer::Resend => self.config.resend,
            Timer::Act(_) => self.config.act_timeout,
            Timer::Wake(device) => self.next_count(device),
        };
        out.push(Effect::Arm { timer, after });
    }

    pub(super) fn probe(&mut self, device: NodeId) -> Option<&mut Probe> {
        let at = self.place(device).ok()?;
        self.probes.get_mut(at).map(|it| &mut it.1)
    }

    pub(super) fn place(&self, device: NodeId) -> Result<usize, usize> {
        self.probes.binary_search_by_key(&device, |it| it.0)
    }
}
