//! No lost wake-up, no lost command, a clean end while others wait.

#![cfg(loom)]

use core::convert::Infallible;
use core::num::NonZeroUsize;

use loom::model::Builder;
use loom::thread;
use selvedge_core::shared::{self, Closed, Error, Handle, Limits, Port, RecvError, Request};
use selvedge_core::{Context, Input, Machine};

/// Gives the channel its types: the way to a machine and back is tested, not a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Numbers;

impl Machine for Numbers {
    type Message = Infallible;
    type Timer = ();
    type Command = u8;
    type Event = u64;
    /// Refuses each command with its own number, so that mixed-up outcomes show.
    type Reject = u8;

    fn handle(&mut self, _: Input<Self>, _: &mut Context<'_, Self>) -> Result<(), u8> {
        Ok(())
    }
}

type NumbersHandle = Handle<Numbers, u64>;
type NumbersPort = Port<Numbers, u64>;

fn channel(commands: usize, events: usize) -> (NumbersHandle, NumbersPort) {
    let limit = |limit| NonZeroUsize::new(limit).unwrap();
    let limits = Limits {
        commands: limit(commands),
        events: limit(events),
    };
    shared::channel(limits, 0)
}

/// Tries every order.
fn every_order(test: impl Fn() + Sync + Send + 'static) {
    orders(None, test);
}

/// Tries every order in which no thread is interrupted more than `bound` times where it could have
/// gone on. Most defects need two such interruptions.
fn orders(bound: impl Into<Option<usize>>, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = bound.into();
    builder.check(test);
}

/// Answers everything until no handle is left; returns the commands in order.
fn serve(mut port: NumbersPort) -> Vec<u8> {
    let mut taken = Vec::new();
    while let Ok(Request { command, reply }) = port.blocking_recv() {
        taken.push(command);
        reply.send(Err(command));
    }
    taken
}

#[test]
fn a_command_wakes_the_port_and_its_outcome_wakes_whoever_waits() {
    every_order(|| {
        let (handle, port) = channel(2, 1);
        let host = thread::spawn(move || serve(port));
        let outcome = handle.try_submit(7).unwrap();
        assert_eq!(outcome.wait(), Err(Error::Rejected(7)));
        drop(handle);
        assert_eq!(host.join().unwrap(), [7]);
    });
}

#[test]
fn each_of_two_threads_that_wait_for_room_gets_its_own_outcome() {
    orders(3, || {
        let (handle, port) = channel(1, 1);
        let threads = [1, 2].map(|command| {
            let handle = handle.clone();
            thread::spawn(move || {
                assert_eq!(
                    handle.blocking_submit(command),
                    Err(Error::Rejected(command))
                );
            })
        });
        drop(handle);
        let mut taken = serve(port);
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn one_that_waits_for_room_is_woken_when_a_command_is_taken() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let first = handle.try_submit(1).unwrap();
        let waiting = thread::spawn(move || handle.blocking_submit(2));
        for command in [1, 2] {
            let request = port.blocking_recv().unwrap();
            assert_eq!(request.command, command);
            request.reply.send(Ok(()));
        }
        assert_eq!(waiting.join().unwrap(), Ok(()));
        assert_eq!(first.wait(), Ok(()));
    });
}

#[test]
fn a_command_is_taken_though_nobody_waits_for_its_outcome() {
    every_order(|| {
        let (handle, port) = channel(1, 1);
        let host = thread::spawn(move || serve(port));
        drop(handle.try_submit(7).unwrap());
        drop(handle);
        assert_eq!(host.join().unwrap(), [7]);
    });
}

#[test]
fn a_request_that_is_dropped_wakes_whoever_waits() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let waiting = thread::spawn(move || handle.blocking_submit(7));
        drop(port.blocking_recv().unwrap());
        assert_eq!(waiting.join().unwrap(), Err(Error::Unanswered));
    });
}

#[test]
fn a_snapshot_wakes_whoever_waits_for_it_and_so_does_the_end() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let waiting = thread::spawn(move || {
            let found = handle.blocking_wait_for(|it| *it == 2);
            (found, handle.blocking_wait_for(|it| *it == 3))
        });
        port.publish(1, []);
        port.publish(2, []);
        drop(port);
        let (found, end) = waiting.join().unwrap();
        assert_eq!(*found.unwrap(), 2);
        assert_eq!(end, Err(Closed));
    });
}

#[test]
fn an_event_wakes_every_subscriber_and_the_snapshot_reflects_it() {
    orders(3, || {
        let (handle, mut port) = channel(1, 2);
        let readers = [(); 2].map(|()| {
            let mut events = handle.subscribe();
            let handle = handle.clone();
            thread::spawn(move || {
                let seen = events.blocking_recv().unwrap();
                assert_eq!(seen, 1);
                assert!(*handle.snapshot() >= seen);
            })
        });
        port.publish(1, [1]);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn an_outcome_comes_after_the_snapshot_that_reflects_the_command() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let host = thread::spawn(move || {
            let request = port.blocking_recv().unwrap();
            port.publish(1, [1]);
            request.reply.send(Ok(()));
        });
        assert_eq!(handle.blocking_submit(7), Ok(()));
        assert_eq!(*handle.snapshot(), 1);
        host.join().unwrap();
    });
}

#[test]
fn snapshots_are_read_whole_and_never_go_back() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let reader = thread::spawn(move || {
            let (first, second) = (handle.snapshot(), handle.snapshot());
            assert!(*first <= *second && *second <= 2);
        });
        port.publish(1, []);
        port.publish(2, []);
        reader.join().unwrap();
    });
}

#[test]
fn a_slow_subscriber_gets_every_event_in_order_or_is_told_how_many_it_missed() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let mut events = handle.subscribe();
        let reader = thread::spawn(move || {
            let mut next = 1;
            loop {
                match events.blocking_recv() {
                    Ok(event) => {
                        assert_eq!(event, next);
                        next += 1;
                    }
                    Err(RecvError::Lagged { missed }) => {
                        assert!(missed > 0);
                        next += missed;
                    }
                    Err(RecvError::Closed) => break next,
                }
            }
        });
        for event in 1..=3 {
            port.publish(event, [event]);
        }
        drop(port);
        assert_eq!(reader.join().unwrap(), 4);
    });
}

#[test]
fn the_last_handle_wakes_the_port_when_it_goes() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let other = handle.clone();
        let threads = [handle, other].map(|handle| thread::spawn(move || drop(handle)));
        assert_eq!(port.blocking_recv().unwrap_err(), Closed);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_port_that_goes_wakes_all_that_wait() {
    orders(3, || {
        let (handle, port) = channel(1, 1);
        let queued = handle.try_submit(1).unwrap();
        let mut events = handle.subscribe();
        let room = thread::spawn(move || handle.blocking_submit(2));
        let outcome = thread::spawn(move || queued.wait());
        let event = thread::spawn(move || events.blocking_recv());
        drop(port);
        assert_eq!(room.join().unwrap(), Err(Error::Closed));
        assert_eq!(outcome.join().unwrap(), Err(Error::Closed));
        assert_eq!(event.join().unwrap(), Err(RecvError::Closed));
    });
}

#[test]
fn a_command_that_meets_the_end_has_one_outcome() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let host = thread::spawn(move || {
            let Ok(Some(request)) = port.try_recv() else {
                return false;
            };
            request.reply.send(Ok(()));
            true
        });
        let outcome = handle.blocking_submit(7);
        let taken = host.join().unwrap();
        assert_eq!(outcome, if taken { Ok(()) } else { Err(Error::Closed) });
    });
}

#[test]
fn a_closed_port_refuses_whoever_waits_for_room_and_serves_the_queue() {
    every_order(|| {
        let (handle, mut port) = channel(1, 1);
        let first = handle.try_submit(1).unwrap();
        let waiting = thread::spawn(move || handle.blocking_submit(2));
        port.close();
        assert_eq!(serve(port), [1]);
        assert_eq!(first.wait(), Err(Error::Rejected(1)));
        assert_eq!(waiting.join().unwrap(), Err(Error::Closed));
    });
}
