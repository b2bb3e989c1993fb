//! Limits on the sections that peers can make a node remember, and dropped sections.

use selvedge_camera::sections::Timer;

use super::*;

fn request(number: u64) -> Message {
    let (up_to, last, after) = (number, 0, None);
    let request = Request {
        number,
        up_to,
        last,
    };
    Message::Request { request, after }
}

/// A RELEASE whose sender entered with `last`.
fn release(number: u64, last: u64) -> Message {
    let over = number.max(last);
    Message::Release { number, last, over }
}

fn ok(number: u64) -> Message {
    Message::Ok {
        life: 0,
        number,
        after: None,
        rivals: [].into_iter().collect(),
        more: false,
        floor: Token::default(),
    }
}

fn token(number: u64, id: u64) -> Token {
    let holder = member(id);
    Token { number, by: holder }
}

fn small(passive_limit: u32) -> Config {
    Config::new(3)
        .with_passive_limit(passive_limit)
        .with_open_limit(2)
}

fn names(node: &Node) -> Vec<String> {
    node.machine()
        .iter()
        .map(|(it, _)| it.to_string())
        .collect()
}

#[test]
fn an_ok_is_never_forgotten_and_what_finds_no_room_is_counted() {
    let mut node = Node::new(1, small(2));
    node.receives(2, "a", request(1)).unwrap();
    node.receives(2, "b", request(1)).unwrap();
    assert_eq!(node.sent().len(), 2);
    // Both have an OK out: there is no room, and no answer.
    for nth in 0..100 {
        node.receives(3, &format!("c{nth}"), request(1)).unwrap();
    }
    assert_eq!(
        (node.sent(), names(&node)),
        (vec![], vec!["a".into(), "b".into()])
    );
    assert_eq!(node.machine().counters().passive_refused, 100);
    // Once one of them is over, there is.
    node.receives(2, "a", release(1, 1)).unwrap();
    node.receives(3, "c0", request(1)).unwrap();
    assert_eq!(node.sent().len(), 1);
    assert_eq!(names(&node), ["b", "c0"]);
    assert_eq!(node.machine().counters().dropped, 1);
}

#[test]
fn a_section_that_was_dropped_comes_back_with_its_floor() {
    let mut node = Node::new(1, small(1));
    node.receives(2, "a", Message::Floor { token: token(9, 2) })
        .unwrap();
    node.receives(2, "b", Message::Floor { token: token(4, 2) })
        .unwrap();
    assert_eq!(names(&node), ["b"]);
    node.receives(3, "a", request(12)).unwrap();
    let sent = node.sent();
    assert!(
        matches!(&sent[..], [(3, _, Message::Ok { number: 12, floor, .. })] if *floor == token(9, 2)),
        "{sent:?}"
    );
    assert_eq!(names(&node), ["a"]);
}

#[test]
fn with_room_for_all_no_number_of_one_section_shows_in_another() {
    let mut node = Node::new(1, small(2));
    node.receives(2, "a", Message::Floor { token: token(9, 2) })
        .unwrap();
    node.receives(3, "b", request(1)).unwrap();
    let sent = node.sent();
    assert!(
        matches!(&sent[..], [(3, _, Message::Ok { floor, .. })] if *floor == Token::default()),
        "{sent:?}"
    );
}

#[test]
fn what_needs_no_memory_is_answered_without_room() {
    let mut node = Node::new(1, small(1));
    node.receives(2, "a", request(1)).unwrap();
    node.sent();
    node.receives(2, "b", Message::Floor { token: token(7, 2) })
        .unwrap();
    assert_eq!(names(&node), ["a"]);
    // The floor was kept.
    node.receives(2, "a", release(1, 0)).unwrap();
    node.receives(3, "b", request(8)).unwrap();
    let sent = node.sent();
    assert!(
        matches!(&sent[..], [(3, _, Message::Ok { floor, .. })] if *floor == token(7, 2)),
        "{sent:?}"
    );
}

/// An OK to a request made before the section was dropped must not count for a later request.
/// The limit of trees changes when a section is opened or closed: there is room for our own tree
/// beside those of others, and nothing is left that keeps the section from being dropped.
#[test]
fn a_section_may_be_opened_with_room_for_more_trees_than_it_was_made_with() {
    let mut config = Config::new(9).with_passive_limit(1);
    config.section.tree_limit = 1;
    let mut node = Node::new(1, config);
    node.joined(&[2]);
    let join = |root: u64| Message::Join {
        tree: TreeId {
            root: member(root),
            number: 1,
            attempt: 1,
        },
        up_to: 65,
        last: 0,
    };
    let takes_part = |node: &mut Node| {
        let sent = node.sent();
        sent.iter().any(|it| matches!(it.2, Message::Join { .. }))
    };
    node.receives(3, "a", join(3)).unwrap();
    assert!(takes_part(&mut node));
    let more = config.section.with_tree_limit(2);
    let (a, config) = (name("a"), Some(more));
    node.command(Command::Open { name: a, config }).unwrap();
    node.receives(4, "a", join(4)).unwrap();
    assert!(takes_part(&mut node));
    node.receives(5, "a", join(5)).unwrap();
    assert!(!takes_part(&mut node));
    node.command(Command::Enter(a)).unwrap();
    assert!(takes_part(&mut node));
    for tree in [1, 2] {
        let input = Input::Message {
            from: member(2),
            message: selvedge_camera::sections::Message {
                section: a,
                message: Message::Nack {
                    tree: TreeId {
                        root: member(1),
                        number: tree,
                        attempt: 1,
                    },
                },
            },
        };
        node.step(input).unwrap();
    }
    assert!(!node.machine().get(a).unwrap().is_waiting(), "it is told");
    for root in [3, 4] {
        node.receives(root, "a", release(1, 0)).unwrap();
    }
    node.command(Command::Close(a)).unwrap();
    let tick = Timer {
        section: a,
        timer: selvedge_camera::Timer::Tree,
    };
    node.step(Input::Tick(tick)).unwrap();
    node.receives(2, "b", request(1)).unwrap();
    assert_eq!(names(&node), ["b"]);
}

#[test]
fn no_number_of_an_own_request_comes_twice_in_one_life() {
    let mut node = Node::new(1, small(1));
    node.joined(&[2, 3]);
    let number_of = |sent: Vec<(u64, String, Message)>| {
        sent.iter().find_map(|(_, _, message)| match message {
            Message::Request { request, .. } => Some(request.number),
            _ => None,
        })
    };
    let a = name("a");
    node.command(open("a")).unwrap();
    node.command(Command::Enter(a)).unwrap();
    assert_eq!(number_of(node.sent()), Some(1));
    node.command(Command::Cancel(a)).unwrap();
    node.command(Command::Close(a)).unwrap();
    node.receives(2, "b", request(1)).unwrap();
    assert_eq!(names(&node), ["b"]);
    node.sent();
    // An OK to a request that is over, in a section that was dropped: its sender learns of the end.
    let ok = Message::Ok {
        life: 0,
        number: 1,
        after: None,
        rivals: [].into_iter().collect(),
        more: false,
        floor: Token::default(),
    };
    node.receives(3, "a", ok.clone()).unwrap();
    let sent = node.sent();
    assert!(
        matches!(&sent[..], [(3, section, Message::Release { number: 1, .. })] if section == "a"),
        "{sent:?}"
    );
    node.command(open("a")).unwrap();
    node.command(Command::Enter(a)).unwrap();
    assert_eq!(number_of(node.sent()), Some(2));
    node.receives(3, "a", ok).unwrap();
    assert_eq!(node.machine().get(a).unwrap().token(), None);
}

#[test]
fn open_sections_are_limited_and_none_is_dropped() {
    let mut node = Node::new(1, small(1));
    node.command(open("a")).unwrap();
    node.command(open("b")).unwrap();
    assert_eq!(node.command(open("c")), Err(Reject::Full { limit: 2 }));
    node.receives(2, "c", request(1)).unwrap();
    node.receives(2, "d", request(1)).unwrap();
    assert_eq!(names(&node), ["a", "b", "c"]);
    // Closed sections may exceed the limit until room is needed.
    node.command(Command::Close(name("a"))).unwrap();
    assert_eq!(names(&node), ["a", "b", "c"]);
    node.command(open("d")).unwrap();
    assert_eq!(names(&node), ["b", "c", "d"]);
    node.command(Command::Close(name("d"))).unwrap();
    node.receives(2, "d", request(1)).unwrap();
    assert_eq!(node.command(open("e")), Err(Reject::Full { limit: 3 }));
}

#[test]
fn a_timer_of_a_section_that_was_dropped_is_passed_over() {
    let mut node = Node::new(1, small(1));
    node.receives(2, "a", request(1)).unwrap();
    assert_eq!(node.driver.timers().count(), 1);
    node.step(Input::Membership(Delta::Confirmed(member(2))))
        .unwrap();
    node.receives(3, "b", request(1)).unwrap();
    assert_eq!(names(&node), ["b"]);
    let (rng, late) = (&mut node.rng, Time::ZERO + Span::secs(99));
    node.driver.expire(late, rng, |_| ());
    assert_eq!(node.driver.refused_ticks(), 0);
}

/// A section without OKs but with a tree, if only for one more tick, is open, and is not dropped.
#[test]
fn a_section_is_dropped_when_its_last_tree_is_no_longer_watched() {
    let mut node = Node::new(1, small(1));
    node.joined(&[2, 3]);
    let tree = selvedge_camera::TreeId {
        root: member(4),
        number: 1,
        attempt: 1,
    };
    let (up_to, last) = (1, 0);
    node.receives(2, "a", Message::Join { tree, up_to, last })
        .unwrap();
    node.receives(4, "a", release(1, last)).unwrap();
    node.sent();
    node.receives(3, "b", request(1)).unwrap();
    assert_eq!((node.sent(), names(&node)), (vec![], vec!["a".into()]));
    let (rng, later) = (&mut node.rng, Time::ZERO + Span::secs(1));
    node.driver.expire(later, rng, |_| ());
    node.receives(3, "b", request(1)).unwrap();
    assert_eq!((node.sent().len(), names(&node)), (1, vec!["b".into()]));
}

/// Any messages about any sections, from any node: a bounded number of sections, and no panic.
#[test]
fn random_messages_are_survived_within_the_limits() {
    use chacha20::rand_core::Rng as _;
    use selvedge_core::Choose as _;
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut node = Node::new(1, small(3));
    node.joined(&[2, 3, 4]);
    for _ in 0..20_000 {
        let number = match rng.below(8) {
            0 => rng.next_u64(),
            small => small,
        };
        let section = format!("s{}", rng.below(9));
        let from = rng.below(4) + 2;
        let rivals = (0..rng.below(3)).map(|nth| selvedge_camera::Rival {
            member: member(nth + 2),
            up_to: number,
        });
        let message = match rng.below(6) {
            0 => request(number),
            1 => Message::Ok {
                life: 0,
                number,
                after: None,
                rivals: rivals.collect(),
                more: false,
                floor: token(number % 64, from),
            },
            2 => Message::Wait { number },
            3 => Message::Fence {
                token: token(number % 64, from),
            },
            4 => Message::Floor {
                token: token(number % 64, from),
            },
            _ => release(number, number % 64),
        };
        let _judged = node.receives(from, &section, message).is_ok();
        let section = name(&section);
        let config = None;
        let command = match rng.below(30) {
            0 => Command::Open {
                name: section,
                config,
            },
            1 => Command::Close(section),
            2 => Command::Enter(section),
            3 => Command::Exit(section),
            4 => Command::Cancel(section),
            _ => continue,
        };
        let _judged = node.command(command).is_ok();
        let count = node.machine().iter().count();
        assert!(count <= 5, "{count} sections");
        node.effects.clear();
    }
}

/// Nodes that have ended take no room from new nodes, both in a section that is opened later and in
/// one that is open.
#[test]
fn a_section_that_is_opened_later_knows_who_came_after_many_had_left() {
    let mut config = Config::new(2);
    config.section.peer_limit = 3;
    let mut node = Node::new(1, config);
    node.command(open("early")).unwrap();
    for id in 100..110 {
        node.joined(&[id]);
        let left = Delta::Left(member(id));
        node.step(Input::Membership(left)).unwrap();
    }
    node.joined(&[2]);
    node.command(open("late")).unwrap();
    for section in ["early", "late"] {
        assert_eq!(node.machine().get(name(section)).unwrap().listed(), 1);
        node.command(Command::Enter(name(section))).unwrap();
        let sent = node.sent();
        assert!(
            matches!(&sent[..], [(2, _, Message::Request { .. })]),
            "{section}: {sent:?}"
        );
    }
    assert_eq!(node.machine().counters().no_room, 0);
}

/// A request made before the section was dropped is over, and so are all tokens that it might have had.
#[test]
fn a_section_without_room_that_was_dropped_abstains_for_what_it_asked_before() {
    let mut config = Config::new(3).with_passive_limit(1);
    config.section.peer_limit = 1;
    let mut node = Node::new(1, config);
    node.joined(&[2]);
    let a = name("a");
    node.command(open("a")).unwrap();
    node.command(Command::Enter(a)).unwrap();
    let sent = node.sent();
    let [(2, _, Message::Request { request: asked, .. })] = sent[..] else {
        panic!("{sent:?}");
    };
    node.receives(2, "a", ok(asked.number)).unwrap();
    node.command(Command::Exit(a)).unwrap();
    node.command(Command::Close(a)).unwrap();
    let floor = Message::Floor { token: token(1, 2) };
    node.receives(2, "b", floor).unwrap();
    assert_eq!(names(&node), ["b"]);
    node.sent();
    node.receives(3, "a", request(9)).unwrap();
    let sent = node.sent();
    let [(3, _, Message::Abstain { over, .. })] = sent[..] else {
        panic!("{sent:?}");
    };
    // The nodes that gave their OK may name us with this number.
    assert!(over >= asked.up_to, "{over} of {}", asked.up_to);
}

/// Others may name us with a token of a permission that was kept. It is over with the RELEASE of a
/// later request, which reports that under any settings at that time.
#[test]
fn tokens_never_fall_where_a_section_is_opened_again_with_less_slack() {
    let mut config = Config::new(2);
    config.section.multicast = false;
    let mut node = Node::new(1, config);
    node.joined(&[2]);
    let a = name("a");
    let asked = |node: &mut Node, keep, slack| {
        let config = Some(config.section.with_keep(keep).with_slack(slack));
        node.command(Command::Open { name: a, config }).unwrap();
        node.command(Command::Enter(a)).unwrap();
        let sent = node.sent();
        let [(2, _, Message::Request { request, .. })] = sent[..] else {
            panic!("{sent:?}");
        };
        node.receives(2, "a", ok(request.number)).unwrap();
        node.command(Command::Exit(a)).unwrap();
        request
    };
    let kept = asked(&mut node, true, 9);
    assert_eq!((kept.up_to, node.sent()), (10, vec![]));
    node.command(Command::Close(a)).unwrap();
    let later = asked(&mut node, false, 0);
    let sent = node.sent();
    let [(2, _, Message::Release { over, .. })] = sent[..] else {
        panic!("{sent:?}");
    };
    assert!(later.up_to >= kept.up_to && over >= kept.up_to, "{later:?}");
    // Those are over: the next one has a higher one, with no slack at all.
    node.command(Command::Close(a)).unwrap();
    assert!(asked(&mut node, false, 0).up_to > over);
}

/// Also where it was dropped meanwhile, with the permissions.
#[test]
fn what_was_asked_in_a_section_before_it_was_dropped_is_over() {
    let mut config = small(1);
    config.section.multicast = false;
    config.section.keep = true;
    let mut node = Node::new(1, config);
    node.joined(&[2]);
    let a = name("a");
    let mut tokens = Vec::new();
    for _ in 0..2 {
        node.command(open("a")).unwrap();
        node.command(Command::Enter(a)).unwrap();
        let sent = node.sent();
        let [(2, _, Message::Request { request, .. })] = sent[..] else {
            panic!("{sent:?}");
        };
        node.receives(2, "a", ok(request.number)).unwrap();
        node.command(Command::Exit(a)).unwrap();
        node.command(Command::Close(a)).unwrap();
        let floor = Message::Floor { token: token(1, 2) };
        node.receives(2, "b", floor).unwrap();
        assert_eq!(names(&node), ["b"]);
        assert_eq!(node.sent(), []);
        // It does not know that nothing is open.
        node.receives(2, "a", ok(request.number)).unwrap();
        let sent = node.sent();
        let over = match sent[..] {
            [(2, _, Message::Release { over, .. })] => over,
            _ => panic!("{sent:?}"),
        };
        assert_eq!(over, request.up_to);
        tokens.push(request.up_to);
    }
    assert!(tokens[0] < tokens[1], "{tokens:?}");
}
