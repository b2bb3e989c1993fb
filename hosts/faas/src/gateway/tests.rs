//! Tests of the storage of a gateway, and of modules between gateways.

mod modules;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::durable::Barrier;
use selvedge_core::{Driver, Input, Member, NodeId, Span, Time};
use selvedge_pcm::gateway::{Command, Config, Gateway};
use selvedge_pcm::{Function, Library, Limits, Message, TaskId};
use selvedge_replica::Configuration;
use selvedge_store::redb::{Database, TableDefinition};
use selvedge_store::{Damage, StoreError};

use super::modules::{Modules, Out};
use super::storage::{Beginning, Memory, Room, Storage, StorageError};
use super::{Broker, Options};
use crate::frame::MODULE_MAX;
use crate::link::{Access, Address};
use crate::notice::{NotKept, Notice};
use crate::scratch::Dir;
use crate::shelf;

const ROOM: Room = Room {
    modules: 3,
    bytes: 1_000,
};

impl Dir {
    fn open(&self, id: u64, memory: Memory) -> Result<(Storage, Gateway), StorageError> {
        Storage::open(&self.0, ROOM, &beginning(id, memory))
    }

    fn file(&self) -> PathBuf {
        self.0.join("gateway.redb")
    }
}

fn beginning(id: u64, memory: Memory) -> Beginning {
    Beginning {
        id: NodeId(id),
        config: Config::new(),
        // A single gateway decides alone.
        first: Configuration::of([Member::new(id, 0)]),
        limits: Limits::new(),
        memory,
    }
}

pub(super) fn options(dir: &Dir, broker: Broker) -> Options {
    let beginning = beginning(1, Memory::NeverStarted);
    Options {
        id: beginning.id,
        broker,
        advertise: None,
        peers: Vec::new(),
        access: Access::default(),
        users: None,
        #[cfg(feature = "tls")]
        identity: None,
        data: dir.0.clone(),
        memory: beginning.memory,
        config: beginning.config,
        limits: beginning.limits,
        room: ROOM,
        #[cfg(feature = "page")]
        page: None,
        is_verbose: false,
    }
}

fn error(opened: Result<(Storage, Gateway), StorageError>) -> StoreError {
    match opened {
        Err(StorageError::Store(error)) => error,
        other => panic!("{:?}", other.map(|it| it.1.me())),
    }
}

/// Runs a gateway for a second, in which a client asks for tasks; all facts are stored.
fn work(storage: &mut Storage, gateway: Gateway, tasks: u64) -> Gateway {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut driver = Driver::new(gateway);
    let mut now = Time::ZERO;
    let mut inputs = vec![Input::Command(Command::Start)];
    inputs.extend((1..=tasks).map(|number| Input::Message {
        from: CLIENT,
        message: Message::Submit {
            number,
            function: Function::new(&number.to_be_bytes()),
        },
    }));
    for input in inputs {
        let mut barrier = Barrier::new(0);
        let mut keep = |effect| barrier.take(effect, drop);
        driver.step(now, &mut rng, input, &mut keep).unwrap();
        for _ in 0..20 {
            now = now + Span::millis(100);
            driver.expire(now, &mut rng, &mut keep);
        }
        storage.store(&mut barrier, driver.machine(), drop).unwrap();
    }
    driver.into_machine()
}

const CLIENT: Member = Member::new(9, 1);

#[test]
fn a_gateway_finds_its_own_broker_where_it_listens() {
    let dir = Dir::new("own");
    let own = |listen: &str| {
        let listen = listen.parse().unwrap();
        options(&dir, Broker::Embedded { listen }).own().to_string()
    };
    assert_eq!(own("192.0.2.7:1883"), "192.0.2.7:1883");
    assert_eq!(own("0.0.0.0:1883"), "127.0.0.1:1883");
    assert_eq!(own("[::]:1883"), "[::1]:1883");
    assert_eq!(own("[2001:db8::7]:1883"), "[2001:db8::7]:1883");
    let at = options(&dir, Broker::At("broker:1884".parse().unwrap()));
    assert_eq!(at.own().to_string(), "broker:1884");
}

#[test]
fn the_first_gateways_to_decide_are_all_of_them_each_once() {
    let dir = Dir::new("first");
    let broker: Address = "broker:1884".parse().unwrap();
    let mut options = options(&dir, Broker::At(broker.clone()));
    options.peers = [3, 1, 2].map(|id| (NodeId(id), broker.clone())).into();
    let all = [1, 2, 3].map(|id| Member::new(id, 0));
    assert_eq!(options.first(), Configuration::of(all));
}

#[test]
fn what_was_decided_is_there_after_each_start() {
    let dir = Dir::new("decided");
    let (mut storage, gateway) = dir.open(1, Memory::NeverStarted).unwrap();
    assert_eq!(gateway.me(), Member::new(1, 0));
    // More facts than the limit at which a base replaces them.
    let gateway = work(&mut storage, gateway, 40);
    assert_eq!(gateway.tables().unwrap().open().count(), 40);
    let before = gateway.replica().version();
    drop((storage, gateway));
    for life in 1..4 {
        let (_, gateway) = dir.open(1, Memory::Kept).unwrap();
        assert_eq!(gateway.me(), Member::new(1, life));
        assert_eq!(gateway.replica().version(), before);
        let tables = gateway.tables().unwrap();
        assert_eq!(tables.open().count(), 40);
        let (client, number) = (CLIENT, 40);
        assert!(tables.open_task(TaskId { client, number }).is_some());
    }
}

#[test]
fn a_gateway_begins_as_its_user_says_or_not_at_all() {
    let dir = Dir::new("begins");
    assert!(matches!(
        error(dir.open(1, Memory::Kept)),
        StoreError::NothingStored
    ));
    drop(dir.open(1, Memory::NeverStarted).unwrap());
    for memory in [Memory::NeverStarted, Memory::Lost] {
        assert!(matches!(
            error(dir.open(1, memory)),
            StoreError::AlreadyStored
        ));
    }
    let other = error(dir.open(2, Memory::Kept));
    let (asked, found) = (NodeId(2), NodeId(1));
    assert!(
        matches!(other, StoreError::OtherNode { asked: a, found: f } if (a, f) == (asked, found))
    );
    let lost = Dir::new("lost");
    let (_, gateway) = lost.open(1, Memory::Lost).unwrap();
    assert!(gateway.tables().is_none());
    assert!(gateway.me().supersedes(Member::new(1, 1_000)));
}

#[test]
fn a_file_that_is_foreign_or_newer_or_damaged_is_refused() {
    let dir = Dir::new("foreign");
    fs::create_dir_all(&dir.0).unwrap();
    fs::write(dir.file(), "a text that a user needs").unwrap();
    assert!(matches!(
        error(dir.open(1, Memory::Kept)),
        StoreError::Damage(Damage::Foreign(_))
    ));
    assert!(dir.file().exists());
    fs::write(dir.file(), [0; 8_192]).unwrap();
    assert!(matches!(
        error(dir.open(1, Memory::NeverStarted)),
        StoreError::Damage(Damage::Foreign(_))
    ));
    fs::remove_file(dir.file()).unwrap();
    let database = Database::create(dir.file()).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(TableDefinition::<u8, u8>::new("recipes"))
        .unwrap();
    txn.commit().unwrap();
    drop(database);
    assert!(matches!(
        error(dir.open(1, Memory::Kept)),
        StoreError::Damage(Damage::Foreign(_))
    ));
    fs::remove_file(dir.file()).unwrap();
    // An error of the disk is not reported as a file of another program.
    fs::create_dir(dir.file()).unwrap();
    assert!(matches!(
        error(dir.open(1, Memory::Kept)),
        StoreError::Folder { .. }
    ));
    fs::remove_dir(dir.file()).unwrap();

    drop(dir.open(1, Memory::NeverStarted).unwrap());
    let whole = fs::read(dir.file()).unwrap();
    let database = Database::create(dir.file()).unwrap();
    let base = TableDefinition::<(), &[u8]>::new("selvedge faas: base");
    let txn = database.begin_write().unwrap();
    txn.open_table(base)
        .unwrap()
        .insert((), [7, 1, 2].as_slice())
        .unwrap();
    txn.commit().unwrap();
    drop(database);
    assert!(matches!(
        error(dir.open(1, Memory::Kept)),
        StoreError::Damage(Damage::Newer { found: 7, .. })
    ));

    // Data that was read before is overwritten.
    let mut damaged = whole;
    damaged.iter_mut().skip(4_096).for_each(|it| *it ^= 0x55);
    fs::write(dir.file(), damaged).unwrap();
    assert!(matches!(
        error(dir.open(1, Memory::Kept)),
        StoreError::PutAside { .. }
    ));
    assert!(dir.file().with_extension("damaged").exists());
    assert!(matches!(
        error(dir.open(1, Memory::Kept)),
        StoreError::NothingStored
    ));
}

#[test]
fn the_oldest_modules_make_room_and_the_others_stay_over_a_start() {
    let dir = Dir::new("modules");
    let (mut storage, _gateway) = dir.open(1, Memory::NeverStarted).unwrap();
    let module = |fill: u8, len: usize| vec![fill; len];
    let none = BTreeSet::new();
    for fill in 0..4 {
        assert!(storage.keep(&module(fill, 100), &none).unwrap());
        assert!(storage.keep(&module(fill, 100), &none).unwrap());
    }
    assert_eq!(storage.modules(), 3);
    let kept = |storage: &mut Storage, fill: u8, len| {
        let module = module(fill, len);
        let found = storage.module(shelf::library(&module)).unwrap();
        found.is_some_and(|it| it == module)
    };
    assert!(!kept(&mut storage, 0, 100));
    assert!((1..4).all(|it| kept(&mut storage, it, 100)));
    // Beside it there is room for another module.
    storage.keep(&module(9, 850), &none).unwrap();
    assert!(kept(&mut storage, 9, 850) && kept(&mut storage, 3, 100));
    assert!(!kept(&mut storage, 2, 100));
    drop(storage);
    let (mut storage, _gateway) = dir.open(1, Memory::Kept).unwrap();
    assert!(kept(&mut storage, 9, 850) && kept(&mut storage, 3, 100));
    assert_eq!(storage.modules(), 2);
}

#[test]
fn modules_that_are_put_again_or_needed_stay() {
    let dir = Dir::new("needed");
    let (mut storage, _gateway) = dir.open(1, Memory::NeverStarted).unwrap();
    let module = |fill: u8| vec![fill; 100];
    let name = |fill: u8| shelf::library(&module(fill));
    let none = BTreeSet::new();
    for fill in [0, 1, 2, 0] {
        assert!(storage.keep(&module(fill), &none).unwrap());
    }
    // There is room for three: the oldest is 1 now, and it is needed.
    let mut needed = BTreeSet::from([name(1)]);
    assert!(storage.keep(&module(3), &needed).unwrap());
    assert_eq!(storage.module(name(2)).unwrap(), None);
    assert!(storage.module(name(0)).unwrap().is_some());
    needed.extend([name(0), name(3)]);
    assert!(!storage.keep(&module(4), &needed).unwrap());
    assert!(storage.keep(&module(1), &needed).unwrap(), "it is there");
    for fill in [0, 1, 3] {
        assert_eq!(storage.module(name(fill)).unwrap(), Some(module(fill)));
    }
    assert_eq!(storage.modules(), 3);
    // The bytes of removed modules are free.
    assert!(storage.keep(&vec![9; 1_000], &none).unwrap());
    assert_eq!(storage.modules(), 1);
}

#[test]
fn a_client_hears_that_needed_modules_take_all_the_room() {
    let mut net = Net::new("full");
    let module = |fill: u8| [MODULE, &[0, 2, 0, fill]].concat();
    for fill in 0..3 {
        net.put(&module(fill));
        net.needed.insert(shelf::library(&module(fill)));
    }
    net.notified.clear();
    net.put(&module(3));
    let (library, why) = (shelf::library(&module(3)), NotKept::Full);
    assert_eq!(
        net.notified,
        [(CLIENT.id, Notice::NotKept { library, why })]
    );
}

#[test]
fn a_module_that_is_not_what_its_name_says_is_counted_and_can_be_kept_again() {
    let dir = Dir::new("damaged-module");
    let (mut storage, _gateway) = dir.open(1, Memory::NeverStarted).unwrap();
    let (right, other) = (MODULE.to_vec(), b"\0asm\x01\0\0\0\0\x0c\x03for another");
    let library = shelf::library(&right);
    let none = BTreeSet::new();
    storage.insert(library, other, &none).unwrap();
    assert_eq!(storage.module(library).unwrap(), None);
    assert_eq!((storage.damaged, storage.modules()), (1, 0));
    storage.keep(&right, &none).unwrap();
    assert_eq!(storage.module(library).unwrap(), Some(right));
    assert_eq!(storage.damaged, 1);
}

/// Gateways with modules, and the messages between them.
struct Net {
    dirs: Vec<Dir>,
    gateways: Vec<(Modules, Storage)>,
    /// Gateways that do not answer.
    away: Vec<u64>,
    /// Modules that open tasks need.
    needed: BTreeSet<Library>,
    now: Time,
    /// Notices to nodes that are no gateways.
    notified: Vec<(NodeId, Notice)>,
}

impl Net {
    fn new(name: &str) -> Self {
        let (mut dirs, mut gateways) = (Vec::new(), Vec::new());
        for id in 1..=3 {
            let dir = Dir::new(&format!("{name}-{id}"));
            let (storage, _) = dir.open(id, Memory::NeverStarted).unwrap();
            let others = (1..=3).filter(|it| *it != id).map(NodeId).collect();
            gateways.push((Modules::new(NodeId(id), others), storage));
            dirs.push(dir);
        }
        Self {
            dirs,
            gateways,
            away: Vec::new(),
            needed: BTreeSet::new(),
            now: Time::ZERO,
            notified: Vec::new(),
        }
    }

    fn say(&mut self, from: u64, to: u64, notice: Notice) {
        let mut way = vec![(from, to, notice)];
        while let Some((from, to, notice)) = way.pop() {
            if self.away.contains(&to) {
                continue;
            }
            let Some((modules, storage)) = self.gateways.get_mut(to as usize - 1) else {
                self.notified.push((NodeId(to), notice));
                continue;
            };
            let mut out = Out::new();
            let from = Member::new(from, 0);
            assert!(
                modules
                    .on_notice(from, notice, (storage, &self.needed), self.now, &mut out)
                    .unwrap()
            );
            way.extend(out.into_iter().map(|it| (to, it.0.0, it.1)));
        }
    }

    fn wait(&mut self, span: Span) {
        self.now = self.now + span;
        for id in 1..=3 {
            let mut out = Out::new();
            let (modules, storage) = &mut self.gateways[id as usize - 1];
            modules.expire(storage, self.now, &mut out).unwrap();
            for (to, notice) in out {
                self.say(id, to.0, notice);
            }
        }
    }

    fn put(&mut self, module: &[u8]) {
        let module = module.iter().copied().collect();
        let spreads = true;
        self.say(CLIENT.id.0, 1, Notice::Put { module, spreads });
    }
}

/// A module with nothing but a custom section.
const MODULE: &[u8] = b"\0asm\x01\0\0\0\0\x0d\x03all the rest";

#[test]
fn a_client_hears_of_its_module_when_most_gateways_have_it() {
    let library = shelf::library(MODULE);
    let mut net = Net::new("put");
    net.away = vec![2, 3];
    net.put(MODULE);
    assert_eq!(net.notified, [], "one of three has it");
    net.away = vec![3];
    net.wait(Span::secs(2));
    let by = 2;
    assert_eq!(net.notified, [(CLIENT.id, Notice::Kept { library, by })]);
    assert!(net.gateways[1].1.module(library).unwrap().is_some());
    assert_eq!(net.dirs.len(), 3);
}

#[test]
fn a_gateway_that_lacks_a_module_asks_the_others() {
    let library = shelf::library(MODULE);
    let mut net = Net::new("get");
    net.away = vec![3];
    net.put(MODULE);
    net.away.clear();
    net.notified.clear();
    net.say(101, 3, Notice::Get(library));
    let module = MODULE.iter().copied().collect();
    assert_eq!(net.notified, [(NodeId(101), Notice::Module(module))]);
    assert!(net.gateways[2].1.module(library).unwrap().is_some());
    net.notified.clear();
    let other = shelf::library(b"another one");
    net.say(101, 3, Notice::Get(other));
    assert_eq!(net.notified, [(NodeId(101), Notice::NoModule(other))]);
    // The wait for silent gateways ends.
    net.notified.clear();
    net.away = vec![1, 2];
    net.say(101, 3, Notice::Get(other));
    for _ in 0..3 {
        assert_eq!(net.notified, []);
        net.wait(Span::secs(2));
    }
    assert_eq!(net.notified, [(NodeId(101), Notice::NoModule(other))]);
}

#[test]
fn what_is_no_module_is_not_kept() {
    let mut net = Net::new("wrong");
    net.put(b"a text");
    let library = shelf::library(b"a text");
    let why = NotKept::NoModule;
    assert_eq!(
        net.notified,
        [(CLIENT.id, Notice::NotKept { library, why })]
    );
    net.notified.clear();
    // A wrong version, an incomplete section, and invalid code.
    for wrong in [
        b"\0asm\x02\0\0\0".as_slice(),
        b"\0asm\x01\0\0\0\x01\x05\0",
        b"\0asm\x01\0\0\0\x0a\x02\x01\x05",
    ] {
        net.put(wrong);
        let library = shelf::library(wrong);
        assert_eq!(
            net.notified,
            [(CLIENT.id, Notice::NotKept { library, why })]
        );
        net.notified.clear();
    }
    let long = [MODULE, &vec![0; MODULE_MAX]].concat();
    net.put(&long);
    let (library, limit) = (shelf::library(&long), MODULE_MAX as u32);
    let len = long.len() as u32;
    let why = NotKept::TooLong { len, limit };
    assert_eq!(
        net.notified,
        [(CLIENT.id, Notice::NotKept { library, why })]
    );
    assert_eq!(net.gateways[0].1.modules(), 0);
    // A follower cannot make a gateway keep an unrequested module.
    let (modules, storage) = &mut net.gateways[0];
    let notice = Notice::Module(MODULE.iter().copied().collect());
    let taken = modules.on_notice(
        CLIENT,
        notice,
        (storage, &BTreeSet::new()),
        Time::ZERO,
        &mut Out::new(),
    );
    assert!(!taken.unwrap());
    assert_eq!(storage.modules(), 0);
}
