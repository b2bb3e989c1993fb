//! No lock is held while foreign code runs. If one were, loom would report a deadlock; with
//! ordinary locks the test would hang.

#![cfg(loom)]
#![allow(
    clippy::std_instead_of_alloc,
    reason = "a test has std; it needs no second crate for the same names"
)]

use core::convert::Infallible;
use core::num::NonZeroUsize;
use core::pin::pin;
use core::task::{Poll, Waker};
use std::sync::{Arc, Mutex};
use std::task::Wake;

use selvedge_core::shared::{self, Handle, Limits, Port};
use selvedge_core::{Context, Input, Machine};

/// Gives the channel its types, and nothing more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Words;

impl Machine for Words {
    type Message = Infallible;
    type Timer = ();
    type Command = Word;
    type Event = Word;
    type Reject = ();

    fn handle(&mut self, _: Input<Self>, _: &mut Context<'_, Self>) -> Result<(), ()> {
        Ok(())
    }
}

/// Calls back when it is cloned or dropped, unless it is quiet. All words are equal.
#[derive(Debug)]
struct Word(Option<Handle<Words, Snapshot>>);

/// Calls back when it is dropped, unless it is quiet.
#[derive(Debug)]
struct Snapshot(Option<Handle<Words, Snapshot>>);

/// Calls back when it is woken and when it is dropped.
struct Meddler(Handle<Words, Snapshot>);

/// Takes each lock of the channel once.
fn meddle(handle: &Handle<Words, Snapshot>) {
    drop(handle.try_submit(Word(None)));
    drop(handle.subscribe());
    drop(handle.snapshot());
}

impl Clone for Word {
    fn clone(&self) -> Self {
        self.0.iter().for_each(meddle);
        Self(None)
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        self.0.iter().for_each(meddle);
    }
}

impl PartialEq for Word {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Word {}

impl core::hash::Hash for Word {
    fn hash<H: core::hash::Hasher>(&self, _: &mut H) {}
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.0.iter().for_each(meddle);
    }
}

impl Wake for Meddler {
    fn wake(self: Arc<Self>) {
        meddle(&self.0);
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        meddle(&self.0);
    }
}

fn channel() -> (Handle<Words, Snapshot>, Port<Words, Snapshot>) {
    let limits = Limits {
        commands: NonZeroUsize::MIN,
        events: NonZeroUsize::MIN,
    };
    shared::channel(limits, Snapshot(None))
}

fn meddler(handle: &Handle<Words, Snapshot>) -> Waker {
    Waker::from(Arc::new(Meddler(handle.clone())))
}

#[test]
fn a_waker_may_call_back_when_it_is_woken() {
    loom::model(|| {
        let (handle, mut port) = channel();
        let waker = meddler(&handle);
        let mut cx = core::task::Context::from_waker(&waker);
        let mut events = handle.subscribe();
        assert!(events.poll_recv(&mut cx).is_pending());
        assert!(port.poll_recv(&mut cx).is_pending());
        // Wakes the port: its waker would submit, but the queue is full.
        let mut outcome = pin!(handle.try_submit(Word(None)).unwrap());
        assert!(outcome.as_mut().poll(&mut cx).is_pending());
        let mut room = pin!(handle.submit(Word(None)));
        assert!(room.as_mut().poll(&mut cx).is_pending());
        port.emit([Word(None)]);
        let request = port.try_recv().unwrap().unwrap();
        request.reply.send(Ok(()));
        assert!(outcome.as_mut().poll(&mut cx).is_ready());
        // The waker of the submit that waited for room has taken the room.
        assert!(room.as_mut().poll(&mut cx).is_pending());
        assert!(events.poll_recv(&mut cx).is_ready());
        assert!(events.poll_recv(&mut cx).is_pending());
        drop(port);
    });
}

/// Polls as an executor does that polls in the thread that wakes it.
#[test]
fn a_waker_may_poll_at_once_what_it_was_given_for() {
    struct Poller<F>(F);
    impl<F: Fn() + Send + Sync + 'static> Wake for Poller<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }
    fn poller(poll: impl Fn() + Send + Sync + 'static) -> Waker {
        Waker::from(Arc::new(Poller(poll)))
    }

    loom::model(|| {
        let (handle, port) = channel();
        let port = Arc::new(Mutex::new(port));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let waker = poller({
            let (port, taken) = (Arc::clone(&port), Arc::clone(&taken));
            move || {
                let request = port.lock().unwrap().try_recv();
                taken.lock().unwrap().push(request.map(Option::unwrap));
            }
        });
        let wait = || {
            let mut cx = core::task::Context::from_waker(&waker);
            assert!(port.lock().unwrap().poll_recv(&mut cx).is_pending());
        };
        wait();
        let outcome = handle.try_submit(Word(None)).unwrap();
        let outcome = Arc::new(Mutex::new(outcome));
        let answer = Arc::new(Mutex::new(None));
        let poll = poller({
            let (outcome, answer) = (Arc::clone(&outcome), Arc::clone(&answer));
            move || {
                let mut cx = core::task::Context::from_waker(Waker::noop());
                let mut outcome = outcome.lock().unwrap();
                *answer.lock().unwrap() = Some(pin!(&mut *outcome).poll(&mut cx));
            }
        });
        {
            let mut cx = core::task::Context::from_waker(&poll);
            assert!(
                pin!(&mut *outcome.lock().unwrap())
                    .poll(&mut cx)
                    .is_pending()
            );
        }
        let request = taken.lock().unwrap().pop().unwrap().unwrap();
        request.reply.send(Ok(()));
        assert_eq!(*answer.lock().unwrap(), Some(Poll::Ready(Ok(()))));

        wait();
        {
            let mut room = pin!(handle.submit(Word(None)));
            let mut cx = core::task::Context::from_waker(Waker::noop());
            assert!(room.as_mut().poll(&mut cx).is_pending());
        }
        assert!(taken.lock().unwrap().pop().unwrap().is_ok());
        wait();
        drop(handle);
        assert!(taken.lock().unwrap().pop().unwrap().is_err());
    });
}

#[test]
fn a_waker_may_call_back_when_another_takes_its_place() {
    loom::model(|| {
        let (handle, mut port) = channel();
        let mut events = handle.subscribe();
        {
            let outcome = handle.try_submit(Word(None)).unwrap();
            let mut outcome = pin!(outcome);
            let mut room = pin!(handle.submit(Word(None)));
            // Each round drops the last round's wakers.
            for _ in 0..2 {
                let poll = |future: core::pin::Pin<&mut dyn Future<Output = _>>| {
                    let waker = meddler(&handle);
                    let mut cx = core::task::Context::from_waker(&waker);
                    assert!(future.poll(&mut cx).is_pending());
                };
                poll(outcome.as_mut());
                poll(room.as_mut());
                let waker = meddler(&handle);
                let mut cx = core::task::Context::from_waker(&waker);
                assert!(events.poll_recv(&mut cx).is_pending());
            }
        }
        drop(events);
        // The port waits only while the queue is empty. It drops the first waker, which submits
        // and so wakes the second one; the third one waits when the port goes.
        for _ in 0..3 {
            while port.try_recv().unwrap().is_some() {}
            let waker = meddler(&handle);
            let mut cx = core::task::Context::from_waker(&waker);
            assert!(port.poll_recv(&mut cx).is_pending());
        }
        drop(port);
    });
}

#[test]
fn what_is_sent_may_call_back_when_it_is_cloned_or_dropped() {
    loom::model(|| {
        let (handle, mut port) = channel();
        let word = || Word(Some(handle.clone()));
        let mut events = handle.subscribe();
        let mut other = handle.subscribe();
        // A ring of one drops the first event; both subscribers get clones of the second.
        port.emit([word()]);
        port.emit([word()]);
        assert!(events.try_recv().is_err() && other.try_recv().is_err());
        assert!(events.try_recv().is_ok() && other.try_recv().is_ok());
        port.publish(Snapshot(Some(handle.clone())), []);
        port.publish(Snapshot(None), []);
        // One command waits in the queue, one is refused, and one never found room.
        while port.try_recv().unwrap().is_some() {}
        let outcome = handle.try_submit(word()).unwrap();
        drop(handle.try_submit(word()));
        {
            let mut room = pin!(handle.submit(word()));
            let mut cx = core::task::Context::from_waker(Waker::noop());
            assert!(room.as_mut().poll(&mut cx).is_pending());
        }
        port.emit([Word(None)]);
        drop(port);
        assert!(outcome.wait().is_err());
    });
}
