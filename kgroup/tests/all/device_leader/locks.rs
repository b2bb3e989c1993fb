//! Locks, and claims that find no room.

use super::*;

#[test]
fn a_lock_passes_to_the_claim_that_waits_and_its_routine_is_told_where_it_asked_last() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    assert_eq!(bench.ask(lock(LAMP, one)), [notify(HERE, granted(one))]);
    // Again: the same, without asking the group.
    assert_eq!(bench.ask(lock(LAMP, one)), [notify(HERE, granted(one))]);
    let queued = Answer::Queued {
        device: LAMP,
        claim: two,
    };
    assert_eq!(
        bench.ask_from(THERE, lock(LAMP, two)),
        [notify(THERE, queued)]
    );
    let released = Answer::Released {
        device: LAMP,
        claim: one,
    };
    let notified = bench.ask(release(LAMP, one));
    assert_eq!(
        notified,
        [notify(HERE, released.clone()), notify(THERE, granted(two))]
    );
    // Late, and again.
    let over = Answer::Over {
        device: LAMP,
        claim: one,
    };
    assert_eq!(bench.ask(lock(LAMP, one)), [notify(HERE, over)]);
    assert_eq!(bench.ask(release(LAMP, one)), [notify(HERE, released)]);
    assert_eq!(bench.state.holder(LAMP), Some(two));
}

#[test]
fn a_new_leader_passes_a_lock_on_by_way_of_the_routines_group() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    bench.ask(lock(LAMP, one));
    bench.ask_from(THERE, lock(LAMP, two));
    let mut next = bench.succeeded(12);
    let inform = Effect::Inform {
        group: GroupId(2),
        answer: granted(two),
    };
    assert_eq!(next.ask(release(LAMP, one)).last(), Some(&inform));
}

#[test]
fn one_lock_serves_a_device_that_a_routine_names_twice() {
    // Erratum G9: the second request for it is answered as the first, and one release frees it.
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    for _ in 0..2 {
        assert_eq!(bench.ask(lock(LAMP, one)), [notify(HERE, granted(one))]);
    }
    bench.ask(release(LAMP, one));
    assert_eq!(bench.state.holder(LAMP), None);
    assert_eq!(bench.state.queue(LAMP).count(), 0);
}

#[test]
fn a_later_claim_of_a_routine_takes_its_place_at_the_end() {
    let mut bench = Bench::new(Limits::new());
    let (one, two, again) = (claim(1, 1), claim(2, 1), claim(1, 2));
    bench.ask(lock(LAMP, one));
    bench.ask(lock(LAMP, two));
    let notified = bench.ask(lock(LAMP, again));
    assert_eq!(notified.last(), Some(&notify(HERE, granted(two))));
    assert_eq!(bench.state.holder(LAMP), Some(two));
    assert_eq!(bench.state.queue(LAMP).collect::<Vec<_>>(), [again]);
    assert!(bench.state.is_over(LAMP, one));
    // In the queue, too.
    let third = claim(1, 3);
    bench.ask(lock(LAMP, third));
    assert_eq!(bench.state.queue(LAMP).collect::<Vec<_>>(), [third]);
}

#[test]
fn what_finds_no_room_is_refused_and_the_host_hears_of_it() {
    let limits = Limits::new()
        .with_queue(1)
        .with_routines(3)
        .with_watchers(1);
    let mut bench = Bench::new(limits);
    let claims = [1, 2, 3, 4].map(|it| claim(it, 1));
    let full = |routine| {
        Effect::Event(Event::Full {
            device: LAMP,
            routine: GroupId(routine),
        })
    };
    let busy = |claim| {
        notify(
            HERE,
            Answer::Busy {
                device: LAMP,
                claim,
            },
        )
    };
    bench.ask(lock(LAMP, claims[0]));
    bench.ask(lock(LAMP, claims[1]));
    assert_eq!(bench.ask(lock(LAMP, claims[2])), [busy(claims[2]), full(3)]);
    // The queue has room, the marks have none: a fourth routine never gets the device.
    bench.ask(lock(DOOR, claims[0]));
    for other in claims {
        bench.ask(release(LAMP, other));
    }
    assert_eq!(bench.state.holder(LAMP), None);
    assert_eq!(bench.ask(lock(LAMP, claims[3])), [busy(claims[3]), full(4)]);
    let late = bench.ask(release(LAMP, claims[3]));
    assert!(matches!(
        late[..],
        [Effect::Answer {
            answer: Answer::Released { .. },
            ..
        }]
    ));
    // The second routine finds no room to watch, and receives the status once.
    bench.ask(watch(1));
    let notified = bench.ask(watch(2));
    assert_eq!(notified, [notify(HERE, shown(0, false, None, 2)), full(2)]);
    assert_eq!(bench.state.watchers(LAMP).collect::<Vec<_>>(), [GroupId(1)]);
}

#[test]
fn an_impatient_claim_leaves_and_nothing_remains_of_it() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    bench.ask(lock(LAMP, one));
    let before = bench.state.clone();
    let notified = bench.ask(Request::Lock {
        device: LAMP,
        claim: two,
        patience: Patience::Leaves,
        generation: 0,
    });
    let busy = Answer::Busy {
        device: LAMP,
        claim: two,
    };
    assert_eq!(notified, [notify(HERE, busy)]);
    assert_eq!(bench.state, before);
}
