//! The phases of the duty cycle: active, busy, asleep (PCM, Figure 2).

use selvedge_core::{Context, Member, Span};

use super::Follower;
use super::event::{Event, Phase, Timer};
use super::job::Stage;
use crate::Message;

impl Follower {
    /// Begins a period: the follower first sends its keep-alive, and fetches its messages (PCM, section 4.1).
    pub(super) fn begin_period(&mut self, cx: &mut Context<'_, Self>) {
        let has_others = !self.libraries.iter().eq(self.notified.iter());
        let next_duty = self.next_duty.take();
        if next_duty.is_some() || has_others {
            self.duty = next_duty.unwrap_or(self.duty);
            self.attach_anew();
        }
        self.refusals = 0;
        self.enter(Phase::Active, cx);
        self.keep_alive(cx);
        self.repeat(cx);
        self.run_next(cx);
    }

    /// Reports its presence, and has the host look into the mailbox.
    pub(super) fn keep_alive(&self, cx: &mut Context<'_, Self>) {
        let keep_alive = Message::KeepAlive {
            number: self.number,
            duty: self.duty,
            libraries: self.notified.clone(),
        };
        cx.send(self.gateway(), keep_alive);
        cx.event(Event::Fetch(self.gateway().id));
    }

    /// Handles the end of a phase.
    pub(super) fn end_phase(&mut self, cx: &mut Context<'_, Self>) {
        let is_running = self.jobs.iter().any(|it| matches!(it.stage, Stage::Runs));
        // A running function runs to its end, within its time limit; the follower is not purged meanwhile.
        self.is_late = is_running && self.phase == Some(Phase::Active);
        if self.is_late {
            // Its gateway expects a keep-alive in each period.
            self.refusals = 0;
            self.keep_alive(cx);
            cx.arm(Timer::Phase, self.duty.period());
            return;
        }
        self.next_phase(cx);
    }

    /// Begins the next phase that is not empty.
    pub(super) fn next_phase(&mut self, cx: &mut Context<'_, Self>) {
        self.is_late = false;
        let next = match self.phase {
            Some(Phase::Active) if self.duty.busy_ms > 0 => Phase::Busy,
            Some(Phase::Active | Phase::Busy) if self.duty.asleep_ms > 0 => Phase::Asleep,
            _ => return self.begin_period(cx),
        };
        self.enter(next, cx);
    }

    fn enter(&mut self, phase: Phase, cx: &mut Context<'_, Self>) {
        if self.phase != Some(phase) {
            cx.event(Event::PhaseChanged(phase));
        }
        self.phase = Some(phase);
        let lasts = match phase {
            Phase::Active => self.duty.active_ms,
            Phase::Busy => self.duty.busy_ms,
            Phase::Asleep => self.duty.asleep_ms,
        };
        cx.arm(Timer::Phase, Span::millis(lasts.into()));
    }

    /// The gateway that the follower is at.
    pub(super) fn gateway(&self) -> Member {
        self.gateways.present()
    }

    /// Takes the next number, so that later reports replace the earlier ones.
    fn attach_anew(&mut self) {
        self.number = self.number.saturating_add(1);
        self.notified = self.libraries.iter().copied().collect();
    }

    /// Goes to the next gateway, with a later attachment. In one period it tries each gateway once.
    pub(super) fn go_elsewhere(&mut self, cx: &mut Context<'_, Self>) {
        self.gateways.go_on();
        self.attach_anew();
        self.refusals = self.refusals.saturating_add(1);
        if usize::from(self.refusals) < self.gateways.len() {
            self.keep_alive(cx);
        }
    }

    /// Handles mailboxes that have lost messages from and to this follower. It attaches itself again, so that
    /// its gateway sends it its open tasks again, and repeats messages that are not acknowledged.
    pub(super) fn on_emptied(&mut self, cx: &mut Context<'_, Self>) {
        self.attach_anew();
        self.keep_alive(cx);
        self.repeat_lost(cx);
    }

    /// Handles the report of a gateway that an attachment was purged.
    pub(super) fn on_purged(&mut self, number: u32, cx: &mut Context<'_, Self>) {
        if number >= self.number && number < u32::MAX {
            self.number = number;
            self.attach_anew();
            self.keep_alive(cx);
        }
    }
}
