//! Handling of the hub's events: changes to store, orders to devices, and records of runs.

use selvedge_core::{Input, NodeId};
use selvedge_routine::{Catalogue, Routine, State};
use selvedge_safehome::{Command, DurableEvent, Event, Placed, Reject, RoutineId, Timer};

use super::{Cause, End, House, Moment, Record, Todo, Undone};

impl House {
    pub(super) fn submit(
        &mut self,
        name: String,
        cause: Cause,
        routine: Routine<State>,
        moment: Moment,
    ) -> Result<RoutineId, Reject> {
        let terms = self.terms.get(&name).cloned().unwrap_or_default();
        let record = Record::new(name, cause, routine.clone(), moment.wall);
        let command = Command::SubmitAs { routine, terms };
        let events = self.hub_events(Input::Command(command), moment)?;
        let accepted = events.iter().find_map(accepted);
        debug_assert!(accepted.is_some(), "a routine that is taken is accepted");
        let id = accepted.ok_or(Reject::Empty)?;
        // Before the events, because events of this run change its record.
        self.counts.accepted += 1;
        self.changes.runs.insert(id, record.clone());
        self.records.insert(id, record);
        self.carry_out(events, moment);
        // Triggers may submit more.
        self.tell_triggers(moment);
        Ok(id)
    }

    pub(super) fn carry_out(&mut self, events: Vec<DurableEvent<State>>, moment: Moment) {
        for event in events {
            match event {
                DurableEvent::Changed(difference) => self.changes.steps.push(difference),
                DurableEvent::Hub(event) => self.on_event(event, moment),
                _ => debug_assert!(false, "an event that this host does not carry out"),
            }
        }
    }

    fn on_event(&mut self, event: Event<State>, moment: Moment) {
        let wall = moment.wall;
        match event {
            // `submit` has made its record.
            Event::Accepted(_) => {}
            Event::Issue {
                device,
                token,
                value,
                ..
            } => {
                let mut timers = self.hub.timers();
                let timeout = timers.find(|(timer, _)| *timer == Timer::Timeout(device));
                let until = timeout.map_or(moment.now, |(_, until)| until);
                let state = value;
                self.todo.push(Todo::Set {
                    device,
                    token,
                    state,
                    until,
                });
            }
            Event::Ask { device, token } => self.todo.push(Todo::Ask { device, token }),
            Event::Started(id) => self.note(id, |it, _| it.started = Some(wall)),
            Event::Skipped { routine, step, why } => {
                self.note(routine, |it, names| it.on_skipped(step, why, names));
            }
            Event::Committed(id) => {
                self.counts.committed += 1;
                self.note(id, |it, _| it.ended = Some((wall, End::Committed)));
            }
            Event::Aborting { routine, why } => self.note(routine, |it, names| {
                it.aborting = Some(why.explain(&it.routine, names));
            }),
            Event::Aborted { routine, why, undo } => {
                self.counts.aborted += 1;
                self.note(routine, |it, names| it.on_aborted(why, &undo, names, wall));
            }
            Event::Ordered(placed) => {
                // Other events in the order are visible in the states of devices.
                if let Placed::Routine(id) = placed {
                    let place = self.records.next_place();
                    self.note(id, |it, _| it.place = Some(place));
                }
            }
            Event::Restored(device) => self.on_undone(device, Undone::Restored),
            Event::Stuck(device) => self.on_undone(device, Undone::Stuck),
            Event::GivenUp(device) => self.on_undone(device, Undone::Impossible),
            // A hold that was cut short counts as done.
            Event::CutShort { .. } | Event::Incongruent { .. } => {}
            _ => debug_assert!(false, "an event that this host does not carry out"),
        }
    }

    fn on_undone(&mut self, device: NodeId, end: Undone) {
        let name = self.catalogue.name(device);
        let name = name.map_or_else(|| device.to_string(), Into::into);
        for id in self.records.undone(&name, end) {
            if let Some(record) = self.records.get(id) {
                self.changes.runs.insert(id, record.clone());
            }
        }
    }

    fn note(&mut self, id: RoutineId, change: impl FnOnce(&mut Record, &Catalogue)) {
        let names = &self.catalogue;
        if let Some(record) = self.records.note(id, |it| change(it, names)) {
            self.changes.runs.insert(id, record.clone());
        }
    }
}

const fn accepted(event: &DurableEvent<State>) -> Option<RoutineId> {
    if let DurableEvent::Hub(Event::Accepted(id)) = event {
        return Some(*id);
    }
    None
}
