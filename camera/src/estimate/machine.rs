//! The state of an estimator, and its handling of inputs.

use alloc::vec::Vec;

use selvedge_core::roster::Roster;
use selvedge_core::{Context, Delta, Input, Machine, Member, NodeId, Untracked};

use super::bound::{Tally, widened};
use super::walk::{MOST_BUDGET, budget, stay};
use super::{
    Command, Config, ConfigError, Counters, Event, Failure, Message, Misbehaviour, Reject, Timer,
    Walk,
};

/// Estimates the number of nodes, and answers the walks of other nodes that estimate. See the
/// [module](super) for its promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Estimator {
    config: Config,
    /// The members on this node's list, which are one hop away on the overlay.
    neighbours: Roster<()>,
    /// The number of the last estimate of this life.
    estimate: u32,
    run: Option<Run>,
    counters: Untracked<Counters>,
}

/// An estimate under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Run {
    /// The collection, sorted: the list as it was when the estimate began, and the
    /// samples since.
    met: Vec<NodeId>,
    /// The number of nodes in it at the beginning.
    known: u32,
    hits: u32,
    fresh: u32,
    /// The numbers of the walks under way, each in the place of its timer.
    under_way: Vec<u32>,
    next: u32,
    /// Restarts since the last sample.
    silence: u16,
}

impl Estimator {
    /// A node that knows no other yet; give it the deltas of the membership service.
    ///
    /// # Errors
    /// When the settings cannot work.
    pub fn new(me: Member, config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            // A suspect stays: walks that it loses are started again, and a neighbour that is
            // dropped wrongly is drawn too seldom.
            neighbours: Roster::split(me, config.neighbour_limit as usize, 0),
            config,
            estimate: 0,
            run: None,
            counters: Untracked::default(),
        })
    }

    /// The member that this node is.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.neighbours.me()
    }

    /// The number of neighbours: the degree on the overlay.
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.neighbours.listed_len()
    }

    /// Returns true if an estimate is under way.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.run.is_some()
    }

    /// The counters since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    fn begin(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if self.run.is_some() {
            return Err(Reject::Busy);
        }
        if self.neighbours.listed_len() == 0 {
            return Err(Reject::Alone);
        }
        let mut met = Vec::new();
        if self.config.count_known {
            met.extend(self.neighbours.listed().map(|member| member.id));
            if let Err(at) = met.binary_search(&self.me().id) {
                met.insert(at, self.me().id);
            }
        }
        self.estimate = self.estimate.wrapping_add(1);
        let at_once = self.config.at_once;
        self.run = Some(Run {
            known: u32::try_from(met.len()).unwrap_or(u32::MAX),
            met,
            hits: 0,
            fresh: 0,
            under_way: (0..at_once.into()).collect(),
            next: at_once.into(),
            silence: 0,
        });
        for slot in 0..at_once {
            self.counters.started += 1;
            self.launch(slot, slot.into(), cx);
        }
        Ok(())
    }

    /// Sends a walk out. It takes at least one hop, so it never ends at this node at once.
    fn launch(&mut self, slot: u8, number: u32, cx: &mut Context<'_, Self>) {
        let degree = self.neighbours.listed_len() as u64;
        // A node that has lost all neighbours since the estimate began waits for the timer.
        if degree > 0 {
            let walk = Walk {
                origin: self.me(),
                estimate: self.estimate,
                number,
                budget: budget(self.config.length, degree),
                hops: self.config.hop_limit,
            };
            self.pass(walk, cx);
        }
        cx.arm(Timer::Walk(slot), self.config.timeout);
    }

    /// Starts an overdue walk again.
    fn on_tick(&mut self, slot: u8, cx: &mut Context<'_, Self>) {
        let Some(run) = self.run.as_mut() else {
            // The estimate is over.
            return;
        };
        let Some(&number) = run.under_way.get(usize::from(slot)) else {
            // Not a timer of this node.
            return;
        };
        run.silence = run.silence.saturating_add(1);
        if run.silence > self.config.patience {
            let samples = run.hits + run.fresh;
            self.end(Event::Failed(Failure::Silence { samples }), cx);
            return;
        }
        self.counters.restarted += 1;
        self.launch(slot, number, cx);
    }

    /// Takes a walk: it uses up some of its budget here, then ends or goes on.
    fn pass(&mut self, mut walk: Walk, cx: &mut Context<'_, Self>) {
        let degree = self.neighbours.listed_len() as u64;
        let stay = stay(degree, cx);
        // A node that knows no other keeps a walk for ever, so the walk ends here.
        if degree == 0 || walk.budget <= stay {
            self.counters.ended += 1;
            self.answer(walk, cx);
            return;
        }
        walk.budget -= stay;
        // A peer may claim more hops than this node allows.
        let Some(hops) = walk.hops.min(self.config.hop_limit).checked_sub(1) else {
            self.counters.capped += 1;
            return;
        };
        walk.hops = hops;
        let chosen = usize::try_from(cx.below(degree)).unwrap_or(0);
        if let Some(to) = self.neighbours.nth_listed(chosen) {
            self.counters.forwarded += 1;
            cx.send(to, Message::Walk(walk));
        }
    }

    fn answer(&mut self, walk: Walk, cx: &mut Context<'_, Self>) {
        let Walk {
            origin,
            estimate,
            number,
            ..
        } = walk;
        if origin == self.me() {
            self.sample(self.me().id, estimate, number, cx);
        } else {
            let sample = Message::Sample {
                origin,
                estimate,
                number,
            };
            cx.send(origin, sample);
        }
    }

    /// Takes the sample of a walk of this node, which ended at `id`. The first answer of each walk
    /// counts.
    fn sample(&mut self, id: NodeId, estimate: u32, number: u32, cx: &mut Context<'_, Self>) {
        let run = self.run.as_mut().filter(|_| estimate == self.estimate);
        let Some((run, place)) = run.and_then(|run| {
            let place = run.under_way.iter().position(|&other| other == number)?;
            Some((run, place))
        }) else {
            self.counters.stale += 1;
            return;
        };
        run.silence = 0;
        match run.met.binary_search(&id) {
            Ok(_) => run.hits += 1,
            Err(at) => {
                run.met.insert(at, id);
                run.fresh += 1;
            }
        }
        let enough = run.hits >= self.config.hits.into()
            || run.hits + run.fresh >= self.config.sample_limit.into();
        if enough {
            let tally = Tally {
                known: run.known,
                hits: run.hits,
                fresh: run.fresh,
            };
            self.end(self.conclude(tally), cx);
            return;
        }
        let number = run.next;
        run.next = run.next.wrapping_add(1);
        if let Some(under_way) = run.under_way.get_mut(place) {
            *under_way = number;
        }
        self.counters.started += 1;
        // There are at most 64 places.
        self.launch(u8::try_from(place).unwrap_or(u8::MAX), number, cx);
    }

    fn conclude(&self, tally: Tally) -> Event {
        let samples = tally.hits + tally.fresh;
        let Some(max_lives) = tally.max_lives(self.config.miss) else {
            return Event::Failed(Failure::Unbounded {
                samples,
                hits: tally.hits,
            });
        };
        let nodes = tally.likeliest();
        Event::Estimated {
            nodes,
            max_lives: widened(max_lives, self.config.skew).max(nodes),
            known: tally.known,
            samples,
            fresh: tally.fresh,
        }
    }

    fn end(&mut self, event: Event, cx: &mut Context<'_, Self>) {
        self.run = None;
        for slot in 0..self.config.at_once {
            cx.disarm(Timer::Walk(slot));
        }
        cx.event(event);
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if from.id == self.me().id {
            return Err(Misbehaviour::OwnId(from).into());
        }
        match message {
            Message::Walk(Walk { budget, .. }) if budget == 0 || budget > MOST_BUDGET => {
                return Err(Misbehaviour::Budget {
                    budget,
                    limit: MOST_BUDGET,
                }
                .into());
            }
            // Walks of a former life or of a former estimate are no longer waited for.
            Message::Walk(walk) if walk.origin.id == self.me().id && !self.waits_for(walk) => {
                self.counters.stale += 1;
            }
            Message::Walk(walk) => self.pass(walk, cx),
            Message::Sample { origin, .. } if origin != self.me() => self.counters.stale += 1,
            Message::Sample {
                estimate, number, ..
            } => self.sample(from.id, estimate, number, cx),
        }
        Ok(())
    }

    fn waits_for(&self, walk: Walk) -> bool {
        walk.origin == self.me()
            && walk.estimate == self.estimate
            && self
                .run
                .as_ref()
                .is_some_and(|run| run.under_way.contains(&walk.number))
    }

    /// Takes a delta. A delta about this node changes nothing, because no walk stays here.
    fn learn(&mut self, delta: Delta) {
        let learned = self.neighbours.learn(delta, |_| false);
        self.counters.neighbours_refused += u64::from(learned.is_err());
    }
}

impl Machine for Estimator {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(Timer::Walk(slot)) => {
                self.on_tick(slot, cx);
                Ok(())
            }
            Input::Membership(delta) => {
                self.learn(delta);
                Ok(())
            }
            Input::Command(Command::Estimate) => self.begin(cx),
        }
    }
}
