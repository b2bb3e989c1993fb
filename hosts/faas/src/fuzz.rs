//! Fuzz targets as plain functions: they take bytes, and panic if a promise is broken.
//!
//! They run under libFuzzer, from the package in `fuzz/`, and in this package's tests over a
//! committed corpus and generated inputs.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::durable::Durable as _;
use selvedge_core::{Driver, Input, Member, NodeId, Time};
use selvedge_pcm::gateway::{Command, Config, Gateway};
use selvedge_pcm::{Function, Message, Tables};
use selvedge_replica::{Fact, Stored};

use crate::frame::{self, Frame};
use crate::topic::Topic;
use crate::{Argument, Call, Does, Limits, Module, Run, Step, Stub, text_of};

/// Reads bytes as a call, as an argument's text, and as a result.
///
/// # Panics
/// If a decoded call does not encode to the same bytes, an argument changes when it is written and
/// read, or the text of a result changes when it is read.
pub fn call(bytes: &[u8]) {
    if let Ok(call) = Call::decode(bytes) {
        let function = call.to_function();
        assert!(function.as_ref().is_ok_and(|it| *it.code == *bytes));
        assert!(function.is_ok_and(|it| Call::from_function(&it) == Ok(call)));
    }
    let shown = text_of(bytes);
    match shown.starts_with("hex:") {
        true => assert!(shown.parse() == Ok(Argument::Bytes(bytes.to_vec()))),
        false => assert!(shown.as_bytes() == bytes),
    }
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(argument) = text.parse::<Argument>() {
        assert!(argument.to_string().parse() == Ok(argument));
    }
}

/// Reads bytes as a module, and calls its exports with small limits, whole and in slices.
///
/// # Panics
/// If a call has another outcome in slices, or takes more fuel than allowed.
pub fn module(bytes: &[u8]) {
    let limits = Limits::new()
        .with_fuel(20_000)
        .with_memory(2 * 65_536)
        .with_module(16_384);
    let Ok(module) = Module::compile(bytes, &limits) else {
        return;
    };
    for name in module.functions().take(4) {
        let passed = [
            Vec::new(),
            Vec::from([Argument::I32(3)]),
            Vec::from([Argument::Bytes(Vec::from([5; 99]))]),
            Vec::from([Argument::I64(-1), Argument::F64(0.5)]),
        ];
        for arguments in passed {
            let call = Call::new(module.id(), &name, arguments);
            let Ok(call) = call.and_then(|it| it.with_stubs(stubs(&module))) else {
                continue;
            };
            let whole = Run::new(&module, &call, &limits).finish();
            assert!(whole.fuel <= limits.fuel);
            assert!(whole.log.len() <= usize::from(limits.log));
            let mut run = Run::new(&module, &call, &limits);
            let sliced = loop {
                if let Step::Finished(ran) = run.step(777) {
                    break ran;
                }
            };
            assert!(sliced == whole);
        }
    }
}

/// A stub for each missing import: all but the first return.
fn stubs(module: &Module) -> impl Iterator<Item = Stub> + '_ {
    let missing = module.missing().enumerate();
    missing.map(|(nth, (module, name))| Stub {
        module: module.to_string(),
        name: name.to_string(),
        does: match nth {
            0 => Does::Traps,
            _ => Does::ReturnsZero,
        },
    })
}

/// Reads a payload, and writes and reads the result again.
///
/// # Panics
/// If the frame changes.
pub fn frame(bytes: &[u8]) {
    let Ok(frame) = Frame::decode(bytes) else {
        return;
    };
    let written = match &frame {
        Frame::Message(it) => frame::message(it.from, &it.message),
        Frame::Notice(it) => frame::notice(it.from, &it.message),
    };
    // Numbers may be longer than necessary, so bytes may differ.
    let again = written.and_then(|it| Frame::decode(&it));
    assert_eq!(again, Ok(frame), "a frame changes when it is written");
}

/// Reads bytes as the stored data of a gateway: its former life, a base, and the facts since.
///
/// # Panics
/// If a gateway that begins with it cannot store itself.
///
/// Returns true if a gateway begins with it.
pub fn stored(bytes: &[u8]) -> bool {
    let Some(gateway) = restored(bytes) else {
        return false;
    };
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    let (mut driver, mut now) = (Driver::new(gateway), Time::ZERO);
    let client = Member::new(9, 1);
    let function = Function::new(b"a task");
    let message = Message::Submit {
        number: 1,
        function,
    };
    for input in [
        Input::Command(Command::Start),
        Input::Message {
            from: client,
            message,
        },
    ] {
        // The machine may have no room.
        driver.step(now, &mut rng, input, drop).ok();
        for _ in 0..8 {
            now = driver.deadline().unwrap_or(now).max(now);
            driver.expire(now, &mut rng, drop);
        }
        let stored = postcard::to_allocvec(&driver.machine().replica().stored());
        assert!(stored.is_ok(), "it is stored: {stored:?}");
    }
    true
}

fn restored(bytes: &[u8]) -> Option<Gateway> {
    type Kept = ((Member, Stored<Tables>), Vec<Fact<Tables>>);
    let ((former, stored), facts): Kept = postcard::from_bytes(bytes).ok()?;
    let (id, incarnation) = (former.id, former.incarnation.next());
    let me = Member { id, incarnation };
    let mut gateway = Gateway::restore(me, Config::new(), stored, [NodeId(2)]).ok()?;
    facts.iter().try_for_each(|it| gateway.fold(it)).ok()?;
    Some(gateway)
}

/// Reads a topic, and writes the result again.
///
/// # Panics
/// If the topic changes.
pub fn topic(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(topic) = Topic::parse(&text) {
        assert_eq!(
            topic.to_string(),
            text,
            "a topic changes when it is written"
        );
    }
}

/// Reads bytes as a browser's request to the page.
///
/// # Panics
/// If the answer is no HTTP, or reports a defect of the page.
#[cfg(feature = "page")]
pub fn page(bytes: &[u8]) {
    let (notify, notified) = tokio::sync::watch::channel("{}".into());
    let Ok(page) = crate::page::page() else {
        return; // The system gives no random numbers.
    };
    let router = crate::page::router(notified, page.clone());
    selvedge_http::fuzz::is_answered(bytes, router, &page, move || drop(notify));
}
