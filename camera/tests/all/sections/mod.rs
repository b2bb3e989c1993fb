//! Many sections in one machine: commands, the wire, limits, and whole meshes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod limits;
mod mesh;
mod wire;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::sections::{Command, Config, Event, Name, Reject, Sections};
use selvedge_camera::{Message, Refusal, Request, Token, TreeId};
use selvedge_core::roster::OwnEnd;
use selvedge_core::{Delta, Driver, Effect, Input, Member, Span, Time};

fn name(name: &str) -> Name {
    name.parse().unwrap()
}

fn open(section: &str) -> Command {
    Command::Open {
        name: name(section),
        config: None,
    }
}

fn member(id: u64) -> Member {
    Member::new(id, 0)
}

/// One node, by hand.
struct Node {
    driver: Driver<Sections>,
    rng: ChaCha8Rng,
    effects: Vec<Effect<Sections>>,
}

impl Node {
    fn new(id: u64, config: Config) -> Self {
        Self {
            driver: Driver::new(Sections::new(member(id), config).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(1),
            effects: Vec::new(),
        }
    }

    fn step(&mut self, input: Input<Sections>) -> Result<(), Reject> {
        let effects = &mut self.effects;
        self.driver
            .step_into(Time::ZERO, &mut self.rng, input, effects)
    }

    fn command(&mut self, command: Command) -> Result<(), Reject> {
        self.step(Input::Command(command))
    }

    fn joined(&mut self, ids: &[u64]) {
        for &id in ids {
            self.step(Input::Membership(Delta::Joined(member(id))))
                .unwrap();
        }
    }

    fn receives(&mut self, from: u64, section: &str, message: Message) -> Result<(), Reject> {
        let section = name(section);
        let message = selvedge_camera::sections::Message { section, message };
        let from = member(from);
        self.step(Input::Message { from, message })
    }

    /// The messages since the last call: receiver, section and message.
    fn sent(&mut self) -> Vec<(u64, String, Message)> {
        let sent = |effect: Effect<Sections>| match effect {
            Effect::Send { to, message } => {
                Some((to.id.0, message.section.to_string(), message.message))
            }
            _ => None,
        };
        self.effects.drain(..).filter_map(sent).collect()
    }

    fn machine(&self) -> &Sections {
        self.driver.machine()
    }
}

#[test]
fn a_section_that_is_not_open_is_refused_by_name() {
    let mut node = Node::new(1, Config::new(1));
    let door = name("door");
    for command in [
        Command::Enter(door),
        Command::Exit(door),
        Command::Cancel(door),
        Command::Close(door),
    ] {
        assert_eq!(node.command(command), Err(Reject::Unknown(door)));
    }
    let why = Reject::Unknown(door).to_string();
    assert_eq!(
        why,
        "section unknown: \"door\" is not open on this node: give Open first"
    );
    // Taking part for others is not to have it open.
    node.receives(
        2,
        "door",
        Message::Floor {
            token: Token::default(),
        },
    )
    .unwrap();
    assert!(node.machine().get(door).is_some() && !node.machine().is_open(door));
    assert_eq!(
        node.command(Command::Enter(door)),
        Err(Reject::Unknown(door))
    );
}

#[test]
fn a_section_is_opened_entered_left_and_closed() {
    let mut node = Node::new(1, Config::new(1));
    let door = name("door");
    node.command(open("door")).unwrap();
    assert_eq!(node.command(open("door")), Err(Reject::AlreadyOpen(door)));
    node.command(Command::Enter(door)).unwrap();
    assert_eq!(node.machine().in_use().collect::<Vec<_>>(), [door]);
    assert_eq!(node.command(Command::Close(door)), Err(Reject::InUse(door)));
    assert_eq!(
        node.command(Command::Enter(door)),
        Err(Reject::Section {
            section: door,
            reason: selvedge_camera::Reject::AlreadyInside
        })
    );
    node.command(Command::Exit(door)).unwrap();
    node.command(Command::Close(door)).unwrap();
    assert_eq!(
        node.command(Command::Close(door)),
        Err(Reject::Unknown(door))
    );
    // Opened again, it continues with its former state.
    node.command(open("door")).unwrap();
    node.command(Command::Enter(door)).unwrap();
    let numbers: Vec<u64> = (node.effects.iter())
        .filter_map(|effect| match effect {
            Effect::Event(Event {
                event: selvedge_camera::Event::Entered(token),
                ..
            }) => Some(token.number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn a_section_opened_later_is_told_who_is_here_and_who_is_over() {
    let mut node = Node::new(1, Config::new(3));
    node.joined(&[2, 3, 4, 5]);
    for delta in [
        Delta::Failed(member(3)),
        Delta::Left(member(4)),
        Delta::Confirmed(member(5)),
        Delta::Joined(Member::new(5, 1)),
    ] {
        node.step(Input::Membership(delta)).unwrap();
    }
    assert_eq!(node.sent(), []);
    node.command(open("door")).unwrap();
    node.command(Command::Enter(name("door"))).unwrap();
    let asked: Vec<u64> = node.sent().into_iter().map(|it| it.0).collect();
    assert_eq!(asked, [2, 5]);
    // Messages of a life that has ended are ignored.
    node.receives(
        4,
        "door",
        Message::Floor {
            token: Token::default(),
        },
    )
    .unwrap();
    let counters = node.machine().get(name("door")).unwrap().counters();
    assert_eq!(counters.stale, 1);
}

#[test]
fn what_is_about_this_node_itself_is_refused_and_changes_no_section() {
    let mut node = Node::new(1, Config::new(1));
    node.command(open("a")).unwrap();
    node.command(open("b")).unwrap();
    for delta in [Delta::Left(member(1)), Delta::Confirmed(member(1))] {
        let refused = node.step(Input::Membership(delta));
        assert_eq!(refused, Err(Reject::OwnEnd(OwnEnd(delta))));
    }
    node.step(Input::Membership(Delta::Suspected(member(1))))
        .unwrap();
    let refused = node
        .receives(1, "a", Message::Wait { number: 1 })
        .unwrap_err();
    assert!(refused.is_misbehaviour(), "{refused}");
    let refused = node
        .receives(1, "c", Message::Wait { number: 1 })
        .unwrap_err();
    assert!(refused.is_misbehaviour(), "{refused}");
    assert_eq!(node.machine().get(name("c")), None);
}

#[test]
fn a_bound_is_for_all_sections_and_those_to_come() {
    let mut node = Node::new(1, Config::new(1));
    node.command(open("a")).unwrap();
    let refused = node.command(Command::SetMaxLives(0)).unwrap_err();
    let reports = "the settings were refused: section: max_lives is 0: set it to at least 1";
    assert_eq!(refused.to_string(), reports);
    node.command(Command::SetMaxLives(9)).unwrap();
    node.command(open("b")).unwrap();
    assert_eq!(node.machine().config().section.max_lives, 9);
    for section in ["a", "b"] {
        node.effects.clear();
        node.command(Command::Enter(name(section))).unwrap();
        let refusal = Refusal::TooFew {
            answered: 1,
            max_lives: 9,
        };
        assert!(node.effects.contains(&Effect::Event(Event {
            section: name(section),
            event: selvedge_camera::Event::Refused(refusal),
        })));
    }
}

#[test]
fn a_section_may_work_in_another_way_and_shares_what_is_about_the_mesh() {
    let mut node = Node::new(1, Config::new(1));
    let own = selvedge_camera::Config::radio(77)
        .with_takeover(Some(Span::secs(9)))
        .with_peer_limit(1);
    let door = name("door");
    let config = Some(own);
    node.command(Command::Open { name: door, config }).unwrap();
    let shared = Config::new(1).section;
    let used = *node.machine().get(door).unwrap().config();
    assert_eq!((used.takeover, used.resend), (own.takeover, own.resend));
    assert_eq!((used.max_lives, used.peer_limit), (1, shared.peer_limit));
    assert_eq!(used.frame_budget, shared.frame_budget - 5);
    node.command(Command::Close(door)).unwrap();
    let used = *node.machine().get(door).unwrap().config();
    assert_eq!((used.takeover, used.resend), (None, shared.resend));
    let config = Some(own.with_resend(Span::ZERO));
    let refused = node.command(Command::Open { name: door, config });
    assert!(matches!(refused, Err(Reject::Config(_))));
}

#[test]
fn a_name_leaves_no_room_for_the_slow_path_in_the_shortest_frames() {
    let radio = Config::radio(1);
    // A name of 4 bytes takes 5.
    for (frame_budget, slow_path) in [(127, false), (131, false), (132, true)] {
        let section = radio.section.with_frame_budget(frame_budget);
        let mut node = Node::new(1, radio.with_section(section));
        node.command(open("door")).unwrap();
        let config = node.machine().get(name("door")).unwrap().config();
        assert_eq!(config.slow_path, slow_path, "{frame_budget}");

        // Nor does a tree of another node go through this node: it knows a node whose name would not
        // fit.
        let (number, up_to, last, after) = (u64::MAX - 1, u64::MAX - 1, 0, None);
        let request = Request {
            number,
            up_to,
            last,
        };
        let rival = u64::MAX;
        node.receives(rival, "door", Message::Request { request, after })
            .unwrap();
        node.sent();
        let tree = TreeId {
            root: member(3),
            number: 1,
            attempt: 1,
        };
        let join = Message::Join { tree, up_to, last };
        node.receives(2, "door", join).unwrap();
        node.receives(rival, "door", Message::Nack { tree })
            .unwrap();
        let sent = node.sent();
        match sent.iter().find(|it| it.0 == 2).map(|it| &it.2) {
            Some(Message::Nack { .. }) => assert!(!slow_path, "{frame_budget}"),
            Some(Message::Up { rivals, .. }) => {
                assert!(slow_path, "{frame_budget}");
                assert_eq!(rivals.len(), 1);
            }
            other => panic!("{frame_budget}: {other:?}"),
        }
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let me = member(1);
    let good = Config::new(1);
    let why = |config| Sections::new(me, config).unwrap_err().to_string();
    let open_limit = 0;
    assert!(why(good.with_open_limit(open_limit)).starts_with("open_limit is 0"));
    let passive_limit = 0;
    assert!(why(good.with_passive_limit(passive_limit)).starts_with("passive_limit is 0"));
    assert!(why(Config::new(0)).starts_with("section: max_lives is 0"));
}
