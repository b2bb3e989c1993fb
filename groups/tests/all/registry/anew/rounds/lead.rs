//! The lead of the registry, and the time of rounds.

use super::*;

impl Rounds {
    /// The other members of the registry take its leader for failed, and another one leads.
    fn depose(&mut self) {
        let leader = self.town.nodes[&self.leader].machine().me();
        for id in self.others.clone() {
            let failed = Input::Membership(Delta::Failed(leader));
            self.town.input(id, failed);
        }
        self.report_until(|town| town.leaders(GroupId::REGISTRY).len() > 1);
        for id in self.others.clone() {
            let joined = Input::Membership(Delta::Joined(leader));
            self.town.input(id, joined);
        }
        let id = leader.id.0;
        self.report_until(|town| !town.leaders(GroupId::REGISTRY).contains(&id));
    }

    /// Reports wait at the leader until its question is over.
    fn report_until(&mut self, is_over: impl Fn(&Town) -> bool) {
        for _ in 0..3_000 {
            if is_over(&self.town) {
                return;
            }
            self.report(FIRST, 0);
            self.run(Span::millis(10), |_| None);
        }
        panic!("{:?} lead", self.town.leaders(GroupId::REGISTRY));
    }
}

#[test]
fn a_leader_of_the_registry_asks_nothing_more_behind_its_lead() {
    for is_binding in [false, true] {
        let mut rounds = Rounds::new();
        let members = members_of(&rounds.others);
        rounds.report(FIRST, 0);
        while rounds.counts().1 < usize::from(is_binding) || rounds.rounds.is_empty() {
            rounds.run(Span::millis(10), |it| Some(lost(it, &members)));
        }
        rounds.depose();
        rounds.rounds.clear();
        rounds.run(Span::secs(30), |it| Some(lost(it, &members)));
        assert_eq!(rounds.rounds, []);
        assert_eq!(rounds.birth(), None);
    }
}

/// A change of members may be under way for as long.
#[test]
fn the_leader_pauses_between_rounds_that_bind_nobody() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    let mut times = vec![];
    rounds.report(FIRST, 0);
    while rounds.birth().is_none() {
        rounds.run(Span::millis(10), |it| Some(lost(it, &members)));
        if rounds.rounds.len() > times.len() {
            times.push(rounds.town.now);
        }
    }
    let pauses: Vec<Span> = times.windows(2).map(|it| it[1].since(it[0])).collect();
    assert_eq!(pauses.len(), 4);
    assert!(pauses[..2].iter().all(|it| *it >= PATIENCE), "{pauses:?}");
    assert!(pauses[2..].iter().all(|it| *it < PATIENCE), "{pauses:?}");
}
