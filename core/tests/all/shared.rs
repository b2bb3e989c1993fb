//! The shared handle with real threads: limits, returned commands, and many calls at once.

#![cfg(feature = "std")]
#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "helpers of tests are tests, too"
)]

use core::cell::RefCell;
use core::num::NonZeroUsize;
use core::pin::pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;
use std::thread;

use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use selvedge_core::shared::{
    self, Closed, Error, Handle, Limits, Port, RecvError, Request, Subscriber, TrySubmitError,
};
use selvedge_core::{Context as Cx, Driver, Effect, Input, Machine, Time};

/// Adds up the numbers that it gets, and refuses odd ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sum(u64);

impl Machine for Sum {
    type Message = ();
    type Timer = ();
    type Command = u64;
    type Event = u64;
    type Reject = u64;

    fn handle(&mut self, input: Input<Self>, cx: &mut Cx<'_, Self>) -> Result<(), u64> {
        let Input::Command(more) = input else {
            return Err(0);
        };
        if more % 2 == 1 {
            return Err(more);
        }
        self.0 += more;
        cx.event(self.0);
        Ok(())
    }
}

fn channel(commands: usize, events: usize) -> (Handle<Sum, u64>, Port<Sum, u64>) {
    let limit = |limit| NonZeroUsize::new(limit).unwrap();
    let limits = Limits {
        commands: limit(commands),
        events: limit(events),
    };
    shared::channel(limits, 0)
}

/// Carries out commands until the last handle is dropped; returns the number of commands.
fn serve(mut port: Port<Sum, u64>) -> u64 {
    let mut driver = Driver::new(Sum(0));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut events = Vec::new();
    let mut taken = 0;
    while let Ok(Request { command, reply }) = port.blocking_recv() {
        taken += 1;
        let input = Input::Command(command);
        let outcome = driver.step(Time::ZERO, &mut rng, input, |effect| {
            if let Effect::Event(event) = effect {
                events.push(event);
            }
        });
        port.publish(driver.machine().0, events.drain(..));
        reply.send(outcome);
    }
    taken
}

/// A waker that counts its calls.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads to the end; returns the number of events that it got and the number that it missed.
fn read_all(mut events: Subscriber<u64>) -> (u64, u64) {
    let (mut got, mut missed, mut last) = (0, 0, 0);
    loop {
        match events.blocking_recv() {
            Ok(event) => {
                assert!(event > last, "{event} came after {last}");
                last = event;
                got += 1;
            }
            Err(RecvError::Lagged { missed: more }) => missed += more,
            Err(RecvError::Closed) => return (got, missed),
        }
    }
}

#[test]
fn many_threads_get_their_own_outcomes_and_read_their_own_writes() {
    const THREADS: u64 = 8;
    const EACH: u64 = 2_000;
    let (handle, port) = channel(4, 16);
    let readers = [(); 3].map(|()| {
        let events = handle.subscribe();
        thread::spawn(move || read_all(events))
    });
    let host = thread::spawn(move || serve(port));
    let writers: Vec<_> = (0..THREADS)
        .map(|_| {
            let handle = handle.clone();
            thread::spawn(move || {
                for number in 1..=EACH {
                    let before = *handle.snapshot();
                    let outcome = handle.blocking_submit(number);
                    if number % 2 == 1 {
                        assert_eq!(outcome, Err(Error::Rejected(number)));
                    } else {
                        assert_eq!(outcome, Ok(()));
                        assert!(*handle.snapshot() >= before + number);
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let sum: u64 = (1..=EACH).filter(|number| number % 2 == 0).sum();
    assert_eq!(*handle.snapshot(), THREADS * sum);
    drop(handle);
    assert_eq!(host.join().unwrap(), THREADS * EACH);
    for reader in readers {
        let (got, missed) = reader.join().unwrap();
        assert_eq!(got + missed, THREADS * EACH / 2);
    }
}

#[test]
fn a_full_queue_gives_the_command_back() {
    let (handle, mut port) = channel(2, 1);
    let first = handle.try_submit(2).unwrap();
    let _second = handle.try_submit(4).unwrap();
    let full = handle.try_submit(6).unwrap_err();
    assert_eq!(
        full,
        TrySubmitError::Full {
            command: 6,
            limit: 2
        }
    );
    let request = port.try_recv().unwrap().unwrap();
    assert_eq!(request.command, 2);
    request.reply.send(Ok(()));
    assert_eq!(first.wait(), Ok(()));
    assert!(handle.try_submit(6).is_ok());
}

#[test]
fn a_dropped_wait_for_room_submits_nothing_and_wakes_nobody() {
    let (handle, mut port) = channel(1, 1);
    let _outcome = handle.try_submit(2).unwrap();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    {
        let mut waiting = pin!(handle.submit(4));
        let mut cx = Context::from_waker(&waker);
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&bell), 2, "its waker was kept");
    assert_eq!(port.try_recv().unwrap().unwrap().command, 2);
    assert!(port.try_recv().unwrap().is_none());
    assert_eq!(bell.count(), 0);
}

#[test]
fn a_dropped_outcome_leaves_the_command_in_the_queue() {
    let (handle, mut port) = channel(1, 1);
    drop(handle.try_submit(2).unwrap());
    let request = port.try_recv().unwrap().unwrap();
    assert_eq!(request.command, 2);
    request.reply.send(Ok(()));
}

#[test]
fn a_request_that_is_dropped_says_that_there_is_no_answer() {
    let (handle, mut port) = channel(1, 1);
    let outcome = handle.try_submit(2).unwrap();
    drop(port.try_recv());
    assert_eq!(outcome.wait(), Err(Error::Unanswered));
}

#[test]
fn a_port_that_is_gone_refuses_the_old_and_the_new() {
    let (handle, mut port) = channel(2, 2);
    let mut events = handle.subscribe();
    let queued = handle.try_submit(2).unwrap();
    port.publish(7, [1]);
    drop(port);
    assert_eq!(queued.wait(), Err(Error::Closed));
    let refused = handle.try_submit(4).unwrap_err();
    assert_eq!(refused, TrySubmitError::Closed { command: 4 });
    assert_eq!(handle.blocking_submit(4), Err(Error::Closed));
    assert_eq!(*handle.snapshot(), 7);
    assert_eq!(events.blocking_recv(), Ok(1));
    assert_eq!(events.blocking_recv(), Err(RecvError::Closed));
}

#[test]
fn a_request_outlives_its_port_and_can_still_be_answered() {
    let (handle, mut port) = channel(1, 1);
    let outcome = handle.try_submit(2).unwrap();
    let request = port.try_recv().unwrap().unwrap();
    drop(port);
    request.reply.send(Err(2));
    assert_eq!(outcome.wait(), Err(Error::Rejected(2)));
}

#[test]
fn a_closed_port_serves_what_waits_and_then_ends() {
    let (handle, mut port) = channel(2, 1);
    let outcome = handle.try_submit(2).unwrap();
    port.close();
    assert!(handle.try_submit(4).is_err());
    port.try_recv().unwrap().unwrap().reply.send(Ok(()));
    assert_eq!(outcome.wait(), Ok(()));
    assert_eq!(port.try_recv().unwrap_err(), Closed);
    assert_eq!(port.recv_timeout(Duration::MAX).unwrap_err(), Closed);
}

#[test]
fn a_wait_with_a_timeout_ends_without_a_command() {
    let (handle, mut port) = channel(1, 1);
    assert!(
        port.recv_timeout(Duration::from_millis(1))
            .unwrap()
            .is_none()
    );
    let _outcome = handle.try_submit(2).unwrap();
    let request = port.recv_timeout(Duration::ZERO).unwrap().unwrap();
    assert_eq!(request.command, 2);
}

#[test]
fn to_look_for_a_command_meanwhile_leaves_the_one_that_waits_to_be_woken() {
    let (handle, mut port) = channel(1, 1);
    let mut events = handle.subscribe();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    assert!(port.poll_recv(&mut cx).is_pending());
    assert!(port.try_recv().unwrap().is_none());
    let _outcome = handle.try_submit(2).unwrap();
    assert_eq!(bell.count(), 1);
    assert!(events.poll_recv(&mut cx).is_pending());
    assert_eq!(events.try_recv(), Ok(None));
    port.emit([1]);
    assert_eq!(bell.count(), 2);
}

#[test]
fn a_snapshot_that_is_held_never_changes_and_is_freed_afterwards() {
    let (handle, mut port) = channel(1, 1);
    let held = handle.snapshot();
    port.publish(1, []);
    port.publish(2, []);
    assert_eq!((*held, *handle.snapshot()), (0, 2));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_wait_for_a_snapshot_ends_with_the_first_that_is_wanted_or_with_the_host() {
    let (handle, mut port) = channel(1, 1);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    let mut looks = Vec::new();
    {
        let mut waits = pin!(handle.wait_for(|sum| {
            looks.push(*sum);
            *sum >= 2
        }));
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        // Also without an event.
        port.publish(1, []);
        assert_eq!(bell.count(), 1);
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        port.publish(3, []);
        assert_eq!(waits.poll(&mut cx), Poll::Ready(Ok(Arc::new(3))));
    }
    assert_eq!(looks, [0, 1, 3]);
    assert_eq!(handle.blocking_wait_for(|sum| *sum == 3), Ok(Arc::new(3)));
    // A wait that was dropped is woken no more.
    let woken = bell.count();
    {
        let mut waits = pin!(handle.wait_for(|_| false));
        assert!(waits.as_mut().poll(&mut cx).is_pending());
    }
    port.publish(4, []);
    assert_eq!(bell.count(), woken);
    // The last snapshot is found, and no other is waited for.
    let mut waits = pin!(handle.wait_for(|sum| *sum == 9));
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    drop(port);
    assert_eq!(bell.count(), woken + 1);
    assert_eq!(waits.poll(&mut cx), Poll::Ready(Err(Closed)));
    assert_eq!(handle.blocking_wait_for(|sum| *sum == 4), Ok(Arc::new(4)));
}

/// A snapshot that comes while `is_wanted` looks at the former one wakes no task: the wait looks
/// again by itself.
#[test]
fn a_snapshot_that_comes_while_the_former_is_looked_at_is_not_missed() {
    let (handle, port) = channel(1, 1);
    let port = RefCell::new(Some(port));
    let mut waits = pin!(handle.wait_for(|sum| {
        match *sum {
            0 => port.borrow_mut().as_mut().unwrap().publish(1, []),
            _ => drop(port.borrow_mut().take()),
        }
        *sum == 2
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(waits.as_mut().poll(&mut cx), Poll::Ready(Err(Closed)));
}

#[test]
fn a_slow_subscriber_is_told_exactly_what_it_missed() {
    let (handle, mut port) = channel(1, 3);
    port.emit([99]);
    let mut slow = handle.subscribe();
    let mut quick = handle.subscribe();
    for event in 0..5 {
        port.emit([event]);
        assert_eq!(quick.try_recv(), Ok(Some(event)));
    }
    assert_eq!(slow.try_recv(), Err(RecvError::Lagged { missed: 2 }));
    for event in 2..5 {
        assert_eq!(slow.try_recv(), Ok(Some(event)));
    }
    assert_eq!(slow.try_recv(), Ok(None));
    assert_eq!(handle.subscribe().try_recv(), Ok(None));
    // More events in one step than the ring can hold.
    port.emit(10..17);
    assert_eq!(slow.try_recv(), Err(RecvError::Lagged { missed: 4 }));
    assert_eq!(slow.try_recv(), Ok(Some(14)));
}

#[test]
fn a_subscriber_keeps_one_waker_and_takes_it_along() {
    let (handle, mut port) = channel(1, 1);
    let mut events = handle.subscribe();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    for _ in 0..3 {
        assert!(events.poll_recv(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&bell), 3);
    port.emit([1]);
    assert_eq!(bell.count(), 1);
    assert_eq!(events.poll_recv(&mut cx), Poll::Ready(Ok(1)));
    assert!(events.poll_recv(&mut cx).is_pending());
    drop(events);
    assert_eq!(Arc::strong_count(&bell), 2);
}

#[test]
fn both_ends_go_to_other_threads_and_their_futures_too() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    fn sync<T: Sync>(value: T) -> T {
        value
    }
    let (handle, mut port) = channel(1, 1);
    let handle = send(sync(handle));
    let mut events = send(handle.subscribe());
    drop(send(handle.submit(2)));
    drop(send(events.recv()));
    drop(send(port.recv()));
    drop(send(port));
}

#[test]
fn errors_say_what_to_do() {
    let full = TrySubmitError::Full {
        command: 6,
        limit: 2,
    };
    assert_eq!(
        full.to_string(),
        "2 commands wait already: wait for room with submit, or raise Limits::commands"
    );
    assert_eq!(
        RecvError::Lagged { missed: 3 }.to_string(),
        "3 events were missed: read a snapshot, and read faster or raise Limits::events"
    );
}

/// A subscriber that begins with the oldest event gets the earlier events that are kept, and no
/// lag.
#[test]
fn a_subscriber_may_begin_with_the_oldest_event_that_is_kept() {
    let (handle, mut port) = channel(1, 3);
    port.publish(0, [1, 2]);
    let mut events = handle.subscribe_from_oldest();
    let mut later = handle.subscribe();
    assert_eq!(events.try_recv(), Ok(Some(1)));
    assert_eq!(later.try_recv(), Ok(None));
    port.publish(0, [3, 4]);
    assert_eq!(later.try_recv(), Ok(Some(3)));
    let mut all = handle.subscribe_from_oldest();
    let kept = [
        all.try_recv(),
        all.try_recv(),
        all.try_recv(),
        all.try_recv(),
    ];
    assert_eq!(kept, [Ok(Some(2)), Ok(Some(3)), Ok(Some(4)), Ok(None)]);
}

/// A host with commands of its own answers with more than success.
#[test]
fn a_service_answers_with_values() {
    #[derive(Debug)]
    struct Square;
    impl shared::Service for Square {
        type Command = u32;
        type Answer = u64;
        type Event = ();
        type Reject = &'static str;
    }
    let (handle, mut port) = shared::channel::<Square, ()>(Limits::default(), ());
    let host = thread::spawn(move || {
        while let Ok(Request { command, reply }) = port.blocking_recv() {
            let square = u64::from(command) * u64::from(command);
            reply.send(if command == 0 {
                Err("zero")
            } else {
                Ok(square)
            });
        }
    });
    assert_eq!(handle.blocking_submit(70_000), Ok(4_900_000_000));
    assert_eq!(handle.blocking_submit(0), Err(Error::Rejected("zero")));
    drop(handle);
    host.join().unwrap();
}
