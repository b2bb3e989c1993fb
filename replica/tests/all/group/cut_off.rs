//! Members that are cut off while the others go on, and come back.

use std::collections::BTreeMap;

use selvedge_replica::Wants;

use super::*;

impl Group {
    /// Proposes updates at a node; nodes in `without` receive nothing.
    fn propose_without(&mut self, id: u64, updates: impl Iterator<Item = u16>, without: &[u64]) {
        for update in updates {
            self.command(id, Command::Propose(update));
            self.deliver_without(without);
        }
    }

    /// No two nodes applied different updates at one version.
    fn assert_one_history(&self) {
        let mut decided = BTreeMap::new();
        for (id, event) in &self.events {
            if let Event::Applied {
                version,
                by,
                number,
                ..
            } = event
            {
                let (first, other) = *decided.entry(version).or_insert((id, (by, number)));
                assert_eq!((by, number), other, "version {version} at {id} and {first}");
            }
        }
    }
}

const LEFT: [u64; 2] = [1, 2];
const RIGHT: [u64; 3] = [3, 4, 5];

/// Leader 1 is cut off with 2; each part decides, or goes on with, updates of its own.
fn part(budget: u16, updates: u16) -> Group {
    let ids = [1, 2, 3, 4, 5];
    let mut first = Configuration::of(ids.map(member));
    first.frame_budget = budget;
    let mut group = Group::new(&first, &ids);
    group.propose_without(1, 1..2, &[]);
    group.wait(Span::secs(1));
    group.propose_without(1, 1_000..1_000 + updates, &RIGHT);
    assert_eq!(group.state(2), [1], "two of five decide nothing");
    for id in RIGHT {
        for ended in LEFT {
            group.notify(id, Delta::Failed(member(ended)));
        }
    }
    group.deliver_without(&LEFT);
    group.propose_without(3, 2_000..2_000 + updates, &LEFT);
    assert_eq!(group.state(3).len(), 1 + usize::from(updates));
    group
}

/// The parts reach each other again, which the membership service notices late.
fn mend(group: &mut Group) {
    // A message takes as long as a tick: timers of the former leader tick between two of them.
    for round in 0..300 {
        for (id, back) in RIGHT.into_iter().flat_map(|id| LEFT.map(|back| (id, back))) {
            if round == 150 {
                group.notify(id, Delta::Refuted(member(back)));
            }
        }
        group.slow_round(Span::millis(100));
        group.assert_one_history();
    }
}

/// All updates are applied in the end, at all members of the present configuration.
fn assert_applied(group: &Group, ids: &[u64], updates: u16) {
    for &id in ids {
        let state = group.state(id);
        assert_eq!(state.len(), 1 + 2 * usize::from(updates), "at {id}");
        assert_eq!(state[..], *group.state(3), "at {id}");
    }
}

#[test]
fn a_leader_that_comes_back_after_a_change_of_members_gives_up_what_it_proposed_alone() {
    let mut group = part(1_400, 250);
    group.command(3, Command::Configure(Configuration::of(RIGHT.map(member))));
    group.deliver_without(&LEFT);
    assert_eq!(group.node(4).configuration().number, 2);
    mend(&mut group);
    assert_eq!(group.state(3).len(), 251);
    for id in LEFT {
        assert_eq!(group.node(id).configuration().number, 2);
    }
}

#[test]
fn a_leader_that_comes_back_after_a_change_that_names_it_applies_what_the_others_did() {
    let mut group = part(1_400, 250);
    let all = Configuration::of([1, 2, 3, 4, 5].map(member));
    group.command(3, Command::Configure(all));
    group.deliver_without(&LEFT);
    mend(&mut group);
    assert_applied(&group, &[1, 2, 3, 4, 5], 250);
}

#[test]
fn a_leader_that_comes_back_and_learns_in_parts_leads_no_more() {
    for budget in [127, 1_400] {
        let mut group = part(budget, 9);
        mend(&mut group);
        assert_applied(&group, &[1, 2, 3, 4, 5], 9);
    }
}

/// The LEARN that a node sends to a member that lacks the entries behind the first version.
fn learn_from(group: &mut Group, id: u64, count: usize) -> Body<u16> {
    let missing = Body::Missing {
        committed: 1,
        wants: Wants::Entries,
    };
    match &group.say(id, member(4), missing)[..] {
        [(4, Body::Learn { after, entries })] => Body::Learn {
            after: *after,
            entries: entries.iter().take(count).cloned().collect(),
        },
        sent => panic!("{sent:?}"),
    }
}

fn is_accept(sent: &(u64, Body<u16>)) -> bool {
    matches!(sent.1, Body::Accept { .. })
}

#[test]
fn a_leader_that_learns_another_entry_than_it_proposed_is_deposed_before_it_sends() {
    let mut group = part(1_400, 9);
    let ballot = group.node(1).leader().unwrap().1;
    let learn = learn_from(&mut group, 3, 4);
    let sent = group.say(1, member(4), learn);
    assert!(!sent.iter().any(is_accept), "{sent:?}");
    assert_eq!(group.notified(1, |it| *it == Event::Deposed(ballot)), 1);
    assert_eq!(group.state(1), [1, 2_000, 2_001, 2_002, 2_003]);
}

/// It has nothing in flight: another leader decided all the same.
#[test]
fn a_leader_that_learns_an_entry_behind_what_it_proposed_is_deposed() {
    let mut group = part(1_400, 0);
    group.propose_without(3, 2_000..2_002, &LEFT);
    let ballot = group.node(1).leader().unwrap().1;
    let learn = learn_from(&mut group, 3, 1);
    let sent = group.say(1, member(4), learn);
    assert!(!sent.iter().any(is_accept), "{sent:?}");
    assert_eq!(group.notified(1, |it| *it == Event::Deposed(ballot)), 1);
}

#[test]
fn a_leader_that_learns_what_it_proposed_goes_on() {
    let mut group = Group::of(&[1, 2, 3]);
    group.propose_without(1, 1..2, &[]);
    for update in 5..9 {
        group.command(1, Command::Propose(update));
    }
    let sent = group.taken();
    let entries = sent.into_iter().filter_map(|(to, it)| match it {
        Body::Accept { entries, .. } if to == 2 => Some(entries),
        _ => None,
    });
    let entries = entries.flatten().take(2).collect();
    group.say(1, member(2), Body::Learn { after: 1, entries });
    assert!(group.node(1).leads());
    assert_eq!(group.state(1), [1, 5, 6]);
}

/// A state does not contain the entries that led to it, so the leader cannot compare them.
#[test]
fn a_leader_that_receives_the_state_of_its_configuration_is_deposed() {
    let mut group = part(1_400, 9);
    let ballot = group.node(1).leader().unwrap().1;
    let missing = Body::Missing {
        committed: 1,
        wants: Wants::State,
    };
    let pages = group.say(3, member(1), missing);
    let [(1, page)] = &pages[..] else {
        panic!("{pages:?}");
    };
    let sent = group.say(1, member(3), page.clone());
    assert!(!sent.iter().any(is_accept), "{sent:?}");
    assert_eq!(group.notified(1, |it| *it == Event::Deposed(ballot)), 1);
    assert_eq!(group.state(1).len(), 10);
}

/// All other members of its configuration have left the group, and have forgotten it.
#[test]
fn a_leader_that_was_left_behind_by_all_asks_nodes_outside() {
    let mut group = Group::new(&Configuration::of([1, 2, 3].map(member)), &[1, 2, 3, 4]);
    group.propose_without(1, 1..2, &[]);
    group.wait(Span::secs(1));
    group.command(1, Command::TransferLeadership(NodeId(2)));
    group.wait(Span::secs(1));
    group.command(2, Command::Configure(Configuration::of([member(4)])));
    group.deliver_without(&[1]);
    group.wait_without(Span::secs(1), &[1]);
    assert!(group.node(4).leads());
    // Node 1 leads once more, with a promise of 3 as it was before.
    let mut alone = Group::new(&Configuration::of([1, 2, 3].map(member)), &[1, 2, 3]);
    alone.command(1, Command::Propose(1));
    alone.deliver();
    let at = group.at(1);
    group.nodes[at] = alone.nodes.swap_remove(0);
    for id in [2, 3] {
        let mark = group.node(id).mark();
        let dropped = Replica::newcomer_behind(member(id), Config::new(), mark);
        let at = group.at(id);
        group.nodes[at] = Driver::new(dropped.unwrap());
    }
    group.wire.clear();
    group.notify(1, Delta::Joined(member(4)));
    group.command(1, Command::Propose(2));
    group.wait(Span::secs(20));
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Unavailable { .. })),
        1
    );
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Abandoned { .. })),
        1
    );
    assert_eq!(group.node(1).configuration().number, 2);
}
