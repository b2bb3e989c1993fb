//! Stories of gateways.

use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId};
use selvedge_pcm::gateway::{self, Command, Event, Gateway};
use selvedge_pcm::{
    Attachment, DutyCycle, Function, Limits, Message, Outcome, Refusal, Tables, Update,
};
use selvedge_replica::{Configuration, State as _};

use super::{GATEWAY, expire, ms, sent, step};

fn alone(config: gateway::Config, limits: Limits) -> Driver<Gateway> {
    let first = Configuration::of([GATEWAY]);
    let mut it = Driver::new(Gateway::new(GATEWAY, config, first, limits).unwrap());
    step(&mut it, ms(0), Input::Command(Command::Start));
    // It manages from the first review on, if nobody asks before.
    expire(&mut it, ms(10_000));
    assert!(it.machine().manages());
    it
}

fn keep_alive(number: u32) -> Message {
    Message::KeepAlive {
        number,
        duty: DutyCycle::always(),
        libraries: selvedge_pcm::Libraries::new(),
    }
}

fn says(from: u64, message: Message) -> Input<Gateway> {
    let from = Member::new(from, 0);
    Input::Message { from, message }
}

/// It says the same in each period. That is known beforehand, and not proposed.
#[test]
fn a_follower_that_finds_no_room_costs_no_updates() {
    let attach = |id| {
        Update::Attach(Attachment {
            member: Member::new(id, 0),
            number: 1,
            gateway: NodeId(1),
            duty: DutyCycle::always(),
            libraries: selvedge_pcm::Libraries::new(),
        })
    };
    let mut tables = Tables::new(Limits::new().with_followers(1));
    assert_eq!(tables.known(&attach(11)), None);
    tables.apply(&attach(11));
    let no_room = Outcome::NoRoom(NodeId(12));
    assert_eq!(tables.known(&attach(12)), Some(no_room.clone()));
    assert_eq!(tables.apply(&attach(12)), no_room);
}

/// Where nobody manages nobody asks whether it is here.
#[test]
fn a_newcomer_that_nobody_asks_says_that_it_is_here() {
    let me = Member::new(3, 1);
    let others = [1, 2].map(NodeId);
    let newcomer = Gateway::newcomer(me, gateway::Config::new(), others).unwrap();
    let mut it = Driver::new(newcomer);
    step(&mut it, ms(0), Input::Command(Command::Start));
    let effects = expire(&mut it, ms(5_000));
    assert_eq!(sent(&effects), [(1, Message::Here), (2, Message::Here)]);
}

/// It hears the manager, and the manager hears nothing of it: what is said here is decided by nobody.
#[test]
fn a_gateway_that_is_not_heard_sends_followers_on() {
    let gateways = [1, 2, 3].map(|id| Member::new(id, 0));
    let first = Configuration::of(gateways);
    let it = Gateway::new(gateways[1], gateway::Config::new(), first, Limits::new());
    let mut it = Driver::new(it.unwrap());
    step(&mut it, ms(0), Input::Command(Command::Start));
    for second in 1..4 {
        let gone = [NodeId(2)].into_iter().collect();
        let heartbeat = says(1, Message::Heartbeat { gone });
        step(&mut it, ms(second * 1_000), heartbeat);
    }
    let effects = step(&mut it, ms(4_000), says(11, keep_alive(1)));
    assert_eq!(sent(&effects), [(11, Message::Elsewhere)]);
    // Heard again, it asks the others for the follower.
    let gone = [].into_iter().collect();
    step(&mut it, ms(4_500), says(1, Message::Heartbeat { gone }));
    let effects = step(&mut it, ms(5_000), says(11, keep_alive(2)));
    assert!(!sent(&effects).contains(&(11, Message::Elsewhere)));
}

/// A gateway at which as many clients wait as may refuses what is new, and nothing that runs.
#[test]
fn a_task_that_runs_is_not_refused() {
    let mut it = alone(gateway::Config::new().with_clients(1), Limits::new());
    let submit = || Message::Submit {
        number: 1,
        function: Function::new(b"f"),
    };
    // The second one waits in the tables, as if it had asked another gateway.
    step(&mut it, ms(10_001), says(31, submit()));
    let effects = step(&mut it, ms(10_002), says(32, submit()));
    let is_full = |it: &(u64, Message)| {
        let why = Refusal::Full;
        matches!(it.1, Message::Refused { why: said, .. } if said == why)
    };
    assert!(sent(&effects).iter().all(is_full));
    // To cancel what is open takes no room.
    let cancelled = step(&mut it, ms(10_003), says(32, Message::Cancel { number: 9 }));
    assert!(!sent(&cancelled).iter().any(is_full), "{cancelled:?}");
}

fn fact(effect: &Effect<Gateway>) -> Option<selvedge_replica::Fact<Tables>> {
    match effect {
        Effect::Event(Event::Fact(fact)) => Some(fact.clone()),
        _ => None,
    }
}

/// A gateway that asked for a follower in a former life looks after it when that is decided.
#[test]
fn a_follower_that_a_former_life_asked_for_is_purged() {
    let gateways = [1, 2].map(|id| Member::new(id, 0));
    let first = Configuration::of(gateways);
    let new = |me| Gateway::new(me, gateway::Config::new(), first.clone(), Limits::new());
    let mut one = Driver::new(new(gateways[0]).unwrap());
    let mut two = Driver::new(new(gateways[1]).unwrap());
    step(&mut one, ms(0), Input::Command(Command::Start));
    step(&mut two, ms(0), Input::Command(Command::Start));
    let base = two.machine().replica().stored();
    let mut facts = Vec::new();
    // Two asks. All that travels arrives, until the follower is in the tables of the first one.
    let mut wire = step(&mut two, ms(1), says(11, keep_alive(1)));
    while one
        .machine()
        .tables()
        .unwrap()
        .follower(NodeId(11))
        .is_none()
    {
        let mut next = Vec::new();
        for effect in wire {
            match effect {
                Effect::Send { to, message } if to.id.0 == 1 => {
                    next.extend(step(&mut one, ms(2), says(2, message)));
                }
                Effect::Send { to, message } if to.id.0 == 2 => {
                    let effects = step(&mut two, ms(2), says(1, message));
                    facts.extend(effects.iter().filter_map(fact));
                    next.extend(effects);
                }
                _ => {}
            }
        }
        wire = next;
    }
    // Two begins again from what it stored at first, and hears what was decided.
    let me = Member::new(2, 1);
    let mut again = Gateway::restore(me, gateway::Config::new(), base, [NodeId(1)]).unwrap();
    for fact in &facts {
        again.fold(fact).unwrap();
    }
    let mut two = Driver::new(again);
    step(&mut two, ms(0), Input::Command(Command::Start));
    let mut was_there = false;
    for turn in 1..100 {
        let at = turn * 100;
        let tables = two.machine().tables();
        was_there |= tables.is_some_and(|it| it.follower(NodeId(11)).is_some());
        let mut wire = expire(&mut one, ms(at));
        wire.extend(expire(&mut two, ms(at)));
        for _ in 0..20 {
            let mut next = Vec::new();
            for effect in wire {
                match effect {
                    Effect::Send { to, message } if to.id.0 == 1 => {
                        let from = me;
                        next.extend(step(&mut one, ms(at), Input::Message { from, message }));
                    }
                    Effect::Send { to, message } if to.id.0 == 2 => {
                        next.extend(step(&mut two, ms(at), says(1, message)));
                    }
                    _ => {}
                }
            }
            wire = next;
        }
    }
    assert!(was_there, "it hears of it");
    let tables = two.machine().tables().unwrap();
    assert_eq!(tables.follower(NodeId(11)), None, "it looks after it");
}

/// A manager that hears nobody keeps nobody from missing it, and sends followers away.
#[test]
fn a_manager_that_hears_nobody_says_nothing() {
    let gateways = [1, 2, 3].map(|id| Member::new(id, 0));
    let first = Configuration::of(gateways);
    let config = gateway::Config::new();
    let new = |me| Gateway::new(me, config, first.clone(), Limits::new()).unwrap();
    let mut nodes = gateways.map(|me| Driver::new(new(me)));
    let mut wire = Vec::new();
    for (at, it) in nodes.iter_mut().enumerate() {
        let start = Input::Command(Command::Start);
        wire.extend(step(it, ms(0), start).into_iter().map(|it| (at, it)));
    }
    let stand = Input::Membership(Delta::Joined(gateways[1]));
    wire.extend(
        step(&mut nodes[0], ms(0), stand)
            .into_iter()
            .map(|it| (0, it)),
    );
    for (at, it) in nodes.iter_mut().enumerate() {
        wire.extend(expire(it, ms(10_000)).into_iter().map(|it| (at, it)));
    }
    while let Some((sender, effect)) = wire.pop() {
        let Effect::Send { to, message } = effect else {
            continue;
        };
        let at = to.id.0 as usize - 1;
        let input = Input::Message {
            from: gateways[sender],
            message,
        };
        let effects = step(&mut nodes[at], ms(10_001), input);
        wire.extend(effects.into_iter().map(|it| (at, it)));
    }
    let manager = nodes.iter_mut().find(|it| it.machine().manages()).unwrap();
    // From now on it hears nothing.
    let mut last = Vec::new();
    for second in 11..20 {
        last = expire(manager, ms(second * 1_000));
    }
    let beats = |it: &(u64, Message)| matches!(it.1, Message::Heartbeat { .. });
    assert!(!sent(&last).iter().any(beats), "{last:?}");
    let effects = step(manager, ms(20_000), says(11, keep_alive(1)));
    assert_eq!(sent(&effects), [(11, Message::Elsewhere)]);
}

/// It missed the change that took it off the list. It looks after nobody, and must send followers on.
#[test]
fn a_gateway_that_was_taken_off_the_list_hears_of_it() {
    let mut it = alone(gateway::Config::new(), Limits::new());
    let next = Configuration::of([1, 2].map(|id| Member::new(id, 0)));
    step(
        &mut it,
        ms(10_001),
        Input::Command(Command::Configure(next)),
    );
    let others = Gateway::newcomer(Member::new(2, 0), gateway::Config::new(), [NodeId(1)]);
    let mut other = Driver::new(others.unwrap());
    step(&mut other, ms(0), Input::Command(Command::Start));
    let talk = |it: &mut Driver<Gateway>, other: &mut Driver<Gateway>, from: u64, to: u64| {
        let mut last = Vec::new();
        for at in (from..to).step_by(100) {
            let mut wire: Vec<_> = expire(it, ms(at))
                .into_iter()
                .chain(expire(other, ms(at)))
                .collect();
            while let Some(effect) = wire.pop() {
                let Effect::Send { to, message } = effect else {
                    continue;
                };
                match to.id.0 {
                    1 => wire.extend(step(it, ms(at), says(2, message))),
                    _ => {
                        if let Message::Heartbeat { gone } = &message {
                            last = gone.to_vec();
                        }
                        wire.extend(step(other, ms(at), says(1, message)));
                    }
                }
            }
        }
        last
    };
    assert_eq!(talk(&mut it, &mut other, 10_100, 30_000), []);
    let manager = if it.machine().manages() {
        &mut it
    } else {
        &mut other
    };
    let next = Configuration::of([GATEWAY]);
    step(
        manager,
        ms(30_000),
        Input::Command(Command::Configure(next)),
    );
    assert_eq!(talk(&mut it, &mut other, 30_000, 60_000), [NodeId(2)]);
}
