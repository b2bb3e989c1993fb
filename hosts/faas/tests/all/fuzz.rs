//! The fuzz targets, over the committed corpus and generated inputs.

use std::fs;
use std::path::Path;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Driver, Effect, Input, Member, Span, Time};
use selvedge_faas::frame::Frame;
use selvedge_faas::topic::Topic;
use selvedge_faas::{Call, ModuleId, Stub, fuzz};
use selvedge_pcm::gateway::{Command, Config, Event, Gateway};
use selvedge_pcm::{Function, Limits, Message};
use selvedge_replica::Configuration;

use crate::corpus::{changed, inputs};
use crate::support::{arguments, wasm};

fn corpus(target: &str) -> Vec<Vec<u8>> {
    inputs(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/hosts/corpus"),
        &format!("faas_{target}"),
    )
}

#[test]
fn calls_and_arguments_that_are_made_up_break_no_promise() {
    let all = arguments(&["-7", "300i64", "1.5f32", "-2.0", "text:abc"]);
    let call = Call::new(ModuleId([7; 32]), "mean", all).unwrap();
    let mut inputs = corpus("call");
    inputs.push(call.encode().unwrap());
    let stubs = ["env.abort", "env.notify=0"].map(|it| it.parse::<Stub>().unwrap());
    inputs.push(call.with_stubs(stubs).unwrap().encode().unwrap());
    inputs.extend(
        ["0x7fi64", "-1.5e3f32", "hex:00ff", "text:é", "NaN"].map(|it| it.as_bytes().to_vec()),
    );
    for input in &inputs {
        fuzz::call(input);
        (0..300).for_each(|seed| fuzz::call(&changed(input, seed)));
    }
}

#[test]
fn frames_and_topics_that_are_made_up_break_no_promise() {
    for input in &corpus("frame") {
        // A seed that is not a frame tests nothing.
        Frame::decode(input).unwrap();
        fuzz::frame(input);
        (0..2_000).for_each(|seed| fuzz::frame(&changed(input, seed)));
    }
    for input in &corpus("topic") {
        Topic::parse(core::str::from_utf8(input).unwrap()).unwrap();
        fuzz::topic(input);
        (0..2_000).for_each(|seed| fuzz::topic(&changed(input, seed)));
    }
}

/// The stored data of a gateway alone: before and after tasks were accepted.
fn stored() -> [Vec<u8>; 2] {
    let me = Member::new(1, 0);
    let first = Configuration::of([me]);
    let gateway = Gateway::new(me, Config::new(), first, Limits::new()).unwrap();
    let base = (me, gateway.replica().stored());
    let (mut driver, mut now) = (Driver::new(gateway), Time::ZERO);
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    let mut facts = Vec::new();
    let submits = (1..4_u64).map(|number| Input::Message {
        from: Member::new(9, 1),
        message: Message::Submit {
            number,
            function: Function::new(&number.to_be_bytes()),
        },
    });
    for input in core::iter::once(Input::Command(Command::Start)).chain(submits) {
        let mut keep = |effect| {
            if let Effect::Event(Event::Fact(fact)) = effect {
                facts.push(fact);
            }
        };
        driver.step(now, &mut rng, input, &mut keep).unwrap();
        for _ in 0..10 {
            now = now + Span::millis(100);
            driver.expire(now, &mut rng, &mut keep);
        }
    }
    assert!(facts.len() > 3);
    let after = (me, driver.machine().replica().stored());
    [
        postcard::to_allocvec(&(base, &facts)).unwrap(),
        postcard::to_allocvec(&(after, &facts[..0])).unwrap(),
    ]
}

#[test]
fn stored_bytes_that_are_made_up_are_refused_or_a_gateway_begins_with_them() {
    let made = stored();
    assert!(made.iter().all(|it| fuzz::stored(it)));
    for input in corpus("stored").iter().chain(&made) {
        for seed in 0..1_000 {
            fuzz::stored(&changed(input, seed));
        }
    }
}

#[test]
fn modules_that_are_made_up_break_no_promise() {
    let mut inputs = corpus("module");
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("functions");
    for name in ["gcd", "image", "network", "samples", "sha256"] {
        inputs.push(fs::read(functions.join(name).with_extension("wasm")).unwrap());
    }
    inputs.push(wasm(
        r#"(module
        (import "selvedge" "log" (func $log (param i32 i32)))
        (import "a" "a" (func $a (result i64))) (import "a" "b" (func $b (param i32) (result f32)))
        (memory (export "m") 1) (table 3 funcref) (elem (i32.const 0) $s $g)
        (func $s (drop (memory.grow (i32.const 1)))) (start $s)
        (func $g (export "g") (param i32) (result i32) (call $g (local.get 0)))
        (func (export "h") (drop (call $b (i32.const 1))) (drop (call $a)))
        (func (export "f") (call $log (i32.const 0) (i32.const 9)) (call_indirect (i32.const 0)) (loop (br 0)))
        (data (i32.const 0) "abc"))"#,
    ));
    for input in &inputs {
        fuzz::module(input);
        (0..400).for_each(|seed| fuzz::module(&changed(input, seed)));
    }
}

#[cfg(feature = "page")]
#[test]
fn requests_that_are_made_up_are_answered_or_refused() {
    let inputs = corpus("page");
    let seed = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec();
    for input in inputs.iter().chain([&seed]) {
        fuzz::page(input);
        (0..150).for_each(|seed| fuzz::page(&changed(input, seed)));
    }
}
