//! A mesh to be checked.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use selvedge_core::wire::{HEADER_LEN, MEMBER_MAX_LEN};
use selvedge_core::{Delta, Input, Machine as _, Member, Span};
use selvedge_sim::check::{Bounds, Expected, Model, Observer, Scenario, State, Trial};

use crate::message::OK_MAX_LEN;
use crate::published::Rules;
use crate::state::Stage;
use crate::tree::{Report, Tree};
use crate::{Camera, Command, Config, Event, Published, Refusal, Token};

/// The bytes of a frame in which an OK names one rival: of a small id, in an early life, with a low
/// number.
const ONE_RIVAL: u16 = (HEADER_LEN + MEMBER_MAX_LEN + OK_MAX_LEN + 3) as u16;

/// Nodes 1 to n with their lists, commands and deltas, and the faults that are possible.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The other nodes that each node knows at first, by id. Node 1 comes first.
    pub lists: &'static [&'static [u64]],
    /// The bound, see [`Config::max_lives`].
    pub max_lives: u32,
    /// The commands of each node's application.
    pub commands: &'static [&'static [Command]],
    /// Deltas that a node (by id) may learn at any time, true or false.
    pub deltas: &'static [(u64, Delta)],
    /// Nodes (by id) that may crash. After the crash all others may learn `Confirmed` of that life.
    pub ends: &'static [u64],
    /// Nodes (by id) that membership never learns of. They may crash when all others know that they
    /// are outside, and no node learns of the crash. OKs that name them may be in flight.
    pub unanswered: &'static [u64],
    /// The limits of losses, crashes and other faults.
    pub bounds: Bounds,
    /// See [`Config::slack`].
    pub slack: u32,
    /// See [`Config::keep`].
    pub keep: bool,
    /// See [`Config::eager`].
    pub eager: bool,
    /// See [`Config::refresh`].
    pub refresh: bool,
    /// See [`Config::multicast`].
    pub multicast: bool,
    /// See [`Config::slow_path`].
    pub slow: bool,
    /// See [`Config::failures`].
    pub failures: u8,
    /// True if a node that was declared failed is passed over, see [`Config::takeover`]. Then two
    /// nodes may be inside, and the property is that tokens rise.
    pub takeover: bool,
    /// Nodes (by id) that can remember only this many others, see [`Config::peer_limit`].
    pub room: &'static [(u64, u32)],
    /// See [`Config::copies`]. More than one multiplies the states: a machine counts its copies.
    pub copies: u8,
    /// The number of [`Config::resend`] times before nodes that answered WAIT are asked again. More
    /// than one multiplies the states: a machine counts the rounds.
    pub resends: u64,
    /// See [`Config::tree_patience`]. With 0 the scenario has to report each failure.
    pub patience: u8,
    /// True if an OK has room for one rival only, so that lists come in parts. Such frames are too
    /// short for the slow path.
    pub narrow: bool,
    /// Published rules in place of this crate's rules.
    pub rules: &'static [Published],
    /// True if progress is checked: from every state each node that waits can enter and exit.
    pub progress: bool,
    /// The only promise to check; `None` for all.
    pub only: Option<Promise>,
}

/// A promise of the crate, as a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// At most one node is inside (theorems 5 and 9).
    Exclusion,
    /// Tokens rise from entry to entry; when all promises are checked, no node is fenced either.
    Tokens,
    /// No node is stuck: each node that waits enters and exits, or is refused with a reason
    /// (theorems 6 and 7, lemma 4).
    Progress,
}

impl Setup {
    /// Timeouts are longer than any delivery, and nothing goes wrong.
    pub const CALM: Bounds = Bounds {
        drops: 0,
        duplicates: 0,
        crashes: 0,
        restarts: 0,
        deltas: None,
        ticks: None,
        early_ticks: Some(0),
    };

    /// Up to 5 nodes that know each other.
    #[must_use]
    pub fn full(nodes: u64) -> Self {
        const ALL: [&[u64]; 5] = [&[1, 2, 3, 4, 5]; 5];
        let nodes = usize::try_from(nodes).unwrap_or(5).min(5);
        Self {
            lists: ALL.get(..nodes).unwrap_or_default(),
            max_lives: u32::try_from(nodes).unwrap_or(5),
            commands: &[],
            deltas: &[],
            ends: &[],
            unanswered: &[],
            bounds: Self::CALM,
            slack: 0,
            keep: false,
            eager: false,
            refresh: false,
            multicast: true,
            slow: false,
            failures: 1,
            takeover: false,
            room: &[],
            copies: 1,
            resends: 1,
            patience: 0,
            narrow: false,
            rules: &[],
            progress: true,
            only: None,
        }
    }

    /// The same nodes with these commands.
    #[must_use]
    pub const fn visits(self, commands: &'static [&'static [Command]]) -> Self {
        Self { commands, ..self }
    }

    fn machine(&self, id: u64, life: u32) -> Camera {
        let common = Config::new(self.max_lives);
        let config = Config {
            slack: self.slack,
            keep: self.keep,
            eager: self.eager,
            refresh: if self.refresh {
                Span::secs(30)
            } else {
                Span::ZERO
            },
            takeover: self.takeover.then(|| Span::secs(60)),
            resend_limit: common.resend * self.resends,
            copies: self.copies,
            frame_budget: if self.narrow {
                ONE_RIVAL
            } else {
                common.frame_budget
            },
            peer_limit: self.room_of(id),
            multicast: self.multicast,
            slow_path: self.slow,
            failures: self.failures,
            tree_patience: self.patience,
            ..common
        };
        let life = if self.rules.contains(&Published::OneLife) {
            0
        } else {
            life
        };
        let me = Member::new(id, life);
        Camera::unchecked(me, config, Rules::published(self.rules))
    }

    fn room_of(&self, id: u64) -> u32 {
        let of = |(node, _): &&(u64, u32)| *node == id;
        self.room.iter().find(of).map_or(16, |&(_, limit)| limit)
    }

    /// The scenario to check.
    #[must_use]
    pub fn model(self) -> Model<Camera, Watch> {
        let count = self.lists.len();
        let machines: Vec<Camera> = (1..=count as u64).map(|id| self.machine(id, 0)).collect();
        let mut model = Model::observed(machines, Camera::me, Watch::default())
            .bounds(self.bounds)
            .start(move |node, _, machine, cx| {
                for &id in self.lists.get(node).copied().unwrap_or_default() {
                    if id <= count as u64 && id != node as u64 + 1 {
                        let joined = Delta::Joined(Member::new(id, 0));
                        machine.handle(Input::Membership(joined), cx)?;
                    }
                }
                Ok(())
            })
            .restart(move |node, life, _| self.machine(node as u64 + 1, life))
            .remains(|machine| machine.remains())
            .show(show)
            .crash_when(move |state, node| {
                let id = node as u64 + 1;
                let is_unheard = self.unanswered.contains(&id);
                self.ends.contains(&id) || is_unheard && is_known_to_be_out(state, node)
            });
        let looks_at = |promise| self.only.is_none_or(|only| only == promise);
        if self.only.is_none() {
            model = model.never_rejects("no message is refused");
        }
        if self.takeover {
            model = model.sometimes("a node is passed over", |state| state.observer().passed);
        } else if looks_at(Promise::Exclusion) {
            model = model.always("mutual exclusion", |state: &State<Camera, Watch>| {
                let inside = |machine: &&Camera| machine.token().is_some();
                state.machines().filter(inside).count() <= 1
            });
        }
        if self.slow && self.only.is_none() {
            model = model.sometimes("a tree lets its root in", |state| {
                let is_root = |it: &Camera| it.token().is_some() && it.forest.contains(it.me);
                state.machines().any(is_root)
            });
        }
        if self.narrow && self.only.is_none() {
            model = model.sometimes("a list comes in parts", |state| {
                state.machines().any(Camera::has_part)
            });
        }
        if self.patience > 0 && self.only.is_none() {
            model = model.sometimes("a child that was asked in vain is given up", has_given_up);
        }
        if !self.slow && self.only.is_none() {
            model = model.sometimes("a node enters", |state| {
                state.machines().any(|machine| machine.token().is_some())
            });
        }
        if !self.room.is_empty() && self.only.is_none() {
            model = model
                .sometimes("a node has no room to say OK", |state| {
                    state.machines().any(Camera::has_abstention)
                })
                .sometimes("a node is refused for room", |state| {
                    state.observer().refused
                });
        }
        if looks_at(Promise::Tokens) {
            model = model.always("tokens rise", |state| !state.observer().fell);
            if !self.takeover && self.only.is_none() {
                model = model.always("no node is fenced", |state| !state.observer().fenced);
            }
        }
        if self.progress && looks_at(Promise::Progress) {
            model = model.progress(
                "each node that waits gets in and out, or is told why not",
                |state| {
                    let idle = |machine: &Camera| machine.stage == Stage::Idle;
                    state.machines().all(idle)
                },
            );
        }
        for (node, commands) in self.commands.iter().enumerate() {
            model = model.commands(node, commands.to_vec());
        }
        let mut notified = vec![Vec::new(); count];
        for &(id, delta) in self.deltas {
            if let Some(notified) = notified.get_mut((id as usize).saturating_sub(1)) {
                notified.push(delta);
            }
        }
        for &id in self.ends {
            let confirmed = Delta::Confirmed(Member::new(id, 0));
            for (node, notified) in notified.iter_mut().enumerate() {
                if node as u64 + 1 != id {
                    notified.push(confirmed);
                }
            }
        }
        for (node, notified) in notified.into_iter().enumerate() {
            model = model.deltas(node, notified);
        }
        model
    }
}

impl Trial for Setup {
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

/// Returns true if this node is idle, and all others know that its requests are over.
fn is_known_to_be_out(state: &State<Camera, Watch>, node: usize) -> bool {
    state.machines().nth(node).is_some_and(|it| {
        let has_received =
            |other: &Camera| other.granted.released(it.me).number >= it.issued.latest();
        let mut others = state.machines().filter(|other| other.me != it.me);
        it.stage == Stage::Idle && others.all(has_received)
    })
}

/// Returns true if a root has given up a child: the root was refused, and the child has not given its
/// OK, has the root as its parent, and has neither failed nor ended as far as the root knows.
fn has_given_up(state: &State<Camera, Watch>) -> bool {
    let is_without = |root: &Camera, child: &Camera| {
        let is_refused = |tree: &Tree| {
            let is_echoed = tree.parent == Some(root.me) && tree.reported == Report::Echo;
            is_echoed && root.stage == Stage::Idle && tree.id.number == root.issued.latest()
        };
        let has_ended = root.peers.is_failed(child.me) || root.peers.is_over(child.me);
        child.forest.get(root.me).is_some_and(is_refused) && !has_ended
    };
    state
        .machines()
        .any(|root| state.machines().any(|child| is_without(root, child)))
}

/// Remembers the last token, and whether any token was not above the token before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Watch {
    last: Token,
    fell: bool,
    fenced: bool,
    passed: bool,
    /// True if a node could not remember another node for which it had to wait.
    refused: bool,
}

impl Observer<Camera> for Watch {
    fn event(&mut self, _: usize, event: &Event) {
        match event {
            Event::Entered(token) => {
                self.fell |= *token <= self.last;
                self.last = *token;
            }
            Event::Fenced(_) => self.fenced = true,
            Event::PassedOver(_) => self.passed = true,
            Event::Refused(Refusal::NoRoom { .. }) => self.refused = true,
            Event::SlowPathTaken
            | Event::Waiting(_)
            | Event::Released(_)
            | Event::Cancelled
            | Event::Refused(Refusal::TooFew { .. }) => {}
        }
    }
}

/// A node in a line.
pub(super) fn show(machine: &Camera) -> String {
    let stage = match &machine.stage {
        Stage::Idle => "idle".to_string(),
        Stage::Waiting(waiting) => {
            let number = waiting.token.number;
            let awaited: Vec<String> = machine.waits_for().map(|it| it.to_string()).collect();
            format!("waits with {number} for [{}]", awaited.join(" "))
        }
        Stage::Inside(inside) => format!("INSIDE with {}", inside.token.number),
    };
    let granted: Vec<String> = machine
        .granted
        .grants()
        .iter()
        .map(|(member, grant)| format!("{member}:{}", grant.number))
        .collect();
    format!("{stage}, has said OK to [{}]", granted.join(" "))
}
