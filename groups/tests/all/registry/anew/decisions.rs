//! Two beginnings of a group never decide at one time.

use proptest::prelude::*;
use selvedge_groups::Published;
use selvedge_replica::Fact as Of;

use super::super::town::Machine;
use super::*;

/// The configuration of a group, the ballot, and the version.
type Entry = (u64, String, u64);

/// The decisions of a group, in the order in which quorums accepted them.
#[derive(Default)]
struct Decisions {
    accepted: BTreeMap<Entry, BTreeSet<u64>>,
    decided: Vec<Entry>,
}

impl Decisions {
    fn follow(&mut self, town: &Town) {
        for (id, fact) in &town.accepted {
            let Fact::Replica {
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
    fn is_doubled(&self) -> bool {
        let instances: Vec<u64> = self.decided.iter().map(|it| it.0 >> 22).collect();
        !instances.is_sorted()
    }
}

/// A leader is cut off with a link that the others have not learned, and they lose their memory.
fn leader_with_a_link(group: GroupId, rules: &'static [Published]) -> Decisions {
    let land = Land::first(7, &[group.0]);
    let mut town = Town::with(&land, rules);
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
    decisions.follow(&town);
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

#[derive(Clone, Copy, Debug)]
enum Fault {
    Forgets(u64),
    Stops(u64),
    Starts(u64),
    Cut(u64),
    Joined,
    Asks(u64),
    Epoch,
    Runs(u8),
    Believes(u64, u64),
}

fn fault() -> impl Strategy<Value = Fault> {
    let node = 1..=7_u64;
    prop_oneof![
        2 => node.clone().prop_map(Fault::Forgets),
        1 => node.clone().prop_map(Fault::Stops),
        1 => node.clone().prop_map(Fault::Starts),
        1 => node.clone().prop_map(Fault::Cut),
        1 => Just(Fault::Joined),
        2 => node.clone().prop_map(Fault::Asks),
        4 => Just(Fault::Epoch),
        4 => (1..60_u8).prop_map(Fault::Runs),
        1 => (node.clone(), node).prop_map(|(at, of)| Fault::Believes(at, of)),
    ]
}

/// Returns the nodes that lost their memory, too.
fn suffer(faults: &[Fault], loss: u64) -> (Town, Decisions, usize) {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.loss = loss;
    let mut lives = [1_u32; 8];
    // A node that lost its memory founds nothing in later lives.
    let mut starts = [Start::Fresh; 8];
    let mut forgets = 0;
    let mut epoch = 1;
    town.run(Span::secs(1));
    for fault in faults {
        match *fault {
            // The registry keeps its quorum.
            Fault::Forgets(id) if forgets < 3 && town.nodes.contains_key(&id) => {
                forgets += 1;
                lives[id as usize] += 1;
                starts[id as usize] = Start::Restarted;
                forget(&mut town, id, lives[id as usize], &land);
            }
            Fault::Stops(id) if town.nodes.contains_key(&id) => town.stop(id),
            Fault::Starts(id) if !town.nodes.contains_key(&id) => {
                lives[id as usize] += 1;
                town.start(life(id, lives[id as usize]), &land, starts[id as usize]);
            }
            Fault::Cut(id) => {
                town.cut.insert(id);
            }
            Fault::Joined => town.cut.clear(),
            Fault::Asks(id) => {
                let ask = Command::Ask {
                    group: FIRST,
                    payload: id,
                };
                town.input(id, Input::Command(ask));
            }
            Fault::Epoch => {
                epoch += 1;
                for id in 1..=7 {
                    town.input(id, Input::Command(Command::SetEpoch(epoch)));
                }
                town.run(Span::secs(3));
            }
            Fault::Runs(tenths) => town.run(Span::millis(100) * u64::from(tenths)),
            Fault::Believes(at, of) if at != of => {
                let member = town.nodes.get(&of).map(|it| it.machine().me());
                let delta = member.map(|it| Input::<Machine>::Membership(Delta::Failed(it)));
                if let Some(delta) = delta {
                    town.input(at, delta);
                }
            }
            _ => {}
        }
    }
    town.cut.clear();
    town.loss = u64::MAX;
    for id in 1..=7 {
        if !town.nodes.contains_key(&id) {
            lives[id as usize] += 1;
            town.start(life(id, lives[id as usize]), &land, starts[id as usize]);
        }
        let me = town.nodes[&id].machine().me();
        for other in (1..=7).filter(|it| *it != id) {
            town.input(other, Input::Membership(Delta::Joined(me)));
        }
    }
    epochs(&mut town, epoch + 1..=epoch + 5);
    let mut decisions = Decisions::default();
    decisions.follow(&town);
    (town, decisions, forgets)
}

fn cases() -> u32 {
    let cases = std::env::var("SELVEDGE_HISTORIES").ok();
    cases.and_then(|it| it.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn of_two_beginnings_one_decides_at_a_time_and_the_last_one_goes_on(
        faults in proptest::collection::vec(fault(), 10..60),
        loss in prop_oneof![Just(u64::MAX), 3..20_u64],
    ) {
        let (mut town, decisions, forgets) = suffer(&faults, loss);
        prop_assert!(!decisions.is_doubled(), "{:?}", decisions.decided);
        let is_healthy = forgets < 2;
        prop_assert!(!(is_healthy && has_begun_anew(&town, FIRST)), "{forgets} lost");
        // A leader may answer, and lead no more before its proposal is decided.
        let is_held = |town: &Town| town.set(FIRST) & 1 << 40 > 0;
        for _ in 0..5 {
            if town.leaders(FIRST).len() != 1 || !is_held(&town) {
                town.ask(1, FIRST, 40);
                town.run(Span::secs(2));
            }
        }
        prop_assert!(is_held(&town));
    }
}
