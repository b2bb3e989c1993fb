//! The settings of a home and its routines, from bytes.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use selvedge_core::{NodeId, Span};
use selvedge_sim::Bytes;

use crate::{
    Clause, Comparison, Condition, Config, Mode, Priority, Routine, Scheduler, Step, Terms,
    Urgency, Visibility,
};

/// The settings of a home.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) devices: usize,
    /// True if devices can be asked for their state.
    pub(super) answers: bool,
    /// True if every device obeys each command eventually.
    pub(super) is_obedient: bool,
    /// True if the hub restarts around every step.
    pub(super) restarts: bool,
    /// The time for which a command may act after its outcome was reported as unknown.
    pub(super) lateness: Span,
    /// The number of routines to submit.
    pub(super) routines: usize,
    /// The number of external events on devices.
    pub(super) links: usize,
    /// True if commands may have undo handlers.
    handlers: bool,
    /// True if commands may have conditions.
    conditions: bool,
    /// True if routines have terms, and manual changes have an urgency.
    pub(super) terms: bool,
}

/// The most routines for which all orders can be tried.
pub(super) const FEW: usize = 6;

const MODELS: [(Visibility, Scheduler); 7] = [
    (Visibility::Eventual, Scheduler::Timeline),
    (Visibility::Eventual, Scheduler::JustInTime),
    (Visibility::Eventual, Scheduler::FirstCome),
    (Visibility::PartitionedStrict, Scheduler::Timeline),
    (Visibility::GlobalStrict, Scheduler::Timeline),
    (Visibility::StrongGlobalStrict, Scheduler::Timeline),
    (Visibility::Weak, Scheduler::Timeline),
];

impl Settings {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let (visibility, scheduler) = MODELS.get(bytes.pick(7)).copied().unwrap_or_default();
        let (leases, kind) = (bytes.take(), bytes.take());
        let config = Config {
            visibility,
            scheduler,
            pre_leases: leases & 7 != 1,
            post_leases: leases & 7 != 2,
            search_limit: if leases & 24 == 8 { 3 } else { 256 },
            timeout: Span::secs(1),
            patience: Span::secs(5),
            undo_attempts: 3,
            ..Config::default()
        };
        Self {
            config,
            devices: 2 + bytes.pick(3),
            answers: kind & 1 == 0,
            is_obedient: leases & 32 != 0,
            restarts: kind & 6 == 2,
            lateness: if leases & 192 == 64 {
                Span::secs(3)
            } else {
                Span::ZERO
            },
            routines: if kind & 192 == 64 { 24 } else { FEW },
            links: if kind & 192 == 64 { 40 } else { 8 },
            handlers: kind & 24 == 8,
            conditions: kind & 32 == 0,
            terms: kind & 24 == 24,
        }
    }

    /// A routine with states of its own, or one of a few that others use as well.
    pub(super) fn routine(&self, bytes: &mut Bytes<'_>, nth: usize) -> Routine<u8> {
        let steps = 1 + bytes.pick(4);
        let own = u8::try_from(nth * 8).unwrap_or(u8::MAX);
        let step = |at: usize| {
            let (kind, more) = (bytes.take(), bytes.take());
            let device = NodeId(bytes.pick(self.devices) as u64);
            let value = match more & 3 {
                0 => more >> 6,
                _ => 10 + own + u8::try_from(at).unwrap_or_default(),
            };
            let mut step = Step::new(device, value);
            if kind & 3 == 0 {
                step.priority = Priority::BestEffort;
            }
            step.hold = match kind >> 2 & 3 {
                0 | 1 => Span::ZERO,
                2 => Span::millis(500),
                _ => Span::secs(3),
            };
            step.preemptible = self.terms && more & 16 == 0;
            step.timeout = (kind >> 4 & 3 == 0).then_some(Span::millis(700));
            if self.handlers && kind >> 6 == 0 {
                step.undo = Some(200);
            }
            if self.conditions && more >> 2 & 7 == 0 {
                let comparison = match more >> 5 & 3 {
                    0 => Comparison::Equal,
                    1 => Comparison::NotEqual,
                    2 => Comparison::Less,
                    _ => Comparison::Greater,
                };
                let mut ask = || {
                    let one = Condition {
                        device: NodeId(bytes.pick(self.devices) as u64),
                        comparison,
                        value: bytes.take(),
                    };
                    let kind = one.value >> 5;
                    let value = one.value % 64;
                    (Clause::Is(Condition { value, ..one }), kind)
                };
                // Few conditions are about two devices, so most bytes keep the meaning that they
                // had before such conditions existed.
                let (first, kind) = ask();
                step.condition = Some(match kind {
                    6 => Clause::All(vec![first, ask().0]),
                    7 => Clause::Any(vec![ask().0, Clause::Not(Box::new(first))]),
                    _ => first,
                });
            }
            step
        };
        let steps: Vec<Step<u8>> = (0..steps).map(step).collect();
        Routine { steps }
    }

    /// The terms of a routine.
    pub(super) fn terms(&self, bytes: &mut Bytes<'_>) -> Terms {
        if !self.terms {
            return Terms::default();
        }
        let kind = bytes.take();
        let urgency = Urgency((kind >> 6).saturating_sub(1));
        let limit = NonZeroU16::MIN.saturating_add((kind >> 4 & 3).into());
        let mode = match kind & 7 {
            0 => Mode::Parallel,
            1 => Mode::Single,
            2 | 3 => Mode::Restart,
            4 | 5 => Mode::Queued { limit },
            _ => return Terms::urgent(urgency),
        };
        let key = if kind & 8 == 0 { "a" } else { "b" };
        Terms::of(key, mode).with_urgency(urgency)
    }

    /// Returns true if commands act late and the hub does not wait for that.
    pub(super) fn acts_unseen(&self) -> bool {
        self.config.visibility == Visibility::Weak && self.lateness > Span::ZERO
    }
}
