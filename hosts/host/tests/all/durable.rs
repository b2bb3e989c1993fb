//! Hosts that store facts.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use selvedge_core::NodeId;
use selvedge_core::durable::Durable;
use selvedge_core::shared;
use selvedge_host::{Host, HostError, RunError, Setup};
use selvedge_store::redb::StorageBackend;
use selvedge_store::redb::backends::InMemoryBackend;
use selvedge_store::{Schema, Store, StoreError};
use tokio::time::timeout;

use crate::toy::{Command, Event, Message, Node, PATIENCE, Toy, asynchronous, me, next, socket};

const SCHEMA: Schema = Schema {
    file: "toy.redb",
    base: "toy: base",
    facts: "toy: facts",
    format: 1,
    limit: 10,
};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("selvedge-host-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&path));
        Self(path)
    }

    /// A toy with the total of its former life, and its store.
    fn open(&self) -> Result<(Store<u64, u64>, Toy), StoreError> {
        let (store, found) = Store::<u64, u64>::open(&self.0, SCHEMA)?;
        let mut toy = Toy::default();
        if let Some(found) = found {
            assert!(found.facts.len() as u64 <= SCHEMA.limit);
            toy.total = found.base;
            for fact in &found.facts {
                let Ok(()) = toy.fold(fact);
            }
        }
        Ok((store, toy))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A node with this store, whose peer is a socket of the test.
async fn start(
    toy: Toy,
    store: Store<u64, u64>,
) -> Result<(Node, tokio::net::UdpSocket), HostError> {
    let (own, peer) = (socket(), socket());
    let setup = Setup::bound(me(1), own.0)
        .peers([(NodeId(2), peer.1)])
        .view(|toy: &Toy| toy.total);
    let node = Host::start_durable(toy, setup, store, |toy| toy.total).await?;
    Ok((node, asynchronous(peer.0)))
}

/// More facts than a base takes the place of, in several lives, the last of which end without a
/// word.
#[tokio::test]
async fn a_later_life_goes_on_with_what_was_answered() {
    let folder = Folder::new("lives");
    let mut total = 0;
    for life in 1..=4 {
        let (store, toy) = folder.open().unwrap();
        assert_eq!(toy.total, total);
        let (node, _peer) = start(toy, store).await.unwrap();
        for number in 1..=13 {
            node.submit(Command::Add(number)).await.unwrap();
            total += number;
        }
        if life % 2 == 0 {
            drop(node);
            // Its folder is free as soon as its task has seen that.
            while folder.open().is_err() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        } else {
            node.stop().await.unwrap();
        }
    }
    assert_eq!(folder.open().unwrap().1.total, 4 * 91);
}

/// A disk whose next synchronisation waits, or fails.
#[derive(Clone, Debug, Default)]
struct Disk {
    bytes: Arc<InMemoryBackend>,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Well,
    Slow,
    Broken,
}

impl Disk {
    fn set(&self, state: State) {
        *self.state.0.lock().unwrap() = state;
        self.state.1.notify_all();
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.bytes.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        let mut state = self.state.0.lock().unwrap();
        if *state == State::Slow {
            // Not for ever: a test that fails must end.
            let is_slow = |state: &mut State| *state == State::Slow;
            let wait = (self.state.1).wait_timeout_while(state, PATIENCE / 6, is_slow);
            state = wait.unwrap().0;
            if *state == State::Slow {
                *state = State::Broken;
            }
        }
        match *state {
            State::Broken => Err(io::Error::other("the disk is broken")),
            _ => self.bytes.sync_data(eventual),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.bytes.write(offset, data)
    }
}

async fn on(disk: &Disk) -> Result<(Node, tokio::net::UdpSocket), HostError> {
    let (store, _found) = Store::<u64, u64>::on(disk.clone(), SCHEMA)?;
    start(Toy::default(), store).await
}

#[tokio::test]
async fn nothing_is_seen_of_a_fact_before_it_is_stored() {
    let disk = Disk::default();
    let (node, peer) = on(&disk).await.unwrap();
    let mut events = node.events();
    disk.set(State::Slow);
    let mut answer = tokio::spawn({
        let node = node.clone();
        async move { node.submit(Command::Add(7)).await }
    });
    let mut read = tokio::spawn({
        let node = node.clone();
        async move { node.read(|toy| toy.total).await }
    });
    let mut buffer = [0; 100];
    let pause = Duration::from_millis(200);
    let sent = timeout(pause, peer.recv_from(&mut buffer)).await;
    assert!(sent.is_err(), "a message came before its fact was stored");
    let answered = timeout(Duration::ZERO, &mut answer).await;
    assert!(
        answered.is_err(),
        "a command was answered before its fact was stored"
    );
    assert!(timeout(Duration::ZERO, &mut read).await.is_err());
    assert_eq!((events.try_recv(), *node.snapshot()), (Ok(None), 0));
    disk.set(State::Well);
    assert_eq!(next(&peer).await, (me(1), Message::Added(7)));
    answer.await.unwrap().unwrap();
    assert_eq!(read.await.unwrap(), Ok(7));
    assert_eq!(
        (events.try_recv(), *node.snapshot()),
        (Ok(Some(Event::Total(7))), 7)
    );
}

#[tokio::test]
async fn a_host_that_cannot_store_ends_with_the_error_and_sends_nothing() {
    let disk = Disk::default();
    let (node, peer) = on(&disk).await.unwrap();
    node.submit(Command::Add(1)).await.unwrap();
    assert_eq!(next(&peer).await, (me(1), Message::Added(1)));
    disk.set(State::Broken);
    let unanswered = node.submit(Command::Add(7)).await;
    assert_eq!(unanswered, Err(shared::Error::Unanswered));
    let ended = node.ended().await.unwrap_err();
    assert!(
        matches!(&ended, RunError::Store(error) if matches!(**error, StoreError::Database { .. }))
    );
    assert!(ended.to_string().contains("the disk is broken"), "{ended}");
    assert_eq!(node.read(|toy| toy.total).await, Err(shared::Closed));
    // A later stop returns the same error.
    assert_eq!(
        node.stop().await.unwrap_err().to_string(),
        ended.to_string()
    );
    assert_eq!((*node.snapshot(), node.traffic().sent), (1, 1));
    std::net::UdpSocket::bind(node.address()).unwrap();
}

#[tokio::test]
async fn a_host_that_cannot_store_its_beginning_does_not_start() {
    let disk = Disk::default();
    let (store, _found) = Store::<u64, u64>::on(disk.clone(), SCHEMA).unwrap();
    disk.set(State::Broken);
    let error = start(Toy::default(), store).await.unwrap_err();
    assert!(matches!(error, HostError::Store(_)), "{error}");
}
