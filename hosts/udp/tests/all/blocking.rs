//! Calls that block their thread: where tasks run they panic, as those of tokio do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use selvedge_udp::{Error, Handle, Host, block_on};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::bench::{PATIENCE, setup};

/// A call of a node's handle.
type Call = fn(&Handle);

/// The panic of `call` in a task of a runtime with one thread, which runs the node, too.
fn panic_of(call: Call) -> String {
    let (ended, end) = channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let caught = runtime.block_on(async {
            let node = Host::start(setup(1, &[]).locks(1)).await.unwrap();
            catch_unwind(AssertUnwindSafe(|| call(&node)))
        });
        ended.send(caught)
    });
    match end.recv_timeout(Duration::from_secs(60)) {
        Ok(Err(panic)) => *panic.downcast::<String>().unwrap(),
        Ok(Ok(())) => panic!("it returns"),
        Err(_) => panic!("it hangs"),
    }
}

#[test]
fn a_call_that_blocks_panics_in_a_task_instead_of_waiting_for_ever() {
    let calls: &[(&str, Call)] = &[
        ("lock", |node| {
            drop(node.blocking_lock("door".parse().unwrap()))
        }),
        ("lock_timeout", |node| {
            drop(node.blocking_lock_timeout("door".parse().unwrap(), PATIENCE));
        }),
        ("gate", |node| {
            drop(node.blocking_gate("door".parse().unwrap()))
        }),
        ("joined", |node| assert!(node.blocking_joined().is_ok())),
        ("wait_for", |node| drop(node.blocking_wait_for(|_| false))),
        ("waits_for", |node| {
            drop(node.blocking_waits_for("door".parse().unwrap()));
        }),
        ("leave", |node| assert!(node.blocking_leave().is_ok())),
        ("block_on", |node| block_on(node.kill())),
    ];
    for (name, call) in calls {
        let message = panic_of(*call);
        assert!(message.contains("within a runtime"), "{name}: {message}");
    }
}

/// A runtime's thread for blocking work may block, and so may a thread outside of tokio.
#[test]
fn a_call_that_blocks_is_welcome_in_threads_without_tasks() {
    let use_it = |node: &Handle| {
        node.blocking_joined().unwrap();
        let is_here = node.blocking_wait_for(|state| state.members.len() == 1);
        assert_eq!(is_here.unwrap().me.id, node.id());
        let name = "door".parse().unwrap();
        drop(node.blocking_gate(name).unwrap());
        drop(node.blocking_lock_timeout(name, PATIENCE).unwrap());
        let guard = node.blocking_lock(name).unwrap();
        assert!(node.blocking_waits_for(name).unwrap().is_empty());
        drop(guard);
        node.blocking_leave().unwrap();
        assert_eq!(node.blocking_joined(), Err(Error::Closed));
        block_on(node.kill());
    };
    let one_thread = Builder::new_current_thread().enable_all().build().unwrap();
    one_thread.block_on(async {
        let node = Host::start(setup(1, &[]).locks(1)).await.unwrap();
        let blocks = tokio::task::spawn_blocking(move || use_it(&node));
        timeout(PATIENCE, blocks).await.unwrap().unwrap();
    });
    use_it(&Host::blocking_start(setup(2, &[]).locks(1)).unwrap());
}
