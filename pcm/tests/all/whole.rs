//! Gateways, followers and clients together.

use selvedge_core::{Delta, NodeId, Span};
use selvedge_pcm::{
    Answer, DutyCycle, Function, Hops, Library, Limits, Outcome, TaskId, Update, gateway,
};

use super::world::{World, value};

fn duty(active_ms: u32, asleep_ms: u32) -> DutyCycle {
    DutyCycle {
        active_ms,
        busy_ms: 100,
        asleep_ms,
    }
}

/// Three gateways, and `followers` followers that mostly sleep.
fn world(seed: u64, followers: usize) -> World {
    let mut world = World::new(seed, 3, gateway::Config::new(), Limits::new());
    for at in 0..followers {
        world.add_follower(duty(400 + 10 * at as u32, 1_500), at);
    }
    world.run(Span::secs(20));
    world
}

fn right(code: &[u8]) -> Answer {
    Answer::Value(value(&Function::new(code)))
}

fn answer(world: &World, task: TaskId) -> Option<&Answer> {
    let client = world.clients.iter().find(|it| it.me == task.client)?;
    client.answered.get(&task.number)
}

#[test]
fn a_function_is_run_by_one_unit_and_answered() {
    let mut world = world(1, 10);
    let manager = world.manager().expect("a gateway manages");
    let tables = world.machine(manager).unwrap().tables().unwrap();
    assert_eq!((tables.followers().count(), tables.units()), (10, 2));
    let client = world.add_client(0);
    let task = world.submit(client, b"1");
    world.run(Span::secs(10));
    assert_eq!(answer(&world, task), Some(&right(b"1")));
    let begun: u64 = world.followers.iter().map(|it| it.begun).sum();
    assert!((3..=5).contains(&begun), "one unit runs it: {begun}");
    // The same function again: no follower runs it.
    let again = world.submit(client, b"1");
    world.run(Span::secs(2));
    assert_eq!(answer(&world, again), Some(&right(b"1")));
    assert_eq!(
        world.followers.iter().map(|it| it.begun).sum::<u64>(),
        begun
    );
}

#[test]
fn two_of_five_followers_that_lie_are_outvoted() {
    let mut world = world(2, 5);
    for at in [1, 3] {
        world.followers[at].lies = true;
    }
    let client = world.add_client(1);
    let tasks: Vec<TaskId> = (0..5_u8).map(|it| world.submit(client, &[it])).collect();
    world.run(Span::secs(30));
    for (task, code) in tasks.into_iter().zip(0_u8..) {
        assert_eq!(answer(&world, task), Some(&right(&[code])));
    }
}

#[test]
fn a_task_goes_on_when_the_gateway_of_its_client_and_manager_fails() {
    let mut world = world(3, 10);
    let manager = world.manager().unwrap();
    let client = world.add_client(manager);
    let task = world.submit(client, b"1");
    world.run(Span::millis(300));
    let ended = world.gateways[manager].me;
    world.stop_gateway(manager);
    world.spread(Delta::Failed(ended), Span::secs(1));
    world.run(Span::secs(40));
    assert_eq!(answer(&world, task), Some(&right(b"1")));
    let next = world.manager().expect("another one manages");
    assert_ne!(next, manager);
    let tables = world.machine(next).unwrap().tables().unwrap();
    assert_eq!(tables.followers().count(), 10, "they are at other gateways");
}

#[test]
fn a_task_goes_to_another_unit_when_its_followers_are_gone() {
    let mut world = world(4, 10);
    let client = world.add_client(0);
    let task = world.submit(client, b"1");
    world.run(Span::millis(30));
    let manager = world.manager().unwrap();
    let tables = world.machine(manager).unwrap().tables().unwrap();
    let electors = tables
        .assignment(task)
        .expect("it is assigned")
        .electors
        .to_vec();
    for at in 0..world.followers.len() {
        if electors.contains(&world.followers[at].me) {
            world.stop_follower(at);
        }
    }
    world.run(Span::secs(60));
    assert_eq!(answer(&world, task), Some(&right(b"1")));
    let manager = world.manager().unwrap();
    let tables = world.machine(manager).unwrap().tables().unwrap();
    assert_eq!(tables.followers().count(), 5, "the others are purged");
}

/// The tables of all gateways that are up are the same.
fn assert_alike(world: &World) {
    let all = (0..world.gateways.len()).filter_map(|at| world.machine(at));
    let all: Vec<_> = all
        .map(|it| (it.replica().version(), it.tables()))
        .collect();
    assert!(all.windows(2).all(|it| it[0] == it[1]), "{all:?}");
}

fn voters(world: &World, at: usize) -> usize {
    let replica = world.machine(at).unwrap().replica();
    replica.configuration().members().count()
}

#[test]
fn gateways_notice_by_themselves_that_the_manager_is_gone() {
    let mut world = world(5, 10);
    let manager = world.manager().unwrap();
    let client = world.add_client((manager + 1) % 3);
    world.stop_gateway(manager);
    let task = world.submit(client, b"1");
    world.run(Span::secs(40));
    assert_eq!(answer(&world, task), Some(&right(b"1")));
    let next = world.manager().expect("another one manages");
    assert_ne!(next, manager);
    let tables = world.machine(next).unwrap().tables().unwrap();
    assert_eq!(tables.followers().count(), 10, "they are at other gateways");
    assert_alike(&world);
}

#[test]
fn with_nothing_to_do_a_manager_that_is_gone_is_replaced_within_two_timeouts() {
    let mut world = world(6, 0);
    let manager = world.manager().unwrap();
    world.stop_gateway(manager);
    let config = gateway::Config::new();
    world.run(config.timeout * 2);
    let next = world.manager().expect("another one manages");
    let ended: Vec<_> = world
        .machine(next)
        .unwrap()
        .gateways()
        .filter(|it| !it.1)
        .collect();
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0].0.id, world.gateways[manager].me.id);
}

#[test]
fn a_gateway_that_comes_back_gets_what_it_lacks() {
    let mut world = world(7, 10);
    let manager = world.manager().unwrap();
    let other = (manager + 1) % 3;
    world.stop_gateway(other);
    let client = world.add_client(manager);
    for code in 0..5_u8 {
        world.submit(client, &[code]);
    }
    world.run(Span::secs(30));
    assert!(world.unanswered().is_empty());
    world.start_gateway(other);
    world.run(Span::secs(10));
    assert_alike(&world);
    for at in 0..3 {
        let all: Vec<_> = world.machine(at).unwrap().gateways().collect();
        assert!(all.iter().all(|it| it.1), "{all:?}");
    }
}

#[test]
fn voters_follow_the_gateways_that_are_connected_also_over_restarts() {
    let config = gateway::Config::new().with_voting(gateway::Voting::Dynamic);
    let mut world = World::new(8, 3, config, Limits::new());
    world.run(Span::secs(15));
    let manager = world.manager().unwrap();
    let (second, third) = ((manager + 1) % 3, (manager + 2) % 3);
    world.stop_gateway(third);
    world.run(Span::secs(20));
    assert_eq!(voters(&world, manager), 2);
    // The two that are left begin again, and know the third one still.
    for at in [manager, second] {
        world.stop_gateway(at);
    }
    for at in [manager, second] {
        world.start_gateway(at);
    }
    world.run(Span::secs(20));
    assert!(world.manager().is_some());
    world.start_gateway(third);
    world.run(Span::secs(20));
    assert_eq!(voters(&world, world.manager().unwrap()), 3);
    assert_alike(&world);
}

#[test]
fn the_tables_say_which_libraries_a_follower_keeps() {
    let mut world = world(9, 5);
    let client = world.add_client(0);
    let function = Function {
        code: value(&Function::new(b"1")),
        libraries: [Library(3), Library(4)].into_iter().collect(),
    };
    world.submit_function(client, function);
    world.run(Span::secs(30));
    let tables = world
        .machine(world.manager().unwrap())
        .unwrap()
        .tables()
        .unwrap();
    for follower in tables.followers() {
        assert_eq!(
            *follower.libraries,
            [Library(3), Library(4)],
            "{follower:?}"
        );
    }
    let clustered = tables.clustered();
    world.run(Span::secs(30));
    let tables = world
        .machine(world.manager().unwrap())
        .unwrap()
        .tables()
        .unwrap();
    assert_eq!(tables.clustered(), clustered, "units stay as they are");
}

#[test]
fn a_function_that_runs_longer_than_periods_is_answered_by_the_first_unit() {
    let mut world = World::new(10, 3, gateway::Config::new(), Limits::new());
    world.run_time = Span::millis(4_900);
    for at in 0..5 {
        world.add_follower(DutyCycle::always(), at);
    }
    world.run(Span::secs(15));
    let client = world.add_client(0);
    let tasks: Vec<TaskId> = (0..4_u8).map(|it| world.submit(client, &[it])).collect();
    world.run(Span::secs(40));
    for (task, code) in tasks.into_iter().zip(0_u8..) {
        assert_eq!(answer(&world, task), Some(&right(&[code])));
    }
    let purged: usize = (0..3).map(|at| world.gateways[at].purged).sum();
    assert_eq!(purged, 0, "a follower that runs something is here");
    let retries = (0..3).map(|at| world.machine(at).unwrap().counters().retries);
    assert_eq!(retries.sum::<u64>(), 0);
}

/// The limit is three gateways. A fourth one gets the room of one that does not vote any more.
#[test]
fn how_far_former_gateways_are_takes_no_room() {
    let limits = Limits::new().with_gateways(3);
    let mut world = World::new(11, 4, gateway::Config::new(), limits);
    world.run(Span::secs(20));
    let is_known = |world: &World, to: usize, hops| {
        let hops = Update::Hops(Hops {
            one: NodeId(1),
            other: world.gateways[to].me.id,
            hops,
        });
        let tables = world.machine(0).unwrap().tables().unwrap();
        tables.known(&hops) == Some(Outcome::Stale)
    };
    let version = |world: &World| world.machine(0).unwrap().replica().version();
    for to in [1, 2] {
        world.set_hops(0, to, 2);
        world.run(Span::secs(1));
        assert!(is_known(&world, to, 2));
    }
    let before = version(&world);
    world.set_hops(0, 3, 2);
    world.run(Span::secs(1));
    assert_eq!(version(&world), before, "it is not proposed");
    assert_eq!(world.machine(0).unwrap().counters().no_room, 1);
    world.configure(&[0, 1, 3]);
    world.run(Span::secs(20));
    assert_eq!(voters(&world, 0), 3);
    assert!(is_known(&world, 2, 1), "it is forgotten");
    let before = version(&world);
    world.set_hops(0, 2, 2);
    world.run(Span::secs(1));
    assert_eq!(version(&world), before, "it would be forgotten");
    world.set_hops(0, 3, 2);
    world.run(Span::secs(1));
    assert!(is_known(&world, 1, 2) && is_known(&world, 3, 2));
    assert_eq!(world.machine(0).unwrap().counters().no_room, 1);
}
