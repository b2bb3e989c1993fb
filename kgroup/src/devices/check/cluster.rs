//! A cluster's group as an ideal register: it decides the proposals of its leaders, one after
//! another. A leader learns of each decision later, and may be replaced at any moment.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use selvedge_core::{Context, Member, NodeId};
use selvedge_groups::GroupId;
use selvedge_replica::State as _;
use selvedge_routine::State;

use super::Edition;
use super::party::{Party, Payload, Tick};
use crate::devices::edits::{Listed, next_edit};
use crate::devices::{Act, Config, DeviceLeader, Devices, Event, Ticket, Timer, Update};
use crate::effect::{Effect, Effects};
use crate::{Claim, Delivery, Outcome, Request};

type Out = Effects<Update, Timer, Event>;

/// A leader, and the state as far as it knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct View {
    state: Devices,
    /// The number of decisions of the log that it has.
    learned: usize,
    /// The generation of its node's site.
    generation: u32,
    leader: DeviceLeader,
}

/// The behaviour of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ways {
    /// A proposal is decided, and learned of, later.
    pub(super) lags: bool,
    /// Two nodes lead in turn, and a node that leads again has missed the decisions between.
    pub(super) returns: bool,
}

/// A command that a leader's host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Order {
    pub(super) ticket: Ticket,
    term: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cluster {
    /// The number of times that another leader took over.
    pub(super) term: u64,
    /// The commands that hosts have yet to carry out.
    pub(super) orders: Vec<Order>,
    /// True if a command was given that had ended.
    pub(super) gives_ended: bool,
    /// True if a command was given for a claim that did not hold the device.
    pub(super) gives_for_none: bool,
    /// Commands that may be given once, as often as they were given; in order.
    pub(super) given_once: Vec<Ticket>,
    ways: Ways,
    present: View,
    /// The leader before it does not know that it leads no longer.
    stale: Option<View>,
    /// The proposals, which may be decided.
    proposed: VecDeque<Update>,
    /// The decisions, as far back as a leader may have missed them.
    log: VecDeque<Update>,
    /// True if the group had followed the last site, and does no more.
    pub(super) goes_back: bool,
    sites: &'static [Edition],
}

impl Cluster {
    pub(super) fn new(state: Devices, ways: Ways, sites: &'static [Edition]) -> Self {
        Self {
            term: 0,
            orders: Vec::new(),
            gives_ended: false,
            gives_for_none: false,
            given_once: Vec::new(),
            ways,
            present: View {
                leader: leader(0, &state),
                state,
                learned: 0,
                generation: 0,
            },
            stale: None,
            proposed: VecDeque::new(),
            log: VecDeque::new(),
            goes_back: false,
            sites,
        }
    }

    /// The state that the group has decided.
    pub(super) fn state(&self) -> Devices {
        let mut state = self.present.state.clone();
        for update in self.log.iter().skip(self.present.learned) {
            state.apply(update);
        }
        state
    }

    pub(super) fn show(&self) -> String {
        let state = &self.present.state;
        let mut text = format!("leader {}", self.term);
        for device in state.ids() {
            let queue: Vec<Claim> = state.queue(device).collect();
            // Writing to a String cannot fail.
            let _infallible = write!(
                text,
                "; {device:?} of {:?}, {queue:?} wait, version {}",
                state.holder(device),
                state.status(device).map_or(0, |it| it.version),
            );
        }
        for (name, updates) in [("proposed", &self.proposed), ("decided", &self.log)] {
            if !updates.is_empty() {
                let _infallible = write!(text, "; {name} {updates:?}");
            }
        }
        text
    }

    /// Returns true if nothing waits to be decided or learned.
    pub(super) fn is_settled(&self) -> bool {
        self.proposed.is_empty() && self.unlearned() == 0
    }

    /// The first leader begins.
    pub(super) fn begin(&mut self, cx: &mut Context<'_, Party>) {
        let View { leader, state, .. } = &mut self.present;
        let mut out = Out::new();
        leader.on_leads(state, &mut out);
        self.present.sync(self.sites, &mut out);
        self.carry_out(out, cx);
    }

    /// Another node leads. It may have to learn of some decisions, and the proposals of its
    /// predecessor may be lost from some point on.
    pub(super) fn take_over(&mut self, generation: Option<u32>, cx: &mut Context<'_, Party>) {
        self.term += 1;
        let former = self.stale.take().filter(|_| self.ways.returns);
        let from = former.as_ref().unwrap_or(&self.present);
        let (mut state, mut learned) = (from.state.clone(), from.learned);
        for _ in 0..below(self.log.len() + 1 - learned, cx) {
            if let Some(update) = self.log.get(learned) {
                state.apply(update);
                learned += 1;
            }
        }
        let kept = below(self.proposed.len() + 1, cx);
        self.proposed.truncate(kept);
        let node = if self.ways.returns {
            self.term % 2
        } else {
            self.term
        };
        let leader = leader(node, &state);
        let successor = View {
            state,
            learned,
            generation: generation.unwrap_or(self.present.generation),
            leader,
        };
        let mut former = core::mem::replace(&mut self.present, successor);
        if !self.ways.returns {
            former.learned = 0; // The value does not matter.
        }
        self.stale = Some(former);
        self.begin(cx);
    }

    /// The number of decisions of which the present leader has not learned.
    fn unlearned(&self) -> usize {
        self.log.len() - self.present.learned
    }

    /// The present leader learns of one decision, or of several at once: the state has all of them
    /// then.
    fn learn(&mut self, out: &mut Out, cx: &mut Context<'_, Party>) {
        let count = below(self.unlearned(), cx) + 1;
        let View {
            state,
            learned,
            leader,
            ..
        } = &mut self.present;
        let next = self.log.iter().skip(*learned).take(count);
        let verdicts: Vec<_> = next.map(|it| state.apply(it)).collect();
        *learned += verdicts.len();
        for verdict in &verdicts {
            leader.on_applied(state, verdict, out);
        }
        if verdicts.iter().any(|it| it.decision.is_edit()) {
            self.present.sync(self.sites, out);
        }
    }

    /// Forgets decisions that no leader can have missed.
    fn trim(&mut self) {
        let former = self.stale.as_mut().filter(|_| self.ways.returns);
        let former = former.map(|it| &mut it.learned);
        let present = &mut self.present.learned;
        let known = former.as_deref().map_or(*present, |it| (*it).min(*present));
        self.log.drain(..known);
        *present -= known;
        if let Some(former) = former {
            *former -= known;
        }
    }

    /// The device reports.
    pub(super) fn report(&mut self, device: NodeId, value: State, cx: &mut Context<'_, Party>) {
        let View { leader, state, .. } = &mut self.present;
        let mut out = Out::new();
        let reported = leader.reported(state, device, Some(value), &mut out);
        debug_assert!(reported.is_ok(), "the device is there");
        self.carry_out(out, cx);
    }

    pub(super) fn on_request(
        &mut self,
        from: Member,
        request: Request,
        cx: &mut Context<'_, Party>,
    ) {
        let mut out = Out::new();
        // A leader that returns receives nothing meanwhile: the log would have no end.
        let is_received = self.stale.is_some() && !self.ways.returns;
        let receives = cx.below(if is_received { 2 } else { 1 });
        let Some(stale) = self.stale.as_mut().filter(|_| receives == 1) else {
            self.present.on_asked(self.sites, from, request, &mut out);
            return self.carry_out(out, cx);
        };
        stale.on_asked(self.sites, from, request, &mut out);
        // Its proposals may be decided all the same.
        if cx.below(2) == 0 {
            out.retain(|it| !matches!(it, Effect::Propose(_)));
        }
        // Its timers are its own, and do not matter.
        out.retain(|it| {
            matches!(
                it,
                Effect::Propose(_) | Effect::Answer { .. } | Effect::Inform { .. }
            )
        });
        self.carry_out(out, cx);
    }

    pub(super) fn on_tick(&mut self, timer: Tick, cx: &mut Context<'_, Party>) {
        let mut out = Out::new();
        let View { leader, state, .. } = &mut self.present;
        match timer {
            Tick::Decide => self.decide(),
            Tick::Learn => self.learn(&mut out, cx),
            Tick::Device => {
                if !self.orders.is_empty() {
                    let order = self.orders.remove(0);
                    if order.term == self.term {
                        leader.acted(order.ticket, Outcome::Done, &mut out);
                    }
                }
            }
            Tick::Leader(timer) => {
                leader.on_tick(state, timer, &mut out);
                if timer == Timer::Ping {
                    self.present.sync(self.sites, &mut out);
                }
            }
            Tick::Resend | Tick::Finish => {}
        }
        self.carry_out(out, cx);
    }

    fn carry_out(&mut self, out: Out, cx: &mut Context<'_, Party>) {
        for wish in out {
            match wish {
                Effect::Propose(update) => self.proposed.push_back(update),
                Effect::Answer { to, answer } => cx.send(to, Payload::Answer(answer)),
                Effect::Inform { group, answer } => {
                    cx.send(Member::new(group.0, 0), Payload::Answer(answer));
                }
                Effect::Arm { timer, after } | Effect::ArmAbout { timer, after } => {
                    cx.arm(Tick::Leader(timer), after);
                }
                Effect::Disarm(timer) => cx.disarm(Tick::Leader(timer)),
                Effect::Event(Event::Act { ticket, .. }) => self.on_order(ticket),
                Effect::Event(_) | Effect::Ask { .. } | Effect::Read(_) => {}
            }
        }
        if !self.ways.lags {
            while !self.proposed.is_empty() {
                self.decide();
            }
            if self.unlearned() > 0 {
                self.on_tick(Tick::Learn, cx);
            }
        }
        self.trim();
        for (timer, is_wanted) in [
            (Tick::Decide, !self.proposed.is_empty()),
            (Tick::Learn, self.unlearned() > 0),
            (Tick::Device, !self.orders.is_empty()),
        ] {
            if is_wanted {
                cx.arm(timer, super::SOON);
            } else {
                cx.disarm(timer);
            }
        }
    }

    fn decide(&mut self) {
        // Before the first update of that site an earlier leader may go on.
        let is_last = |it: &Devices| it.generation() as usize + 1 == self.sites.len();
        let followed = self.follows_last() && is_last(&self.state());
        self.log.extend(self.proposed.pop_front());
        self.goes_back |= followed && !self.follows_last();
    }

    /// Returns true if the decided state is as the last site has it.
    pub(super) fn follows_last(&self) -> bool {
        let last = self.sites.len().checked_sub(1);
        last.is_some_and(|it| edit(&self.state(), self.sites, it).is_none())
    }

    /// Returns true if the present leader has something to propose, by its site.
    pub(super) fn lags_behind(&self) -> bool {
        let View {
            state, generation, ..
        } = &self.present;
        let is_later = *generation >= state.generation();
        is_later && edit(state, self.sites, *generation as usize).is_some()
    }

    fn on_order(&mut self, ticket: Ticket) {
        let act = self.present.state.act(ticket.device);
        self.gives_ended |= !act.is_some_and(Act::is_under_way);
        let holder = self.present.state.holder(ticket.device);
        self.gives_for_none |= act.is_none_or(|it| holder != Some(it.claim));
        if act.is_some_and(|it| it.delivery == Delivery::AtMostOnce) {
            self.given_once.push(ticket);
        }
        let term = self.term;
        self.orders.push(Order { ticket, term });
    }
}

impl View {
    fn sync(&mut self, sites: &[Edition], out: &mut Out) {
        with_site(sites, self.generation as usize, |site| {
            self.leader.sync(&self.state, site, out);
        });
    }

    fn on_asked(&mut self, sites: &[Edition], from: Member, request: Request, out: &mut Out) {
        let site = sites.get(self.generation as usize);
        let routine = request.routine().map(|it| it.0);
        if let (Some(site), Some(routine)) = (site, routine)
            && !site.routines.contains(&routine)
        {
            return self.leader.refuse(from, &request, out);
        }
        self.leader.on_asked(&self.state, from, request, out);
    }
}

/// The next update by which a state would follow a site.
fn edit(state: &Devices, sites: &[Edition], generation: usize) -> Option<Update> {
    with_site(sites, generation, |site| next_edit(state, site)).flatten()
}

fn with_site<T>(
    sites: &[Edition],
    generation: usize,
    call: impl FnOnce(&Listed<'_>) -> T,
) -> Option<T> {
    let site = sites.get(generation)?;
    let has_routine = |it: GroupId| site.routines.contains(&it.0);
    let devices: Vec<NodeId> = site.devices.iter().copied().map(NodeId).collect();
    Some(call(&Listed {
        generation: u32::try_from(generation).unwrap_or(u32::MAX),
        devices: &devices,
        has_routine: &has_routine,
        // No cluster begins anew here.
        routines_of: &|_| Vec::new(),
        names: &|_, _| true,
    }))
}

fn below(bound: usize, cx: &mut Context<'_, Party>) -> usize {
    let chosen = cx.below(bound as u64);
    usize::try_from(chosen).unwrap_or_default()
}

fn leader(node: u64, state: &Devices) -> DeviceLeader {
    let config = Config::new();
    // A device is held in two parts, so that two leaders may share a hold.
    let config = config.with_resend(config.act_timeout * 8);
    // Lost messages are repeated at each tick, so that ticks are not counted.
    let config = config.with_resend_most(config.resend);
    DeviceLeader::new(Member::new(100 + node, 0), config, state)
}
