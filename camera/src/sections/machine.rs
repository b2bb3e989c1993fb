//! The sections of a node, and the choice of the section for each input.

use alloc::collections::BTreeMap;

use selvedge_core::roster::Roster;
use selvedge_core::{Context, Delta, Input, Machine, Member, Nested, Untracked};

use super::remains::{Remains, is_vacant, leaves_it_vacant};
use super::{Command, Config, ConfigError, Counters, Event, Message, Name, Reject, Timer};
use crate::Camera;
use crate::published::Rules;
use crate::state::Stage;

/// One node's part in all sections of a mesh. See the [module](super) for its promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sections {
    me: Member,
    config: Config,
    rules: Rules,
    /// The other nodes, as membership reported them, for sections that are made later.
    peers: Roster<()>,
    sections: BTreeMap<Name, Section>,
    remains: Remains,
    counters: Untracked<Counters>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Section {
    camera: Nested<Camera>,
    /// True if this node can enter the section, false if it only takes part in it for others.
    is_open: bool,
}

impl Sections {
    /// A node that knows no other yet, with no section open; the host gives it [`Delta`]s.
    ///
    /// `me` must be a life that never took part before: the OKs of a former life are forgotten.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(me: Member, config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(me, config, Rules::default()))
    }

    /// A node with settings that are known to work.
    pub(crate) fn unchecked(me: Member, config: Config, rules: Rules) -> Self {
        Self {
            me,
            config,
            rules,
            peers: Roster::shared(me, config.section.peer_limit as usize),
            sections: BTreeMap::new(),
            remains: Remains::default(),
            counters: Untracked(Counters::default()),
        }
    }

    /// The member that this node is.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The settings, with the latest bound.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The state of this node in a section that is open, or in which it takes part for others.
    #[must_use]
    pub fn get(&self, name: Name) -> Option<&Camera> {
        self.sections.get(&name).map(|it| it.camera.machine())
    }

    /// Returns true if this node can enter the section.
    #[must_use]
    pub fn is_open(&self, name: Name) -> bool {
        self.sections.get(&name).is_some_and(|it| it.is_open)
    }

    /// All sections by name, also the sections that are not open here.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &Camera)> {
        self.sections
            .iter()
            .map(|(&name, it)| (name, it.camera.machine()))
    }

    /// The sections in which this node waits or is inside: to be left before the node leaves the
    /// mesh.
    pub fn in_use(&self) -> impl Iterator<Item = Name> + '_ {
        self.iter()
            .filter(|(_, camera)| camera.stage != Stage::Idle)
            .map(|(name, _)| name)
    }

    /// The counters since the beginning.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    /// Opens a section, so that this node can enter it. Takes O(members) when this node took no
    /// part in it yet.
    ///
    /// # Errors
    /// [`Reject::AlreadyOpen`], [`Reject::Full`], [`Reject::Config`].
    pub(crate) fn open(
        &mut self,
        name: Name,
        config: Option<crate::Config>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if let Some(config) = config {
            config.check().map_err(ConfigError::Section)?;
        }
        let config = self.config.of(name, config);
        if let Some(section) = self.sections.get_mut(&name) {
            if section.is_open {
                return Err(Reject::AlreadyOpen(name));
            }
            self.check_room()?;
            return self.turn(name, true, config, cx);
        }
        self.check_room()?;
        let all = self
            .config
            .open_limit
            .saturating_add(self.config.passive_limit);
        let is_full = self.sections.len() >= all as usize;
        let victim = if is_full { self.victim() } else { None };
        if is_full && victim.is_none() {
            return Err(Reject::Full { limit: all });
        }
        let camera = self.make(name, config, None, cx)?;
        self.drop_section(victim);
        let is_open = true;
        self.sections.insert(name, Section { camera, is_open });
        Ok(())
    }

    /// Closes a section, so that this node only takes part in it for others.
    ///
    /// # Errors
    /// [`Reject::Unknown`], [`Reject::InUse`].
    fn close(&mut self, name: Name, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let section = self.opened(name)?;
        if section.camera.machine().stage != Stage::Idle {
            return Err(Reject::InUse(name));
        }
        self.turn(name, false, self.config.of(name, None), cx)
    }

    /// Takes a new bound for the number of lives, from 1. Requests that wait are held to it.
    ///
    /// # Errors
    /// [`Reject::Config`] when it is 0.
    fn bound(&mut self, max_lives: u32, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let mut config = self.config;
        config.section.max_lives = max_lives;
        config.check()?;
        self.config = config;
        self.step_all(&Input::Command(crate::Command::SetMaxLives(max_lives)), cx);
        Ok(())
    }

    fn check_room(&self) -> Result<(), Reject> {
        let open = self.sections.values().filter(|it| it.is_open).count();
        let limit = self.config.open_limit;
        if open >= limit as usize {
            return Err(Reject::Full { limit });
        }
        Ok(())
    }

    fn opened(&mut self, name: Name) -> Result<&mut Section, Reject> {
        let section = self.sections.get_mut(&name);
        section.filter(|it| it.is_open).ok_or(Reject::Unknown(name))
    }

    /// Opens or closes a section that this node has, with these settings from now on.
    fn turn(
        &mut self,
        name: Name,
        is_open: bool,
        config: crate::Config,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let section = self.sections.get_mut(&name).ok_or(Reject::Unknown(name))?;
        section.is_open = is_open;
        let set = |camera: &mut Camera, _: &mut Context<'_, Camera>| {
            camera.config = config;
            Ok(())
        };
        within(&mut section.camera, name, cx, set).map_err(|reason| refused(name, reason))
    }

    /// Passes a command of the application to a section.
    fn command(
        &mut self,
        name: Name,
        command: crate::Command,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let section = self.opened(name)?;
        let input = Input::Command(command);
        step(&mut section.camera, name, input, cx).map_err(|reason| refused(name, reason))
    }

    fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if let Some(delta) = self.peers.about_others(delta)? {
            // Nothing is open here, so any node that is not on the list may be forgotten.
            let learned = self.peers.learn(delta, |_| false);
            self.counters.no_room += u64::from(learned.is_err());
        }
        self.step_all(&Input::Membership(delta), cx);
        Ok(())
    }

    /// Passes an input that no section refuses to all sections.
    fn step_all(&mut self, input: &Input<Camera>, cx: &mut Context<'_, Self>) {
        for (&name, section) in &mut self.sections {
            let taken = step(&mut section.camera, name, input.clone(), cx);
            debug_assert!(taken.is_ok(), "{name:?} refused {input:?}");
        }
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let Message {
            section: name,
            message,
        } = message;
        if let Some(section) = self.sections.get_mut(&name) {
            let input = Input::Message { from, message };
            return step(&mut section.camera, name, input, cx)
                .map_err(|reason| refused(name, reason));
        }
        let passive = self.sections.values().filter(|it| !it.is_open).count();
        let is_full = passive >= self.config.passive_limit as usize;
        let victim = if is_full { self.victim() } else { None };
        let is_kept = !is_full || victim.is_some();
        if !is_kept && !leaves_it_vacant(&message) {
            // An OK that is not remembered would be wrong. The node will ask again.
            self.counters.passive_refused += 1;
            return Ok(());
        }
        let camera = self.make(name, self.config.of(name, None), Some((from, message)), cx)?;
        if is_kept {
            self.drop_section(victim);
            let is_open = false;
            self.sections.insert(name, Section { camera, is_open });
        } else {
            self.remains.absorb(camera.machine());
        }
        Ok(())
    }

    /// A section that knows the members and begins with the numbers of dropped sections. It has
    /// received `first`.
    fn make(
        &self,
        name: Name,
        config: crate::Config,
        first: Option<(Member, crate::Message)>,
        cx: &mut Context<'_, Self>,
    ) -> Result<Nested<Camera>, Reject> {
        let camera = Camera::unchecked(self.me, config, self.rules);
        let mut camera = Nested::new(camera);
        let begin = |camera: &mut Camera, cx: &mut Context<'_, Camera>| {
            for delta in self.peers.as_deltas() {
                camera.handle(Input::Membership(delta), cx)?;
            }
            // Only now: a floor is sent to nodes that join, and these nodes were here before.
            self.remains.pass_on(camera);
            match first {
                Some((from, message)) => camera.handle(Input::Message { from, message }, cx),
                None => Ok(()),
            }
        };
        within(&mut camera, name, cx, begin).map_err(|reason| refused(name, reason))?;
        Ok(camera)
    }

    /// A section that may be dropped: not open here, and nothing open in it.
    fn victim(&self) -> Option<Name> {
        let may_go = |camera: &Camera| is_vacant(camera) || self.rules.drop_with_oks();
        let is_victim = |it: &Section| !it.is_open && may_go(it.camera.machine());
        self.sections
            .iter()
            .find(|(_, it)| is_victim(it))
            .map(|(&name, _)| name)
    }

    fn drop_section(&mut self, victim: Option<Name>) {
        if let Some(dropped) = victim.and_then(|name| self.sections.remove(&name)) {
            self.counters.dropped += 1;
            if !self.rules.drop_with_tokens() {
                self.remains.absorb(dropped.camera.machine());
            }
        }
    }
}

impl Machine for Sections {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(Timer { section, timer }) => match self.sections.get_mut(&section) {
                Some(it) => step(&mut it.camera, section, Input::Tick(timer), cx)
                    .map_err(|reason| refused(section, reason)),
                // It was dropped meanwhile.
                None => Ok(()),
            },
            Input::Membership(delta) => self.learn(delta, cx),
            Input::Command(Command::Open { name, config }) => self.open(name, config, cx),
            Input::Command(Command::Close(name)) => self.close(name, cx),
            Input::Command(Command::Enter(name)) => self.command(name, crate::Command::Enter, cx),
            Input::Command(Command::Exit(name)) => self.command(name, crate::Command::Exit, cx),
            Input::Command(Command::Cancel(name)) => self.command(name, crate::Command::Cancel, cx),
            Input::Command(Command::GiveBack(name)) => {
                self.command(name, crate::Command::GiveBack, cx)
            }
            Input::Command(Command::SetMaxLives(max_lives)) => self.bound(max_lives, cx),
        }
    }
}

/// One step of one section, whose effects carry its name.
fn step(
    camera: &mut Nested<Camera>,
    name: Name,
    input: Input<Camera>,
    cx: &mut Context<'_, Sections>,
) -> Result<(), crate::Reject> {
    within(camera, name, cx, |camera, cx| camera.handle(input, cx))
}

fn within(
    camera: &mut Nested<Camera>,
    section: Name,
    cx: &mut Context<'_, Sections>,
    call: impl FnOnce(&mut Camera, &mut Context<'_, Camera>) -> Result<(), crate::Reject>,
) -> Result<(), crate::Reject> {
    camera.with(
        cx,
        call,
        |message| Message { section, message },
        |timer| Timer { section, timer },
        |event, cx| cx.event(Event { section, event }),
    )
}

const fn refused(section: Name, reason: crate::Reject) -> Reject {
    Reject::Section { section, reason }
}
