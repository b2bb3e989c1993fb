//! The faults.

use selvedge_camera::Command;
use selvedge_core::{Choose, Delta, Member, Span};

use crate::contract::plan::{Step, Word};
use crate::contract::watch::Stand;
use crate::contract::world::World;

impl World<'_> {
    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Command(place, command) => self.command(place, command),
            Step::Again(place, whom) => self.again(place, whom),
            Step::Deliver(number) => {
                if let Some(at) = self.under_way(number) {
                    let packet = self.wire.remove(at);
                    self.arrive(packet);
                }
            }
            Step::DeliverSome(source, target, count) => self.deliver(source, target, count),
            Step::Repeat(number) => {
                if let Some(at) = self.under_way(number) {
                    self.arrive(self.wire[at].clone());
                }
            }
            Step::Lose(number) => {
                if let Some(at) = self.under_way(number) {
                    self.wire.remove(at);
                }
            }
            Step::LoseFrom(source) => self.wire.retain(|packet| packet.source != source),
            Step::Pass(span) => self.pass(span),
            Step::Settle(span) => self.settle(span),
            Step::Sleep(place) => {
                if let Some(node) = &mut self.nodes[place] {
                    node.sleeps = true;
                }
            }
            Step::Wake(place) => self.wake(place),
            Step::Notify(place, word, whom, former) => {
                if let Some(whom) = self.latest(whom, former) {
                    self.notify(place, word, whom);
                }
            }
            Step::Crash(place) => self.crash(place),
            Step::Leave(place) => self.leave(place),
            Step::Start(place) => {
                let before = self.watch.lives.len();
                self.start(place);
                self.watch.tally.restarts += (self.watch.lives.len() - before) as u64;
            }
        }
    }

    /// A node enters by the answers of all but one, unless it is inside. It exits, gets a
    /// false report about another node, and enters again. Some of its requests are lost, and the
    /// other node may want to enter, too.
    fn again(&mut self, place: usize, whom: usize) {
        if self.stand(place) == Some(Stand::Outside) {
            self.command(place, Command::Enter);
            let places = 0..self.nodes.len();
            let mut others: Vec<usize> = places.filter(|&it| it != place && it != whom).collect();
            if !others.is_empty() {
                others.swap_remove(self.rng.below(others.len() as u64) as usize);
            }
            others.push(whom);
            for other in others {
                self.deliver(Some(place), Some(other), 8);
                self.deliver(Some(other), Some(place), 8);
            }
        }
        if !matches!(self.stand(place), Some(Stand::Inside(_))) {
            return;
        }
        self.watch.tally.again += 1;
        self.command(place, Command::Exit);
        if let Some(whom) = self.latest(whom, 0) {
            self.notify(place, Word::Failed, whom);
        }
        self.command(place, Command::Enter);
        if self.rng.below(4) > 0 {
            self.step(Step::LoseFrom(place));
        }
        if self.rng.below(4) > 0 && whom != place {
            if self.stand(whom) == Some(Stand::Outside) {
                self.command(whom, Command::Enter);
            }
            self.deliver(Some(whom), Some(place), 8);
        }
    }

    fn under_way(&self, number: u64) -> Option<usize> {
        (number as usize).checked_rem(self.wire.len())
    }

    /// The latest life at a place that has begun, or an earlier life.
    fn latest(&self, place: usize, former: usize) -> Option<Member> {
        let here = |it: &Member| it.id.0 == place as u64 + 1;
        let lives = self.watch.lives.iter().map(|it| it.me);
        lives.filter(here).rev().nth(former)
    }

    fn deliver(&mut self, source: Option<usize>, target: Option<usize>, count: u64) {
        for _ in 0..count {
            let is_meant = |is: usize, meant: Option<usize>| meant.is_none_or(|it| it == is);
            let next = self
                .wire
                .iter()
                .position(|it| is_meant(it.source, source) && is_meant(it.target, target));
            let Some(at) = next else {
                return;
            };
            let packet = self.wire.remove(at);
            self.arrive(packet);
        }
    }

    /// Lets time pass in which nothing arrives.
    fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        for place in 0..self.nodes.len() {
            if self.nodes[place].as_ref().is_some_and(|it| !it.sleeps) {
                self.expire(place);
            }
        }
    }

    fn settle(&mut self, span: Span) {
        for packet in core::mem::take(&mut self.wire) {
            let delay = Span(1 + self.rng.below(self.plan.delay.0));
            self.post(delay, packet);
        }
        self.flows = Some(0);
        self.run(self.now + span, |_| false);
        self.flows = None;
        self.wire
            .extend(core::mem::take(&mut self.mail).into_values());
    }

    fn notify(&mut self, place: usize, word: Word, whom: Member) {
        let delta = match word {
            Word::Here => Delta::Joined(whom),
            Word::Suspect => Delta::Suspected(whom),
            Word::Alive => Delta::Refuted(whom),
            Word::Failed => Delta::Failed(whom),
            Word::Over if self.rng.below(2) == 0 => Delta::Left(whom),
            Word::Over => Delta::Confirmed(whom),
        };
        self.membership(place, delta);
    }

    /// Makes a node give back all permissions, and leave. Some nodes learn of that at once.
    fn leave(&mut self, place: usize) {
        let Some(me) = self.member(place) else {
            return;
        };
        match self.stand(place) {
            Some(Stand::Inside(_)) => self.command(place, Command::Exit),
            Some(Stand::Waiting) => self.command(place, Command::Cancel),
            Some(Stand::Outside) | None => {}
        }
        self.command(place, Command::GiveBack);
        self.crash(place);
        for other in 0..self.nodes.len() {
            if self.rng.below(2) == 0 {
                self.membership(other, Delta::Left(me));
            }
        }
    }
}
