//! The random steps of a history: operations, faults, and the passing of time.

use super::*;

impl World {
    fn any_session(&mut self) -> Option<SessionId> {
        let all: Vec<SessionId> = self.nodes.iter().flat_map(|it| it.kept.clone()).collect();
        (!all.is_empty()).then(|| all[self.choices.below(all.len() as u64) as usize])
    }

    /// Steps whose entries this session owns, or a present one, or none.
    fn any_transaction(&mut self, begun: Option<Owner>) -> Transaction {
        let mut transaction = Transaction::default();
        for _ in 0..=self.choices.below(3) {
            let name = self.choices.below(30);
            let key = format!("{}{name}", ["a/", "b/"][self.choices.below(2) as usize]);
            let owner = if self.choices.percent(30) {
                begun.or_else(|| self.any_session().map(Owner::Session))
            } else {
                None
            };
            let value = std::iter::repeat_n(7, self.choices.below(60) as usize).collect();
            transaction.then.push(match self.choices.below(4) {
                0 => Action::Remove { key },
                1 => Action::Append {
                    prefix: PREFIX.into(),
                    value,
                    owner,
                },
                _ => Action::Put { key, value, owner },
            });
        }
        transaction
    }

    /// A fault beside those of messages: leaders change, former ones are behind, a node is cut off or restarts.
    /// Returns the node that restarted.
    pub(crate) fn fail(&mut self) -> Option<usize> {
        let at = self.choices.below(NODES) as usize;
        match self.choices.below(60) {
            0..3 if self.is_hasty || self.choices.percent(15) => self.elect(),
            3..6 => {
                let behind = self.choices.below(self.leaders.len() as u64) as usize;
                self.follow(behind);
            }
            6 => self.away = (at, self.now + self.choices.below(5_000)),
            7 if self.choices.percent(50) => {
                self.restart(at);
                return Some(at);
            }
            _ => {}
        }
        None
    }

    /// The present leader stays, and messages get through.
    pub(crate) fn calm(&mut self) {
        self.loss = 0;
        self.leaders.drain(..self.leaders.len() - 1);
    }

    fn act(&mut self) {
        let at = self.choices.below(NODES) as usize;
        match self.choices.below(30) {
            0 => {
                let longest = if self.is_hasty { 4_000 } else { 20_000 };
                let ttl = Span::millis(1_000 + self.choices.below(longest));
                let transaction = match self.choices.percent(50) {
                    true => self.any_transaction(Some(Owner::Begun)),
                    false => Transaction::new(),
                };
                self.change(at, Operation::BeginSession { ttl, transaction });
            }
            1 => {
                if let Some(session) = self.any_session() {
                    self.change(at, Operation::EndSession(session));
                }
            }
            2 => {
                let mine = self.nodes[at].kept.pop_first();
                if let Some(session) = mine {
                    self.command(at, StoreCommand::StopKeepAlive(session));
                }
            }
            3 => {
                if let Some(session) = self.any_session() {
                    self.command(at, StoreCommand::KeepAlive(session));
                    self.nodes[at].kept.insert(session);
                }
            }
            4 if self.is_hasty || self.choices.percent(15) => self.elect(),
            5 => {
                let behind = self.choices.below(self.leaders.len() as u64) as usize;
                self.follow(behind);
            }
            6 => {
                let key = format!("a/{}", self.choices.below(30));
                let value = Some([1].into_iter().collect());
                self.change(at, Operation::set(key, Expected::Absent, value));
            }
            7 if self.choices.percent(3) => {
                self.away = (at, self.now + self.choices.below(20_000));
                self.remove_many();
            }
            8 | 9 if self.choices.percent(30) => {
                let owner = self.nodes.iter().position(|it| !it.kept.is_empty());
                let at = owner.unwrap_or(at);
                self.away = (at, self.now + self.choices.below(15_000));
            }
            10..15 => {
                let operation = Operation::Transact(self.any_transaction(None));
                self.change(at, operation);
            }
            _ => {}
        }
    }

    pub(crate) fn step(&mut self) {
        self.now += STEP;
        self.deliver();
        self.tick();
        if self.choices.percent(70) {
            self.decide();
        }
        // A node that knows that its session lives is right.
        for (at, node) in self.nodes.iter().enumerate() {
            let clock = self.clock(at);
            for (&session, &until) in &node.lives {
                let is_alive = clock >= until || self.state.session(session).is_some();
                // It may have been ended by a command.
                let is_ended = || self.log.contains(&ended_by(&self.log, session));
                assert!(
                    is_alive || is_ended(),
                    "{session} has expired, {clock:?} {until:?}"
                );
            }
        }
    }

    pub(super) fn run(&mut self) {
        for _ in 0..800 {
            self.act();
            self.step();
        }
        self.calm();
        for _ in 0..900 {
            self.step();
            self.decide();
            self.decide();
        }
        let kept: BTreeSet<SessionId> = self.nodes.iter().flat_map(|it| it.kept.clone()).collect();
        let alive: BTreeSet<SessionId> = self.state.sessions().map(|it| it.0).collect();
        assert_eq!(alive, kept, "at the end");
        let latest = self.contents.last_key_value().map(|it| it.1);
        for node in &self.nodes {
            assert!(Some(&node.mirror) == latest, "at the end");
        }
    }
}
