//! What is checked: what happens in a home, and which promises are looked at.

use alloc::vec;

use selvedge_core::{Member, NodeId, Span};
use selvedge_sim::check::{Bounds, Model, State};

use super::Home;
use super::show::show;
use crate::{Comparison, Condition, Priority, Published, Scheduler, Step, Visibility};

/// A command of a routine in a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Do {
    /// Which device.
    pub device: u64,
    /// Into which state.
    pub value: u8,
    /// See [`Priority`].
    pub priority: Priority,
    /// Whether the device is needed for longer.
    pub holds: bool,
    /// See [`Step::undo`].
    pub undo: Option<u8>,
    /// Only if this device is in this state.
    pub only_if: Option<(u64, u8)>,
}

impl Do {
    /// A short command that must succeed.
    #[must_use]
    pub const fn set(device: u64, value: u8) -> Self {
        Self {
            device,
            value,
            priority: Priority::Must,
            holds: false,
            undo: None,
            only_if: None,
        }
    }

    /// One that need not.
    #[must_use]
    pub const fn maybe(device: u64, value: u8) -> Self {
        Self {
            priority: Priority::BestEffort,
            ..Self::set(device, value)
        }
    }

    /// A long one.
    #[must_use]
    pub const fn long(device: u64, value: u8) -> Self {
        Self {
            holds: true,
            ..Self::set(device, value)
        }
    }

    pub(super) fn step(self) -> Step<u8> {
        let condition = |(device, value)| Condition {
            device: NodeId(device),
            comparison: Comparison::Equal,
            value,
        };
        Step {
            priority: self.priority,
            hold: Span::secs(u64::from(self.holds)),
            undo: self.undo,
            condition: self.only_if.map(|it| condition(it).into()),
            ..Step::new(NodeId(self.device), self.value)
        }
    }
}

/// What happens once, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A routine is submitted.
    Submit(&'static [Do]),
    /// The routine that is submitted by the happening with this number is cancelled, some time
    /// later.
    Cancel(usize),
    /// A device fails.
    Fails(u64),
    /// A device fails, and is back later.
    Restarts(u64),
    /// The hub restarts with the state that it saved. What it had just issued may not have been
    /// carried out, and what it was just told may not have been saved; devices can be asked.
    Resumes,
}

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many devices there are, from 0, each in state 0.
    pub devices: u64,
    /// What happens.
    pub happenings: &'static [Happening],
    /// Whether it happens in this order.
    pub in_order: bool,
    /// How many commands live devices refuse or do not answer.
    pub faults: u8,
    /// Whether devices say what they do before the outcomes of their commands are known.
    pub echoes: bool,
    /// Whether commands may act after their outcomes came back unknown.
    pub lates: bool,
    /// See [`Config::visibility`](crate::Config::visibility).
    pub visibility: Visibility,
    /// See [`Config::scheduler`](crate::Config::scheduler).
    pub scheduler: Scheduler,
    /// See [`Config::search_limit`](crate::Config::search_limit).
    pub search_limit: u16,
    /// Rules that differ from ours.
    pub rules: &'static [Published],
    /// The only promise to look at; all of them, if none is named.
    pub only: Option<Promise>,
}

/// A promise of the crate, as a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// In the end the devices are as if the committed routines had run one by one, in the order
    /// that was told, and each saw what it would have seen.
    Serializable,
    /// Of routines that set the same devices and ask for no state the last one that is committed
    /// comes last, if some device did commands of both.
    LastWins,
    /// A device has one command on its way at a time.
    OneCommand,
    /// Routines that released a device stand before the one that uses it, and that one before all
    /// others; no two routines come before each other (invariants 2 to 4 of section 4.3).
    Invariants,
    /// From every state there is a way to one in which all routines are finished.
    NoHang,
    /// No routine that came later starts on a device for which another has waited for too long, or
    /// goes before it there ([`Config::patience`](crate::Config::patience)).
    Patience,
    /// A routine that has not begun and may be overtaken has waited for too long at some time.
    PatienceEnds,
    /// Under eventual visibility no routine is aborted for a device that it could do without
    /// (rule 4 of section 3). Strict models abort for devices that are asked about, too, and the
    /// strongest for any.
    Spared,
}

impl Setup {
    /// So many devices, under eventual visibility with the timeline scheduler, without faults.
    #[must_use]
    pub const fn home(devices: u64, happenings: &'static [Happening]) -> Self {
        Self {
            devices,
            happenings,
            in_order: false,
            faults: 0,
            echoes: false,
            lates: false,
            visibility: Visibility::Eventual,
            scheduler: Scheduler::Timeline,
            search_limit: 256,
            rules: &[],
            only: None,
        }
    }

    /// What is to be checked.
    #[must_use]
    pub fn model(self) -> Model<Home> {
        let mut model = Model::new(vec![Home::new(&self)], |_| Member::new(1, 0))
            .bounds(Bounds::default())
            .start(|_, _, home, cx| home.begin(cx))
            .show(show);
        if self.only.is_none() {
            model = model
                .never_rejects("the hub refuses nothing")
                .sometimes("all is over", |state| state.machines().all(Home::is_over));
        }
        self.fates(self.steps(self.orders(model)))
    }

    fn looks_at(&self, promise: Promise) -> bool {
        self.only.is_none_or(|only| only == promise)
    }

    /// What the order that is told promises.
    fn orders(&self, mut model: Model<Home>) -> Model<Home> {
        if self.looks_at(Promise::Serializable) && self.visibility != Visibility::Weak {
            model = model.always("the order explains the end", |state: &State<Home, ()>| {
                state
                    .machines()
                    .all(|it| !it.is_over() || it.is_explained())
            });
        }
        if self.looks_at(Promise::LastWins) {
            model = model.always("the last of those that set the same wins", |state| {
                state.machines().all(Home::is_in_order)
            });
        }
        model
    }

    /// What holds in each step on the devices.
    fn steps(&self, mut model: Model<Home>) -> Model<Home> {
        if self.looks_at(Promise::OneCommand) {
            model = model.always("one command on its way to a device", |state| {
                state.machines().all(|it| !it.clash)
            });
        }
        if self.looks_at(Promise::Invariants) {
            model = model.always("invariants 2 to 4", |state| {
                state.machines().all(Home::is_consistent)
            });
        }
        model
    }

    /// What becomes of routines: which wait, are aborted, and finish.
    fn fates(&self, mut model: Model<Home>) -> Model<Home> {
        if self.looks_at(Promise::Patience) {
            model = model.always(
                "no routine overtakes one that has waited for too long",
                |state| state.machines().all(|it| !it.overtaken),
            );
        }
        if self.looks_at(Promise::PatienceEnds) {
            model = model.always("no routine is patient for ever", |state| {
                let mut nodes = state.nodes();
                nodes.all(|node| node.machine().is_patience_bounded(node.timers()))
            });
        }
        if self.looks_at(Promise::Spared) && self.visibility == Visibility::Eventual {
            model = model.always(
                "no routine is aborted for a device that it could do without",
                |state| state.machines().all(|it| !it.harsh),
            );
        }
        if self.looks_at(Promise::NoHang) {
            model = model.progress("all routines are finished", |state| {
                state.machines().all(Home::is_over)
            });
        }
        model
    }
}
