//! A node's part in k-groups.

use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_core::durable::Durable;
use selvedge_core::{Context, Input, Member, Nested, Time};
use selvedge_groups::Start;
use selvedge_kgroup::{self as kgroup, Kgroup, Site, WallClock};

use crate::{ConfigError, Event, Message, Node, Reject, Timer};

/// Settings for a node's part in k-groups: as a member that keeps their data (devices, routines,
/// maps), and as their client.
///
/// ```
/// use selvedge::Coordination;
/// use selvedge::groups::{Node, Place, Selection};
/// use selvedge::kgroup::Site;
///
/// // Three nodes that hold maps; each map is at 2 * 1 + 1 nodes, of which one may fail.
/// let nodes = (1..=3).map(|id| Node::new(id, Place::default()));
/// let site = Site::new(Selection::new().with_failures(1), nodes, [], 1)?;
/// let coordination = Coordination::new(site);
/// # drop(coordination);
/// # Ok::<(), selvedge::kgroup::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Coordination {
    /// The settings that all nodes of the mesh share. Its frame budget must be no longer than
    /// membership's ([`Site::with_frame_budget`]).
    pub site: Arc<Site>,
    /// The settings of this node. Default: [`kgroup::Config::new`].
    pub config: kgroup::Config,
    /// The start of the first life of this machine: [`Start::Fresh`], the default, if no former life
    /// of this node took part. Later lives are [`Start::Restarted`], or start with the stored facts
    /// of the former one.
    pub start: Start,
}

impl Coordination {
    /// The defaults, at a site that all nodes share.
    #[must_use]
    pub fn new(site: impl Into<Arc<Site>>) -> Self {
        Self {
            site: site.into(),
            config: kgroup::Config::new(),
            start: Start::Fresh,
        }
    }

    selvedge_core::with_settings! {
        with_config config: kgroup::Config,
        with_start start: Start,
    }
}

/// A fact of a node's part in k-groups, for a host that stores.
pub type Fact = <Kgroup as Durable>::Fact;

/// A node's part in k-groups, over all its lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Coordinating {
    /// The settings of the next life.
    next: Coordination,
    /// The epoch of the latest command.
    epoch: Option<u64>,
    /// The clock of the latest command, and when it came.
    clock: Option<(Time, WallClock)>,
    /// True if the other nodes are asked to spare this one.
    is_spared: bool,
    /// The facts of former lives, where the host stores.
    facts: Option<Vec<Fact>>,
}

impl Coordinating {
    /// # Errors
    /// Settings, a site or facts with which no life can begin.
    pub(crate) fn new(
        me: Member,
        next: Coordination,
        facts: Option<Vec<Fact>>,
    ) -> Result<Self, ConfigError> {
        let coordinating = Self {
            next,
            epoch: None,
            clock: None,
            is_spared: false,
            facts,
        };
        coordinating.kgroup(me)?;
        Ok(coordinating)
    }

    fn kgroup(&self, me: Member) -> Result<Kgroup, ConfigError> {
        let Coordination {
            site,
            config,
            start,
        } = &self.next;
        let mut kgroup = Kgroup::new(me, *config, Arc::clone(site), *start)?;
        for fact in self.facts.iter().flatten() {
            kgroup.fold(fact)?;
        }
        Ok(kgroup)
    }
}

impl Node {
    /// The node's part in k-groups, once the node has joined. Feature `kgroup`.
    #[must_use]
    pub fn kgroup(&self) -> Option<&Kgroup> {
        let present = self.present.as_ref()?;
        present.kgroup.as_ref().map(Nested::machine)
    }

    /// Keeps the stored facts of a life that has ended, for the next one; without facts, its site, if
    /// that is later than the one with which it began.
    pub(super) fn remember(&mut self) {
        let kgroup = self.present.as_ref().and_then(|it| it.kgroup.as_ref());
        let (Some(coordinating), Some(kgroup)) = (&mut self.coordination, kgroup) else {
            return;
        };
        let groups = kgroup.machine().groups();
        if let Some(facts) = &mut coordinating.facts {
            *facts = groups.stored().collect();
            return;
        }
        let (site, id) = (groups.site(), groups.me().id);
        // A node that was removed can begin with the former site alone.
        let is_named = site.nodes().iter().any(|it| it.id == id);
        if is_named && site.generation() > coordinating.next.site.generation() {
            coordinating.next.site = Arc::clone(site);
        }
    }

    /// Begins a life's part in k-groups.
    pub(super) fn coordinate(&mut self, me: Member, cx: &mut Context<'_, Self>) {
        let Some(coordinating) = &mut self.coordination else {
            return;
        };
        let kgroup = coordinating.kgroup(me);
        debug_assert!(kgroup.is_ok(), "the settings were checked");
        if coordinating.facts.is_none() {
            // The next life forgets the promises of this one.
            coordinating.next.start = Start::Restarted;
        }
        let (epoch, clock) = (coordinating.epoch, coordinating.clock);
        let spared = coordinating.is_spared;
        if let Some(present) = &mut self.present {
            present.kgroup = kgroup.ok().map(Nested::new);
        }
        let epoch = epoch.map(kgroup::Command::SetEpoch);
        let clock = clock.map(|(set, shown)| {
            let shown = shown.after(cx.now().since(set));
            kgroup::Command::SetClock(shown)
        });
        let spared = spared.then_some(kgroup::Command::SetSpared(true));
        for command in epoch.into_iter().chain(clock).chain(spared) {
            let taken = self.ask_groups(Input::Command(command), cx);
            debug_assert!(taken.is_ok(), "a setting of a life is refused: {taken:?}");
        }
    }

    pub(super) fn ask_groups(
        &mut self,
        input: Input<Kgroup>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let missing = match &self.coordination {
            Some(_) => Reject::NotPresent,
            None => Reject::NoCoordination,
        };
        let kgroup = self.present.as_mut().and_then(|it| it.kgroup.as_mut());
        let kgroup = kgroup.ok_or(missing)?;
        let emit = |event, cx: &mut Context<'_, Self>| cx.event(Event::Groups(event));
        Ok(kgroup.step(cx, input, Message::Groups, Timer::Groups, emit)?)
    }

    pub(super) fn command_groups(
        &mut self,
        command: kgroup::Command,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let (epoch, clock, spared) = match command {
            kgroup::Command::SetEpoch(number) => (Some(number), None, None),
            kgroup::Command::SetClock(shown) => (None, Some((cx.now(), shown)), None),
            kgroup::Command::SetSpared(is_spared) => (None, None, Some(is_spared)),
            kgroup::Command::Reported { .. }
            | kgroup::Command::Acted { .. }
            | kgroup::Command::Trigger { .. }
            | kgroup::Command::ChangeSite(_)
            | kgroup::Command::BeginAnew(_)
            | kgroup::Command::Map { .. } => {
                return self.ask_groups(Input::Command(command), cx);
            }
        };
        if self.present.is_some() {
            self.ask_groups(Input::Command(command), cx)?;
        }
        // A later life begins with it.
        let coordinating = self.coordination.as_mut();
        let coordinating = coordinating.ok_or(Reject::NoCoordination)?;
        coordinating.epoch = epoch.or(coordinating.epoch);
        coordinating.clock = clock.or(coordinating.clock);
        coordinating.is_spared = spared.unwrap_or(coordinating.is_spared);
        Ok(())
    }
}
