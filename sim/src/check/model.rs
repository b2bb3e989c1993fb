//! The model to check: machines, their surroundings, and properties.

use alloc::sync::Arc;
use core::fmt::Write;

use selvedge_core::{Context, Delta, Machine, Member};

use super::durable::Durability;
use super::property::{Kind, Property};
use super::{Bounds, Incomplete, Observer, State};

type Identity<M> = Arc<dyn Fn(usize, u32, &M) -> Member + Send + Sync>;
type Restart<M> = Arc<dyn Fn(usize, u32, &M) -> M + Send + Sync>;
type Remains<M> = Arc<dyn Fn(&M) -> M + Send + Sync>;
type Show<M> = Arc<dyn Fn(&M) -> String + Send + Sync>;
type Start<M> = Arc<
    dyn Fn(usize, u32, &mut M, &mut Context<'_, M>) -> Result<(), <M as Machine>::Reject>
        + Send
        + Sync,
>;
type DeltaWhen<M, O> = Arc<dyn Fn(&State<M, O>, usize, Delta) -> bool + Send + Sync>;
type CrashWhen<M, O> = Arc<dyn Fn(&State<M, O>, usize) -> bool + Send + Sync>;
pub(super) type TickWhen<M, O> =
    Arc<dyn Fn(&State<M, O>, usize, <M as Machine>::Timer) -> bool + Send + Sync>;

/// A complete check: machines, the events that are possible, and the properties that must hold.
///
/// Nodes are named by their place in the list of machines, from 0. A name without a node is
/// reported when the check runs, see [`Incomplete::NoSuchNode`].
///
/// With the feature `stateright`, `for_stateright` converts a model for stateright's own tools.
pub struct Model<M: Machine, O = ()> {
    pub(super) machines: Vec<M>,
    pub(super) identity: Identity<M>,
    pub(super) start: Option<Start<M>>,
    pub(super) restart: Option<Restart<M>>,
    pub(super) remains: Option<Remains<M>>,
    pub(super) show: Option<Show<M>>,
    pub(super) commands: Vec<Vec<M::Command>>,
    pub(super) deltas: Vec<Vec<Delta>>,
    pub(super) reach: Vec<Option<Vec<usize>>>,
    pub(super) delta_when: Option<DeltaWhen<M, O>>,
    pub(super) crash_when: Option<CrashWhen<M, O>>,
    pub(super) tick_when: Option<TickWhen<M, O>>,
    pub(super) durable: Option<Durability<M>>,
    pub(super) boundary: Option<super::property::Condition<M, O>>,
    pub(super) bounds: Bounds,
    pub(super) observer: O,
    pub(super) properties: Vec<Property<M, O>>,
    pub(super) defect: Option<Incomplete>,
}

impl<M: Machine> Model<M> {
    /// Checks `machines`; `identity` returns the member that a machine is.
    ///
    /// The defaults: no commands, no deltas, no faults, and timers that tick at any time.
    pub fn new(machines: Vec<M>, identity: impl Fn(&M) -> Member + Send + Sync + 'static) -> Self {
        Self::observed(machines, identity, ())
    }

    /// Checks machines that do not know their own identity. Each restart adds 1 to the incarnation.
    pub fn with_members(members: Vec<(Member, M)>) -> Self {
        let (identities, machines): (Vec<Member>, Vec<M>) = members.into_iter().unzip();
        let mut model = Self::observed(machines, |_| Member::default(), ());
        model.identity = Arc::new(move |node, life, _| {
            let first = identities.get(node).copied().unwrap_or_default();
            (0..life).fold(first, |member, _| Member {
                incarnation: member.incarnation.next(),
                ..member
            })
        });
        model
    }
}

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// Builds a model as [`new`](Model::new), with an observer of the events.
    pub fn observed(
        machines: Vec<M>,
        identity: impl Fn(&M) -> Member + Send + Sync + 'static,
        observer: O,
    ) -> Self {
        let nodes = machines.len();
        Self {
            machines,
            identity: Arc::new(move |_, _, machine| identity(machine)),
            start: None,
            restart: None,
            remains: None,
            show: None,
            commands: (0..nodes).map(|_| Vec::new()).collect(),
            deltas: vec![Vec::new(); nodes],
            reach: vec![None; nodes],
            delta_when: None,
            crash_when: None,
            tick_when: None,
            durable: None,
            boundary: None,
            bounds: Bounds::default(),
            observer,
            properties: Vec::new(),
            defect: None,
        }
    }

    /// Limits the faults.
    #[must_use]
    pub const fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Sets the first step of each life: `start(node, life, machine, cx)`. Its messages and timers
    /// are carried out, and its choices explored.
    #[must_use]
    pub fn start(
        mut self,
        start: impl Fn(usize, u32, &mut M, &mut Context<'_, M>) -> Result<(), M::Reject>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.start = Some(Arc::new(start));
        self
    }

    /// Sets the machine that restarts after a crash: `restart(node, life, remains)`, with life 1 at
    /// the first restart. A machine with stable storage takes its saved state from `remains`; in a
    /// [`durable`](Self::durable) model nothing else is in `remains`.
    #[must_use]
    pub fn restart(
        mut self,
        restart: impl Fn(usize, u32, &M) -> M + Send + Sync + 'static,
    ) -> Self {
        self.restart = Some(Arc::new(restart));
        self
    }

    /// Sets the part of a machine that remains when it crashes; by default, everything. Leaving out
    /// here the state that a restart does not use makes states equal, and so fewer.
    #[must_use]
    pub fn remains(mut self, remains: impl Fn(&M) -> M + Send + Sync + 'static) -> Self {
        self.remains = Some(Arc::new(remains));
        self
    }

    /// Lists the application's commands to `node`: each is issued at any time, in this order. A
    /// command that the machine refuses waits and is issued again later; after a crash the list
    /// continues.
    #[must_use]
    pub fn commands(mut self, node: usize, commands: impl Into<Vec<M::Command>>) -> Self {
        match self.commands.get_mut(node) {
            Some(slot) => *slot = commands.into(),
            None => self.misnamed("commands", node),
        }
        self
    }

    /// Lists the deltas that the membership service may send to `node`: each at most once, at any
    /// time, in any order, true or not. At most 64.
    ///
    /// Unless [`delta_when`](Self::delta_when) is set, `Confirmed` is sent only after that life has
    /// begun and ended: it is the one delta that is never wrong.
    #[must_use]
    pub fn deltas(mut self, node: usize, deltas: impl Into<Vec<Delta>>) -> Self {
        let deltas = deltas.into();
        if deltas.len() > 64 {
            self.defect.get_or_insert(Incomplete::Deltas {
                node,
                deltas: deltas.len(),
            });
        }
        match self.deltas.get_mut(node) {
            Some(slot) => *slot = deltas,
            None => self.misnamed("deltas", node),
        }
        self
    }

    /// Sets when a listed delta may be sent to a node.
    #[must_use]
    pub fn delta_when(
        mut self,
        when: impl Fn(&State<M, O>, usize, Delta) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.delta_when = Some(Arc::new(when));
        self
    }

    /// Sets when a node may crash; by default always, within the bounds.
    #[must_use]
    pub fn crash_when(
        mut self,
        when: impl Fn(&State<M, O>, usize) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.crash_when = Some(Arc::new(when));
        self
    }

    /// Sets when an armed timer may fire; by default always, within the bounds. It is an assumption
    /// about clocks: that one timer, of any node, outlasts another one.
    #[must_use]
    pub fn tick_when(
        mut self,
        when: impl Fn(&State<M, O>, usize, M::Timer) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.tick_when = Some(Arc::new(when));
        self
    }

    /// Sets the nodes that a multicast of `node` reaches; by default, all others.
    #[must_use]
    pub fn reach(mut self, node: usize, others: impl Into<Vec<usize>>) -> Self {
        let others = others.into();
        let nodes = self.machines.len();
        if let Some(&stranger) = others.iter().find(|&&other| other >= nodes) {
            self.misnamed("reach", stranger);
        }
        match self.reach.get_mut(node) {
            Some(slot) => *slot = Some(others),
            None => self.misnamed("reach", node),
        }
        self
    }

    /// Bounds the search: the check does not continue from states for which `boundary` is false. A
    /// run that met one is truncated and proves nothing, so this is for finding defects.
    #[must_use]
    pub fn boundary(
        mut self,
        within: impl Fn(&State<M, O>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.boundary = Some(Arc::new(within));
        self
    }

    /// Sets how traces show a machine, instead of by `Debug`.
    #[must_use]
    pub fn show(mut self, show: impl Fn(&M) -> String + Send + Sync + 'static) -> Self {
        self.show = Some(Arc::new(show));
        self
    }

    /// Adds a safety property: `condition` is true in every reachable state.
    #[must_use]
    pub fn always(
        self,
        name: &'static str,
        condition: impl Fn(&State<M, O>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.property(name, Kind::Always(Arc::new(condition)))
    }

    /// Adds a sanity check: `condition` is true in some reachable state. Without it, a scenario in
    /// which nothing ever happens passes every safety check.
    #[must_use]
    pub fn sometimes(
        self,
        name: &'static str,
        condition: impl Fn(&State<M, O>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.property(name, Kind::Sometimes(Arc::new(condition)))
    }

    /// Adds a progress property: from every reachable state, a state in which `goal` is true can be
    /// reached without the help of a fault. Drops, duplicates and crashes do not count as a way
    /// there; restarts, deltas and ticks do.
    ///
    /// So nothing ever gets stuck: a run that takes every step that stays possible reaches the
    /// goal.
    #[must_use]
    pub fn progress(
        self,
        name: &'static str,
        goal: impl Fn(&State<M, O>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.progress_when(name, |_| true, goal)
    }

    /// Adds a [`progress`](Self::progress) property that is asked only of states in which `from` is
    /// true.
    #[must_use]
    pub fn progress_when(
        self,
        name: &'static str,
        from: impl Fn(&State<M, O>) -> bool + Send + Sync + 'static,
        goal: impl Fn(&State<M, O>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let kind = Kind::Progress {
            from: Arc::new(from),
            goal: Arc::new(goal),
        };
        self.property(name, kind)
    }

    /// Adds the property that no message, tick or delta is ever refused. Commands may be.
    #[must_use]
    pub fn never_rejects(self, name: &'static str) -> Self {
        self.property(name, Kind::NeverRejects)
    }

    /// Nodes, commands and bounds in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("{} nodes", self.machines.len());
        for (name, counts) in [
            (
                "commands",
                self.commands.iter().map(Vec::len).collect::<Vec<_>>(),
            ),
            ("deltas", self.deltas.iter().map(Vec::len).collect()),
        ] {
            if counts.iter().any(|&count| count > 0) {
                let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
                // Writing to a String cannot fail.
                let _infallible = write!(text, ", {name} {}", counts.join("+"));
            }
        }
        let _infallible = write!(text, ", {}", self.bounds);
        if let Some(durable) = &self.durable {
            let _infallible = write!(text, ", unstored facts {}", durable.unstored);
        }
        text
    }

    fn property(mut self, name: &'static str, kind: Kind<M, O>) -> Self {
        self.properties.push(Property { name, kind });
        self
    }

    fn misnamed(&mut self, asked: &'static str, node: usize) {
        let nodes = self.machines.len();
        self.defect
            .get_or_insert(Incomplete::NoSuchNode { asked, node, nodes });
    }

    pub(super) fn defect(&self) -> Option<Incomplete> {
        if self.bounds.restarts > 0 && self.restart.is_none() {
            return Some(Incomplete::NoRestart);
        }
        self.defect.clone()
    }
}

impl<M: Machine, O: Clone> Clone for Model<M, O> {
    fn clone(&self) -> Self {
        Self {
            machines: self.machines.clone(),
            identity: Arc::clone(&self.identity),
            start: self.start.clone(),
            restart: self.restart.clone(),
            remains: self.remains.clone(),
            show: self.show.clone(),
            commands: self.commands.clone(),
            deltas: self.deltas.clone(),
            reach: self.reach.clone(),
            delta_when: self.delta_when.clone(),
            crash_when: self.crash_when.clone(),
            tick_when: self.tick_when.clone(),
            durable: self.durable,
            boundary: self.boundary.clone(),
            bounds: self.bounds,
            observer: self.observer.clone(),
            properties: self.properties.clone(),
            defect: self.defect.clone(),
        }
    }
}
