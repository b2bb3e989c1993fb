//! Stories of gateways.

use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId};
use selvedge_pcm::gateway::{self, Command, Event, Gateway};
use selvedge_pcm::{DutyCycle, Function, Limits, Message, Refusal, Tables, TaskId, Update};
use selvedge_replica::{Body, Configuration, Entry, Proposal};

use super::{GATEWAY, expire, ms, sent, step};

fn alone(config: gateway::Config, limits: Limits) -> Driver<Gateway> {
    let first = Configuration::of([GATEWAY]);
    let mut it = Driver::new(Gateway::new(GATEWAY, config, first, limits).unwrap());
    step(&mut it, ms(0), Input::Command(Command::Start));
    // It manages from the first review on, or from the first request if that is earlier.
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

fn reports(from: u64, message: Message) -> Input<Gateway> {
    let from = Member::new(from, 0);
    Input::Message { from, message }
}

/// Without a manager, no gateway asks a newcomer whether it is here.
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

/// A gateway with the most waiting clients that its settings allow refuses new tasks, and no running one.
#[test]
fn a_task_that_runs_is_not_refused() {
    let gateways = [1, 2].map(|id| Member::new(id, 0));
    let config = gateway::Config::new().with_clients(1);
    let first = Configuration::of(gateways);
    let it = Gateway::new(gateways[0], config, first, Limits::new());
    let mut it = Driver::new(it.unwrap());
    step(&mut it, ms(0), Input::Command(Command::Start));
    let submit = || Message::Submit {
        number: 1,
        function: Function::new(b"f"),
    };
    let task = |client| TaskId {
        client: Member::new(client, 0),
        number: 1,
    };
    step(&mut it, ms(1), reports(31, submit()));
    // The second client asked the other gateway, and that was decided.
    let decided = Entry::Update(Proposal {
        by: gateways[1],
        number: 1,
        first: 1,
        since: 0,
        update: Update::Submit {
            task: task(32),
            function: Function::new(b"f"),
        },
    });
    let learn = selvedge_replica::Message {
        configuration: 1,
        body: Body::Learn {
            after: it.machine().replica().version(),
            entries: [decided].into_iter().collect(),
        },
    };
    step(&mut it, ms(2), reports(2, Message::Tables(learn.into())));
    let tables = it.machine().tables().unwrap();
    assert!(tables.open_task(task(32)).is_some());
    let effects = step(&mut it, ms(3), reports(32, submit()));
    let taken = Message::Taken { task: task(32) };
    assert_eq!(sent(&effects), [(32, taken)]);
    let effects = step(&mut it, ms(4), reports(33, submit()));
    let (task, why) = (task(33), Refusal::Full);
    assert_eq!(sent(&effects), [(33, Message::Refused { task, why })]);
    // A cancel of an open task takes no room.
    let effects = step(&mut it, ms(5), reports(32, Message::Cancel { number: 1 }));
    let is_refused = |it: &(u64, Message)| matches!(it.1, Message::Refused { .. });
    assert!(!sent(&effects).iter().any(is_refused), "{effects:?}");
}

/// Gives a task to a unit at a gateway with this number of followers, and the unit does not answer. Returns
/// the followers of the first attempt, and the followers that are then notified of its end.
fn told_that_it_is_over(followers: u64) -> (Vec<u64>, Vec<u64>) {
    let mut it = alone(gateway::Config::new(), Limits::new());
    let all = 11..11 + followers;
    for id in all.clone() {
        step(&mut it, ms(10_001), reports(id, keep_alive(1)));
    }
    expire(&mut it, ms(11_001));
    let submit = Message::Submit {
        number: 1,
        function: Function::new(b"f"),
    };
    let mut last = sent(&step(&mut it, ms(11_002), reports(31, submit)));
    let runs = |sent: &[(u64, Message)], nth| -> Vec<u64> {
        let sent = sent.iter();
        let runs = sent.filter(|it| matches!(&it.1, Message::Run(run) if run.attempt == nth));
        runs.map(|it| it.0).collect()
    };
    let first = runs(&last, 1);
    let mut at = 11_002;
    while runs(&last, 2).is_empty() {
        at += 1_000;
        assert!(at < 60_000, "it is given to a unit again");
        for id in all.clone() {
            step(&mut it, ms(at), reports(id, keep_alive(1)));
        }
        last = sent(&expire(&mut it, ms(at)));
    }
    let is_over = |it: &&(u64, Message)| matches!(it.1, Message::Over { attempt: 1, .. });
    let over = last.iter().filter(is_over).map(|it| it.0).collect();
    (first, over)
}

/// It may have the result by now, and would begin again.
#[test]
fn a_unit_that_gets_its_task_again_is_not_told_that_it_is_over() {
    assert_eq!(told_that_it_is_over(3), (vec![11, 12, 13], vec![]));
    let (first, over) = told_that_it_is_over(6);
    assert_eq!((first.len(), over), (3, first), "there is another unit");
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
    // Gateway two proposes. All messages arrive, until the follower is in the tables of the first one.
    let mut wire = step(&mut two, ms(1), reports(11, keep_alive(1)));
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
                    next.extend(step(&mut one, ms(2), reports(2, message)));
                }
                Effect::Send { to, message } if to.id.0 == 2 => {
                    let effects = step(&mut two, ms(2), reports(1, message));
                    facts.extend(effects.iter().filter_map(fact));
                    next.extend(effects);
                }
                _ => {}
            }
        }
        wire = next;
    }
    // Two begins again from its first stored facts, and receives the decisions.
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
                        next.extend(step(&mut two, ms(at), reports(1, message)));
                    }
                    _ => {}
                }
            }
            wire = next;
        }
    }
    assert!(was_there, "it learns of it");
    let tables = two.machine().tables().unwrap();
    assert_eq!(tables.follower(NodeId(11)), None, "it looks after it");
}

/// A manager that receives nothing does not hide its own silence, and sends followers away.
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
    // From now on it receives nothing.
    let mut last = Vec::new();
    for second in 11..20 {
        last = expire(manager, ms(second * 1_000));
    }
    let beats = |it: &(u64, Message)| matches!(it.1, Message::Heartbeat { .. });
    assert!(!sent(&last).iter().any(beats), "{last:?}");
    let effects = step(manager, ms(20_000), reports(11, keep_alive(1)));
    assert_eq!(sent(&effects), [(11, Message::Elsewhere)]);
}

/// It missed the change that took it off the list. It serves no followers, and must send them on.
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
                    1 => wire.extend(step(it, ms(at), reports(2, message))),
                    _ => {
                        if let Message::Heartbeat { ended } = &message {
                            last = ended.to_vec();
                        }
                        wire.extend(step(other, ms(at), reports(1, message)));
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

/// It never sent a message.
#[test]
fn a_gateway_that_is_named_and_says_nothing_is_gone() {
    let gateways = [1, 2].map(|id| Member::new(id, 0));
    let first = Configuration::of(gateways);
    let new = |me| Gateway::new(me, gateway::Config::new(), first.clone(), Limits::new());
    let mut nodes = gateways.map(|me| Driver::new(new(me).unwrap()));
    for it in &mut nodes {
        step(it, ms(0), Input::Command(Command::Start));
    }
    talk(&mut nodes, 100, 15_000);
    let manager = nodes.iter().position(|it| it.machine().manages()).unwrap();
    let next = Configuration::of([1, 2, 3].map(|id| Member::new(id, 0)));
    let next = Input::Command(Command::Configure(next));
    let mut wire = vec![(manager, step(&mut nodes[manager], ms(15_000), next))];
    deliver(&mut nodes, &[0, 1], 15_000, &mut wire);
    // The next manager, which may be the same gateway, watches all gateways that are named.
    let third = |nodes: &[Driver<Gateway>]| {
        let managers = nodes.iter().map(Driver::machine).filter(|it| it.manages());
        let mut known = managers.flat_map(Gateway::gateways);
        known.find(|it| it.0.id == NodeId(3)).map(|it| it.1)
    };
    talk(&mut nodes, 15_100, 19_000);
    assert_eq!(third(&nodes), Some(true));
    talk(&mut nodes, 19_000, 21_000);
    assert_eq!(third(&nodes), Some(false));
}

/// A follower stops for good while its gateway is off the list for a while, and no gateway leads. Its
/// gateway watches it again when it is back, although the tables are not sent to it again.
#[test]
fn a_gateway_that_is_back_on_the_list_looks_after_its_followers() {
    let gateways = [1, 2, 3].map(|id| Member::new(id, 0));
    let first = Configuration::of(gateways);
    let new = |me| Gateway::new(me, gateway::Config::new(), first.clone(), Limits::new());
    let mut nodes = gateways.map(|me| Driver::new(new(me).unwrap()));
    for it in &mut nodes {
        step(it, ms(0), Input::Command(Command::Start));
    }
    talk(&mut nodes, 100, 15_000);
    let manager = nodes.iter().position(|it| it.machine().manages()).unwrap();
    let (off, down) = ((manager + 1) % 3, (manager + 2) % 3);
    let mut wire = vec![(
        off,
        step(&mut nodes[off], ms(15_000), reports(11, keep_alive(1))),
    )];
    deliver(&mut nodes, &[0, 1, 2], 15_000, &mut wire);
    talk(&mut nodes, 15_100, 15_300);
    let configure = |nodes: &mut [Driver<Gateway>], among: &[usize], at, places: &[usize]| {
        let manager = nodes.iter().position(|it| it.machine().manages()).unwrap();
        let next = Configuration::of(places.iter().map(|it| gateways[*it]));
        let next = Input::Command(Command::Configure(next));
        let mut wire = vec![(manager, step(&mut nodes[manager], ms(at), next))];
        deliver(nodes, among, at, &mut wire);
    };
    let known = |it: &Driver<Gateway>| {
        let tables = it.machine().tables();
        tables.map(|it| it.follower(NodeId(11)).is_some())
    };
    // Of the two on the list one is down, so neither leads.
    configure(&mut nodes, &[manager, off], 15_300, &[manager, down]);
    for at in (15_400..25_000).step_by(100) {
        talk_among(&mut nodes, &[manager, off], at);
    }
    assert_eq!(known(&nodes[off]), None, "it is off the list");
    // No message notifies the gateway off the list that these two lead, before it is back.
    let mut at = 25_000;
    while nodes.iter().all(|it| !it.machine().manages()) {
        assert!(at < 45_000, "two of two lead");
        talk_among(&mut nodes, &[manager, down], at);
        at += 100;
    }
    configure(&mut nodes, &[manager, down], at, &[0, 1, 2]);
    talk(&mut nodes, at + 100, at + 1_000);
    assert_eq!(known(&nodes[off]), Some(true), "it is back");
    talk(&mut nodes, at + 1_000, at + 60_000);
    assert_eq!(known(&nodes[manager]), Some(false));
}

/// Membership was wrong about a gateway before the list named it, and reports nothing more about it. Its
/// messages show that it is here.
#[test]
fn a_gateway_that_counted_as_failed_before_it_was_named_takes_part() {
    let newcomer = Gateway::newcomer(Member::new(2, 0), gateway::Config::new(), [NodeId(1)]);
    let one = alone(gateway::Config::new(), Limits::new());
    let mut nodes = [one, Driver::new(newcomer.unwrap())];
    step(&mut nodes[1], ms(0), Input::Command(Command::Start));
    let failed = Delta::Failed(Member::new(2, 0));
    step(&mut nodes[0], ms(10_001), Input::Membership(failed));
    let next = Configuration::of([1, 2].map(|id| Member::new(id, 0)));
    let next = Input::Command(Command::Configure(next));
    let mut wire = vec![(0, step(&mut nodes[0], ms(10_002), next))];
    deliver(&mut nodes, &[0, 1], 10_002, &mut wire);
    talk(&mut nodes, 10_100, 60_000);
    assert!(nodes[1].machine().replica().votes(), "{:?}", nodes[1]);
}

/// Delivers all messages between these gateways, from 1 on, in this time, in milliseconds.
fn talk(nodes: &mut [Driver<Gateway>], from: u64, to: u64) {
    let all: Vec<usize> = (0..nodes.len()).collect();
    for at in (from..to).step_by(100) {
        talk_among(nodes, &all, at);
    }
}

/// Lets the timers of these gateways tick, by place, and delivers the messages that result.
fn talk_among(nodes: &mut [Driver<Gateway>], all: &[usize], at: u64) {
    let expired = all.iter().map(|&it| (it, expire(&mut nodes[it], ms(at))));
    let mut wire = expired.collect();
    deliver(nodes, all, at, &mut wire);
}

/// Delivers messages of gateways, by place, to these gateways, and their answers.
fn deliver(
    nodes: &mut [Driver<Gateway>],
    all: &[usize],
    at: u64,
    wire: &mut Vec<(usize, Vec<Effect<Gateway>>)>,
) {
    while let Some((sender, effects)) = wire.pop() {
        for (to, message) in sent(&effects) {
            let place = to as usize - 1;
            if all.contains(&place) {
                let effects = step(
                    &mut nodes[place],
                    ms(at),
                    reports(sender as u64 + 1, message),
                );
                wire.push((place, effects));
            }
        }
    }
}
