//! The liveness checks after the trouble.

use selvedge_camera::Command;
use selvedge_core::{Choose, Delta, Span, Time};

use crate::contract::watch::Stand;
use crate::contract::world::{View, World};

const MINUTE: Span = Span::secs(60);

/// The time within which each node that can enter does.
const LONG: Span = Span::secs(3_600);

impl World<'_> {
    /// Runs the time after the trouble, with losses and late messages only: three times, each node
    /// that wants to enter does, and then no more messages are sent.
    pub(crate) fn calm(&mut self) {
        self.flows = Some(self.plan.loss);
        for packet in core::mem::take(&mut self.wire) {
            let late = if self.rng.below(4) == 0 { 10 } else { 1 };
            let delay = Span(1 + self.rng.below(MINUTE.0 * late));
            if self.rng.below(4) > 0 {
                self.post(delay, packet);
            }
        }
        for place in 0..self.nodes.len() {
            self.wake(place);
        }
        for round in 0..3 {
            if round > 0 {
                for place in 0..self.nodes.len() {
                    self.start(place);
                }
            }
            self.hear_the_truth(round);
            self.take_turns(round);
        }
        self.fall_silent();
    }

    /// Makes membership report what its contract requires, to each node at its own time: the ended
    /// lives, except nodes that never asked to enter and that this node never met; and enough of the
    /// live nodes.
    fn hear_the_truth(&mut self, round: usize) {
        let mut news = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else { continue };
            for life in &self.watch.lives {
                let whom = life.me;
                let notified = node.notified.get(&whom).copied();
                let is_met = notified.is_some() || life.has_asked;
                let to_list = self.plan.know_all.1 || self.rng.below(3) > 0;
                let delta = match (life.until, notified) {
                    (Some(_), Some(View::Over)) => continue,
                    (Some(_), _) if !is_met && self.rng.below(2) == 0 => continue,
                    (Some(_), _) => Delta::Confirmed(whom),
                    (None, None) if to_list => Delta::Joined(whom),
                    (None, Some(View::Failed)) if to_list => Delta::Refuted(whom),
                    (None, Some(View::Listed)) if !to_list && round == 0 => Delta::Failed(whom),
                    (None, _) => continue,
                };
                let within = if self.rng.below(2) == 0 { 1 } else { 120 };
                let at = self.now + Span(self.rng.below(Span::secs(within).0));
                news.push((at, place, delta));
            }
        }
        news.sort_by_key(|it| it.0);
        for place in 0..self.nodes.len() {
            let wants = round > 0 || self.rng.below(2) == 0;
            let at = self.now + Span(self.rng.below(MINUTE.0));
            let is_busy = self.stand(place) != Some(Stand::Outside);
            if let Some(node) = &mut self.nodes[place] {
                node.acts_at = (wants || is_busy).then_some(at);
            }
        }
        for (at, place, delta) in news {
            self.run(at, |_| false);
            self.membership(place, delta);
        }
        self.run(self.now + MINUTE, |_| false);
    }

    /// Checks that each node that waits enters or is refused with a reason, and that it enters if the
    /// lists connect enough nodes. In the first round some nodes ask for nothing: no node waits for
    /// another one to ask.
    fn take_turns(&mut self, round: usize) {
        let places = 0..self.nodes.len();
        let must: Vec<bool> = places.clone().map(|it| self.must_get_in(it)).collect();
        let are_new: Vec<bool> = places
            .clone()
            .map(|it| self.stand(it) == Some(Stand::Outside))
            .collect();
        for life in &mut self.watch.lives {
            life.refusals = 0;
        }
        let asks = |it: &usize| must[*it] && (round > 0 || !are_new[*it]);
        for place in places.clone().filter(asks) {
            self.watch.tally.served += 1;
            let at = self.now;
            if let Some(node) = &mut self.nodes[place] {
                node.acts_at = node.acts_at.or(Some(at));
            }
        }
        let is_done = |it: &Self| it.nodes.iter().flatten().all(|node| node.acts_at.is_none());
        self.run(self.now + LONG, is_done);
        for place in places {
            let Some(node) = &self.nodes[place] else {
                continue;
            };
            let life = &self.watch.lives[node.life];
            let camera = node.driver.machine();
            let awaited: Vec<_> = camera.waits_for().collect();
            assert!(node.acts_at.is_none(), "{life:?} waits for {awaited:?}");
            assert!(
                !must[place] || !are_new[place] || life.refusals == 0,
                "{life:?}"
            );
        }
    }

    /// Returns true if the lists connect a node with more than half of its bound, and none of these
    /// declines.
    fn must_get_in(&self, place: usize) -> bool {
        let Some(node) = &self.nodes[place] else {
            return false;
        };
        let max_lives = self.watch.lives[node.life].config.max_lives as usize;
        let mut reached = vec![place];
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            let near: Vec<usize> = (0..self.nodes.len())
                .filter(|&it| self.lists(at, it) && !reached.contains(&it))
                .collect();
            reached.extend(near);
            next += 1;
        }
        let near = (0..self.nodes.len()).filter(|&it| self.lists(place, it));
        let takes_part = |it: &crate::contract::world::Node| {
            let config = &self.watch.lives[it.life].config;
            config.slow_path && config.tree_limit > 1
        };
        let is_fast = 2 * (near.count() + 1) > max_lives;
        // If requests and answers get lost or take long, a child may be given up.
        let is_smooth = self.plan.loss == 0 && self.plan.delay < Span::millis(50);
        let all_take_part = self.nodes.iter().flatten().all(takes_part);
        let is_slow = is_smooth && all_take_part && 2 * reached.len() > max_lives;
        is_fast || is_slow
    }

    fn lists(&self, place: usize, other: usize) -> bool {
        let (Some(node), Some(whom)) = (&self.nodes[place], self.member(other)) else {
            return false;
        };
        node.notified.get(&whom) == Some(&View::Listed)
    }

    /// Checks that no message is sent when no permission is kept and no node has a request.
    fn fall_silent(&mut self) {
        self.flows = Some(0);
        for place in 0..self.nodes.len() {
            self.command(place, Command::GiveBack);
        }
        self.run(self.now + LONG, |_| false);
        let before = self.sent;
        self.run(self.now + LONG, |_| false);
        assert_eq!(self.sent, before, "messages that nobody needs");
        for node in self.nodes.iter().flatten() {
            self.watch.counts(node.driver.machine());
        }
    }

    /// Lets time pass, until something `is_done`. Messages, timers and applications come by themselves.
    pub(crate) fn run(&mut self, until: Time, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            let awake = |place: &usize| self.nodes[*place].as_ref().is_some_and(|it| !it.sleeps);
            let places: Vec<usize> = (0..self.nodes.len()).filter(awake).collect();
            let mail = self.mail.keys().next().map(|it| it.0);
            let timers = places.iter().filter_map(|&it| self.due(it));
            let acts = places
                .iter()
                .filter_map(|&it| self.nodes[it].as_ref()?.acts_at);
            let next = mail.into_iter().chain(timers).chain(acts).min();
            let Some(next) = next.filter(|&at| at < until) else {
                self.now = self.now.max(until);
                return;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.mail.first_entry()
                && entry.key().0 <= self.now
            {
                let packet = entry.remove();
                self.arrive(packet);
            }
            for place in places {
                if self.due(place).is_some_and(|at| at <= self.now) {
                    self.expire(place);
                }
                self.act(place);
            }
        }
    }

    /// Lets an application enter, stay for a while, and exit; if it is refused, it gives up the fourth
    /// time.
    fn act(&mut self, place: usize) {
        let pause = Span(1 + self.rng.below(Span::secs(2).0));
        let (now, stand) = (self.now, self.stand(place));
        let Some(node) = &mut self.nodes[place] else {
            return;
        };
        if node.acts_at.is_none_or(|at| at > now) {
            return;
        }
        let refusals = self.watch.lives[node.life].refusals;
        match stand {
            Some(Stand::Inside(_)) => {
                node.acts_at = None;
                self.command(place, Command::Exit);
            }
            Some(Stand::Outside) if refusals > 3 => node.acts_at = None,
            Some(Stand::Outside) => {
                node.acts_at = Some(now + pause);
                self.command(place, Command::Enter);
            }
            Some(Stand::Waiting) | None => node.acts_at = Some(now + pause),
        }
    }
}
