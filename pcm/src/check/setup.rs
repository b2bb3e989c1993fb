//! The nodes of a scenario, its faults and the promises that it checks.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member, NodeId, Span};
use selvedge_replica::{Configuration, State as _};
use selvedge_sim::check::{Bounds, Expected, Model, Scenario, State, Trial};

use super::party::{Ask, CLIENT, FIRST, Party};
use super::property;
use super::watch::Watch;
use crate::client::{self, Client};
use crate::follower::{self, Follower};
use crate::gateway::{self, Gateway, Voting};
use crate::node::Timer;
use crate::{Attachment, DutyCycle, Libraries, Limits, Published, Tables, Update};

/// All nodes.
pub(super) type Mesh = State<Party, Watch>;

/// The nodes (gateways 1 to n, followers from 11, a client), the faults and the promises of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number of gateways.
    pub gateways: u64,
    /// The value that each follower returns; see [`Party`].
    pub followers: &'static [u8],
    /// The client's commands.
    pub asks: &'static [Ask],
    /// The number of times that the first follower goes to another gateway.
    pub moves: usize,
    /// The greatest number of attempts of a task.
    pub attempts: u16,
    /// The moments at which a gateway may give up a unit that has not answered.
    pub offload: Offload,
    /// The followers that a gateway may take for failed while they are up, by place.
    pub suspects: &'static [usize],
    /// True if it does so only after they have returned a result.
    pub suspects_late: bool,
    /// Pairs of gateways, by place: the first may receive a report that the second has failed, and then
    /// the opposite report.
    pub misses: &'static [(usize, usize)],
    /// True if only gateways that are down are reported as failed.
    pub misses_rightly: bool,
    /// The gateways, by place, at which timers expire; all of them if this is empty.
    pub ticks_at: &'static [usize],
    /// The gateways, by place, that may crash and restart; if this is empty, followers crash instead.
    pub crashes: &'static [usize],
    /// The part of a gateway's memory that a crash leaves.
    pub memory: Memory,
    /// The rule by which gateways become voters.
    pub voting: Voting,
    /// True if gateways count the votes.
    pub counts_votes: bool,
    /// The bounds of all other faults.
    pub bounds: Bounds,
    /// The rules of the paper that are in force.
    pub rules: &'static [Published],
    /// The promises that are checked.
    pub promises: &'static [Promise],
    /// Events that must occur in some run, so that a scenario in which nothing happens does not pass.
    pub sees: &'static [Sight],
}

/// The moments at which a gateway may give up a unit that has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Never.
    Never,
    /// When no message is in flight.
    InVain,
    /// At any time.
    Early,
}

/// The part of a gateway's memory that a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing: the gateway returns as a newcomer.
    None,
    /// The facts that are stored. The gateway takes no further step while a fact waits to be stored.
    Facts,
}

/// A promise that is checked: the paper's properties (Figure 2), in a form that can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Election safety: no two gateways manage under one ballot.
    ElectionSafety,
    /// Election safety, second sentence: one orchestrator for each attempt and term.
    OneOrchestrator,
    /// Topology and task tracking safety: a version belongs to one table, at all gateways and at all times.
    /// Also resource manager completeness: once a version has been seen with an answer, each gateway with
    /// that version or a later one has the answer.
    Tracking,
    /// Cluster exclusiveness: a follower has one seat in one unit, in the tables of each gateway.
    OneUnit,
    /// CO append-only: a vote that is counted stays counted, in its attempt.
    AppendOnly,
    /// Table matching: gateways with one version have equal tables.
    TableMatching,
    /// A task has one answer, at any gateway and at any time.
    OneAnswer,
    /// A client receives only the decided answer, and once.
    Received,
    /// An orchestrator's answer is the result of enough of its present electors.
    Backed,
    /// The followers that are named as voters returned the answer, and are enough of the followers that had
    /// the task.
    Voted,
    /// Units are formed no more often than followers changed.
    Rest,
    /// The decided value is the honest followers' value, 1.
    Right,
    /// The client receives an answer in the end.
    Progress,
    /// The client receives a value in the end, rather than `Unanswered`.
    Value,
}

/// An event that must occur in some run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The client receives a value.
    Value,
    /// The client learns that the task is cancelled.
    Cancelled,
    /// No value has a majority.
    NoMajority,
    /// A second attempt is open, in another unit or in the same one again.
    SecondAttempt,
    /// Another orchestrator than the attempt's first has the task.
    SecondTerm,
    /// Another gateway than the first manages.
    SecondManager,
    /// The tables of some gateway have the open task.
    Decided,
    /// The configuration of voters is not the first one.
    Configured,
    /// A gateway that has restarted manages.
    ManagesAgain,
}

impl Setup {
    /// One gateway, three honest followers, one task, no faults.
    pub(super) const PLAIN: Self = Self {
        gateways: 1,
        followers: &[1, 1, 1],
        asks: &[Ask::Submit],
        moves: 0,
        attempts: 2,
        offload: Offload::InVain,
        suspects: &[],
        suspects_late: false,
        misses: &[],
        misses_rightly: false,
        ticks_at: &[],
        crashes: &[],
        memory: Memory::Facts,
        voting: Voting::Static,
        counts_votes: false,
        bounds: Bounds {
            drops: 0,
            duplicates: 0,
            crashes: 0,
            restarts: 0,
            deltas: None,
            ticks: None,
            early_ticks: None,
        },
        rules: &[],
        promises: &[
            Promise::OneAnswer,
            Promise::Received,
            Promise::Backed,
            Promise::Voted,
            Promise::Right,
            Promise::OneOrchestrator,
            Promise::OneUnit,
            Promise::AppendOnly,
            Promise::Progress,
        ],
        sees: &[Sight::Value],
    };

    /// Bounds of these numbers of lost and of duplicated messages.
    pub(super) const fn faults(drops: u32, duplicates: u32) -> Bounds {
        Bounds {
            drops,
            duplicates,
            ..Self::PLAIN.bounds
        }
    }

    fn members(self) -> impl Iterator<Item = Member> {
        (FIRST..)
            .take(self.followers.len())
            .map(|id| Member::new(id, 0))
    }

    fn gateways(self) -> impl Iterator<Item = NodeId> + Clone {
        (1..=self.gateways).map(NodeId)
    }

    /// Tables in which all followers are attached, in turn, and units are formed.
    fn tables(self) -> Tables {
        let limits = Limits::new()
            .with_unit(3)
            .with_attempts(self.attempts)
            .with_cache(0)
            .with_counts_votes(self.counts_votes);
        let mut tables = Tables::new(limits).published(self.rules);
        for (member, gateway) in self.members().zip(self.gateways().cycle()) {
            tables.apply(&Update::Attach(Attachment {
                member,
                number: 1,
                gateway,
                duty: DutyCycle::always(),
                libraries: Libraries::new(),
            }));
        }
        tables.apply(&Update::Cluster { after: 0 });
        tables
    }

    /// Settings without heartbeats: membership deltas report failed gateways.
    fn config(self) -> gateway::Config {
        gateway::Config::new()
            .with_heartbeat(Span::ZERO)
            .with_voting(self.voting)
    }

    fn parties(self) -> Vec<Party> {
        let first = Configuration::of(self.gateways().map(|id| Member::new(id.0, 0)));
        let config = self.config();
        let gateways = self.gateways().filter_map(|id| {
            let me = Member::new(id.0, 0);
            let made = Gateway::with_tables(me, config, first.clone(), self.tables());
            debug_assert!(made.is_ok(), "the settings can work");
            Some(Party::Gateway(Box::new(made.ok()?), None))
        });
        let mut all: Vec<Party> = gateways.collect();
        for (nth, (me, &value)) in self.members().zip(self.followers).enumerate() {
            let made = self.follower(me, nth);
            all.extend(made.map(|it| Party::Follower(Box::new(it), value)));
        }
        let client = Client::new(
            Member::new(CLIENT, 0),
            client::Config::new(),
            self.gateways(),
        );
        all.extend(client.ok().map(|it| Party::Client(it, Vec::new())));
        all
    }

    /// A follower that begins at the gateway of its place.
    fn follower(self, me: Member, nth: usize) -> Option<Follower> {
        let config = follower::Config::new(DutyCycle::always()).with_repeats(2);
        let count = usize::try_from(self.gateways).unwrap_or(1);
        let list = self.gateways().cycle().skip(nth % count).take(count);
        let made = Follower::new(me, config, list);
        debug_assert!(made.is_ok(), "the settings can work");
        Some(made.ok()?.published(self.rules))
    }

    /// The scenario.
    #[must_use]
    pub fn model(self) -> Model<Party, Watch> {
        let parties = self.parties();
        let client = parties.len() - 1;
        let gateways = usize::try_from(self.gateways).unwrap_or(1);
        let followers = self.followers.len();
        let watch = Watch {
            is_tracking: self.promises.contains(&Promise::Tracking),
            ..Watch::default()
        };
        let mut model = Model::observed(parties, Party::me, watch)
            .bounds(self.bounds)
            .start(|_, _, party, cx| party.begin(cx))
            .restart(move |node, life, remains| self.again(node, life, remains))
            .crash_when(move |mesh, node| {
                // A node that is down cannot crash.
                let may_crash = match self.crashes {
                    [] => (gateways..gateways + followers).contains(&node),
                    named => named.contains(&node),
                };
                may_crash && mesh.node(node).is_some()
            })
            .commands(client, self.asks)
            .show(Party::show)
            .tick_when(move |mesh, node, tick| self.may_tick(mesh, node, tick));
        if !self.crashes.is_empty() && self.memory == Memory::Facts {
            model = model.durable(0);
        }
        if self.moves > 0 {
            model = model.commands(gateways, vec![Ask::Move; self.moves]);
        }
        for node in 0..gateways {
            let ended = self.misses.iter().filter(|it| it.0 == node);
            let ended = ended.map(|it| Member::new(it.1 as u64 + 1, 0));
            let deltas: Vec<Delta> = ended
                .flat_map(|it| [Delta::Failed(it), Delta::Refuted(it)])
                .collect();
            model = model.deltas(node, deltas);
        }
        if self.misses_rightly {
            model = model.delta_when(|mesh, _, delta| {
                matches!(delta, Delta::Failed(ended) if mesh.machines().all(|it| it.me() != ended))
            });
        }
        for &promise in self.promises {
            model = property::promise(model, promise);
        }
        for &sight in self.sees {
            model = property::sight(model, sight);
        }
        model
    }

    /// The next life of a node: a follower's begins without memory, a gateway's with the stored facts.
    fn again(self, node: usize, life: u32, remains: &Party) -> Party {
        let me = Member::new(remains.me().id.0, life);
        let made = match remains {
            Party::Gateway(former, first) => {
                let made = self.gateway_again(me, former);
                made.map(|it| Party::Gateway(Box::new(it), first.clone()))
            }
            Party::Follower(_, value) => {
                let nth = node - usize::try_from(self.gateways).unwrap_or(node);
                let made = self.follower(me, nth);
                made.map(|it| Party::Follower(Box::new(it), *value))
            }
            Party::Client(..) => None,
        };
        debug_assert!(made.is_some(), "what crashes begins again");
        made.unwrap_or_else(|| remains.clone())
    }

    fn gateway_again(self, me: Member, former: &Gateway) -> Option<Gateway> {
        let (config, all) = (self.config(), self.gateways());
        let made = match self.memory {
            Memory::None => Gateway::newcomer(me, config, all),
            Memory::Facts => Gateway::restore(me, config, former.replica().stored(), all),
        };
        made.ok()
    }

    /// Returns true if a timer may expire: timers that repeat a message do so only after it was lost.
    fn may_tick(self, mesh: &Mesh, node: usize, tick: Timer) -> bool {
        let is_gateway = matches!(tick, Timer::Gateway(_));
        if is_gateway && !self.ticks_at.is_empty() && !self.ticks_at.contains(&node) {
            return false;
        }
        let is_quiet = || !mesh.is_busy();
        match tick {
            Timer::Gateway(gateway::Timer::Offload(_)) => match self.offload {
                Offload::Never => false,
                Offload::InVain => is_quiet(),
                Offload::Early => true,
            },
            Timer::Gateway(gateway::Timer::Purge(id)) => {
                let nth =
                    id.0.checked_sub(FIRST)
                        .and_then(|it| usize::try_from(it).ok());
                let is_suspect = nth.is_some_and(|it| self.suspects.contains(&it));
                let is_known = property::knows(mesh, id);
                // A suspected follower attaches itself again; it is suspected only once, to bound the model.
                let is_suspect = is_suspect
                    && property::is_at_first(mesh, id)
                    && (!self.suspects_late || property::has_returned(mesh, id));
                is_known && (is_suspect || is_quiet() && property::has_ended(mesh, id))
            }
            Timer::Gateway(gateway::Timer::Tables(_)) | Timer::Client(_) => is_quiet(),
            Timer::Gateway(gateway::Timer::Cluster) => is_quiet(),
            Timer::Gateway(
                gateway::Timer::Heartbeat | gateway::Timer::Manager | gateway::Timer::Timeout(_),
            ) => false,
            Timer::Gateway(gateway::Timer::Review) => is_quiet() && self.gateways > 1,
            Timer::Follower(follower::Timer::Phase) => {
                is_quiet() && property::has_something_to_say(mesh)
            }
            // A slow function may end at any time.
            Timer::Follower(follower::Timer::Run) => true,
        }
    }
}

impl Trial for Setup {
    const PROTOCOL: &'static str = "pcm";

    type Rule = Published;
    type Promise = &'static [Promise];

    fn scenario(self, name: String, expected: Expected) -> Scenario {
        Scenario::new(name, expected, move || self.model())
    }

    fn under(self, rules: &'static [Published], promises: &'static [Promise]) -> Self {
        Self {
            rules,
            // An erratum without a rule of the machines is about orchestrators that count the votes.
            counts_votes: self.counts_votes && !rules.is_empty(),
            promises,
            sees: &[],
            ..self
        }
    }
}
