//! The proposal of a site of the next generation, and its way to the registry.
//!
//! A site is longer than a frame. Its proposer sends it part by part to the registry's leader, which
//! has each part decided, and commits it then: at once or not at all, and only if no other site was
//! decided meanwhile.

use alloc::vec::Vec;

use selvedge_core::{Context, Input, Member, NodeId, Span};
use selvedge_replica::Command;
use thiserror::Error;

use crate::adopt::AROUND_PART;
use crate::registry::{Bytes, Registration, SITE_MAX};
use crate::state::Carried;
use crate::{Begins, Event, GroupId, Groups, Item, Reject, Timer};

/// The most nodes that wait for an answer about a site at once.
const ASKERS: usize = 256;

/// The bytes around a part of a site in an update, above those in a message.
const AROUND_UPDATE: usize = 96;

/// The shortest frames with room for parts.
const FRAME_LEAST: u16 = (AROUND_PART + AROUND_UPDATE) as u16 + 32;

/// A site that this node proposes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Proposal {
    number: u64,
    bytes: Vec<u8>,
    /// The number of bytes of which the registry has reported the arrival.
    arrived: usize,
    after: u32,
    generation: u32,
}

/// The reason for which a site is not proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum SiteError {
    /// The states of these groups cannot be a registry.
    #[error("these groups have no registry: implement `Begins::register`")]
    NoRegistry,
    /// The bytes are no site of that generation.
    #[error("the bytes are no site of generation {0}: pass what `Begins::encode` returns")]
    NoSite(u32),
    /// The generation is not later than the present one.
    #[error(
        "the site has generation {found}, and the present one has {present}: make it from the present one"
    )]
    Generation {
        /// The generation of the proposed site.
        found: u32,
        /// The generation of the present site.
        present: u32,
    },
    /// The site is too long.
    #[error("the site has {found} bytes, and the registry takes {limit}: make it smaller")]
    TooLong {
        /// The length in bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// Frames have no room for a part of a site, and the bytes around it.
    #[error(
        "frames have {found} bytes, and parts of a site need {needed}: set the frame budget to {needed} or more"
    )]
    Frame {
        /// The frame budget.
        found: u16,
        /// The lowest that works.
        needed: u16,
    },
    /// The site has no such group, or it is the registry, which cannot begin anew.
    #[error("the site has no group {0:?} that can begin anew: name one of its groups, or a map")]
    NoGroup(GroupId),
    /// This node waits already for this number of groups to begin anew, the most that it keeps: until they have, also
    /// where the registry has no room for their beginnings.
    #[error(
        "this node waits for {0} groups to begin anew: wait for `Event::BegunAnew`, and try again"
    )]
    Beginning(usize),
    /// Another site of this node is being proposed.
    #[error("this node proposes a site already: wait for its outcome")]
    Proposing,
    /// This node does not know the present site yet.
    #[error("this node has not received the site of the others yet: wait for `Event::Site`")]
    Unknown,
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Proposes a site as that of the next generation.
    pub(crate) fn change_site(
        &mut self,
        bytes: Vec<u8>,
        generation: u32,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.check_site(&bytes, generation)?;
        if self.rules.takes_own_site()
            && let Some((site, plan)) = S::decode(&bytes)
        {
            self.adopt(site, plan, cx);
            return Ok(());
        }
        self.registrar.proposed += 1;
        self.registrar.proposal = Some(Proposal {
            number: self.registrar.proposed,
            bytes,
            arrived: 0,
            after: self.generation(),
            generation,
        });
        self.propose_again(cx);
        self.arm_site(cx);
        Ok(())
    }

    /// The number of sites that this node has proposed in this life: that of the last one.
    #[must_use]
    pub const fn proposed(&self) -> u64 {
        self.registrar.proposed
    }

    fn check_site(&self, bytes: &[u8], generation: u32) -> Result<(), SiteError> {
        let (found, needed) = (self.plan.frame_budget(), FRAME_LEAST);
        if found < needed {
            return Err(SiteError::Frame { found, needed });
        }
        let (found, limit) = (bytes.len(), SITE_MAX);
        let present = self.generation();
        if !S::HAS_REGISTRY {
            return Err(SiteError::NoRegistry);
        }
        if !self.has_site() {
            return Err(SiteError::Unknown);
        }
        if self.registrar.is_proposing() {
            return Err(SiteError::Proposing);
        }
        if found > limit {
            return Err(SiteError::TooLong { found, limit });
        }
        if generation <= present {
            let found = generation;
            return Err(SiteError::Generation { found, present });
        }
        let is_of_it = S::decode(bytes).is_some_and(|it| it.1.generation() == generation);
        is_of_it.then_some(()).ok_or(SiteError::NoSite(generation))
    }

    /// The next part of the proposal, or the commit behind all parts.
    fn next_registration(&self) -> Option<Registration> {
        let proposal = self.registrar.proposal.as_ref()?;
        let (by, number) = (self.me, proposal.number);
        let count = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        let room = usize::from(self.plan.frame_budget());
        let room = room.saturating_sub(AROUND_PART + AROUND_UPDATE).max(1);
        let rest = proposal.bytes.iter().skip(proposal.arrived);
        let bytes: Bytes = rest.take(room).copied().collect();
        Some(if bytes.is_empty() {
            Registration::Commit {
                by,
                number,
                length: count(proposal.bytes.len()),
                after: proposal.after,
                generation: proposal.generation,
            }
        } else {
            Registration::Draft {
                by,
                number,
                at: count(proposal.arrived),
                bytes,
            }
        })
    }

    /// Sends the next part of the proposal, if there is one.
    pub(crate) fn propose_again(&mut self, cx: &mut Context<'_, Self>) {
        let Some(registration) = self.next_registration() else {
            return;
        };
        self.enter_registry(cx);
        if self.leads(GroupId::REGISTRY) {
            return self.on_register(self.me, registration, cx);
        }
        self.leader_hints.used(GroupId::REGISTRY).count();
        for to in self.likely(GroupId::REGISTRY) {
            let registration = registration.clone();
            let item = Item::Register { registration };
            self.posted.0.push((self.latest(to), item));
        }
    }

    /// Sends it to the registry's leader, of which this node has learned.
    pub(crate) fn propose_to(&mut self, leader: NodeId) {
        if let Some(registration) = self.next_registration() {
            let item = Item::Register { registration };
            self.posted.0.push((self.latest(leader), item));
        }
    }

    /// Handles a part of a site that a node proposes.
    pub(crate) fn on_register(
        &mut self,
        from: Member,
        registration: Registration,
        cx: &mut Context<'_, Self>,
    ) {
        self.enter_registry(cx);
        if !self.leads(GroupId::REGISTRY) {
            let place = self.whereabouts(GroupId::REGISTRY);
            return self.posted.0.extend(place.map(|it| (from, it)));
        }
        let (by, number) = match registration {
            Registration::Draft { by, number, .. } | Registration::Commit { by, number, .. } => {
                (by, number)
            }
            Registration::Birth { .. } => {
                self.counters.0.refused += 1;
                return;
            }
        };
        let Some(registry) = self.registry().filter(|_| by == from) else {
            self.counters.0.refused += 1;
            return;
        };
        let is_new = match &registration {
            Registration::Draft { at, .. } => {
                usize::try_from(*at) == Ok(registry.drafted(by, number))
                    && registry.by() != Some((by, number))
            }
            Registration::Commit { .. } | Registration::Birth { .. } => {
                registry.committed(&registration).is_some()
            }
        };
        if self.registrar.askers.len() < ASKERS {
            self.registrar.askers.insert((by, number));
        }
        let update = is_new.then(|| S::register(registration)).flatten();
        let Some(update) = update else {
            return self.answer_proposals(cx);
        };
        // One at a time: a repeated part would be decided twice.
        if self.is_registry_idle() {
            let propose = Input::Command(Command::Propose(update));
            let _again = self.step(GroupId::REGISTRY, propose, cx).is_err();
        }
    }

    /// Answers the nodes that propose sites, once the registry has decided.
    pub(crate) fn answer_proposals(&mut self, cx: &mut Context<'_, Self>) {
        if !self.is_registry_idle() {
            return;
        }
        for (by, number) in core::mem::take(&mut self.registrar.askers) {
            let Some(registry) = self.registry() else {
                return;
            };
            let length = u32::try_from(registry.drafted(by, number)).unwrap_or(u32::MAX);
            let generation = registry.generation();
            let is_decided = registry.by() == Some((by, number));
            if by == self.me {
                self.on_registered(number, length, (generation, is_decided), cx);
                continue;
            }
            let item = Item::Registered {
                life: by.incarnation.0,
                number,
                length,
                generation,
                is_decided,
            };
            self.posted.0.push((by, item));
        }
    }

    /// Reports the proposal as decided, if it is the site that this node has taken: the registry's answer
    /// may have been lost, and another site be decided before the next one. A node that the site does not name gets
    /// no answer any more.
    pub(crate) fn note_decided(&mut self, cx: &mut Context<'_, Self>) {
        let generation = self.generation();
        let Some(proposal) = self.registrar.proposal.take() else {
            return;
        };
        let is_decided =
            proposal.generation == generation && proposal.bytes == S::encode(&self.site);
        if !is_decided && self.plan.names(self.me.id) {
            self.registrar.proposal = Some(proposal);
            return;
        }
        cx.event(Event::Proposed {
            number: proposal.number,
            generation,
            is_decided,
        });
    }

    /// Handles the registry's knowledge of this node's proposal.
    pub(crate) fn on_registered(
        &mut self,
        number: u64,
        length: u32,
        (generation, is_decided): (u32, bool),
        cx: &mut Context<'_, Self>,
    ) {
        let proposal = self.registrar.proposal.as_mut();
        let Some(proposal) = proposal.filter(|it| it.number == number) else {
            return; // It is over.
        };
        if is_decided || generation > proposal.after {
            self.registrar.proposal = None;
            return cx.event(Event::Proposed {
                number,
                generation,
                is_decided,
            });
        }
        let arrived = usize::try_from(length).unwrap_or(usize::MAX);
        let is_more = arrived > proposal.arrived;
        proposal.arrived = arrived.min(proposal.bytes.len());
        // A part that another draft has replaced waits for the timer, so that both get through.
        if is_more {
            // At the registry's leader itself, a part of a group of one is decided at once: each
            // has a step of its own.
            self.adoption.is_armed = true;
            self.registrar.is_prompt = true;
            cx.arm(Timer::Site, Span::ZERO);
        }
    }
}
