//! The setup of a check: the events in a home, and the promises to check.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use core::num::NonZeroU16;

use selvedge_core::{Member, NodeId, Span};
use selvedge_sim::check::{Bounds, Expected, Model, Scenario, State, Trial};

use super::Home;
use super::show::show;
use crate::{
    Comparison, Condition, Mode, Priority, Published, Scheduler, Series, Step, Terms, Urgency,
    Visibility,
};

/// A command of a routine in a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Do {
    /// The device.
    pub device: u64,
    /// The state.
    pub value: u8,
    /// See [`Priority`].
    pub priority: Priority,
    /// True if the device is needed for longer.
    pub holds: bool,
    /// See [`Step::undo`].
    pub undo: Option<u8>,
    /// The command is done only if this device is in this state.
    pub only_if: Option<(u64, u8)>,
    /// True if the hold may be cut short.
    pub is_preemptible: bool,
}

/// The terms of a routine of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct As {
    /// The key of runs that belong together.
    pub key: Option<u8>,
    /// See [`Mode`].
    pub mode: Mode,
    /// See [`Urgency`].
    pub urgency: u8,
}

impl As {
    /// A run that supersedes the others of its key.
    #[must_use]
    pub const fn restart(key: u8) -> Self {
        Self::keyed(key, Mode::Restart)
    }

    /// A run that waits for the others of its key.
    #[must_use]
    pub const fn queued(key: u8) -> Self {
        let limit = NonZeroU16::MAX;
        Self::keyed(key, Mode::Queued { limit })
    }

    /// A run that is refused while another one of its key is unfinished.
    #[must_use]
    pub const fn single(key: u8) -> Self {
        Self::keyed(key, Mode::Single)
    }

    /// A run without a key and with this urgency.
    #[must_use]
    pub const fn urgent(urgency: u8) -> Self {
        Self {
            key: None,
            mode: Mode::Parallel,
            urgency,
        }
    }

    const fn keyed(key: u8, mode: Mode) -> Self {
        Self {
            key: Some(key),
            mode,
            urgency: 0,
        }
    }

    pub(super) fn terms(self) -> Terms {
        let series = self.key.map(|key| Series {
            key: format!("{key}"),
            mode: self.mode,
        });
        let urgency = Urgency(self.urgency);
        Terms { series, urgency }
    }
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
            is_preemptible: false,
        }
    }

    /// A short command that may fail.
    #[must_use]
    pub const fn maybe(device: u64, value: u8) -> Self {
        Self {
            priority: Priority::BestEffort,
            ..Self::set(device, value)
        }
    }

    /// A long command.
    #[must_use]
    pub const fn long(device: u64, value: u8) -> Self {
        Self {
            holds: true,
            ..Self::set(device, value)
        }
    }

    /// A long command that may be cut short.
    #[must_use]
    pub const fn cut(device: u64, value: u8) -> Self {
        Self {
            is_preemptible: true,
            ..Self::long(device, value)
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
            preemptible: self.is_preemptible,
            ..Step::new(NodeId(self.device), self.value)
        }
    }
}

/// An event that happens once, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A routine is submitted.
    Submit(&'static [Do]),
    /// A routine is submitted on these terms. It may be refused by its mode.
    Run(&'static [Do], As),
    /// The routine that the event with this number submitted is cancelled, some time later.
    Cancel(usize),
    /// A device fails.
    Fails(u64),
    /// A device fails, and is up again later.
    Restarts(u64),
    /// The hub restarts from its saved state. The last step may be unsaved, or its commands may not
    /// have been sent; devices can be asked.
    Resumes,
}

impl Happening {
    /// The commands of the routine that is submitted.
    pub(super) const fn steps(&self) -> Option<&'static [Do]> {
        match *self {
            Self::Submit(steps) | Self::Run(steps, _) => Some(steps),
            Self::Cancel(_) | Self::Fails(_) | Self::Restarts(_) | Self::Resumes => None,
        }
    }
}

/// A home, its events and its rules.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number of devices, from 0, each in state 0.
    pub devices: u64,
    /// The events.
    pub happenings: &'static [Happening],
    /// True if they happen in this order.
    pub in_order: bool,
    /// The number of commands that live devices may refuse or leave unanswered.
    pub faults: u8,
    /// True if devices report their new states before the outcomes of their commands.
    pub echoes: bool,
    /// True if commands may act after their outcomes were reported as unknown.
    pub lates: bool,
    /// See [`Config::visibility`](crate::Config::visibility).
    pub visibility: Visibility,
    /// See [`Config::scheduler`](crate::Config::scheduler).
    pub scheduler: Scheduler,
    /// See [`Config::search_limit`](crate::Config::search_limit).
    pub search_limit: u16,
    /// Published rules in place of this crate's.
    pub rules: &'static [Published],
    /// The only promise to check; all of them, if `None`.
    pub only: Option<Promise>,
}

/// A promise of the crate, as a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// In the end the devices are as if the committed routines had run one by one, in the reported
    /// order, and each condition had the result of that order.
    Serializable,
    /// The last committed routine, of those with the same devices and without conditions, is last in
    /// the order, if some device did commands of both.
    LastWins,
    /// A device has one command in flight at a time.
    OneCommand,
    /// Routines that released a device are before its user, and the user is before all
    /// others; no two routines come before each other (invariants 2 to 4 of section 4.3).
    Invariants,
    /// From every state a state is reachable in which all routines are finished.
    NoHang,
    /// No later routine starts on a device for which another has waited for too long, or goes
    /// before it there ([`Config::patience`](crate::Config::patience)).
    Patience,
    /// A routine that has not begun and may be overtaken has waited for too long at some time.
    PatienceEnds,
    /// Under eventual visibility no routine is aborted for a device that it could do without (rule
    /// 4 of section 3). Strict models also abort for devices that conditions read, and the
    /// strongest for any.
    Spared,
    /// Of the runs of a key that must not run at the same time at most one is admitted and not
    /// about to be undone ([`Mode`]).
    OneRun,
    /// A device that the next run sets as its first command there is not restored before, if that
    /// run supersedes or preempts others.
    Straight,
    /// An admitted urgent routine waits for no less urgent one, except for one that is about to be
    /// undone and has a command in flight.
    Urgent,
}

impl Setup {
    /// A home with this number of devices, under eventual visibility with the timeline scheduler,
    /// without faults.
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

    /// The model to check.
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
        self.modes(self.fates(self.steps(self.orders(model))))
    }

    fn looks_at(&self, promise: Promise) -> bool {
        self.only.is_none_or(|only| only == promise)
    }

    /// The properties of the reported order.
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

    /// The properties of each step on the devices.
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

    /// The properties of runs of one key, and of urgent routines.
    fn modes(&self, mut model: Model<Home>) -> Model<Home> {
        let is_run = |it: &Happening| matches!(it, Happening::Run(..));
        if !self.happenings.iter().any(is_run) {
            return model;
        }
        if self.looks_at(Promise::OneRun) {
            model = model.always("one run of a key at a time", |state| {
                state.machines().all(Home::is_one_of_each_key)
            });
        }
        // If several routines are in between, a device may have to be restored.
        if self.only == Some(Promise::Straight) || self.only.is_none() && self.is_straight() {
            model = model.always("a device goes straight to its next state", |state| {
                state.machines().all(|it| !it.flickers)
            });
        }
        if self.looks_at(Promise::Urgent) {
            model = model.always("nothing urgent waits for what is less so", |state| {
                state.machines().all(Home::is_urgent_first)
            });
        }
        model
    }

    /// Returns true if there are no faults and all routines are submitted with terms.
    fn is_straight(&self) -> bool {
        let is_run = |it: &Happening| matches!(it, Happening::Run(..)) || it.steps().is_none();
        self.faults == 0 && self.happenings.iter().all(is_run)
    }

    /// The properties of a routine's progress: waiting, abort and end.
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

impl Trial for Setup {
    const PROTOCOL: &'static str = "safehome";

    type Rule = Published;
    type Promise = Promise;

    fn scenario(self, name: String, expected: Expected) -> Scenario {
        Scenario::new(name, expected, move || self.model())
    }

    fn under(self, rules: &'static [Published], promise: Promise) -> Self {
        Self {
            rules,
            only: Some(promise),
            ..self
        }
    }
}
