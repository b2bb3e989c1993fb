//! Several sections in one mesh.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use selvedge_core::{Context, Delta, Input, Machine, Member, Span};
use selvedge_sim::check::{Bounds, Expected, Model, Observer, Scenario, Trial, breaks, holds};

use super::{Promise, Setup};
use crate::published::Rules;
use crate::sections::{Command, Config, Event, Name, Reject, Sections};
use crate::state::Stage;
use crate::{Published, Token};

/// This crate's rules, with which every section keeps its promises, and rules that must break one.
pub(super) fn scenarios() -> Vec<Scenario> {
    const ROOM_FOR_ONE: &str = "2 sections, and a common friend with room for one";
    let friend = friend();
    alloc::vec![
        holds("2 sections, 2 nodes", 1_578, two()),
        holds(ROOM_FOR_ONE, 2_219, friend),
        holds(
            "2 sections, room for one, loss and duplicate",
            488_923,
            Case {
                bounds: Bounds {
                    drops: 1,
                    duplicates: 1,
                    ..Setup::CALM
                },
                // Without it a lost RELEASE keeps the friend's only place.
                refresh: Span::secs(30),
                ..friend
            }
        ),
        breaks(
            ROOM_FOR_ONE,
            10,
            friend,
            &[Published::DropWithOks],
            Promise::Exclusion
        ),
        breaks(
            ROOM_FOR_ONE,
            13,
            friend,
            &[Published::DropWithTokens],
            Promise::Tokens
        ),
    ]
}

/// The sections that an application visits one after the other, by name.
type Visits = &'static [&'static str];

/// Nodes 1 to n that visit sections.
#[derive(Clone, Copy)]
struct Case {
    /// The other nodes that each node knows, by id.
    lists: &'static [&'static [u64]],
    visits: &'static [Visits],
    passive_limit: u32,
    bounds: Bounds,
    /// See [`crate::Config::refresh`].
    refresh: Span,
    rules: &'static [Published],
    only: Option<Promise>,
}

/// Two nodes that visit both sections in opposite orders.
fn two() -> Case {
    Case {
        lists: &[&[2], &[1]],
        visits: &[&["a", "b"], &["b", "a"]],
        passive_limit: 2,
        bounds: Setup::CALM,
        refresh: Span::ZERO,
        rules: &[],
        only: None,
    }
}

/// Nodes 1 and 2 know node 3 alone, and node 3 drops a section, if it can, when a message about the
/// other section arrives.
fn friend() -> Case {
    Case {
        lists: &[&[3], &[3], &[1, 2]],
        visits: &[&["b", "a"], &["a"]],
        passive_limit: 1,
        ..two()
    }
}

impl Case {
    fn machine(&self, id: u64) -> Sections {
        let all = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        let default = crate::Config::new(all);
        let section = crate::Config {
            slack: 0,
            refresh: self.refresh,
            // Counting to more than one would make states that differ in nothing else.
            resend_limit: default.resend,
            // So would more copies: a lost message can be lost as well without them.
            copies: 1,
            peer_limit: 16,
            ..default
        };
        let config = Config {
            section,
            open_limit: 2,
            passive_limit: self.passive_limit,
        };
        Sections::unchecked(Member::new(id, 0), config, Rules::published(self.rules))
    }

    /// The first inputs: the node learns of the nodes on its list, and opens the sections that it will
    /// visit.
    fn begin(
        &self,
        node: usize,
        machine: &mut Sections,
        cx: &mut Context<'_, Sections>,
    ) -> Result<(), Reject> {
        for &id in self.lists.get(node).copied().unwrap_or_default() {
            let joined = Delta::Joined(Member::new(id, 0));
            machine.handle(Input::Membership(joined), cx)?;
        }
        for name in self.visits_of(node) {
            machine.open(name, None, cx)?;
        }
        Ok(())
    }

    fn visits_of(&self, node: usize) -> impl Iterator<Item = Name> + use<> {
        let visits = self.visits.get(node).copied().unwrap_or_default();
        visits.iter().filter_map(|name| Name::new(name).ok())
    }

    fn model(self) -> Model<Sections, Watch> {
        let machines: Vec<Sections> = (1..=self.lists.len() as u64)
            .map(|id| self.machine(id))
            .collect();
        let mut model = Model::observed(machines, Sections::me, Watch::default())
            .bounds(self.bounds)
            .start(move |node, _, machine, cx| self.begin(node, machine, cx))
            .show(show);
        for node in 0..self.lists.len() {
            let visits = self.visits_of(node);
            let commands = visits.flat_map(|name| [Command::Enter(name), Command::Exit(name)]);
            model = model.commands(node, commands.collect::<Vec<_>>());
        }
        let looks_at = |promise| self.only.is_none_or(|only| only == promise);
        if looks_at(Promise::Exclusion) {
            model = model.always("mutual exclusion in each section", |state| {
                let mut all: Vec<Name> = state.machines().flat_map(inside).collect();
                all.sort_unstable();
                all.is_sorted_by(|one, next| one < next)
            });
        }
        if looks_at(Promise::Tokens) {
            model = model.always("tokens rise in each section", |state| {
                !state.observer().fell
            });
        }
        if self.only.is_none() {
            model = model.never_rejects("no message is refused").progress(
                "each node that waits gets in and out",
                |state| {
                    state
                        .machines()
                        .all(|machine| machine.in_use().next().is_none())
                },
            );
        }
        if self.only.is_none() && self.passive_limit > 1 {
            model = model.sometimes("two nodes are inside two sections", |state| {
                let busy = |machine: &&Sections| inside(machine).next().is_some();
                state.machines().filter(busy).count() == 2
            });
        }
        model
    }
}

impl Trial for Case {
    const PROTOCOL: &'static str = "camera";

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

/// The sections in which a node is inside.
fn inside(machine: &Sections) -> impl Iterator<Item = Name> + '_ {
    let is_inside = |camera: &crate::Camera| matches!(camera.stage, Stage::Inside(_));
    machine
        .iter()
        .filter(move |(_, camera)| is_inside(camera))
        .map(|(name, _)| name)
}

/// Remembers the last token of each section, and whether some token was not above the token before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Watch {
    last: BTreeMap<Name, Token>,
    fell: bool,
}

impl Observer<Sections> for Watch {
    fn event(&mut self, _: usize, event: &Event) {
        if let crate::Event::Entered(token) = event.event {
            let last = self.last.insert(event.section, token);
            self.fell |= last.is_some_and(|last| token <= last);
        }
    }
}

/// A node in a line.
fn show(machine: &Sections) -> String {
    let sections: Vec<String> = machine
        .iter()
        .map(|(name, camera)| {
            let is_open = if machine.is_open(name) {
                ""
            } else {
                " (passive)"
            };
            format!("{name}{is_open}: {}", super::setup::show(camera))
        })
        .collect();
    match sections.is_empty() {
        true => "no section".to_string(),
        false => sections.join("; "),
    }
}
