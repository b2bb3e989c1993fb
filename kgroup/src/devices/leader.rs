//! What the leader of a cluster's group does.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Member, NodeId};
use selvedge_routine::State;

use super::act::{Act, Ticket};
use super::config::Config;
use super::decision::{Decision, Verdict};
use super::device::long_word;
use super::event::{Event, Refused, Timer};
use super::probe::{Given, Probe, Report};
use super::state::Devices;
use super::update::Update;
use crate::wish::{Wish, Wishes};
use crate::{Answer, Claim, Delivery, GroupId, Outcome, Request};

/// Of how many routines a leader remembers the node that asked last. Others are told by way of their
/// group.
const ASKERS: usize = 1_024;

/// How many questions for a device's state wait until the state is up to date.
const QUESTIONS: usize = 256;

/// The node that asks, the device, the claim, and which command of the routine.
type Question = (Member, NodeId, Claim, u16);

type Out = Wishes<Update, Timer, Event>;

/// The leader's memory. Another leader begins without it.
///
/// What is to be done follows from the state. This says what was begun, and where routines were heard
/// of last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeviceLeader {
    me: Member,
    config: Config,
    /// The node at which the leader of a routine was last.
    askers: BoundedMap<GroupId, Member>,
    questions: BoundedMap<u64, Question>,
    /// The number of the last question.
    last: u64,
    /// In order of devices, one for each.
    probes: Vec<(NodeId, Probe)>,
    /// Whether [`Timer::Resend`] is armed.
    resends: bool,
}

impl DeviceLeader {
    /// The node `me` leads now. [`on_leads`](Self::on_leads) follows.
    pub(crate) fn new(me: Member, config: Config, state: &Devices) -> Self {
        debug_assert!(config.check().is_ok(), "the node checks the settings");
        Self {
            me,
            config,
            askers: BoundedMap::new(ASKERS),
            questions: BoundedMap::new(QUESTIONS),
            last: 0,
            probes: state.ids().map(|it| (it, Probe::default())).collect(),
            resends: false,
        }
    }

    /// The devices of its cluster.
    pub(crate) fn devices(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.probes.iter().map(|it| it.0)
    }

    /// Goes on from the state: sees to commands that are under way, tells all that watch, and pings.
    pub(crate) fn on_leads(&mut self, state: &Devices, out: &mut Out) {
        for device in state.ids() {
            if let Some(act) = state.act(device) {
                self.on_found(device, act, out);
            }
            if !state.rules().told_once() {
                self.on_changed(state, device, out);
            }
        }
        self.ping(out);
    }

    /// An update was applied, whoever proposed it; `state` has it, and may have later ones.
    pub(crate) fn on_applied(&mut self, state: &Devices, verdict: &Verdict, out: &mut Out) {
        let device = verdict.device;
        if let Some((routine, answer)) = verdict.answer() {
            self.tell(routine, answer, out);
        }
        if let Some(claim) = verdict.granted {
            self.tell(claim.routine, Answer::Granted { device, claim }, out);
        }
        match verdict.decision {
            Decision::Gives { number } => self.on_gives(state, device, number, out),
            Decision::TakenOver { number } => self.on_taken_over(state, device, number, out),
            Decision::Acted { .. } => self.on_ended(state, device, out),
            Decision::Watched(routine) => self.show(state, device, routine, out),
            Decision::Unwatched(routine) => {
                self.tell_status(state, device, routine, out);
                out.push(Wish::Event(Event::Full { device, routine }));
            }
            Decision::Full(Claim { routine, .. }) => {
                out.push(Wish::Event(Event::Full { device, routine }));
            }
            Decision::NoDevice
            | Decision::Granted(_)
            | Decision::Queued(_)
            | Decision::Busy(_)
            | Decision::Over(_)
            | Decision::Released(_)
            | Decision::Waits
            | Decision::Observed
            | Decision::Nothing => {}
        }
        if verdict.version.is_some()
            && let Some(status) = state.status(device).cloned()
        {
            out.push(Wish::Event(Event::Status { device, status }));
            self.on_changed(state, device, out);
        }
        self.go_on_with_reports(state, device, out);
    }

    /// A routine's leader asks, at node `from`.
    pub(crate) fn on_asked(
        &mut self,
        state: &Devices,
        from: Member,
        request: Request,
        out: &mut Out,
    ) {
        let (routine, update) = match request {
            Request::Lock {
                device,
                claim,
                patience,
            } => {
                let update = Update::Lock {
                    device,
                    claim,
                    patience,
                };
                (claim.routine, update)
            }
            Request::Release { device, claim } => {
                (claim.routine, Update::Release { device, claim })
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
            Request::Watch { device, routine } => (routine, Update::Watch { device, routine }),
            Request::Seen {
                device,
                routine,
                version,
            } => {
                // What a former leader asked may come later than what the present one asks.
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
            Request::Store(_) | Request::Trigger(_) => return, // For other leaders.
        };
        self.remember(routine, from);
        let Some(verdict) = state.judge(&update) else {
            out.push(Wish::Propose(update));
            return;
        };
        if verdict.decision == Decision::NoDevice {
            let device = verdict.device;
            let answer = Answer::NoDevice { device };
            return out.push(Wish::Tell { to: from, answer });
        }
        // Nothing changes, so it is answered as if it had been applied.
        self.on_applied(state, &verdict, out);
    }

    /// No question waits, so their numbers may begin anew: for checks, whose states end then.
    #[cfg(feature = "check")]
    pub(crate) fn forget_questions(&mut self) {
        self.questions.retain(|_, _| false);
        self.last = 0;
    }

    /// The state is up to date.
    pub(crate) fn on_readable(&mut self, state: &Devices, read: u64, out: &mut Out) {
        let Some((to, device, claim, step)) = self.questions.remove(&read) else {
            return; // Another question took its place.
        };
        let Some(status) = state.status(device).cloned() else {
            debug_assert!(false, "the cluster had this device when it was asked");
            return;
        };
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
        out.push(Wish::Tell { to, answer });
    }

    /// A timer is due.
    pub(crate) fn on_tick(&mut self, state: &Devices, timer: Timer, out: &mut Out) {
        match timer {
            Timer::Ping => self.ping(out),
            Timer::Unanswered => self.on_unanswered(state, out),
            Timer::Resend => self.resend(state, out),
            Timer::Act(device) => self.on_act_overdue(state, device, out),
        }
    }

    /// The host heard of a device: it answered a ping, or spoke unasked. `value` is nothing where the
    /// last one stands.
    ///
    /// # Errors
    /// There is no such device, or its word is too long.
    pub(crate) fn reported(
        &mut self,
        state: &Devices,
        device: NodeId,
        value: Option<State>,
        out: &mut Out,
    ) -> Result<(), Refused> {
        let probe = self.probe(device).ok_or(Refused::NoDevice(device))?;
        let limits = state.limits();
        if let Some(found) = value.as_ref().and_then(|it| long_word(it, limits)) {
            let limit = limits.word;
            return Err(Refused::LongWord { found, limit });
        }
        probe.is_asked = false;
        probe.silent = 0;
        let report = Report { is_up: true, value };
        self.on_report(state, device, report, out);
        Ok(())
    }

    /// The host says what became of a command. Of what is not under way it may say so, too: that
    /// changes nothing.
    pub(crate) fn acted(&mut self, ticket: Ticket, outcome: Outcome, out: &mut Out) {
        let Ticket { device, number } = ticket;
        let given = self.probe(device).and_then(|it| it.given.as_mut());
        let given = given.filter(|it| it.number == number);
        let is_shared = given.as_ref().is_some_and(|it| it.is_shared);
        if let Some(given) = given {
            given.outcome.get_or_insert(outcome);
        }
        if outcome == Outcome::Done
            && let Some(probe) = self.probe(device)
        {
            probe.on_done();
        }
        if !is_shared {
            self.say_outcome(ticket, outcome, out);
        }
    }

    fn say_outcome(&self, ticket: Ticket, outcome: Outcome, out: &mut Out) {
        let Ticket { device, number } = ticket;
        out.push(Wish::Propose(Update::Acted {
            device,
            number,
            outcome,
            by: self.me,
        }));
    }

    fn on_question(&mut self, state: &Devices, question: Question, out: &mut Out) {
        let (to, device, ..) = question;
        if state.status(device).is_none() {
            let answer = Answer::NoDevice { device };
            return out.push(Wish::Tell { to, answer });
        }
        if self.questions.len() >= QUESTIONS
            && let Some((&oldest, _)) = self.questions.nth(0)
        {
            self.questions.remove(&oldest); // It is asked again, if it still waits.
        }
        self.last += 1;
        let inserted = self.questions.insert(self.last, question);
        debug_assert!(inserted.is_ok(), "there is room");
        out.push(Wish::Read(self.last));
    }

    /// A device is to do something: it was decided now.
    fn on_gives(&mut self, state: &Devices, device: NodeId, number: u64, out: &mut Out) {
        let Some(act) = under_way(state, device, number) else {
            return; // It has ended since: the state may be later.
        };
        let given = self.probe(device).and_then(|it| it.given);
        if given.is_some_and(|it| it.number == number) {
            return; // This leader found it when it began, and may have taken it over.
        }
        if act.by == self.me {
            self.give(device, act, false, out);
        } else {
            self.on_found(device, act, out);
        }
    }

    /// A command that another leader may have given, or this node when it led before.
    ///
    /// What is found may be over: the state may be behind. So another leader's command is given again
    /// only when the group has decided that this leader sees to it.
    fn on_found(&mut self, device: NodeId, act: &Act, out: &mut Out) {
        if !act.is_under_way() {
            return;
        }
        self.wait_for(device, act, (false, true), out);
        if act.by != self.me {
            self.take_over(device, act.number, out);
        }
    }

    fn take_over(&self, device: NodeId, number: u64, out: &mut Out) {
        let by = self.me;
        out.push(Wish::Propose(Update::TakeOver { device, number, by }));
    }

    /// A leader, perhaps this one, sees to a command that another one may have given.
    fn on_taken_over(&mut self, state: &Devices, device: NodeId, number: u64, out: &mut Out) {
        let Some(act) = under_way(state, device, number) else {
            return; // It has ended since.
        };
        if act.by != self.me {
            return self.on_found(device, act, out);
        }
        match act.delivery {
            Delivery::AtLeastOnce => self.give(device, act, true, out),
            Delivery::AtMostOnce => self.wait_for(device, act, (false, true), out),
        }
    }

    fn give(&mut self, device: NodeId, act: &Act, is_shared: bool, out: &mut Out) {
        let number = act.number;
        out.push(Wish::Event(Event::Act {
            ticket: Ticket { device, number },
            value: act.value.clone(),
        }));
        self.wait_for(device, act, (true, is_shared), out);
    }

    fn wait_for(
        &mut self,
        device: NodeId,
        act: &Act,
        (is_given, is_shared): (bool, bool),
        out: &mut Out,
    ) {
        if let Some(probe) = self.probe(device) {
            probe.given = Some(Given {
                number: act.number,
                is_given,
                outcome: None,
                is_shared,
            });
        }
        // Another leader may have learned late that it was to give it, and its host may be late as well.
        let timeouts = if is_shared { 2 } else { 1 };
        let after = self.config.act_timeout * timeouts;
        let timer = Timer::Act(device);
        out.push(Wish::Arm { timer, after });
    }

    /// It is known what became of a command.
    fn on_ended(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let is_under_way = state.act(device).is_some_and(Act::is_under_way);
        let Some(probe) = self.probe(device) else {
            return;
        };
        if !is_under_way && probe.given.take().is_some() {
            out.push(Wish::Disarm(Timer::Act(device)));
        }
    }

    fn on_act_overdue(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let Some(act) = state.act(device).filter(|it| it.is_under_way()) else {
            return; // A stray tick.
        };
        let number = act.number;
        if act.by != self.me {
            self.arm(Timer::Act(device), out);
            return self.take_over(device, number, out);
        }
        let Some(probe) = self.probe(device) else {
            return;
        };
        let given = probe.given.filter(|it| it.number == number);
        let outcome = given.and_then(|it| it.outcome);
        let is_given = given.is_some_and(|it| it.is_given);
        if !is_given && outcome.is_none() && act.delivery == Delivery::AtLeastOnce {
            return self.give(device, act, false, out);
        }
        let outcome = outcome.unwrap_or(Outcome::Unknown);
        probe.given = Some(Given {
            number,
            is_given: true, // Or it was to be given once.
            outcome: Some(outcome),
            is_shared: false,
        });
        self.say_outcome(Ticket { device, number }, outcome, out);
        self.arm(Timer::Act(device), out);
    }

    fn ping(&mut self, out: &mut Out) {
        for (device, probe) in &mut self.probes {
            probe.is_asked = true;
            out.push(Wish::Event(Event::Ping { device: *device }));
        }
        self.arm(Timer::Unanswered, out);
        self.arm(Timer::Ping, out);
    }

    fn on_unanswered(&mut self, state: &Devices, out: &mut Out) {
        let misses = self.config.misses;
        let mut down = Vec::new();
        for (device, probe) in &mut self.probes {
            if core::mem::take(&mut probe.is_asked) {
                probe.silent = probe.silent.saturating_add(1);
                if probe.silent >= misses {
                    down.push(*device);
                }
            }
        }
        for device in down {
            let report = Report {
                is_up: false,
                value: None,
            };
            self.on_report(state, device, report, out);
        }
    }

    fn on_report(&mut self, state: &Devices, device: NodeId, report: Report, out: &mut Out) {
        let (Some(probe), Some(status)) = (self.probe(device), state.status(device)) else {
            return;
        };
        if let Some(update) = probe.on_report(device, status, report) {
            out.push(Wish::Propose(update));
            self.arm_resend(out);
        }
    }

    fn go_on_with_reports(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let (Some(probe), Some(status)) = (self.probe(device), state.status(device)) else {
            return;
        };
        // Reports wait, so Timer::Resend is armed.
        out.extend(probe.on_status(device, status).map(Wish::Propose));
    }

    /// All that watch a device are to be told its status.
    fn on_changed(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        for routine in state.watchers(device) {
            self.show(state, device, routine, out);
        }
    }

    /// Tells a routine a device's status, until it has seen it.
    fn show(&mut self, state: &Devices, device: NodeId, routine: GroupId, out: &mut Out) {
        self.tell_status(state, device, routine, out);
        if state.rules().told_once() {
            return;
        }
        if let Some(probe) = self.probe(device) {
            probe.show(routine);
        }
        self.arm_resend(out);
    }

    fn on_seen(&mut self, state: &Devices, device: NodeId, routine: GroupId, version: u64) {
        let latest = state.status(device).map_or(0, |it| it.version);
        let Some(probe) = self.probe(device) else {
            return;
        };
        match version >= latest {
            true => probe.on_seen(routine),
            false => probe.on_heard(routine),
        }
    }

    fn resend(&mut self, state: &Devices, out: &mut Out) {
        self.resends = false;
        let most = self.config.resend_most.0 / self.config.resend.0.max(1);
        for (device, probe) in &mut self.probes {
            let device = *device;
            for routine in probe.on_resend(most) {
                // The node that asked last may lead no longer: the group knows.
                if let Some(status) = state.status(device).cloned() {
                    let answer = Answer::Status {
                        device,
                        routine,
                        status,
                    };
                    out.push(Wish::Inform {
                        group: routine,
                        answer,
                    });
                }
            }
            out.extend(probe.proposed(device).map(Wish::Propose));
        }
        let is_idle = |it: &(NodeId, Probe)| it.1.is_settled();
        if !self.probes.iter().all(is_idle) {
            self.arm_resend(out);
        }
    }

    fn tell_status(&self, state: &Devices, device: NodeId, routine: GroupId, out: &mut Out) {
        if let Some(status) = state.status(device).cloned() {
            let answer = Answer::Status {
                device,
                routine,
                status,
            };
            self.tell(routine, answer, out);
        }
    }

    /// Tells the leader of a routine: at the node that asked last, if it is known.
    fn tell(&self, routine: GroupId, answer: Answer, out: &mut Out) {
        out.push(match self.askers.get(&routine) {
            Some(&to) => Wish::Tell { to, answer },
            None => Wish::Inform {
                group: routine,
                answer,
            },
        });
    }

    fn remember(&mut self, routine: GroupId, from: Member) {
        // Where there is no room, the routine is told by way of its group.
        let _full = self.askers.insert(routine, from);
        for (_, probe) in &mut self.probes {
            probe.on_heard(routine);
        }
    }

    fn arm_resend(&mut self, out: &mut Out) {
        if !core::mem::replace(&mut self.resends, true) {
            self.arm(Timer::Resend, out);
        }
    }

    fn arm(&self, timer: Timer, out: &mut Out) {
        let after = match timer {
            Timer::Ping => self.config.ping,
            Timer::Unanswered => self.config.ping_timeout,
            Timer::Resend => self.config.resend,
            Timer::Act(_) => self.config.act_timeout,
        };
        out.push(Wish::Arm { timer, after });
    }

    fn probe(&mut self, device: NodeId) -> Option<&mut Probe> {
        let at = self.probes.binary_search_by_key(&device, |it| it.0).ok()?;
        self.probes.get_mut(at).map(|it| &mut it.1)
    }
}

/// The command of this number, if it has not ended.
fn under_way(state: &Devices, device: NodeId, number: u64) -> Option<&Act> {
    let act = state.act(device);
    act.filter(|it| it.number == number && it.is_under_way())
}
