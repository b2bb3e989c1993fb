//! Tests of the notices about modules between gateways, and of their bounds.

use super::*;

/// A gateway, with its notices: gateways 2 and 3 exist, and answer only where the test does.
struct One {
    _dir: Dir,
    modules: Modules,
    storage: Storage,
    now: Time,
}

impl One {
    fn new(name: &str) -> Self {
        let dir = Dir::new(name);
        let (storage, _) = dir.open(1, Memory::NeverStarted).unwrap();
        Self {
            _dir: dir,
            modules: Modules::new(NodeId(1), vec![NodeId(2), NodeId(3)]),
            storage,
            now: Time::ZERO,
        }
    }

    /// Returns true if it accepts a notice.
    fn takes(&mut self, from: u64, notice: Notice, out: &mut Out) -> bool {
        let from = Member::new(from, 0);
        let storage = (&mut self.storage, &BTreeSet::new());
        let taken = self.modules.on_notice(from, notice, storage, self.now, out);
        taken.unwrap()
    }

    fn receive(&mut self, from: u64, notice: Notice) -> Out {
        let mut out = Out::new();
        assert!(self.takes(from, notice, &mut out));
        out
    }

    fn put(&mut self, module: &[u8]) -> Out {
        let module = module.iter().copied().collect();
        let spreads = true;
        self.receive(CLIENT.id.0, Notice::Put { module, spreads })
    }

    fn wait(&mut self, span: Span) -> Out {
        self.now = self.now + span;
        let mut out = Out::new();
        let expired = self.modules.expire(&mut self.storage, self.now, &mut out);
        expired.unwrap();
        out
    }
}

/// A different module for each number.
fn numbered(number: u8) -> Vec<u8> {
    [MODULE, &[0, 2, 0, number]].concat()
}

fn receivers(out: &Out) -> Vec<u64> {
    out.iter().map(|it| it.0.0).collect()
}

#[test]
fn only_gateways_speak_for_gateways() {
    let mut one = One::new("strangers");
    let library = shelf::library(MODULE);
    one.put(MODULE);
    let missing = Library(5);
    one.receive(101, Notice::Get(missing));
    let module = b"\0asm\x01\0\0\0".iter().copied().collect();
    let why = NotKept::Full;
    for notice in [
        Notice::Kept { library, by: 1 },
        Notice::NotKept { library, why },
        Notice::NoModule(missing),
        Notice::Module(module),
    ] {
        for stranger in [4, 101] {
            let mut out = Out::new();
            assert!(!one.takes(stranger, notice.clone(), &mut out), "{notice:?}");
            assert_eq!(out, []);
        }
    }
    // Strangers do not count: one more gateway that has it makes a majority, and two lack the
    // other.
    let by = 2;
    let notified = one.receive(2, Notice::Kept { library, by: 1 });
    assert_eq!(notified, [(CLIENT.id, Notice::Kept { library, by })]);
    assert_eq!(one.receive(2, Notice::NoModule(missing)), []);
    let notified = one.receive(3, Notice::NoModule(missing));
    assert_eq!(notified, [(NodeId(101), Notice::NoModule(missing))]);
}

#[test]
fn a_gateway_that_does_not_keep_a_module_is_asked_again() {
    let mut one = One::new("refuses");
    let library = shelf::library(MODULE);
    one.put(MODULE);
    let why = NotKept::Full;
    assert_eq!(one.receive(2, Notice::NotKept { library, why }), []);
    assert_eq!(receivers(&one.wait(Span::secs(2))), [2, 3]);
}

#[test]
fn a_module_is_told_three_times_more_to_those_that_lack_it_and_then_no_more() {
    let mut one = One::new("spread");
    let library = shelf::library(MODULE);
    assert_eq!(receivers(&one.put(MODULE)), [2, 3]);
    assert_eq!(one.wait(Span::millis(1_999)), []);
    one.now = Time::ZERO;
    assert_eq!(receivers(&one.wait(Span::secs(2))), [2, 3]);
    one.receive(3, Notice::Kept { library, by: 1 });
    for _ in 0..2 {
        assert_eq!(one.wait(Span::millis(1_999)), []);
        assert_eq!(receivers(&one.wait(Span::millis(1))), [2]);
    }
    assert_eq!(one.wait(Span::secs(2)), []);
    // A later notice comes too late for the client, which puts the module again.
    assert_eq!(one.receive(2, Notice::Kept { library, by: 1 }), []);
}

#[test]
fn a_module_that_all_have_is_told_of_once_more_and_not_again() {
    let mut one = One::new("all");
    let library = shelf::library(MODULE);
    one.put(MODULE);
    let kept = |by| vec![(CLIENT.id, Notice::Kept { library, by })];
    assert_eq!(one.receive(2, Notice::Kept { library, by: 1 }), kept(2));
    assert_eq!(one.receive(3, Notice::Kept { library, by: 1 }), kept(3));
    assert_eq!(one.receive(3, Notice::Kept { library, by: 1 }), []);
    assert_eq!(one.wait(Span::secs(2)), []);
}

#[test]
fn a_module_that_is_put_again_is_begun_with_again() {
    let mut one = One::new("again");
    one.put(MODULE);
    for _ in 0..3 {
        one.wait(Span::secs(2));
    }
    assert_eq!(receivers(&one.put(MODULE)), [2, 3]);
    for _ in 0..3 {
        assert_eq!(receivers(&one.wait(Span::secs(2))), [2, 3]);
    }
    assert_eq!(one.wait(Span::secs(2)), []);
}

#[test]
fn sixteen_modules_are_on_their_way_at_a_time() {
    let mut one = One::new("many-puts");
    for number in 0..16 {
        assert_eq!(receivers(&one.put(&numbered(number))), [2, 3]);
    }
    assert_eq!(one.put(&numbered(16)), [], "the client puts it again");
    assert_eq!(
        receivers(&one.put(&numbered(15))),
        [2, 3],
        "it is one of them"
    );
}

#[test]
fn sixteen_modules_are_asked_for_at_a_time() {
    let mut one = One::new("many-wants");
    for number in 0..16 {
        let asked = one.receive(101, Notice::Get(Library(number)));
        assert_eq!(receivers(&asked), [2, 3]);
    }
    let missing = Library(16);
    let refused = vec![(NodeId(101), Notice::NoModule(missing))];
    assert_eq!(one.receive(101, Notice::Get(missing)), refused);
    // A module that was requested is waited for.
    assert_eq!(one.receive(102, Notice::Get(Library(3))), []);
    one.receive(2, Notice::NoModule(Library(3)));
    let notified = one.receive(3, Notice::NoModule(Library(3)));
    assert_eq!(receivers(&notified), [101, 102]);
}

#[test]
fn sixty_four_nodes_wait_for_a_module() {
    let mut one = One::new("askers");
    let missing = Library(5);
    assert_eq!(receivers(&one.receive(100, Notice::Get(missing))), [2, 3]);
    for id in 101..170 {
        assert_eq!(one.receive(id, Notice::Get(missing)), [], "it is asked for");
    }
    one.receive(2, Notice::NoModule(missing));
    let notified = one.receive(3, Notice::NoModule(missing));
    assert_eq!(receivers(&notified), (100..164).collect::<Vec<_>>());
}

#[test]
fn those_that_lack_a_module_are_not_asked_again() {
    let mut one = One::new("lack");
    let missing = Library(5);
    one.receive(101, Notice::Get(missing));
    one.receive(2, Notice::NoModule(missing));
    for _ in 0..2 {
        assert_eq!(one.wait(Span::millis(1_999)), []);
        let asked = one.wait(Span::millis(1));
        assert_eq!(asked, [(NodeId(3), Notice::Get(missing))]);
    }
    let given_up = vec![(NodeId(101), Notice::NoModule(missing))];
    assert_eq!(one.wait(Span::secs(2)), given_up);
    assert_eq!(one.wait(Span::secs(2)), []);
}

/// They would ask each other in a ring.
#[test]
fn a_gateway_that_asks_is_answered_at_once() {
    let mut one = One::new("ring");
    let missing = Library(5);
    let notified = one.receive(2, Notice::Get(missing));
    assert_eq!(notified, [(NodeId(2), Notice::NoModule(missing))]);
}

#[test]
fn a_gateway_that_is_alone_keeps_and_answers_at_once() {
    let mut one = One::new("alone");
    one.modules = Modules::new(NodeId(1), Vec::new());
    let library = shelf::library(MODULE);
    let kept = vec![(CLIENT.id, Notice::Kept { library, by: 1 })];
    assert_eq!(one.put(MODULE), kept);
    let missing = Library(5);
    let notified = one.receive(101, Notice::Get(missing));
    assert_eq!(notified, [(NodeId(101), Notice::NoModule(missing))]);
}

#[test]
fn a_module_that_comes_unasked_is_not_kept() {
    let mut one = One::new("unasked");
    let module = MODULE.iter().copied().collect();
    assert_eq!(one.receive(2, Notice::Module(module)), []);
    assert_eq!(one.storage.modules(), 0);
}

#[test]
fn the_longest_module_is_kept() {
    let dir = Dir::new("longest");
    let room = Room {
        modules: 1,
        bytes: MODULE_MAX as u64,
    };
    let (storage, _) = Storage::open(&dir.0, room, &beginning(1, Memory::NeverStarted)).unwrap();
    let mut one = One::new("longest-of-one");
    (one.storage, one.modules) = (storage, Modules::new(NodeId(1), Vec::new()));
    let content = MODULE_MAX - b"\0asm\x01\0\0\0".len() - 4;
    // A custom section; the length of its content takes three bytes.
    let len = [
        content & 0x7f | 0x80,
        content >> 7 & 0x7f | 0x80,
        content >> 14,
    ];
    let mut longest = b"\0asm\x01\0\0\0\0".to_vec();
    longest.extend(len.map(|it| it as u8));
    longest.resize(MODULE_MAX, 0);
    let library = shelf::library(&longest);
    let kept = vec![(CLIENT.id, Notice::Kept { library, by: 1 })];
    assert_eq!(one.put(&longest), kept);
}
