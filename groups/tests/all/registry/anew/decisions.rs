//! Two beginnings of a group never decide at one time.

use selvedge_groups::Published;
use selvedge_replica::Fact as Of;

use super::*;

/// The configuration of a group, the ballot, and the version.
type Entry = (u64, String, u64);

/// The decisions of a group, in the order in which quorums accepted them.
#[derive(Default)]
pub(super) struct Decisions {
    accepted: BTreeMap<Entry, BTreeSet<u64>>,
    pub(super) decided: Vec<Entry>,
}

impl Decisions {
    pub(super) fn follow(&mut self, town: &Town, of: GroupId) {
        for (id, fact) in &town.accepted {
            let Fact::Replica {
                group,
                fact:
                    Of::Accepted {
                        ballot,
                        after,
                        entries,
                        ..
                    },
                ..
            } = &fact.1
            else {
                continue;
            };
            if *group != of {
                continue;
            }
            for at in 1..=entries.len() as u64 {
                let entry = (fact.0.number, format!("{ballot:?}"), after + at);
                let voters = self.accepted.entry(entry.clone()).or_default();
                voters.insert(*id);
                if 2 * voters.len() > fact.0.voters.len() && !self.decided.contains(&entry) {
                    self.decided.push(entry);
                }
            }
        }
    }

    /// Returns true if a beginning decided something after a later one had.
    pub(super) fn is_doubled(&self) -> bool {
        let instances: Vec<u64> = self.decided.iter().map(|it| it.0 >> 22).collect();
        !instances.is_sorted()
    }
}

/// A leader is cut off with a link that the others have not learned, and they lose their memory.
fn leader_with_a_link(group: GroupId, rules: &'static [Published]) -> Decisions {
    let land = Land::first(7, &[group.0]);
    let mut town = Town::with(&land, config(), rules);
    town.run(Span::secs(2));
    town.ask(1, group, 1);
    let leader = town.leaders(group)[0];
    let mut others = members(&town, group);
    others.retain(|it| *it != leader);
    let failed = town.nodes[&others[0]].machine().me();
    town.input(leader, Input::Membership(Delta::Failed(failed)));
    let number = |town: &Town| {
        let replica = town.nodes[&leader].machine().replica(group).unwrap();
        replica.configuration().number
    };
    let before = number(&town);
    while number(&town) == before {
        town.run(Span::millis(10));
    }
    town.wire.retain(|it| it.2.id.0 != leader);
    town.cut.insert(leader);
    let next = members(&town, group);
    let is_new = |it: &&u64| **it != leader && !others.contains(it);
    let newcomer = *next.iter().find(is_new).unwrap();
    for id in others {
        forget(&mut town, id, 2, &land);
    }
    town.run(Span::secs(5));
    for number in 2..=5 {
        for id in (1..=7).filter(|it| *it != leader) {
            town.input(id, Input::Command(Command::SetEpoch(number)));
        }
        town.run(Span::secs(10));
    }
    assert!(has_begun_anew(&town, group));
    let asker = (1..=7).find(|it| *it != leader && *it != newcomer).unwrap();
    town.ask(asker, group, 5);
    // The former leader is back, and reaches the newcomer alone.
    town.cut = (1..=7)
        .filter(|it| *it != leader && *it != newcomer)
        .collect();
    for _ in 0..20 {
        let update = Change::Add(9);
        if town.nodes[&leader].machine().state(group).is_some() {
            let propose = Command::Propose { group, update };
            town.input(leader, Input::Command(propose));
        }
        town.run(Span::secs(1));
    }
    town.cut.clear();
    town.run(Span::secs(5));
    town.ask(asker, group, 6);
    let mut decisions = Decisions::default();
    decisions.follow(&town, group);
    decisions
}

/// In some of these groups the newcomer is no member of the next beginning.
const GROUPS: [GroupId; 4] = [GroupId(4), GroupId(8), GroupId(12), GroupId(16)];

#[test]
fn a_leader_that_was_away_does_not_go_on_in_a_former_beginning() {
    for group in GROUPS {
        assert!(!leader_with_a_link(group, &[]).is_doubled());
    }
}

#[test]
fn without_promises_two_beginnings_decide_at_once() {
    let rules = &[Published::EndsUnasked];
    let is_doubled = |it: &GroupId| leader_with_a_link(*it, rules).is_doubled();
    assert!(GROUPS.iter().any(is_doubled));
}
