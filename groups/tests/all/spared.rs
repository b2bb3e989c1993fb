//! Nodes that are spared.

use chacha20::rand_core::Rng;
use selvedge_groups::Weight;

use crate::mesh::*;

const SPARE: Command<u64, Payload> = Command::SetSpared(true);
const SHARE: Command<u64, Payload> = Command::SetSpared(false);

type Carried = (Member, Item<u64, Payload>);

fn is_report(item: &Item<u64, Payload>) -> bool {
    matches!(item, Item::Spared { .. })
}

/// Reports that a node sent since the last call.
fn reports(node: &mut One) -> Vec<Carried> {
    let sent = node.sent().into_iter();
    sent.filter(|it| is_report(&it.1)).collect()
}

/// A node without a group that knows node 2.
fn other(id: u64) -> One {
    let mut node = One::new(id, 5, Start::Restarted);
    node.learn(Delta::Joined(life(2, 1)));
    node
}

/// Node 2, that knows nodes 1 and 3.
fn node_2() -> One {
    let mut node = One::of(machine(life(2, 1), 5, config(), Start::Restarted));
    node.learn(Delta::Joined(life(1, 0)));
    node.learn(Delta::Joined(life(3, 0)));
    node
}

/// The members that a group has in an epoch if these nodes are not there.
fn chosen_without(mesh: &Mesh, epoch: u64, absent: &[u64]) -> Vec<u64> {
    let machine = mesh.nodes[&1].machine();
    let (plan, site) = (machine.plan(), machine.site());
    let nodes = plan.nodes().iter().copied();
    let nodes = nodes.filter(|it| !absent.contains(&it.id.0));
    let mut chosen = plan.choose::<Sum>(site, epoch, nodes, [GROUP]);
    let members = chosen.pop().unwrap().1.unwrap();
    members.into_iter().map(|it| it.0).collect()
}

/// The members in the order in which they lead.
fn voters(mesh: &Mesh) -> Vec<u64> {
    let leader = &mesh.nodes[&mesh.leader(GROUP)];
    let configuration = leader.machine().replica(GROUP).unwrap().configuration();
    configuration
        .voters
        .iter()
        .map(|it| it.member.id.0)
        .collect()
}

fn next_epoch(mesh: &mut Mesh, epoch: u64) {
    mesh.epoch(epoch);
    mesh.run(Span::secs(20));
}

#[test]
fn a_spared_node_is_in_no_group_after_the_next_epoch_until_it_takes_its_share_again() {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(20));
    let spared = mesh.leader(GROUP);
    let before = mesh.members(GROUP);
    mesh.node(spared).command(SPARE);
    mesh.run(Span::secs(60));
    assert_eq!(
        mesh.members(GROUP),
        before,
        "nothing changes before an epoch"
    );
    assert_eq!(mesh.leader(GROUP), spared);
    for epoch in 2..20 {
        next_epoch(&mut mesh, epoch);
        assert_eq!(voters(&mesh), chosen_without(&mesh, epoch, &[spared]));
        assert!(!mesh.node(spared).is_in(GROUP), "epoch {epoch}");
    }
    let before = mesh.members(GROUP);
    mesh.node(spared).command(SHARE);
    mesh.run(Span::secs(60));
    assert_eq!(mesh.members(GROUP), before);
    let mut again = 0;
    for epoch in 20..40 {
        next_epoch(&mut mesh, epoch);
        assert_eq!(voters(&mesh), chosen_without(&mesh, epoch, &[]));
        again += usize::from(mesh.members(GROUP).1.contains(&spared));
    }
    assert!(again > 2, "{again}");
}

/// The report with the epoch arrives before a leader chooses, also where its stagger is zero.
#[test]
fn a_report_that_was_lost_counts_from_the_next_epoch_all_the_same() {
    let mut mesh = Mesh::new(9, config().with_stagger(Span::ZERO));
    mesh.run(Span::secs(20));
    for epoch in 2..12 {
        let leader = mesh.leader(GROUP);
        let next = chosen_without(&mesh, epoch, &[]);
        let spared = next.into_iter().find(|it| *it != leader).unwrap();
        mesh.node(spared).command(SPARE);
        assert_eq!(reports(mesh.node(spared)).len(), 8);
        assert!(!mesh.node(leader).machine().is_spared(NodeId(spared)));
        next_epoch(&mut mesh, epoch);
        assert_eq!(voters(&mesh), chosen_without(&mesh, epoch, &[spared]));
        mesh.node(spared).command(SHARE);
        mesh.settle();
    }
}

/// It misses the link by which it is no member any more, and nobody sends it another message.
#[test]
fn a_spared_node_that_missed_its_replacement_leaves_in_the_next_epoch() {
    let founders = founders(9, GROUP);
    let mut mesh = Mesh::new(9, config());
    let mut cases = 0;
    for epoch in 2..30 {
        next_epoch(&mut mesh, 2 * epoch);
        let leader = mesh.leader(GROUP);
        let mut others = mesh.members(GROUP).1.into_iter();
        let Some(spared) = others.find(|it| *it != leader && !founders.contains(it)) else {
            continue;
        };
        mesh.node(spared).command(SPARE);
        mesh.epoch(2 * epoch + 1);
        mesh.down.insert(spared);
        mesh.run(Span::secs(20));
        assert!(!mesh.members(GROUP).1.contains(&spared));
        mesh.down.clear();
        mesh.run(Span::secs(20));
        cases += usize::from(mesh.node(spared).is_in(GROUP));
        next_epoch(&mut mesh, 2 * epoch + 2);
        assert!(!mesh.node(spared).is_in(GROUP), "epoch {epoch}");
        mesh.node(spared).command(SHARE);
        mesh.settle();
    }
    assert!(cases > 3, "{cases}");
}

/// Seven nodes, and groups of five: all but 2f are spared.
#[test]
fn where_too_few_others_are_here_a_spared_node_is_a_member_and_leads_last() {
    let mut mesh = Mesh::of(&plan_for(2, 7), config());
    mesh.run(Span::secs(20));
    let spared = [voters(&mesh)[0], voters(&mesh)[1], voters(&mesh)[2]];
    for id in spared {
        mesh.node(id).command(SPARE);
    }
    mesh.settle();
    for epoch in 2..10 {
        next_epoch(&mut mesh, epoch);
        let members = voters(&mesh);
        let (last, first) = members.split_last().unwrap();
        assert_eq!(members.len(), 5);
        assert!(first.iter().all(|it| !spared.contains(it)), "{members:?}");
        assert!(spared.contains(last), "{members:?}");
        assert_eq!(mesh.leader(GROUP), members[0]);
    }
    // One of the others fails: a second spared node takes its place.
    let failed = voters(&mesh)[0];
    mesh.kill(failed);
    mesh.run(Span::secs(20));
    let members = voters(&mesh);
    assert_eq!(members.len(), 5);
    assert!(members[..3].iter().all(|it| !spared.contains(it)));
    assert!(members[3..].iter().all(|it| spared.contains(it)));
}

/// The members stay, in another order.
#[test]
fn a_spared_leader_that_no_other_node_can_replace_gives_up_the_lead() {
    let mut mesh = Mesh::new(3, config());
    mesh.run(Span::secs(20));
    for epoch in 2..12 {
        let spared = mesh.leader(GROUP);
        mesh.node(spared).command(SPARE);
        mesh.run(Span::secs(20));
        assert_eq!(mesh.leader(GROUP), spared);
        next_epoch(&mut mesh, epoch);
        assert_ne!(mesh.leader(GROUP), spared, "epoch {epoch}");
        assert_eq!(voters(&mesh).last(), Some(&spared));
        mesh.node(spared).command(SHARE);
    }
}

#[test]
fn where_all_nodes_are_spared_groups_are_as_if_none_was() {
    let mut mesh = Mesh::new(9, config());
    for id in 1..=9 {
        mesh.node(id).command(SPARE);
    }
    mesh.run(Span::secs(20));
    for epoch in 2..6 {
        next_epoch(&mut mesh, epoch);
        assert_eq!(voters(&mesh), chosen_without(&mesh, epoch, &[]));
    }
}

/// A member fails before the next epoch: a spared node is no better than one of weight 0.
#[test]
fn a_spared_node_replaces_no_member_that_failed() {
    let mut mesh = Mesh::new(5, config());
    mesh.run(Span::secs(20));
    let members = mesh.members(GROUP).1;
    let spare = (1..=5).find(|it| !members.contains(it)).unwrap();
    mesh.node(spare).command(SPARE);
    mesh.settle();
    let leader = mesh.leader(GROUP);
    let failed = members.into_iter().find(|it| *it != leader).unwrap();
    mesh.kill(failed);
    mesh.run(Span::secs(20));
    let (_, members) = mesh.members(GROUP);
    assert_eq!(members.len(), 3);
    assert!(!members.contains(&spare) && !members.contains(&failed));
}

#[test]
fn the_plan_weighs_a_spared_node_no_more_than_one_without_weight() {
    let weights = [0, 16, 16, 16, 16, 16, 255];
    let nodes = (1..).zip(weights).map(|(id, weight)| {
        let node = Node::without_place(NodeId(id));
        node.with_weight(Weight(weight))
    });
    let plan = Plan::new(Selection::new().with_failures(2), nodes).unwrap();
    let mut mesh = Mesh::of(&plan, config());
    mesh.node(7).command(SPARE);
    mesh.run(Span::secs(20));
    for epoch in 2..8 {
        next_epoch(&mut mesh, epoch);
        assert!(voters(&mesh).iter().all(|it| (2..=6).contains(it)));
    }
}

#[test]
fn a_node_that_never_asked_sends_nothing_and_one_that_has_reports_in_each_epoch() {
    let mut node = node_2();
    for command in [SHARE, Command::SetEpoch(1), Command::SetEpoch(2)] {
        node.command(command);
        assert_eq!(reports(&mut node), []);
    }
    let report = |number, is_spared| {
        let to_all = [1, 3].map(|id| (life(id, 0), Item::Spared { number, is_spared }));
        to_all.to_vec()
    };
    node.command(SPARE);
    assert_eq!(reports(&mut node), report(1, true));
    node.command(SPARE);
    assert_eq!(reports(&mut node), []);
    node.command(Command::SetEpoch(3));
    assert_eq!(reports(&mut node), report(1, true));
    node.command(SHARE);
    assert_eq!(reports(&mut node), report(2, false));
    // The report before may be lost.
    node.command(Command::SetEpoch(4));
    assert_eq!(reports(&mut node), report(2, false));
    assert!(!node.machine().is_spared(NodeId(2)));
}

#[test]
fn a_node_that_joins_gets_the_report_and_one_that_failed_gets_none() {
    let mut node = node_2();
    node.command(SPARE);
    node.sent();
    for joined in [Delta::Joined(life(4, 0)), Delta::Joined(life(1, 1))] {
        node.learn(joined);
        let to: Vec<Member> = reports(&mut node).iter().map(|it| it.0).collect();
        assert_eq!(to, [joined.member()]);
    }
    node.learn(Delta::Failed(life(3, 0)));
    assert_eq!(reports(&mut node), []);
    node.command(Command::SetEpoch(2));
    let to: Vec<Member> = reports(&mut node).iter().map(|it| it.0).collect();
    assert_eq!(to, [life(1, 1), life(4, 0)]);
    node.learn(Delta::Refuted(life(3, 0)));
    assert_eq!(reports(&mut node).len(), 1);
}

/// Reports are lost, copied and late, among changes and epochs. After the next epoch with a report
/// that arrives each node knows the last one.
#[test]
fn after_the_next_report_that_arrives_the_last_one_counts() {
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |count: u32| rng.next_u32() % count;
        let (mut node, mut other) = (node_2(), other(1));
        let (mut under_way, mut is_spared) = (Vec::<Carried>::new(), false);
        for epoch in 1..20 {
            match below(3) {
                0 => node.command(Command::SetEpoch(epoch)),
                change => {
                    is_spared = change == 1;
                    node.command(Command::SetSpared(is_spared));
                }
            }
            under_way.extend(reports(&mut node));
            // In any order; some come twice, and some never.
            for _ in 0..below(3) {
                if let Some((_, item)) = under_way.get(below(20) as usize) {
                    other.receive(life(2, 1), [item.clone()]);
                }
            }
        }
        node.command(Command::SetEpoch(20));
        let last = reports(&mut node).into_iter().filter(|it| it.0.id.0 == 1);
        under_way.splice(..0, last);
        for (nth, (_, item)) in under_way.into_iter().enumerate() {
            if nth == 0 || below(4) == 0 {
                other.receive(life(2, 1), [item]);
            }
        }
        assert_eq!(
            other.machine().is_spared(NodeId(2)),
            is_spared,
            "seed {seed}"
        );
    }
}

#[test]
fn a_report_counts_for_the_life_of_its_sender() {
    let spared = |number| Item::Spared {
        number,
        is_spared: true,
    };
    let mut node = other(1);
    node.receive(life(2, 1), [spared(9)]);
    assert!(node.machine().is_spared(NodeId(2)));
    // It is suspected, and fails, and comes back: all in that life.
    for news in [Delta::Suspected, Delta::Failed, Delta::Refuted] {
        node.learn(news(life(2, 1)));
        assert!(node.machine().is_spared(NodeId(2)));
    }
    node.learn(Delta::Joined(life(2, 2)));
    assert!(!node.machine().is_spared(NodeId(2)));
    node.receive(life(2, 1), [spared(10)]);
    assert!(!node.machine().is_spared(NodeId(2)), "a late one");
    // A message shows a later life, too.
    node.receive(life(2, 3), [spared(1)]);
    assert!(node.machine().is_spared(NodeId(2)));
    node.receive(life(2, 4), [Item::WantSite { at: 0 }]);
    let number = 1;
    node.receive(
        life(2, 4),
        [Item::Inquire {
            group: GROUP,
            number,
            configuration: 2,
        }],
    );
    assert!(!node.machine().is_spared(NodeId(2)));
}

#[test]
fn a_node_that_begins_again_takes_its_share_and_learns_who_is_spared() {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(20));
    for id in [1, 2] {
        mesh.node(id).command(SPARE);
    }
    mesh.settle();
    let again = life(1, 1);
    let mut node = One::of(machine(again, 9, config(), Start::Restarted));
    node.now = mesh.now;
    mesh.nodes.insert(1, node);
    for other in 2..=9 {
        mesh.node(other).learn(Delta::Joined(again));
        mesh.node(1).learn(Delta::Joined(life(other, 0)));
    }
    mesh.settle();
    for (id, node) in &mesh.nodes {
        let spared = [1, 2].map(|it| node.machine().is_spared(NodeId(it)));
        assert_eq!(spared, [false, true], "node {id}");
    }
}

#[test]
fn a_report_has_these_bytes() {
    let item: Item<u64, Payload> = Item::Spared {
        number: 300,
        is_spared: true,
    };
    let bytes = [15, 172, 2, 1];
    assert_eq!(postcard::to_allocvec(&item).unwrap(), bytes);
    assert_eq!(postcard::from_bytes::<Item<u64, Payload>>(&bytes), Ok(item));
}
