//! A cluster's group as an ideal register: it decides what its leaders propose, one after another. A
//! leader learns of each decision later, and may be replaced at any moment.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use selvedge_core::{Context, Member, NodeId};
use selvedge_replica::State as _;
use selvedge_routine::State;

use super::party::{Parcel, Party, Tick};
use crate::devices::{Config, DeviceLeader, Devices, Event, Ticket, Timer, Update};
use crate::wish::{Wish, Wishes};
use crate::{Claim, Delivery, Outcome, Request};

type Out = Wishes<Update, Timer, Event>;

/// A leader, and the state as far as it knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct View {
    state: Devices,
    leader: DeviceLeader,
}

/// A command that a leader's host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Order {
    pub(super) ticket: Ticket,
    term: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cluster {
    /// How often another leader took over.
    pub(super) term: u64,
    /// What hosts have yet to carry out.
    pub(super) orders: Vec<Order>,
    /// Commands that may be given once, as often as they were given; in order.
    pub(super) given_once: Vec<Ticket>,
    /// Whether a proposal is decided, and learned of, later.
    lags: bool,
    present: View,
    /// The leader before it does not know that it leads no longer.
    stale: Option<View>,
    /// What is proposed, and may be decided.
    proposed: VecDeque<Update>,
    /// What is decided, and the present leader does not know of it.
    decided: VecDeque<Update>,
}

impl Cluster {
    pub(super) fn new(state: Devices, lags: bool) -> Self {
        Self {
            term: 0,
            orders: Vec::new(),
            given_once: Vec::new(),
            lags,
            present: View {
                leader: leader(0, &state),
                state,
            },
            stale: None,
            proposed: VecDeque::new(),
            decided: VecDeque::new(),
        }
    }

    /// The state that the group has decided.
    pub(super) fn state(&self) -> Devices {
        let mut state = self.present.state.clone();
        for update in &self.decided {
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
        for (name, updates) in [("proposed", &self.proposed), ("decided", &self.decided)] {
            if !updates.is_empty() {
                let _infallible = write!(text, "; {name} {updates:?}");
            }
        }
        text
    }

    /// Whether nothing waits to be decided or learned.
    pub(super) fn is_settled(&self) -> bool {
        self.proposed.is_empty() && self.decided.is_empty()
    }

    /// The first leader begins.
    pub(super) fn begin(&mut self, cx: &mut Context<'_, Party>) {
        let View { leader, state } = &mut self.present;
        let mut out = Out::new();
        leader.on_leads(state, &mut out);
        self.carry_out(out, cx);
    }

    /// Another node leads. It may have to learn of some decisions, and what its predecessor proposed
    /// may be lost from some point on.
    pub(super) fn take_over(&mut self, cx: &mut Context<'_, Party>) {
        self.term += 1;
        let known = cx.below(self.decided.len() as u64 + 1);
        let mut state = self.present.state.clone();
        for _ in 0..known {
            if let Some(update) = self.decided.pop_front() {
                state.apply(&update);
            }
        }
        let kept = cx.below(self.proposed.len() as u64 + 1);
        self.proposed
            .truncate(usize::try_from(kept).unwrap_or_default());
        let leader = leader(self.term, &state);
        let successor = View { state, leader };
        self.stale = Some(core::mem::replace(&mut self.present, successor));
        self.begin(cx);
    }

    /// The device reports.
    pub(super) fn report(&mut self, device: NodeId, value: State, cx: &mut Context<'_, Party>) {
        let View { leader, state } = &mut self.present;
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
        let hears = cx.below(if self.stale.is_some() { 2 } else { 1 });
        let Some(View { leader, state }) = self.stale.as_mut().filter(|_| hears == 1) else {
            let View { leader, state } = &mut self.present;
            leader.on_asked(state, from, request, &mut out);
            return self.carry_out(out, cx);
        };
        leader.on_asked(state, from, request, &mut out);
        // What it proposes may be decided all the same.
        if cx.below(2) == 0 {
            out.retain(|it| !matches!(it, Wish::Propose(_)));
        }
        // Its timers are its own, and do not matter.
        out.retain(|it| {
            matches!(
                it,
                Wish::Propose(_) | Wish::Tell { .. } | Wish::Inform { .. }
            )
        });
        self.carry_out(out, cx);
    }

    pub(super) fn on_tick(&mut self, timer: Tick, cx: &mut Context<'_, Party>) {
        let mut out = Out::new();
        let View { leader, state } = &mut self.present;
        match timer {
            Tick::Decide => self.decided.extend(self.proposed.pop_front()),
            Tick::Learn => {
                if let Some(update) = self.decided.pop_front() {
                    let verdict = state.apply(&update);
                    leader.on_applied(state, &verdict, &mut out);
                }
            }
            Tick::Device => {
                if !self.orders.is_empty() {
                    let order = self.orders.remove(0);
                    if order.term == self.term {
                        leader.acted(order.ticket, Outcome::Done, &mut out);
                    }
                }
            }
            Tick::Leader(timer) => leader.on_tick(state, timer, &mut out),
            Tick::Resend | Tick::Finish => {}
        }
        self.carry_out(out, cx);
    }

    fn carry_out(&mut self, out: Out, cx: &mut Context<'_, Party>) {
        for wish in out {
            match wish {
                Wish::Propose(update) => self.proposed.push_back(update),
                Wish::Tell { to, answer } => cx.send(to, Parcel::Answer(answer)),
                Wish::Inform { group, answer } => {
                    cx.send(Member::new(group.0, 0), Parcel::Answer(answer));
                }
                Wish::Arm { timer, after } | Wish::ArmAbout { timer, after } => {
                    cx.arm(Tick::Leader(timer), after);
                }
                Wish::Disarm(timer) => cx.disarm(Tick::Leader(timer)),
                Wish::Event(Event::Act { ticket, .. }) => self.on_order(ticket),
                Wish::Event(_) | Wish::Ask { .. } | Wish::Read(_) => {}
            }
        }
        if !self.lags {
            self.decided.append(&mut self.proposed);
            if !self.decided.is_empty() {
                self.on_tick(Tick::Learn, cx);
            }
        }
        for (timer, is_wanted) in [
            (Tick::Decide, !self.proposed.is_empty()),
            (Tick::Learn, !self.decided.is_empty()),
            (Tick::Device, !self.orders.is_empty()),
        ] {
            if is_wanted {
                cx.arm(timer, super::SOON);
            } else {
                cx.disarm(timer);
            }
        }
    }

    fn on_order(&mut self, ticket: Ticket) {
        let act = self.present.state.act(ticket.device);
        if act.is_some_and(|it| it.delivery == Delivery::AtMostOnce) {
            self.given_once.push(ticket);
        }
        let term = self.term;
        self.orders.push(Order { ticket, term });
    }
}

fn leader(term: u64, state: &Devices) -> DeviceLeader {
    DeviceLeader::new(Member::new(100 + term, 0), Config::new(), state)
}
