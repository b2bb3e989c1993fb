//! Hosts of leaders, and the devices that they command.

use selvedge_core::NodeId;
use selvedge_groups as groups;
use selvedge_groups::store::StoreEvent;
use selvedge_kgroup::devices::{self, Ticket};
use selvedge_kgroup::{Command, Event, LeaderEvent, Outcome};
use selvedge_routine::State;

use super::{Ev, MS, World};
use crate::story::Break;

impl World {
    pub(super) fn event(&mut self, node: NodeId, life: u32, event: &Event) {
        self.note(|| match event {
            Event::Groups(
                groups::Event::Entered(_) | groups::Event::Left(_) | groups::Event::Proposed { .. },
            ) => {
                format!("{node}: {event:?}")
            }
            Event::Groups(_)
            | Event::Leader {
                event: LeaderEvent::Devices(_),
                ..
            } => String::new(),
            other => format!("{node}: {other:?}"),
        });
        match event {
            Event::Leader {
                event: LeaderEvent::Devices(devices::Event::Ping { device }),
                ..
            } => {
                let value = self.device_states.get(device).cloned();
                if value.is_some() && !self.dice.percent(self.faults.act / 4) {
                    let command = Command::Reported {
                        device: *device,
                        value,
                    };
                    let after = self.dice.below(100 * MS);
                    self.after(
                        after,
                        Ev::Host {
                            node,
                            life,
                            command,
                        },
                    );
                }
            }
            Event::Leader {
                event: LeaderEvent::Devices(devices::Event::Act { ticket, value }),
                ..
            } => {
                self.oracle.given(self.now, node, *ticket);
                let limit = self.config.devices.act_timeout.0 - self.faults.storage;
                let is_free = self.broken == Some(Break::LateHosts);
                let limit = if is_free { 40 * limit } else { limit };
                let late = self.dice.percent(self.faults.act) || is_free;
                let after = self.dice.below(if late { limit } else { 20 * MS });
                let (ticket, value, until) = (*ticket, value.clone(), self.now + limit);
                self.note(|| format!("{node}: given {ticket:?} {value:?}, in {after} us"));
                self.after(
                    after,
                    Ev::Execute {
                        node,
                        life,
                        ticket,
                        value,
                        until,
                    },
                );
            }
            _ => {}
        }
        match self.broken {
            Some(Break::Answers) => {
                let event = turned_around(event.clone());
                self.oracle.event(self.now, node, life, &event);
            }
            _ => self.oracle.event(self.now, node, life, event),
        }
    }

    pub(super) fn execute(
        &mut self,
        node: NodeId,
        life: u32,
        ticket: Ticket,
        value: State,
        until: u64,
    ) {
        let asleep = self.nodes[&node].asleep_until;
        if asleep > self.now && self.is_in(node, life) {
            if asleep < until {
                self.at(
                    asleep,
                    Ev::Execute {
                        node,
                        life,
                        ticket,
                        value,
                        until,
                    },
                );
            }
            return;
        }
        let act = self.faults.act;
        if self.dice.percent(act / 3) {
            return; // The device does not answer.
        }
        let fails = self.dice.percent(act / 3);
        if !fails && self.broken != Some(Break::LyingHosts) {
            self.note(|| format!("{node}: carries out {ticket:?} {value:?}"));
            self.oracle.carried_out(self.now, node, ticket, &value);
            self.device_states.insert(ticket.device, value);
        }
        if !self.dice.percent(act / 3) {
            let outcome = if fails {
                Outcome::Failed
            } else {
                Outcome::Done
            };
            let after = self.dice.below(10 * MS);
            let command = Command::Acted { ticket, outcome };
            self.after(
                after,
                Ev::Host {
                    node,
                    life,
                    command,
                },
            );
        }
    }
}

/// The event with another answer.
fn turned_around(mut event: Event) -> Event {
    match &mut event {
        Event::Groups(groups::Event::Proposed { is_decided, .. }) => *is_decided ^= true,
        Event::Map {
            event: StoreEvent::Found { entry, .. },
            ..
        } => *entry = None,
        _ => {}
    }
    event
}
