//! A site that changes: devices and routines come and go.

use selvedge_kgroup::check::leaders::Listed;

use super::*;

const BELL: NodeId = NodeId(3);

/// The leader's node has a site of this generation, with these devices and routines 1 and 2.
fn sync(bench: &mut Bench, generation: u32, devices: &[NodeId]) {
    let has_routine = |it: GroupId| [1, 2].contains(&it.0);
    let site = Listed {
        generation,
        devices,
        has_routine: &has_routine,
        routines_of: &|_| vec![],
        names: &|_, _| true,
    };
    bench.call(|leader, state, out| leader.sync(state, &site, out));
}

/// Decides on one update after the other until the group follows the site.
fn follow(bench: &mut Bench, generation: u32, devices: &[NodeId]) -> Vec<Update> {
    let mut all = Vec::new();
    sync(bench, generation, devices);
    while let [update] = bench.proposed.split_off(0).as_slice() {
        bench.decide_on(update);
        all.push(update.clone());
        assert!(all.len() < 100, "it proposes {update:?} for ever");
        sync(bench, generation, devices);
    }
    all
}

fn no_device(device: NodeId, generation: u32) -> Effect<Update, Timer, Event> {
    notify(
        HERE,
        Answer::NoDevice {
            device,
            routine: GroupId(1),
            generation,
        },
    )
}

#[test]
fn a_group_follows_its_site_by_one_decision_after_another() {
    let mut bench = Bench::new(Limits::new());
    bench.ask(lock(LAMP, claim(9, 1)));
    let generation = 4;
    let updates = follow(&mut bench, generation, &[LAMP, BELL]);
    let forget = Update::Forget {
        generation,
        device: LAMP,
        routine: GroupId(9),
    };
    let exit = Update::Exit {
        generation,
        device: DOOR,
    };
    let enter = Update::Enter {
        generation,
        device: BELL,
    };
    assert_eq!(updates, [exit, enter, forget]);
    assert_eq!(bench.state.ids().collect::<Vec<_>>(), [LAMP, BELL]);
    assert_eq!(bench.state.generation(), generation);
    assert_eq!(bench.state.holder(LAMP), None);
}

#[test]
fn a_device_that_comes_is_pinged_at_once_and_one_that_leaves_no_more() {
    let mut bench = Bench::new(Limits::new());
    bench.effects.clear();
    follow(&mut bench, 1, &[LAMP, BELL]);
    let ping = |device| Effect::Event(Event::Ping { device });
    assert!(bench.effects.contains(&ping(BELL)));
    let pinged = bench.tick(Timer::Ping);
    assert!(pinged.contains(&ping(LAMP)) && pinged.contains(&ping(BELL)));
    assert!(!pinged.contains(&ping(DOOR)));
    let reported = bench.call(|leader, state, out| leader.reported(state, DOOR, None, out));
    assert_eq!(reported, Err(Reject::NoDevice(DOOR)));
}

#[test]
fn a_device_leaves_when_its_command_is_settled() {
    let mut bench = Bench::new(Limits::new());
    bench.ask(lock(LAMP, claim(1, 1)));
    bench.ask(act(claim(1, 1), 0, Delivery::AtLeastOnce));
    sync(&mut bench, 1, &[DOOR]);
    let exit = bench.proposed.split_off(0);
    bench.decide_on(&exit[0]);
    assert!(bench.state.ids().any(|it| it == LAMP));
    bench.acted(1, Outcome::Done);
    assert_eq!(follow(&mut bench, 1, &[DOOR]), exit);
    assert!(bench.effects.contains(&Effect::Disarm(Timer::Act(LAMP))));
    assert!(bench.state.ids().all(|it| it != LAMP));
    assert_eq!(
        bench.ask(act(claim(1, 1), 0, Delivery::AtLeastOnce)),
        [no_device(LAMP, 1)]
    );
}

/// A routine that asks for it asks again until it is there.
#[test]
fn a_device_that_is_about_to_come_is_not_refused() {
    let mut bench = Bench::new(Limits::new());
    assert_eq!(bench.ask(lock(BELL, claim(1, 1))), [no_device(BELL, 0)]);
    sync(&mut bench, 1, &[DOOR, LAMP, BELL]);
    let enter = bench.proposed.split_off(0);
    assert_eq!(bench.ask(lock(BELL, claim(1, 1))), []);
    bench.decide_on(&enter[0]);
    let request = Request::Lock {
        device: BELL,
        claim: claim(1, 1),
        patience: Patience::Queues,
        generation: 1,
    };
    let granted = Answer::Granted {
        device: BELL,
        claim: claim(1, 1),
    };
    assert_eq!(bench.ask(request), [notify(HERE, granted)]);
}

#[test]
fn a_question_about_a_device_that_left_is_answered_so() {
    let mut bench = Bench::new(Limits::new());
    bench.ask(lock(LAMP, claim(1, 1)));
    let read = Request::Read {
        device: LAMP,
        claim: claim(1, 1),
        step: 0,
    };
    assert_eq!(bench.ask(read), [Effect::Read(1)]);
    follow(&mut bench, 1, &[DOOR]);
    bench.effects.clear();
    bench.call(|leader, state, out| leader.on_readable(state, 1, out));
    assert_eq!(bench.effects, [no_device(LAMP, 1)]);
}

/// The routine may be of a later site: its leader knows by the generation.
#[test]
fn the_refusal_of_a_routine_names_the_site() {
    let mut bench = Bench::new(Limits::new());
    follow(&mut bench, 7, &[DOOR, LAMP]);
    bench.effects.clear();
    let request = lock(LAMP, claim(9, 1));
    bench.call(|leader, _, out| leader.refuse(HERE, &request, out));
    let refusal = Answer::NoDevice {
        device: LAMP,
        routine: GroupId(9),
        generation: 7,
    };
    assert_eq!(bench.effects, [notify(HERE, refusal)]);
}

#[test]
fn a_forgotten_routine_holds_awaits_and_watches_nothing_and_never_does_again() {
    let mut bench = Bench::new(Limits::new().with_routines(2));
    bench.ask(watch(9));
    bench.ask(lock(LAMP, claim(9, 1)));
    bench.ask(act(claim(9, 1), 0, Delivery::AtLeastOnce));
    bench.ask(lock(LAMP, claim(1, 1)));
    follow(&mut bench, 1, &[DOOR, LAMP]);
    assert_eq!(bench.state.watchers(LAMP).count(), 0);
    // The device is at its command.
    assert_eq!(bench.state.holder(LAMP), None);
    assert_eq!(bench.acted(1, Outcome::Done).len(), 3);
    assert_eq!(bench.state.holder(LAMP), Some(claim(1, 1)));
    // Requests from before come late, at a leader that has not adopted the site.
    for late in [
        lock(LAMP, claim(9, 1)),
        lock(LAMP, claim(9, 2)),
        release(LAMP, claim(9, 1)),
        watch(9),
    ] {
        let before = bench.state.clone();
        assert_eq!(bench.ask(late), []);
        assert_eq!(bench.state, before);
    }
    // Its mark takes no room.
    bench.ask(release(LAMP, claim(1, 1)));
    let next = Update::Lock {
        device: LAMP,
        claim: claim(2, 1),
        patience: Patience::Queues,
        generation: 1,
    };
    bench.decide_on(&next);
    assert_eq!(bench.state.holder(LAMP), Some(claim(2, 1)));
}

#[test]
fn a_leader_of_an_earlier_site_proposes_nothing_and_its_updates_change_nothing() {
    let mut bench = Bench::new(Limits::new());
    follow(&mut bench, 2, &[DOOR, LAMP, BELL]);
    sync(&mut bench, 1, &[DOOR]);
    assert_eq!(bench.proposed, []);
    let (generation, before) = (1, bench.state.clone());
    let exit = Update::Exit {
        generation,
        device: BELL,
    };
    let enter = Update::Enter {
        generation,
        device: NOWHERE,
    };
    let forget = Update::Forget {
        generation,
        device: LAMP,
        routine: GroupId(1),
    };
    for update in [exit, enter, forget] {
        bench.decide_on(&update);
        assert_eq!(bench.state, before);
    }
}

/// So a device that remembers tickets, and a routine that remembers versions, take what comes later.
#[test]
fn a_device_that_comes_back_has_higher_numbers_than_before() {
    let mut bench = Bench::new(Limits::new());
    bench.report(LAMP, "off");
    bench.ask(lock(LAMP, claim(1, 1)));
    bench.ask(act(claim(1, 1), 0, Delivery::AtLeastOnce));
    let before = (bench.state.act(LAMP).unwrap().number, bench.status(LAMP));
    bench.acted(1, Outcome::Done);
    follow(&mut bench, 1, &[DOOR]);
    follow(&mut bench, 2, &[DOOR, LAMP]);
    assert_eq!(bench.status(LAMP), Status::default());
    assert_eq!(bench.state.holder(LAMP), None);
    bench.report(LAMP, "off");
    let request = Update::Lock {
        device: LAMP,
        claim: claim(1, 2),
        patience: Patience::Queues,
        generation: 2,
    };
    bench.decide_on(&request);
    bench.ask(act(claim(1, 2), 0, Delivery::AtLeastOnce));
    let after = (bench.state.act(LAMP).unwrap().number, bench.status(LAMP));
    assert!(after.0 > before.0 && after.1.version > before.1.version);
}
