//! The restart of a hub from storage.

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId, Span};

use crate::config::Visibility;
use crate::run::{Run, Stage};
use crate::schedule::is_just_in_time;
use crate::work::Task;
use crate::{Event, Hub, Outcome, RoutineId, SkipReason, Timer, Value};

impl<V: Value> Hub<V> {
    /// Sets timers again, and asks devices about commands in flight.
    pub(crate) fn resume(&mut self, cx: &mut Context<'_, Self>) {
        let leniency = self.config.leniency;
        for run in self.runs.values_mut() {
            *run.since = cx.now();
        }
        let devices: Vec<NodeId> = self.devices.iter().map(|(&id, _)| id).collect();
        for &id in &devices {
            self.ask(id, cx);
            let Some(device) = self.devices.get(&id) else {
                debug_assert!(false, "the device is at the hub");
                continue;
            };
            let held = device.held.and_then(|it| self.runs.get(&it));
            if let Some(step) = held.and_then(Run::step) {
                cx.arm(Timer::Hold(id), step.hold);
            }
            if device.rests {
                cx.arm(Timer::Retry(id), self.config.undo_retry);
            }
            if let Some(entry) = device.lineage.iter().find(|it| it.is_lease()) {
                cx.arm(Timer::Lease(id), entry.lease(leniency));
            }
        }
        let is_patient = |run: &Run<V>| {
            is_just_in_time(&self.config)
                && matches!(run.stage, Stage::Waiting | Stage::Placed)
                && !run.late
        };
        for (&id, _) in self.runs.iter().filter(|it| is_patient(it.1)) {
            cx.arm(Timer::Patience(id), self.config.patience);
        }
        for &id in &devices {
            // The clock is a new one: plans are made again, in the same order.
            let mut clock = cx.now();
            if let Some(device) = self.devices.get_mut(&id) {
                *device.since = cx.now();
                for entry in device.lineage.iter_mut().filter(|it| !it.released) {
                    entry.start = clock;
                    clock = entry.end();
                }
            }
            self.work.enqueue(Task::Device(id));
        }
        self.work.unsettled.extend_from_slice(&devices);
        self.settle(cx);
        self.admit_again(cx);
        self.work.enqueue(Task::Queue);
        self.look_at_held();
    }

    /// Places routines that waited under `JustInTime`, if the scheduler is another one now: later
    /// routines come behind them.
    fn admit_again(&mut self, cx: &mut Context<'_, Self>) {
        if self.config.visibility != Visibility::Eventual || is_just_in_time(&self.config) {
            return;
        }
        let waits = |it: &(&RoutineId, &Run<V>)| it.1.stage == Stage::Waiting;
        let waiting: Vec<RoutineId> = self.runs.iter().filter(waits).map(|it| *it.0).collect();
        for id in waiting {
            self.wait_no_longer(id);
            self.find_place(id, cx);
        }
    }

    /// Asks a device about the command that was in flight when the hub stopped, once the answer is
    /// certain.
    fn ask(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let (timeout, is_weak) = (self.timeout(id), self.is_weak());
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        if let Some(late) = &device.late {
            cx.arm(Timer::Late(id), late.span);
        }
        let Some(flight) = &mut device.flight else {
            // No command was in flight.
            return;
        };
        let is_over = is_weak || self.rules.unknown_is_over();
        if device.lateness > Span::ZERO && !is_over {
            // The time of its sending is unknown: perhaps just now.
            cx.arm(Timer::Late(id), timeout + device.lateness);
            *flight.is_asked_later = true;
            return;
        }
        cx.event(Event::Ask {
            device: id,
            token: flight.token,
        });
        cx.arm(Timer::Timeout(id), timeout);
    }

    /// Handles the answer of a device. Its command in flight was done if the device is in its
    /// state; if not it is issued again, unless it is not wanted any more.
    pub(crate) fn on_answered(&mut self, id: NodeId, state: V, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let Some(flight) = &device.flight else {
            debug_assert!(false, "the token was that of a command on its way");
            return;
        };
        let is_done = flight.value == state;
        let routine = flight.routine;
        device.actual = Some(state);
        cx.disarm(Timer::Late(id));
        if is_done {
            self.on_outcome(id, Outcome::Done, cx);
        } else if let Some(routine) = routine {
            self.on_not_done(routine, id, cx);
        } else {
            // The state to restore may be another one by now.
            self.clear_flight(id, cx);
        }
    }

    /// Handles a routine's command to this device that was in flight and was not done.
    fn on_not_done(&mut self, id: RoutineId, at: NodeId, cx: &mut Context<'_, Self>) {
        let device = self.devices.get(&at);
        let is_revoked = device
            .and_then(|it| it.entry(id))
            .is_some_and(|it| it.revoked);
        let is_down = !self.is_up(at);
        let Some(run) = self.runs.get_mut(&id) else {
            debug_assert!(false, "a command on its way keeps its routine");
            return;
        };
        let is_over = matches!(run.stage, Stage::Aborting(_));
        if !is_over && !is_revoked && !is_down {
            self.issue_again(at, cx);
            return;
        }
        run.busy = None;
        self.clear_flight(at, cx);
        if is_over {
            self.undo(id, cx);
        } else if is_revoked {
            self.end_lease(id, at, cx);
        } else {
            self.on_step_failed(id, SkipReason::Down(at), cx);
            self.work.enqueue(Task::Routine(id));
        }
    }

    /// Clears the command in flight to this device.
    fn clear_flight(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let flight = self.devices.get_mut(&id).and_then(|it| it.flight.take());
        cx.disarm(Timer::Timeout(id));
        if flight.is_some_and(|it| *it.is_asked_later) {
            // The host has asked before it received the event.
            cx.disarm(Timer::Late(id));
        }
        self.work.enqueue(Task::Device(id));
    }

    /// Sends the command in flight to this device again.
    fn issue_again(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        self.token += 1;
        let token = self.token;
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let Some(flight) = &mut device.flight else {
            debug_assert!(false, "a command is on its way");
            return;
        };
        if core::mem::take(&mut *flight.is_asked_later) {
            cx.disarm(Timer::Late(id));
        }
        flight.token = token;
        flight.is_reported = false;
        *device.since = cx.now();
        cx.event(Event::Issue {
            device: id,
            token,
            value: flight.value.clone(),
            routine: flight.routine,
        });
        cx.arm(Timer::Timeout(id), self.timeout(id));
    }
}
