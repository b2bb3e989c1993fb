//! The lease: for a time a leader knows, without a round, that no other leader exists.
//!
//! A member that acknowledges a leader promises no other ballot until its own timer
//! ([`Timer::Tied`]) has run for the whole [`Lease::span`]. The leader takes the lease to run from
//! the moment at which it *sent* the round that a quorum acknowledged, and to be shorter by the
//! drift. So its lease has ended, by any clock, before the first of that quorum promises another
//! ballot, and no other leader commits anything before.
//!
//! - A member that restarts does not remember when it acknowledged, so it is tied for a whole span
//!   from its first input on.
//! - A leader that hands over lets others promise at once, so its ballot has no lease any more.
//! - A leader that stands again has none until its new ballot has one.
//! - A host that slept may ask before its timers tick. The moment at which the lease ends decides
//!   then; it is never later than the timer.

use selvedge_core::{Context, Untracked};

use crate::lead::Held;
use crate::replica::{Replica, Role};
use crate::{Lease, State, Timer};

impl<S: State> Replica<S> {
    fn lease(&self) -> Option<Lease> {
        self.configuration().lease
    }

    /// Begins a lease with the round that is sent now, if the configuration has one and none is
    /// held or requested.
    pub(crate) fn begin_lease(&mut self, cx: &mut Context<'_, Self>) {
        let Some(lease) = self.lease() else {
            return;
        };
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        if leadership.lease.is_void || leadership.lease.round != 0 {
            return;
        }
        let until = cx.now() + lease.relied_on();
        leadership.lease = Held {
            round: leadership.round,
            until: Untracked(until),
            ..Held::default()
        };
        cx.arm(Timer::Lease, lease.relied_on());
    }

    /// Returns true if this leader knows, now, that no other leader has committed anything since.
    pub(crate) fn holds_lease(&self, cx: &Context<'_, Self>) -> bool {
        let Role::Leader(leadership) = &self.role else {
            return false;
        };
        let lease = &leadership.lease;
        lease.is_held && cx.now() < *lease.until
    }

    /// Takes hold of the lease: a quorum has acknowledged its round.
    pub(crate) fn settle_lease(&mut self) {
        if let Role::Leader(leadership) = &mut self.role {
            let lease = &mut leadership.lease;
            debug_assert!(lease.round != 0 && !lease.is_void, "it has a round");
            lease.is_held = true;
        }
    }

    pub(crate) fn on_lease_tick(&mut self) {
        if let Role::Leader(leadership) = &mut self.role {
            let is_void = leadership.lease.is_void;
            leadership.lease = Held {
                is_void,
                ..Held::default()
            };
        }
    }

    /// Ends the lease for the rest of this ballot: others may promise at once.
    pub(crate) fn void_lease(&mut self, cx: &mut Context<'_, Self>) {
        if let Role::Leader(leadership) = &mut self.role {
            leadership.lease = Held {
                is_void: true,
                ..Held::default()
            };
            cx.disarm(Timer::Lease);
        }
    }

    /// Returns true if this member may have acknowledged a lease that still runs.
    pub(crate) fn may_be_tied(&self) -> bool {
        self.is_tied || self.is_restored && self.lease().is_some()
    }

    /// Ties this member, which acknowledges its leader.
    pub(crate) fn tie(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(lease) = self.lease() {
            self.is_tied = true;
            cx.arm(Timer::Tied, lease.span);
        }
    }

    pub(crate) fn on_tied_tick(&mut self, cx: &mut Context<'_, Self>) {
        self.is_tied = false;
        if self.lead.is_some_and(|it| it.is_lost) {
            self.lose_leader(cx);
        }
    }
}
