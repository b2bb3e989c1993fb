//! Outputs: datagrams to other nodes, events to the application.

use core::future::poll_fn;
use std::net::SocketAddr;

use selvedge::{Message, Node, encode};
use selvedge_core::{Delta, Effect, Member, NodeId, Time};
use selvedge_kgroup as kgroup;
use selvedge_membership::Event;

use super::Task;
use crate::announcement::Announcement;
use crate::directory::Directory;
use crate::event::NodeEvent;
use crate::facts::Waiting;
use crate::service::Reject;
use crate::sites::Sites;
use crate::{MAX_NODE_ID, Tags, address};

/// The number of present seeds that are skipped at a time: each check takes a scan of all members.
const TRIES: usize = 4;

impl Task {
    /// Carries out the effects of the last step, in order; those of k-groups behind the facts before
    /// them, where facts are stored.
    pub(super) async fn carry_out(&mut self, sender: Option<(NodeId, SocketAddr)>) {
        let mut effects = core::mem::take(&mut self.effects);
        let at = self.clock.now();
        let me = self.driver.machine().membership().me();
        let former = core::mem::replace(&mut self.life, me);
        let from = life_of(&effects, former, me);
        for effect in effects.drain(..) {
            let mut free = Some(Waiting {
                effect,
                at,
                from,
                sender,
            });
            if let Some(keeping) = &mut self.keeping {
                free = free.and_then(|it| keeping.hold(it));
            }
            if let Some(free) = free {
                self.carry_out_one(free).await;
            }
        }
        self.effects = effects;
        self.publish();
    }

    /// A write of facts has ended: carries out the effects behind it. A node that cannot store ends, and
    /// waiting effects have not happened.
    pub(super) async fn on_written(&mut self, written: Result<Vec<Waiting>, String>) {
        match written {
            Ok(free) => {
                for waiting in free {
                    if waiting.from == self.life {
                        self.carry_out_one(waiting).await;
                    }
                }
            }
            Err(why) => {
                self.emit(NodeEvent::Unstored(why));
                self.progress.is_over = true;
            }
        }
        self.publish();
    }

    fn publish(&mut self) {
        let is_mute = self.sends.is_failing();
        self.publisher
            .publish(self.driver.machine(), &self.directory, is_mute);
    }

    /// An answer to the sender of a datagram goes to where that came from, even if the sender is not on
    /// the list (yet).
    async fn carry_out_one(&mut self, waiting: Waiting) {
        let Waiting {
            at, sender, from, ..
        } = waiting;
        match waiting.effect {
            Effect::Send { to, message } => {
                let Some(receiver) = self.receiver(to.id) else {
                    return self.traffic.spared.add(1);
                };
                let reply = sender.filter(|&(id, _)| id == to.id);
                let address = match reply {
                    Some((_, source)) => Some(source),
                    None => self.directory.next(receiver),
                };
                if let Some(seed) = Directory::seed(receiver)
                    && self.lookups.asked(seed, self.clock.now())
                {
                    self.traffic.lookups.add(1);
                }
                // The name of this seed has no other address yet.
                if address.is_some() || receiver <= MAX_NODE_ID {
                    self.send(from, address, &message).await;
                }
            }
            Effect::Multicast { message } => {
                let machine = self.driver.machine().membership();
                let me = machine.me().id;
                let others: Vec<_> = (machine.members())
                    .map(|view| view.member.id)
                    .filter(|&id| id != me)
                    .map(|id| self.directory.next(id))
                    .collect();
                for address in others {
                    self.send(from, address, &message).await;
                }
            }
            Effect::Event(event) => self.on_event(event, at, sender.map(|(_, source)| source)),
        }
    }

    /// An event of a step, which a datagram from `source` caused, if any did.
    fn on_event(&mut self, event: selvedge::Event, at: Time, source: Option<SocketAddr>) {
        match event {
            selvedge::Event::Membership(event) => {
                let changed = self.on_membership(&event, source);
                self.emit(NodeEvent::Membership(event));
                if let Some((member, tags)) = changed {
                    self.emit(NodeEvent::TagsChanged { member, tags });
                }
            }
            selvedge::Event::Election(event) => self.emit(NodeEvent::Election(event)),
            selvedge::Event::Sections(event) => self.gates.on_event(event),
            selvedge::Event::Present(_) => {
                self.gates.begin_again();
                self.pending.refuse_all(Reject::NewLife);
                self.kept.begin_again();
                self.sites.refuse_change(Reject::NewLife);
                self.sites = Sites::default();
                self.follow_site();
            }
            selvedge::Event::Groups(event) => self.on_groups(event, at),
            #[cfg(feature = "estimate")]
            selvedge::Event::Estimate(event) => self.emit(NodeEvent::Estimate(event)),
            #[cfg(feature = "estimate")]
            selvedge::Event::MaxLivesRaised(upper) => self.emit(NodeEvent::MaxLivesRaised(upper)),
            // Of a feature of `selvedge` that another package has switched on.
            _other => {}
        }
    }

    fn on_groups(&mut self, event: kgroup::Event, at: Time) {
        // Without a folder each life starts without memory.
        if let kgroup::Event::Groups(selvedge_groups::Event::Fact(_)) = event {
            return;
        }
        let event = self.kept.on_event(event);
        let event = event.and_then(|it| self.pending.on_event(it, &self.kept.0));
        if let Some(event) = event.and_then(|it| self.on_site_event(it)) {
            let me = self.driver.machine().membership().me().id;
            self.publisher.push(at, me, event);
        }
    }

    /// An event of membership concerns the host itself, too. Returns the member with other tags, if
    /// the event is about one.
    fn on_membership(
        &mut self,
        event: &Event,
        source: Option<SocketAddr>,
    ) -> Option<(Member, Tags)> {
        match event {
            Event::MetadataChanged(member) | Event::Changed(Delta::Joined(member)) => {
                let is_change = matches!(event, Event::MetadataChanged(_));
                return self.on_announcement(member.id, is_change, source);
            }
            Event::Left => {
                self.progress.has_left = true;
                self.progress.is_over = true;
            }
            // Another node knew a later life of a node that was in already.
            Event::Identified(_) if self.progress.is_in => self.traffic.twins.add(1),
            Event::Identified(_) => self.progress.is_in = true,
            // They concern the application alone, if any.
            Event::Changed(_) | Event::BroadcastReceived { .. } | _ => {}
        }
        if let Event::Identified(me) = event {
            self.publisher.set_tags(*me, &self.own.announced().tags);
        }
        None
    }

    /// Takes in the addresses and tags that a node has announced. Returns its tags, if it had others.
    fn on_announcement(
        &mut self,
        id: NodeId,
        is_change: bool,
        source: Option<SocketAddr>,
    ) -> Option<(Member, Tags)> {
        let machine = self.driver.machine().membership();
        let view = machine.member(id)?;
        let announced = Announcement::decode(view.metadata).unwrap_or_else(|| {
            self.traffic.unreadable.add(u64::from(is_change));
            Announcement::default()
        });
        let Announcement {
            mut addresses,
            tags,
        } = announced;
        // A link-local address is on the link that the news came by.
        let link = source.and_then(address::scope).or_else(|| self.own.link());
        for address in &mut addresses {
            *address = address::on_link(*address, link);
        }
        addresses.retain(|&it| self.socket.reaches(it) && !self.own.is(it, &*self.socket));
        self.directory
            .announce(view.member, addresses, |id| machine.member(id).is_some());
        let is_other = self.publisher.set_tags(view.member, &tags);
        is_other.then_some((view.member, tags))
    }

    /// The node or seed that a message to `id` is for. `None` where it is a seed that is here.
    fn receiver(&mut self, id: NodeId) -> Option<NodeId> {
        if id <= MAX_NODE_ID {
            return Some(id);
        }
        for _ in 0..TRIES {
            let seed = self.turns.next(id);
            if !self.is_needless(seed) {
                return Some(seed);
            }
        }
        None
    }

    /// Returns true if this stands in for a seed that is a live member. The machine probes seeds
    /// periodically, to recover lost ones, but not those that it lists as alive: it cannot know
    /// that a stand-in is one of them. O(members).
    fn is_needless(&self, to: NodeId) -> bool {
        let seeds = self.directory.all(to);
        let is_itself = Directory::seed(to).is_some_and(|it| self.lookups.is_itself(it));
        let machine = self.driver.machine().membership();
        let mut others = machine
            .members()
            .filter(|it| it.member.id != machine.me().id && it.status.is_live());
        others.any(|it| {
            let mut addresses = self.directory.all(it.member.id).iter();
            is_itself || addresses.any(|address| seeds.contains(address))
        })
    }

    async fn send(&mut self, from: Member, address: Option<SocketAddr>, message: &Message) {
        let Some(address) = address else {
            self.traffic.unknown_destination.add(1);
            return;
        };
        if encode(from, message, self.frame_budget, &mut self.frame).is_err() {
            self.traffic.too_long.add(1);
            return;
        }
        self.send_frame(message.kind(), address).await;
    }

    /// Sends the frame that was written.
    pub(super) async fn send_frame(&mut self, kind: u8, address: SocketAddr) {
        let datagram = match &mut self.sealing {
            None => self.frame.as_slice(),
            Some(sealing) => match sealing.datagrams.seal(kind, &self.frame) {
                Ok(datagram) => datagram,
                Err(_exhausted) => return,
            },
        };
        let socket = &mut self.socket;
        match poll_fn(|cx| socket.poll_send(cx, datagram, address)).await {
            Ok(len) => {
                if self.sends.succeeded(self.clock.now()) {
                    self.emit(NodeEvent::SentAgain);
                }
                self.traffic.count_sent(len);
            }
            Err(error) => {
                self.traffic.network_errors.add(1);
                if let Some(unsent) = self.sends.failed(&error, self.clock.now()) {
                    self.emit(NodeEvent::Unsent(unsent));
                }
            }
        }
    }

    pub(crate) fn emit(&mut self, event: NodeEvent) {
        let me = self.driver.machine().membership().me().id;
        self.publisher.push(self.clock.now(), me, event);
    }
}

/// The life of a node in which these effects of a step arose, from its lives before and after the step. A node that has
/// left names its next life already, and several timers may expire in one step.
fn life_of(effects: &[Effect<Node>], former: Member, me: Member) -> Member {
    let is_left = |it: &_| matches!(it, Effect::Event(selvedge::Event::Membership(Event::Left)));
    if effects.iter().any(is_left) {
        former
    } else {
        me
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effects_of_a_step_in_which_a_node_leaves_are_of_the_life_that_ends() {
        let (former, next) = (Member::new(4, 60), Member::new(4, 61));
        let event = |it| Effect::Event(selvedge::Event::Membership(it));
        let leaves = [event(Event::MetadataChanged(former)), event(Event::Left)];
        assert_eq!(life_of(&leaves, former, next), former);
        let goes_on = [event(Event::Identified(next))];
        assert_eq!(life_of(&goes_on, former, next), next);
    }
}
