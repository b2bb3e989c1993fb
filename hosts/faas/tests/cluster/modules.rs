//! Transfers of modules to gateways and followers, and their results there.

use std::path::PathBuf;
use std::time::Instant;
use std::{env, fs};

use crate::small::small;
use crate::support::{
    Dir, Node, PATIENCE, command, run, spawn_with, text, wait_for, wait_until_shown,
};

/// The first bytes of a module.
const WASM: &[u8] = b"\0asm\x01\0\0\0";

#[test]
fn a_module_reaches_the_followers_and_all_is_there_after_a_kill() {
    let dir = Dir::new("module");
    let at = "127.61.2.1:18831";
    let (access, password) = (" --user node", "sesame");
    let via = format!("--gateway {at}{access}");
    let data = dir.file("data");
    let gateway = format!("gateway --id 1 --listen {at} --data {data}{access}");
    let begun = spawn_with(&format!("{gateway} --first"), password);
    wait_for(at);
    let _followers: Vec<Node> = (101..104)
        .map(|id| {
            let times = "--active 500ms --asleep 200ms";
            let follower =
                format!("follower --executor hash --id {id} --gateway 1={at} {times}{access}");
            spawn_with(&follower, password)
        })
        .collect();
    wait_until_shown("3 followers in 1 units", &via, password);
    let file = dir.0.join("function.wasm");
    fs::write(&file, [WASM, &[0, 0xa0, 0x8d, 6, 0], &[7; 99_999]].concat()).unwrap();
    let file = file.display();
    let first = run(&format!("submit {file} --code with-module {via}"), password);
    let err = text(&first.stderr);
    assert!(first.status.success(), "{err}");
    assert!(
        err.contains("the module is on the disks of 1 gateways"),
        "{err}"
    );
    assert!(err.contains("attempt 1, at followers 10"), "{err}");
    let plain = run(&format!("submit --code with-module {via}"), password);
    assert!(plain.status.success());
    assert_ne!(first.stdout, plain.stdout, "the module counts");

    drop(begun); // Killed.
    let _again = spawn_with(&gateway, password);
    wait_for(at);
    wait_until_shown("1 modules", &via, password);
    let second = run(&format!("submit {file} --code with-module {via}"), password);
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert_eq!(first.stdout, second.stdout);

    let text_file = dir.write("text.wasm", "a text");
    let wrong = run(&format!("submit {text_file} {via}"), password);
    assert_eq!(wrong.status.code(), Some(6), "{}", text(&wrong.stderr));
    let failed = run(&format!("submit --code=fail {via}"), password);
    assert_eq!(
        failed.status.code(),
        Some(0),
        "it is no `fail ` with a blank"
    );
    // A client without the password is refused.
    let stranger = run(&format!("submit --code x --gateway {at}"), "");
    assert_eq!(
        stranger.status.code(),
        Some(1),
        "{}",
        text(&stranger.stdout)
    );
}

#[test]
fn webassembly_is_called_and_what_cannot_be_called_is_not_sent() {
    let (dir, at) = (Dir::new("wasm"), "127.61.6.1:18831");
    let _nodes = small(&dir, at, "");
    wait_until_shown("3 followers in 1 units", &format!("--gateway {at}"), "");
    let functions = concat!(env!("CARGO_MANIFEST_DIR"), "/functions");
    let gcd = format!("submit {functions}/gcd.wasm --gateway {at} --call");
    let answered = run(&format!("{gcd} gcd --arg 84i64 --arg 36i64"), "");
    assert_eq!(
        text(&answered.stdout),
        "12i64\n",
        "{}",
        text(&answered.stderr)
    );
    for wrong in [
        "lcm --arg 84i64 --arg 36i64",
        "gcd --arg 84i64",
        "gcd --arg x",
    ] {
        let refused = run(&format!("{gcd} {wrong}"), "");
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    }
    let voters = |err: &str| {
        let line = err
            .lines()
            .find_map(|it| it.strip_prefix("voted for it: followers "));
        let known = ["101", "102", "103"];
        let all: Vec<&str> = line.unwrap_or_default().split(", ").collect();
        assert!(all.iter().all(|it| known.contains(it)), "{err}");
        assert!((2..=3).contains(&all.len()), "{err}");
    };
    voters(&text(&answered.stderr));
    // A code that is no call fails at all followers alike.
    let failed = run(&format!("submit --code nonsense --gateway {at}"), "");
    let err = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{err}");
    assert!(err.contains("it calls no function"), "{err}");
    voters(&err);
}

#[test]
fn a_follower_that_is_killed_fetches_no_module_again_unless_it_is_damaged() {
    let (dir, at) = (Dir::new("state"), "127.61.10.1:18831");
    let _nodes = small(&dir, at, "");
    wait_until_shown("3 followers in 1 units", &format!("--gateway {at}"), "");
    let (state, log) = (dir.0.join("state"), dir.0.join("log"));
    let follower = || {
        let state = state.display();
        let arguments = format!(
            "follower --id 104 --gateway 1={at} --active 500ms --asleep 200ms --state {state} --verbose"
        );
        let mut command = command(&arguments, "");
        let log = fs::File::options().create(true).append(true).open(&log);
        command.arg("--is-child").stderr(log.unwrap());
        Node(command.spawn().unwrap())
    };
    // The number of these log lines, once it has run another function.
    let mut argument = 0;
    let mut counts = |life: u32| {
        let begun = Instant::now();
        wait_until_shown("4 followers in 1 units", &format!("--gateway {at}"), "");
        loop {
            argument += 12;
            let module = concat!(env!("CARGO_MANIFEST_DIR"), "/functions/gcd.wasm");
            let call = format!("--call gcd --arg {argument}i64 --arg 18i64");
            let answered = run(&format!("submit {module} --gateway {at} {call}"), "");
            assert!(answered.status.success(), "{}", text(&answered.stderr));
            let reported = fs::read_to_string(&log).unwrap();
            let count = |what: &str| reported.matches(what).count() as u32;
            let (got, read) = (count("got module"), count("has module"));
            if got + read == life {
                return (got, read, count("has found 1 modules damaged"));
            }
            assert!(begun.elapsed() < PATIENCE, "{reported}");
        }
    };
    let first = follower();
    assert_eq!(counts(1), (1, 0, 0));
    drop(first); // As `kill -9` does.
    let second = follower();
    assert_eq!(counts(2), (1, 1, 0));
    drop(second);
    let mut files = fs::read_dir(&state).unwrap();
    let file = files.next().unwrap().unwrap().path();
    fs::write(file, "damaged").unwrap();
    let third = follower();
    assert_eq!(counts(3), (2, 1, 1));
    drop(third);
    let _fourth = follower();
    assert_eq!(counts(4), (2, 2, 1));
}

/// The path of a file that `functions/fetch.sh` has fetched; if it is missing, a line reports it.
fn part(name: &str) -> Option<String> {
    let parts = env::var_os("SELVEDGE_PARTS").map(PathBuf::from);
    let found = parts.map(|it| it.join("faas").join(name));
    let found = found.filter(|it| it.exists());
    if found.is_none() {
        let is_required = env::var_os("SELVEDGE_PARTS_REQUIRED").is_some_and(|it| it == "1");
        assert!(!is_required, "{name} is required: run functions/fetch.sh");
        println!("skipped, for {name} is not in SELVEDGE_PARTS: run functions/fetch.sh");
    }
    Some(found?.display().to_string())
}

#[test]
fn modules_of_others_run_at_followers_that_give_them_16_mib() {
    let Some((fft, net)) = part("kissfft.wasm").zip(part("rnnoise.wasm")) else {
        return;
    };
    let (dir, at) = (Dir::new("roomy"), "127.61.9.1:18831");
    let _nodes = small(&dir, at, " --memory 20971520");
    wait_until_shown("3 followers in 1 units", &format!("--gateway {at}"), "");
    // The complex numbers 1 and i: their sum, and their difference.
    let pair = "hex:0000803f00000000000000000000803f";
    let files = "--stub a.a --stub a.b --stub a.d --stub a.e";
    let submit = format!("submit {fft} --gateway {at} --call fft --arg {pair}");
    let transformed = run(&format!("{submit} {files}"), "");
    assert_eq!(
        text(&transformed.stdout),
        "hex:0000803f0000803f0000803f000080bf\n",
        "{}",
        text(&transformed.stderr)
    );
    let refused = run(&submit, "");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("stub `a."));
    // Silence is no voice.
    let silence = "00".repeat(480);
    let received = run(
        &format!("submit {net} --gateway {at} --call voice --arg hex:{silence} --arg 3 --stub a.a"),
        "",
    );
    assert_eq!(
        text(&received.stdout),
        "0.0f32\n",
        "{}",
        text(&received.stderr)
    );
}
