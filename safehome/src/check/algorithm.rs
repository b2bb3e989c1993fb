//! Algorithm 1 of the paper as printed, to show where it does not end. Each step is one call.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Context, Input, Machine, Member, Span};
use selvedge_sim::check::{Model, State};

/// A time for which a device is planned for a routine: from `start` until before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The routine that it is planned for.
    pub routine: u64,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
}

impl Slot {
    /// A slot.
    #[must_use]
    pub const fn new(routine: u64, start: u64, end: u64) -> Self {
        Self {
            routine,
            start,
            end,
        }
    }
}

/// The corrections to apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Algorithm1 {
    /// True if the routine's end is tested before its command is read (erratum H16).
    pub tests_first: bool,
    /// True if no gap is assumed behind the endless one (erratum H15).
    pub ends: bool,
}

/// Finds the places for the commands of a routine, each a device and a length, and the number of
/// calls. `None` if the routine is read beyond its end, or after `limit` calls.
///
/// Each lineage is in order of time.
#[must_use]
pub fn algorithm_1(
    rules: Algorithm1,
    lineages: &[Vec<Slot>],
    routine: &[(usize, u64)],
    limit: u64,
) -> Option<(Vec<u64>, u64)> {
    let mut search = Search::new(rules, lineages.to_vec(), routine.to_vec());
    while search.found.is_none() {
        if search.calls == limit {
            return None;
        }
        search.call();
    }
    match search.found? {
        Found::Places(places) => Some((places, search.calls)),
        Found::Nothing | Found::BeyondTheEnd => None,
    }
}

/// A search for places, call by call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Search {
    rules: Algorithm1,
    lineages: Vec<Vec<Slot>>,
    routine: Vec<(usize, u64)>,
    /// The calls that have not returned.
    open: Vec<Call>,
    calls: u64,
    found: Option<Found>,
}

/// A call for one command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    start: u64,
    pre: Vec<u64>,
    post: Vec<u64>,
    /// The gap that is tried, and whether it is the endless one.
    gap: Option<(u64, bool)>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Found {
    Places(Vec<u64>),
    Nothing,
    /// A command behind the last one was read.
    BeyondTheEnd,
}

impl Search {
    fn new(rules: Algorithm1, lineages: Vec<Vec<Slot>>, routine: Vec<(usize, u64)>) -> Self {
        Self {
            rules,
            lineages,
            routine,
            open: vec![Call::new(0, Vec::new(), Vec::new())],
            calls: 0,
            found: None,
        }
    }

    /// Runs one call, until it makes the next one.
    fn call(&mut self) {
        self.calls += 1;
        let index = self.open.len().saturating_sub(1);
        if self.rules.tests_first && index == self.routine.len() {
            let places = self.open.iter().filter_map(|it| it.gap);
            self.found = Some(Found::Places(places.map(|it| it.0).collect()));
            return;
        }
        let command = self.routine.get(index).copied();
        let lineage = command.and_then(|it| self.lineages.get(it.0));
        let (Some((_, length)), Some(lineage), Some(call)) =
            (command, lineage, self.open.last_mut())
        else {
            self.found = Some(Found::BeyondTheEnd);
            return;
        };
        let (gap, is_endless) = gap(lineage, call.start, length);
        call.gap = Some((gap, is_endless));
        let at = lineage.partition_point(|it| it.start < gap);
        let (left, right) = lineage.split_at_checked(at).unwrap_or((lineage, &[]));
        let with = |slots: &[Slot], others: &[u64]| -> Vec<u64> {
            let own = slots.iter().map(|it| it.routine);
            own.chain(others.iter().copied()).collect()
        };
        let (pre, post) = (with(left, &call.pre), with(right, &call.post));
        if pre.iter().any(|it| post.contains(it)) {
            self.go_on();
        } else {
            self.open.push(Call::new(gap + length, pre, post));
        }
    }

    /// Rejects the gap that was tried: the last line calls the function again with the next one.
    fn go_on(&mut self) {
        while let Some((index, call)) = self.open.iter_mut().enumerate().next_back() {
            let Some((gap, is_endless)) = call.gap.take() else {
                return;
            };
            if is_endless && self.rules.ends {
                self.open.pop();
                continue;
            }
            let Some(&(device, length)) = self.routine.get(index) else {
                return;
            };
            let behind = |it: &&Slot| it.start >= gap;
            let lineage = self.lineages.get(device);
            let next = lineage.and_then(|it| it.iter().find(behind));
            call.start = match next {
                Some(next) if !is_endless => next.end,
                Some(_) | None => gap + length,
            };
            return;
        }
        self.found = Some(Found::Nothing);
    }

    /// Published Algorithm 1, which must end within `limit` calls and read no command beyond the
    /// last one.
    #[must_use]
    pub fn model(
        rules: Algorithm1,
        lineages: Vec<Vec<Slot>>,
        routine: Vec<(usize, u64)>,
        limit: u64,
    ) -> Model<Self> {
        let search = Self::new(rules, lineages, routine);
        Model::new(vec![search], |_| Member::new(1, 0))
            .start(|_, _, _, cx| {
                cx.arm((), Span::ZERO);
                Ok(())
            })
            .always(
                "the search ends with a place for each command",
                move |state: &State<Self, ()>| {
                    let is_sound = |it: &Self| match it.found {
                        None => it.calls <= limit,
                        Some(Found::Places(_)) => true,
                        Some(Found::Nothing | Found::BeyondTheEnd) => false,
                    };
                    state.machines().all(is_sound)
                },
            )
    }
}

impl Call {
    const fn new(start: u64, pre: Vec<u64>, post: Vec<u64>) -> Self {
        Self {
            start,
            pre,
            post,
            gap: None,
        }
    }
}

impl Machine for Search {
    type Message = core::convert::Infallible;
    type Timer = ();
    type Command = ();
    type Event = ();
    type Reject = core::convert::Infallible;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Message { message, .. } => match message {},
            Input::Membership(_) | Input::Command(()) => {}
            Input::Tick(()) => {
                self.call();
                if self.found.is_none() {
                    cx.arm((), Span::ZERO);
                }
            }
        }
        Ok(())
    }
}

/// The first gap after `start` that is long enough, and whether it is the endless one.
fn gap(lineage: &[Slot], start: u64, length: u64) -> (u64, bool) {
    let mut start = start;
    for slot in lineage {
        if start + length <= slot.start {
            return (start, false);
        }
        start = start.max(slot.end);
    }
    (start, true)
}
