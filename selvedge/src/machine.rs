//! The machines inside a node, and the inputs and events between them.

use alloc::vec::Vec;

#[cfg(feature = "estimate")]
use selvedge_camera::estimate;
use selvedge_camera::sections::{self, Name, Sections};
use selvedge_celect::{self as celect, Ballot, Celect};
use selvedge_core::{Context, Delta, Input, Machine, Member, Nested, Span, Time, Untracked};
use selvedge_membership::{self as membership, Membership, Phase, Status};

use crate::config::{Election, Exclusion};
#[cfg(feature = "kgroup")]
use crate::coordination::Coordinating;
use crate::present::Present;
use crate::{Command, Event, Message, Reject, Timer};

/// The number of start times over which waits for a leader are spread.
const SLOTS: u64 = 16;

/// A node: its promises are in the documentation of the [crate].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub(crate) membership: Nested<Membership>,
    pub(crate) exclusion: Option<Exclusion>,
    pub(crate) election: Option<Election>,
    #[cfg(feature = "kgroup")]
    pub(crate) coordination: Option<Coordinating>,
    pub(crate) present: Option<Present>,
    /// The events of membership in this step; empty between steps.
    pub(crate) events: Untracked<Vec<membership::Event>>,
}

impl Node {
    /// The membership machine, to read from.
    #[must_use]
    pub const fn membership(&self) -> &Membership {
        self.membership.machine()
    }

    /// The sections, once the node has joined.
    #[must_use]
    pub fn sections(&self) -> Option<&Sections> {
        let present = self.present.as_ref()?;
        present.sections.as_ref().map(Nested::machine)
    }

    /// The elections, once the node has joined.
    #[must_use]
    pub fn celect(&self) -> Option<&Celect> {
        let present = self.present.as_ref()?;
        present.celect.as_ref().map(Nested::machine)
    }

    /// The leader, perhaps this node, and its ballot; `None` if this node knows of no leader.
    #[must_use]
    pub fn leader(&self) -> Option<(Member, Ballot)> {
        self.celect()?.leader()
    }

    /// The time until which this node leads; see [`Celect::leads_until`].
    #[must_use]
    pub fn leads_until(&self) -> Option<Time> {
        self.celect()?.leads_until()
    }

    /// Returns true if frames of this kind are for one of the protocols of this node.
    #[must_use]
    pub const fn serves(&self, kind: u8) -> bool {
        match kind {
            membership::KIND => true,
            sections::KIND => self.exclusion.is_some(),
            #[cfg(feature = "estimate")]
            estimate::KIND => self.exclusion.is_some(),
            celect::KIND => self.election.is_some(),
            #[cfg(feature = "kgroup")]
            selvedge_groups::KIND => self.coordination.is_some(),
            _ => false,
        }
    }

    /// Checks that a section of this name could be opened with these settings beside `open` open
    /// sections, in the mesh or before the node has joined.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn check_section(
        &self,
        name: Name,
        config: Option<selvedge_camera::Config>,
        open: usize,
    ) -> Result<(), Reject> {
        let Some(Exclusion { sections, .. }) = &self.exclusion else {
            return Err(Reject::NoExclusion);
        };
        let limit = sections.open_limit;
        if open >= limit as usize {
            return Err(sections::Reject::Full { limit }.into());
        }
        let checked = sections.check_section(name, config);
        Ok(checked.map_err(sections::Reject::from)?)
    }

    /// A section in which this node waits or is inside.
    #[must_use]
    pub fn in_use(&self) -> Option<Name> {
        self.sections()?.in_use().next()
    }

    pub(super) fn ask_membership(
        &mut self,
        input: Input<Membership>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let events = &mut self.events.0;
        self.membership.step(
            cx,
            input,
            Message::Membership,
            Timer::Membership,
            |event, cx| {
                events.push(event.clone());
                cx.event(Event::Membership(event));
            },
        )?;
        let mut events = core::mem::take(&mut self.events.0);
        for event in events.drain(..) {
            match event {
                membership::Event::Identified(me) => self.appear(me, cx),
                membership::Event::Changed(delta) => self.learn(delta, cx),
                membership::Event::Left => {
                    #[cfg(feature = "kgroup")]
                    self.remember();
                    self.present = None;
                }
                membership::Event::MetadataChanged(_)
                | membership::Event::BroadcastReceived { .. } => {}
                // For the application only; no other machine needs it.
                _ => {}
            }
        }
        self.events.0 = events;
        Ok(())
    }

    /// Begins a life, or gives way to a later one.
    fn appear(&mut self, me: Member, cx: &mut Context<'_, Self>) {
        if self.present.as_ref().is_some_and(|it| it.me == me) {
            return;
        }
        if !self.takes_part() {
            return;
        }
        let present = Present::new(me, self.exclusion.as_ref(), self.election.as_ref());
        debug_assert!(present.is_ok(), "the settings were checked");
        #[cfg(feature = "kgroup")]
        self.remember();
        self.present = present.ok();
        cx.event(Event::Present(me));
        #[cfg(feature = "kgroup")]
        self.coordinate(me, cx);
        let others = self.membership().members();
        let known: Vec<Delta> = others
            .filter(|view| view.member.id != me.id)
            .map(|view| match view.status {
                Status::Alive | Status::Suspect => Delta::Joined(view.member),
                Status::Failed => Delta::Failed(view.member),
                Status::Left => Delta::Left(view.member),
            })
            .collect();
        for delta in known {
            self.learn(delta, cx);
        }
        #[cfg(feature = "estimate")]
        self.count_later(cx);
        self.tolerate_all(cx);
        self.look_for_leader(cx);
    }

    /// Returns true if a machine runs beside membership.
    const fn takes_part(&self) -> bool {
        #[cfg(feature = "kgroup")]
        if self.coordination.is_some() {
            return true;
        }
        self.exclusion.is_some() || self.election.is_some()
    }

    /// Passes a delta from membership to the other machines.
    fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) {
        // They refuse only deltas about this node itself, which membership does not emit.
        let _taken = self.ask_sections(Input::Membership(delta), cx).is_ok();
        #[cfg(feature = "estimate")]
        let _taken = self.ask_estimator(Input::Membership(delta), cx).is_ok();
        let _taken = self.ask_celect(Input::Membership(delta), cx).is_ok();
        #[cfg(feature = "kgroup")]
        let _taken = self.ask_groups(Input::Membership(delta), cx).is_ok();
        self.tolerate_all(cx);
    }

    pub(super) fn ask_sections(
        &mut self,
        input: Input<Sections>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let missing = self.missing();
        let sections = self.present.as_mut().and_then(|it| it.sections.as_mut());
        let sections = sections.ok_or(missing)?;
        let mut ended = None;
        let emit = |event: sections::Event, cx: &mut Context<'_, Self>| {
            use selvedge_camera::Event as It;
            if let It::Released(_) | It::Cancelled | It::Refused(_) = event.event {
                ended = Some(event.section);
            }
            cx.event(Event::Sections(event));
        };
        sections.step(cx, input, Message::Sections, Timer::Sections, emit)?;
        if let Some(name) = ended {
            self.keep_or_end(name, cx);
        }
        Ok(())
    }

    fn ask_celect(
        &mut self,
        input: Input<Celect>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let missing = match &self.election {
            Some(_) => Reject::NotPresent,
            None => Reject::NoElection,
        };
        let celect = self.present.as_mut().and_then(|it| it.celect.as_mut());
        let celect = celect.ok_or(missing)?;
        let emit = |event, cx: &mut Context<'_, Self>| cx.event(Event::Election(event));
        celect.step(cx, input, Message::Election, Timer::Election, emit)?;
        self.look_for_leader(cx);
        Ok(())
    }

    /// Adapts c to the list: no more lists can lack a node than there are other nodes.
    fn tolerate_all(&mut self, cx: &mut Context<'_, Self>) {
        let (Some(election), Some(celect)) = (&self.election, self.celect()) else {
            return;
        };
        let known = celect
            .members()
            .take(election.config.missing_from.into())
            .count();
        // Here and not in the machine: it is given c, and cannot know which of its lists are still filling.
        let c = u16::try_from(known).unwrap_or(election.config.missing_from);
        let f = election.config.failures;
        if (celect.config().missing_from, celect.config().failures) != (c, f) {
            let tolerate = celect::Command::SetBounds {
                missing_from: c,
                failures: f,
            };
            // Settings work with any c and f.
            let _taken = self.ask_celect(Input::Command(tolerate), cx).is_ok();
        }
    }

    /// Begins to wait for a leader if none is known, and ends the wait if one is.
    fn look_for_leader(&mut self, cx: &mut Context<'_, Self>) {
        let patience = self.election.as_ref().map_or(Span::ZERO, |it| it.patience);
        let is_missing = self.celect().is_some_and(|it| it.leader().is_none());
        let Some(present) = &mut self.present else {
            return;
        };
        if patience == Span::ZERO || present.is_leaderless == is_missing {
            return;
        }
        present.is_leaderless = is_missing;
        if is_missing {
            let slot = cx.below(SLOTS);
            let spread = Span(patience.0.saturating_mul(slot) / SLOTS);
            cx.arm(Timer::Leaderless, patience + spread);
        } else {
            cx.disarm(Timer::Leaderless);
        }
    }

    pub(super) const fn missing(&self) -> Reject {
        match &self.exclusion {
            Some(_) => Reject::NotPresent,
            None => Reject::NoExclusion,
        }
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::Membership(command) => {
                if command == membership::Command::Leave
                    && let Some(name) = self.in_use()
                {
                    return Err(Reject::InUse(name));
                }
                self.ask_membership(Input::Command(command), cx)
            }
            Command::Sections(sections::Command::Enter(name))
                if self.membership().phase() == Phase::Leaving =>
            {
                Err(Reject::Leaving(name))
            }
            Command::Sections(command) => {
                let bound = match command {
                    sections::Command::SetMaxLives(upper) => Some(upper),
                    sections::Command::Open { .. }
                    | sections::Command::Close(_)
                    | sections::Command::Enter(_)
                    | sections::Command::Exit(_)
                    | sections::Command::Cancel(_)
                    | sections::Command::GiveBack(_) => None,
                };
                if let sections::Command::Close(name) = command {
                    self.give_back(name, cx);
                }
                self.ask_sections(Input::Command(command), cx)?;
                // A later life has the same bound.
                if let Some((exclusion, upper)) = self.exclusion.as_mut().zip(bound) {
                    exclusion.sections.section.max_lives = upper;
                }
                Ok(())
            }
            #[cfg(feature = "estimate")]
            Command::Estimate => {
                self.ask_estimator(Input::Command(estimate::Command::Estimate), cx)
            }
            Command::Election(command @ (celect::Command::Elect | celect::Command::Measure)) => {
                self.ask_celect(Input::Command(command), cx)
            }
            Command::Election(celect::Command::SetBounds {
                missing_from: c,
                failures: f,
            }) => {
                let election = self.election.as_mut().ok_or(Reject::NoElection)?;
                election.config.missing_from = c;
                election.config.failures = f;
                self.tolerate_all(cx);
                Ok(())
            }
            #[cfg(feature = "kgroup")]
            Command::Groups(command) => self.command_groups(command, cx),
        }
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        match message {
            Message::Membership(message) => {
                self.ask_membership(Input::Message { from, message }, cx)
            }
            Message::Sections(message) => self.ask_sections(Input::Message { from, message }, cx),
            #[cfg(feature = "estimate")]
            Message::Estimate(message) => self.ask_estimator(Input::Message { from, message }, cx),
            Message::Election(message) => self.ask_celect(Input::Message { from, message }, cx),
            #[cfg(feature = "kgroup")]
            Message::Groups(message) => self.ask_groups(Input::Message { from, message }, cx),
        }
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        // Timers of a former life may still tick.
        let of_this_life = |taken: Result<(), Reject>| match taken {
            Err(Reject::NotPresent) => Ok(()),
            other => other,
        };
        match timer {
            Timer::Membership(timer) => self.ask_membership(Input::Tick(timer), cx),
            Timer::Sections(timer) => {
                of_this_life(self.ask_sections(Input::Tick(timer), cx))?;
                self.inquire(timer, cx);
                Ok(())
            }
            #[cfg(feature = "estimate")]
            Timer::Estimate(timer) => of_this_life(self.ask_estimator(Input::Tick(timer), cx)),
            #[cfg(feature = "estimate")]
            Timer::Count => {
                self.count(cx);
                Ok(())
            }
            Timer::GiveBack(name) => {
                self.end_keeping(name, cx);
                Ok(())
            }
            Timer::Election(timer) => of_this_life(self.ask_celect(Input::Tick(timer), cx)),
            #[cfg(feature = "kgroup")]
            Timer::Groups(timer) => of_this_life(self.ask_groups(Input::Tick(timer), cx)),
            Timer::Leaderless => {
                if let Some(present) = &mut self.present {
                    present.is_leaderless = false;
                }
                // Refused if one is under way.
                let elect = Input::Command(celect::Command::Elect);
                let _begun = self.ask_celect(elect, cx).is_ok();
                self.look_for_leader(cx);
                Ok(())
            }
        }
    }
}

impl Machine for Node {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(timer) => self.on_tick(timer, cx),
            Input::Membership(delta) => self.ask_membership(Input::Membership(delta), cx),
            Input::Command(command) => self.command(command, cx),
        }
    }
}
