//! Fuzz targets as plain functions: they take bytes, and panic when a promise is broken.
//!
//! They run under libFuzzer, from the package in `fuzz/`, and in this package's tests over a committed
//! corpus and over what the tests make.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
#[cfg(feature = "page")]
use core::time::Duration;
#[cfg(feature = "page")]
use std::io;

use crate::frame::{self, Frame};
use crate::topic::Topic;
use crate::{Argument, Call, Does, Limits, Module, Run, Step, Stub, text_of};

/// How often a connection to the page goes on before its client has said all.
#[cfg(feature = "page")]
const YIELDS: u32 = 64;
/// How long an answer of the page may take to end.
#[cfg(feature = "page")]
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes as a call, as an argument's text, and as a result.
///
/// # Panics
/// When what is decoded does not encode to the same bytes, or what is read is not written so that it
/// is read again, or what is shown is not what it was.
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

/// Bytes as a module, whose exports are called with small limits, whole and in slices.
///
/// # Panics
/// When a call does not come to the same in slices, or takes more fuel than it may.
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

/// A stub for each import that is not there: all but the first return.
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

/// Reads a payload; what is read is written and read alike.
///
/// # Panics
/// If it is not.
pub fn frame(bytes: &[u8]) {
    let Ok(frame) = Frame::decode(bytes) else {
        return;
    };
    let written = match &frame {
        Frame::Message(it) => frame::message(it.from, &it.message),
        Frame::Notice(it) => frame::notice(it.from, &it.message),
    };
    // Numbers may be written longer than need be, so bytes may differ.
    let again = written.and_then(|it| Frame::decode(&it));
    assert_eq!(again, Ok(frame), "a frame changes when it is written");
}

/// Reads a topic; what is read is written alike.
///
/// # Panics
/// If it is not.
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

/// Bytes as what a browser says to the page.
///
/// # Panics
/// When the answer is none of HTTP, or is a defect of the page.
#[cfg(feature = "page")]
pub fn page(bytes: &[u8]) {
    let answer = page_answer(bytes);
    let is_late = |it: &io::Error| it.kind() == io::ErrorKind::TimedOut;
    assert!(!answer.as_ref().is_err_and(is_late), "it has no end");
    let answer = answer.unwrap_or_default();
    if answer.is_empty() {
        return; // It was no whole request.
    }
    let known: [&[u8]; 7] = [b"200", b"400", b"403", b"404", b"405", b"414", b"431"];
    let status = answer.strip_prefix(b"HTTP/1.");
    let status = status.and_then(|it| it.get(2..5));
    assert!(
        status.is_some_and(|it| known.contains(&it)),
        "the page answers {:?}",
        String::from_utf8_lossy(&answer)
    );
}

/// What a page of which nothing is known answers to these bytes.
#[cfg(feature = "page")]
fn page_answer(bytes: &[u8]) -> io::Result<Vec<u8>> {
    use selvedge_door::{converse, guarded};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let (tell, told) = tokio::sync::watch::channel("{}".into());
    let page = crate::page::page().map_err(io::Error::other)?;
    let router = guarded(crate::page::router(told, page.clone()), None, &page);
    runtime.block_on(async {
        let (mut here, there) = tokio::io::duplex(1 << 20);
        let serving = tokio::spawn(converse(there, router));
        // One that is refused early is not heard to its end.
        here.write_all(bytes).await.ok();
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
        here.shutdown().await?;
        // One that listens hears the end, also where what it said besides is not read to its own.
        drop(tell);
        let mut answer = Vec::new();
        tokio::time::timeout(PATIENCE, here.read_to_end(&mut answer)).await??;
        serving.await.map_err(io::Error::other)?;
        Ok(answer)
    })
}
