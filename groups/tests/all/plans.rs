//! The plan, equal on all nodes.

use selvedge_core::Incarnation;
use selvedge_groups::{ConfigError, Leader, Locality, Place, Policy, Weight};
use selvedge_replica::Configuration;

use crate::mesh::*;

/// The most bytes in a frame around a message of a replica.
const AROUND: u16 = 18;

fn nodes() -> Vec<Node> {
    (1..=5).map(|id| Node::new(id, Place([3, 0, 0]))).collect()
}

fn near(functions: u8, tables: u8, width: u32) -> Selection {
    let locality = Locality {
        functions,
        tables,
        width,
    };
    let selection = Selection::new().with_failures(1);
    selection.with_policy(Policy::Near(locality))
}

#[test]
fn plans_that_differ_in_anything_have_other_digests() {
    let of = |selection, nodes: Vec<Node>| Plan::new(selection, nodes).unwrap();
    let uniform = Selection::new().with_failures(1);
    let with_node = |node: Node| {
        let mut nodes = nodes();
        nodes[0] = node;
        of(uniform, nodes)
    };
    let plain = || of(uniform, nodes());
    let plans = [
        plain(),
        of(uniform.with_failures(2), nodes()),
        of(uniform.with_leader(Leader::Nearest), nodes()),
        of(near(2, 2, 4), nodes()),
        of(near(3, 2, 4), nodes()),
        of(near(2, 3, 4), nodes()),
        of(near(2, 2, 5), nodes()),
        of(near(3, 3, 4), nodes()),
        with_node(Node::without_place(NodeId(1))),
        with_node(nodes()[0].with_weight(Weight(15))),
        with_node(nodes()[0].with_weight(Weight(0))),
        with_node(Node::new(1, Place([0, 0, 0]))),
        with_node(Node::new(1, Place([0, 3, 0]))),
        with_node(Node::new(1, Place([0, 0, 3]))),
        with_node(Node::new(1, Place([-3, 0, 0]))),
        with_node(Node::new(6, Place([3, 0, 0]))),
        plain().with(0),
        plain().with(1),
        plain().with_frame_budget(1_000).unwrap(),
        plain().with_frame_budget(1_400).unwrap(),
    ];
    let mut digests: Vec<u32> = plans.iter().map(Plan::digest).collect();
    assert_eq!(digests[0], plain().digest());
    let turned = of(uniform, nodes().into_iter().rev().collect());
    assert_eq!(
        digests[0],
        turned.digest(),
        "whatever the order of the list"
    );
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), plans.len());
}

#[test]
fn a_plan_that_cannot_work_is_refused() {
    let uniform = Selection::new();
    let few = Plan::new(uniform, nodes().into_iter().take(4));
    let (found, needed) = (4, 5);
    assert_eq!(few, Err(ConfigError::TooFewNodes { found, needed }));
    assert!(Plan::new(uniform, nodes()).is_ok());
    let twice = Plan::new(uniform, nodes().into_iter().chain(nodes().pop()));
    assert_eq!(twice, Err(ConfigError::Twice(NodeId(5))));
    assert!(Plan::new(uniform.with_failures(32), nodes()).is_err());
    let plan = Plan::new(uniform, nodes()).unwrap();
    assert!(plan.clone().with_frame_budget(150).is_ok());
    assert!(plan.with_frame_budget(149).is_err());
}

/// Founders are named in life 0. Later members have lives of any length, and then they have to fit, too.
#[test]
fn a_plan_whose_frames_have_no_room_for_the_names_of_later_members_is_refused() {
    let nodes = (0..5).map(|it| Node::without_place(NodeId(u64::MAX - it)));
    let plan = Plan::new(Selection::new(), nodes).unwrap();
    let refused = plan.clone().with_frame_budget(160).unwrap_err();
    let ConfigError::Frame { found: 160, needed } = refused else {
        panic!("{refused:?}");
    };
    assert!(plan.clone().with_frame_budget(needed - 1).is_err());
    let plan = plan.with_frame_budget(needed).unwrap();
    let members = plan.nodes().iter().map(|it| Member {
        id: it.id,
        incarnation: Incarnation(u32::MAX),
    });
    let longest = Configuration {
        number: Configuration::NUMBER_MAX,
        frame_budget: plan.frame_budget() - AROUND,
        ..Configuration::of(members)
    };
    assert_eq!(longest.check(), Ok(()));
}

#[test]
fn settings_of_groups_have_ranges() {
    let config = Config::new();
    assert!(config.check().is_ok());
    for wrong in [
        config.with_patience(Span(0)),
        config.with_replace_after(0),
        config.with_groups(0),
        config.with_leader_hints(0),
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    let unplanned = Groups::<Sum, Payload>::new(
        life(9, 0),
        config,
        Arc::new(plan(5)),
        Arc::new(vec![]),
        Start::Fresh,
    );
    assert_eq!(unplanned.unwrap_err(), Reject::Unplanned(NodeId(9)));
}

#[test]
fn a_node_that_founds_more_groups_than_it_may_be_in_is_refused() {
    let site: Vec<GroupId> = (1..=8).map(GroupId).collect();
    let begun = |limit, begin| {
        let (plan, site) = (Arc::new(plan(3)), Arc::new(site.clone()));
        let config = config().with_groups(limit);
        Groups::<Sum, Payload>::new(life(1, 0), config, plan, site, begin)
    };
    assert!(begun(8, Start::Fresh).is_ok());
    let refused = begun(7, Start::Fresh).unwrap_err();
    let expected = "this node founds 8 groups, and `groups` is 7: set it to 8 or more";
    assert_eq!(format!("{refused}"), expected);
    assert!(begun(7, Start::Restarted).is_ok());
}

const STAGGER: Span = Span::secs(10);

#[test]
fn groups_change_at_different_moments_of_a_span() {
    let site: Vec<GroupId> = (0..100).map(GroupId).collect();
    let first = Span::secs(2);
    let config = config().with_change_delay(first).with_stagger(STAGGER);
    let plan = Arc::new(plan_for(0, 1));
    let groups = Groups::new(life(1, 0), config, plan, Arc::new(site), Start::Fresh);
    let mut node = One::of(groups.unwrap());
    node.command(Command::SetEpoch(1));
    while !(0..100).all(|id| node.machine().leads(GroupId(id))) {
        node.now = node.driver.deadline().unwrap();
        node.expire();
    }
    node.command(Command::SetEpoch(2));
    let now = node.now;
    let timers = node.timers().into_iter();
    let changes = timers.filter(|it| matches!(it.0, Timer::Change(_)));
    let all: Vec<Span> = changes.map(|it| it.1.since(now)).collect();
    assert_eq!(all.len(), 100);
    assert!(all.iter().all(|it| (first..first + STAGGER).contains(it)));
    let different: BTreeSet<Span> = all.into_iter().collect();
    assert!(different.len() > 60, "{}", different.len());
}

#[test]
fn a_plan_has_the_policy_that_the_places_of_its_nodes_give() {
    let selection = Selection::new().with_failures(1);
    let policy = |nodes: Vec<Node>| Plan::new(selection, nodes).unwrap().selection().policy;
    let placed = |x: i32| (1..=5).map(move |id| Node::new(id, Place([x * id as i32, 0, 0])));
    let near = Policy::Near(Locality::for_spacing(6));
    assert_eq!(policy(placed(6).collect()), near);
    assert_eq!(policy(placed(0).collect()), Policy::Uniform);
    let nowhere = Node::without_place(NodeId(6));
    assert_eq!(
        policy(placed(6).chain([nowhere]).collect()),
        Policy::Uniform
    );
}

/// A group has a device at each end of a line of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
struct Ends;

const FAR: i32 = 1_000;

impl selvedge_replica::State for Ends {
    type Update = ();
    type Outcome = ();

    fn apply(&mut self, (): &()) {}
}

impl selvedge_groups::Begins for Ends {
    type Site = ();

    fn groups((): &()) -> Vec<GroupId> {
        vec![GROUP]
    }

    fn devices((): &(), group: GroupId) -> Vec<(NodeId, Place)> {
        let ends = [(1, 0), (2, FAR)].map(|(id, x)| (NodeId(id), Place([x, 0, 0])));
        ends.into_iter().filter(|_| group == GROUP).collect()
    }

    /// The farthest first: the plan puts them in order.
    fn neighbours((): &(), device: NodeId) -> Vec<Place> {
        let away = [FAR / 2, 50, 40, 30, 20, 10];
        let from_end = |it: i32| if device.0 == 1 { it } else { FAR - it };
        away.map(|it| Place([from_end(it), 0, 0])).to_vec()
    }

    fn begin((): &(), group: GroupId) -> Option<Self> {
        (group == GROUP).then_some(Self)
    }
}

/// The machine's choice: a leader near one end or the other, epoch by epoch.
#[test]
fn the_centre_of_a_group_is_drawn_for_each_epoch() {
    let nodes = (0..=100).map(|at| Node::new(at, Place([at as i32 * FAR / 100, 0, 0])));
    let plan = Plan::new(Selection::new(), nodes).unwrap();
    let nodes = plan.nodes().to_vec();
    let (mut here, mut there, mut moved, mut before) = (0, 0, 0, false);
    for epoch in 0..400 {
        let chosen = plan.choose::<Ends>(&(), epoch, nodes.clone(), [GROUP, LATER]);
        let [(GROUP, Ok(near)), (LATER, Ok(any))] = &chosen[..] else {
            panic!("{chosen:?}");
        };
        let is_here = near[..3].iter().all(|it| it.0 <= 20);
        let is_there = near[..3].iter().all(|it| it.0 >= 80);
        assert!(is_here || is_there, "{epoch}: {near:?}");
        here += usize::from(is_here);
        there += usize::from(is_there);
        moved += usize::from(is_here != before);
        before = is_here;
        let uniform = plan.selection().with_policy(Policy::Uniform);
        let by_hash = crate::chooser(uniform, epoch, &nodes);
        assert_eq!(
            any,
            &by_hash
                .choose(crate::target(LATER.0, Place::default()))
                .unwrap()
        );
    }
    // Each of two with equal probability: 200 with a deviation of 10.
    assert_eq!(here + there, 400);
    assert!(
        (150..=250).contains(&here) && (150..=250).contains(&moved),
        "{here} {moved}"
    );
}
