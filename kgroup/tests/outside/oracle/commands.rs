//! Commands of leaders, compared with the states of their groups and with the acts of devices.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_kgroup::devices::{self, Ticket};
use selvedge_kgroup::{Claim, Delivery, Event, GroupState, Kgroup, LeaderEvent};
use selvedge_routine::State;

use super::{Oracle, devices_of};

/// A command that a leader gives, and the state of its group then.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    ticket: Ticket,
    cluster: GroupId,
    pub(super) claim: Claim,
    pub(super) step: u16,
    delivery: Delivery,
    value: State,
    at: (u64, u64),
}

impl Given {
    /// The command in an event, if it is one.
    pub(crate) fn of(machine: &Kgroup, event: &Event) -> Result<Option<Self>, String> {
        let Event::Leader {
            group,
            event: LeaderEvent::Devices(devices::Event::Act { ticket, value }),
        } = event
        else {
            return Ok(None);
        };
        let replica = machine.groups().replica(*group);
        let state = replica.and_then(|it| Some((it, devices_of(it.state()?)?)));
        let act = state.and_then(|it| Some((it.0, it.1.act(ticket.device)?)));
        let Some((replica, act)) = act.filter(|it| it.1.number == ticket.number) else {
            return Err(format!(
                "{ticket:?} is given, and is not what the group has decided"
            ));
        };
        Ok(Some(Self {
            ticket: *ticket,
            cluster: *group,
            claim: act.claim,
            step: act.step,
            delivery: act.delivery,
            value: value.clone(),
            at: (replica.configuration().number >> 22, replica.version()),
        }))
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.cluster, self.claim, self.step) == (other.cluster, other.claim, other.step)
            && (self.delivery, &self.value) == (other.delivery, &other.value)
    }
}

impl Oracle {
    /// A leader gives a command.
    pub(crate) fn commanded(&mut self, now: u64, given: Given) {
        let ticket = given.ticket;
        let known = self
            .given
            .entry(ticket)
            .or_insert_with(|| given.clone())
            .clone();
        self.expect(now, known.is_same(&given), || {
            format!("{ticket:?} is {known:?} and {given:?}")
        });
        let run = (given.claim.routine, given.claim.instance);
        let definition = self.definitions.get(&run).cloned();
        let word = given.value.to_string();
        let is_of_run = definition
            .as_ref()
            .is_none_or(|it| word.split('.').next() == Some(it));
        self.expect(now, is_of_run || self.anew.contains_key(&run.0), || {
            format!("{ticket:?} sets {word} for run {run:?}, which is {definition:?}")
        });
    }

    /// The host of a leader has the command.
    pub(crate) fn given(&mut self, now: u64, node: NodeId, ticket: Ticket) {
        let Some(given) = self.given.get(&ticket).cloned() else {
            return;
        };
        self.counts.commands += 1;
        if given.delivery == Delivery::AtMostOnce {
            let step = (given.claim.routine, given.claim.instance, given.step);
            let before = self.once.insert(step, ticket);
            self.expect(now, before.is_none(), || {
                format!("{node}: {step:?}, at most once, is given as {before:?} and {ticket:?}")
            });
        }
    }

    /// A device does what it was commanded.
    pub(crate) fn carried_out(&mut self, now: u64, node: NodeId, ticket: Ticket, _value: &State) {
        let Some(given) = self.given.get(&ticket).cloned() else {
            return;
        };
        let cluster = given.cluster;
        let device = ticket.device;
        self.done
            .insert((given.claim.routine, given.claim.instance, given.step));
        let highest = self.highest.entry(device).or_default();
        let before = *highest;
        *highest = before.max(ticket.number);
        self.expect(now, before <= ticket.number, || {
            format!("{node}: {device} does {} after {before}", ticket.number)
        });
        let holders = self
            .latest
            .iter()
            .filter_map(|(id, latest)| match &latest.state {
                GroupState::Devices(state) if self.is_present(*id) => {
                    Some((*id, state.holder(device)?))
                }
                _ => None,
            });
        let holders: Vec<(GroupId, Claim)> = holders.collect();
        // A claim that was released in the middle of a command holds the device no more, and the command does.
        let latest = self
            .latest
            .get(&cluster)
            .filter(|it| it.at >= given.at)
            .map(|it| &it.state);
        let is_unseen = latest.is_none();
        let is_under_way = is_unseen
            || latest
                .and_then(devices_of)
                .and_then(|it| it.act(device))
                .is_some_and(|it| it.number == ticket.number && !it.is_settled);
        let is_right = is_unseen || holders.iter().all(|it| *it == (cluster, given.claim));
        self.expect(now, is_right && is_under_way || self.anew.contains_key(&cluster), || {
            format!(
                "{node}: {device} does {ticket:?} of {given:?}, under way {is_under_way}, held by {holders:?}"
            )
        });
    }
}
