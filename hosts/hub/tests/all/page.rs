//! The page in a browser: a routine is pressed, seen running, and undone when its plug loses its power.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;
use std::{env, fs, thread};

use crate::browser::Browser;
use crate::plug::{Mood, Plug};
use crate::program::Hub;
use crate::support::{Dir, HOME};

fn chromium() -> Option<String> {
    let named = env::var("SELVEDGE_CHROMIUM");
    let program = named.unwrap_or_else(|_| "chromium".into());
    let mut version = Command::new(&program);
    version
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if version.status().is_ok_and(|it| it.success()) {
        return Some(program);
    }
    let required = env::var_os("SELVEDGE_CHROMIUM_REQUIRED").is_some();
    assert!(!required, "no {program}: apt-get install chromium");
    println!("skipped: no {program}; apt-get install chromium, or set SELVEDGE_CHROMIUM");
    None
}

fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_routine_is_pressed_and_undone_when_its_plug_loses_its_power() {
    let Some(program) = chromium() else { return };
    let (lamp, kettle) = (Plug::start(), Plug::start());
    let dir = Dir::new("page");
    let home = format!(
        r#"{{"devices": [{{"DevID": "lamp"}}, {{"DevID": "kettle"}}],
          "routines": [{{"RoutineName": "<b>tea", "CommandList": [
            {{"DevID": "lamp", "Action": "on"}},
            {{"DevID": "kettle", "Action": "on", "hold_ms": 60000}},
            {{"DevID": "kettle", "Action": "off"}}]}}],
          "hub": {{"devices": {{
            "lamp": {{"kasa": {{"address": "{}"}}}}, "kettle": {{"kasa": {{"address": "{}"}}}}}}}}}}"#,
        lamp.address, kettle.address
    );
    fs::write(dir.path().join("home.json"), home).unwrap();
    let hub = Hub::start(dir.path());
    let mut browser = Browser::start(&program);
    browser.open(&format!("http://{}/", hub.address));
    wait_until("the page is live", || browser.text("#link") == "live");
    wait_until("both plugs are up", || browser.text("#facts b") == "2 of 2");
    assert_eq!(browser.text("#routines button"), "<b>tea");
    browser.eval("document.querySelector('#routines button').click()");
    wait_until("it runs", || browser.text("#open .badge") == "runs");
    wait_until("the kettle is on", || {
        browser.text("#devices").contains("kettleon") && browser.text("#devices").contains("lampon")
    });
    assert!(lamp.is_on.load(Ordering::SeqCst) && kettle.is_on.load(Ordering::SeqCst));
    assert_eq!(
        browser.text("#lineage"),
        "kettle<b>tea no. 1lamp<b>tea no. 1"
    );
    assert_eq!(browser.text("#lineage .begun"), "<b>tea no. 1");
    assert_eq!(browser.text("#lineage .over"), "<b>tea no. 1");
    let waits = browser.text("#open .meta");
    assert!(
        waits.starts_with("its command holds \"kettle\", until "),
        "{waits}"
    );
    browser.eval("document.querySelectorAll('#routines button')[1].click()");
    wait_until("what would become of it is said", || {
        browser
            .text("#said")
            .starts_with("<b>tea: it would begin at once.")
    });
    *kettle.mood.lock().unwrap() = Mood::Dead;
    wait_until("it is undone", || browser.text("#over .badge") == "undone");
    wait_until("the lamp is off", || {
        browser.text("#devices").contains("lampoff")
    });
    assert!(!lamp.is_on.load(Ordering::SeqCst));
    let notified = browser.text("#over .meta");
    assert!(
        notified.starts_with("\"kettle\" failed or restarted while it was needed"),
        "{notified}"
    );
    assert!(browser.text("#devices").contains("kettledown"));
    for (width, scheme) in [(360, "dark"), (1200, "light")] {
        let picture = browser.picture(width, scheme);
        if let Some(dir) = env::var_os("SELVEDGE_PICTURES") {
            let path = std::path::Path::new(&dir).join(format!("hub-{width}-{scheme}.png"));
            fs::write(path, picture).unwrap();
        }
    }
    assert_eq!(browser.errors(), "");
}

/// Answers as a proxy in front of a server that has failed. Returns true if the request was for events.
fn is_refused(proxy: &TcpListener) -> bool {
    let Ok((stream, _)) = proxy.accept() else {
        return false;
    };
    stream.set_nonblocking(false).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|it| !it.is_empty()).collect();
    let refusal = b"HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    (&stream).write_all(refusal).ok();
    head.first()
        .is_some_and(|it| it.starts_with("GET /api/events "))
}

/// Between two lives of the hub another program answers at its address, as a proxy would.
#[test]
fn a_page_goes_on_when_the_hub_is_there_again() {
    let Some(program) = chromium() else { return };
    let dir = Dir::new("page-again");
    fs::write(dir.path().join("home.json"), HOME).unwrap();
    let hub = Hub::start(dir.path());
    let mut browser = Browser::start(&program);
    browser.open(&format!("http://{}/", hub.address));
    wait_until("the page is live", || browser.text("#link") == "live");
    let address = hub.address.clone();
    drop(hub);
    wait_until("it is seen to be gone", || {
        browser.text("#link") == "disconnected, reconnecting"
    });
    let proxy = TcpListener::bind(&address).unwrap();
    proxy.set_nonblocking(true).unwrap();
    // Twice: a browser that gets an error does not ask again by itself.
    for _ in 0..2 {
        wait_until("the page asks again", || is_refused(&proxy));
    }
    drop(proxy);
    let hub = Hub::start_at(&address, dir.path());
    wait_until("the page is live again", || browser.text("#link") == "live");
    let id = hub.run("light");
    hub.wait_for(id, "done");
    wait_until("what ran since is shown", || {
        browser.text("#over .badge") == "done"
    });
}
