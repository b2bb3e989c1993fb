//! The page in a browser, over real gateways and followers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

use crate::browser::Browser;
use crate::support::{Dir, Node, PROGRAM, spawn, wait_for, wait_until};

/// Three gateways, each with a page, and followers.
struct Cluster {
    gateways: Vec<Option<Node>>,
    _followers: Vec<Node>,
    _data: Dir,
}

fn broker(id: usize) -> String {
    format!("127.61.20.{id}:18831")
}

fn page(id: usize) -> String {
    format!("127.61.20.{id}:18880")
}

impl Cluster {
    fn start() -> Self {
        let dir = Dir::new("page");
        let gateways = (1..=3).map(|id| {
            let peers = (1..=3).filter(|it| *it != id);
            let peers: Vec<String> = peers.map(|it| format!(" --peer {it}={}", broker(it))).collect();
            let (broker, page, peers) = (broker(id), page(id), peers.concat());
            let data = dir.file(&id.to_string());
            Some(spawn(&format!(
                "gateway --id {id} --listen {broker} --page {page} --data {data} --timeout 3 --first{peers}"
            )))
        });
        let gateways = gateways.collect();
        (1..=3).for_each(|id| wait_for(&broker(id)));
        let followers = (101..107).map(|id| {
            let first = id % 3 + 1;
            let list = (0..3).map(|it| (first + it - 1) % 3 + 1);
            let list: Vec<String> = list
                .map(|it| format!(" --gateway {it}={}", broker(it)))
                .collect();
            let times = match id < 104 {
                true => "--active 1s --busy 200ms --asleep 800ms",
                false => "--active 500ms --asleep 1500ms",
            };
            spawn(&format!(
                "follower --executor hash --id {id} {times}{}",
                list.concat()
            ))
        });
        Self {
            gateways,
            _followers: followers.collect(),
            _data: dir,
        }
    }
}

/// The status that the page of a gateway serves to programs.
fn status(id: usize) -> Value {
    let mut stream = TcpStream::connect(page(id)).unwrap();
    let request = format!(
        "GET /api/status HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        page(id)
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn chromium() -> Option<String> {
    let named = env::var("SELVEDGE_CHROMIUM");
    let program = named.unwrap_or_else(|_| "chromium".into());
    let is_there = Command::new(&program).arg("--version").output().is_ok();
    if !is_there {
        let required = env::var_os("SELVEDGE_CHROMIUM_REQUIRED").is_some();
        assert!(!required, "no {program}: apt-get install chromium");
        println!("skipped: no {program}; apt-get install chromium, or set SELVEDGE_CHROMIUM");
    }
    is_there.then_some(program)
}

/// The gateway that manages, according to all others.
fn manager(of: usize) -> Option<usize> {
    status(of)["manager"].as_str().map(|it| it.parse().unwrap())
}

#[test]
fn a_browser_sees_gateways_units_and_a_task_with_its_answer_as_they_come() {
    let Some(program) = chromium() else { return };
    let mut cluster = Cluster::start();
    wait_until("six followers in two units, each heard", || {
        let all = status(1);
        let followers = all["some_followers"].as_array().unwrap();
        let received = followers.iter().filter(|it| it["phase"] != "unknown");
        all["units"] == 2 && received.count() == 6
    });
    let mut browser = Browser::start(&program);
    browser.open(&format!("http://{}/", page(1)));
    wait_until("the page is live", || browser.text("#link") == "live");
    let managing = "[...document.querySelectorAll('#gateways .card[data-role=manager] h3')]";
    assert_eq!(
        browser.number("document.querySelectorAll('#gateways .card').length"),
        3
    );
    let of = manager(1).unwrap();
    assert_eq!(
        browser.eval(&format!("{managing}.map(it => it.textContent).join()")),
        format!("Gateway {of}")
    );
    assert_eq!(
        browser.number("document.querySelectorAll('#units > .card').length"),
        2
    );
    assert_eq!(
        browser.number("document.querySelectorAll('.follower').length"),
        6
    );
    assert_eq!(
        browser.number("document.querySelectorAll('.follower[data-class=orchestrator]').length"),
        2
    );
    let phases = "new Set([...document.querySelectorAll('.follower')].map(it => it.dataset.phase))";
    wait_until("one is awake and one sleeps", || {
        browser.eval(&format!(
            "[{phases}].map(it => it.has('active') && it.has('asleep'))[0]"
        )) == true
    });
    sees_a_task(&mut browser);
    pictures(&mut browser);
    sees_a_gateway_go(&mut browser, &mut cluster);
    assert_eq!(browser.errors(), "", "the page has thrown");
}

/// Checks a task with markup in it, from its opening to its answer.
fn sees_a_task(browser: &mut Browser) {
    let code = "wait 4000 <img src=x onerror=alert(1)>";
    let mut client = Command::new(PROGRAM);
    client.args([
        "submit",
        "--gateway",
        &format!("1={}", broker(1)),
        "--code",
        code,
    ]);
    let client = client
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the task runs", || {
        browser.text("#tasks .mono") == code && browser.text("#tasks .badge") == "runs"
    });
    let answered = client.wait_with_output().unwrap();
    assert!(answered.status.success());
    let value = String::from_utf8(answered.stdout).unwrap();
    wait_until("its answer", || {
        browser.text("#answers .value") == format!("= {}", value.trim())
    });
    assert_eq!(browser.text("#answers .mono"), code);
    assert_eq!(browser.text("#tasks"), "None.");
    assert!(
        browser
            .text("#answers .meta")
            .contains("attempt 1 · followers ")
    );
    assert_eq!(
        browser.number("document.querySelectorAll('img').length"),
        0,
        "markup of the network"
    );
}

/// Checks the page while another gateway is killed.
fn sees_a_gateway_go(browser: &mut Browser, cluster: &mut Cluster) {
    cluster.gateways[2] = None;
    wait_until("gateway 3 is gone", || {
        browser.text("#gateways .card.lost h3") == "Gateway 3"
            && browser.text("#gateways .card.lost .badge") == "gone"
    });
    wait_until("another one manages", || {
        manager(1).is_some_and(|it| it != 3)
    });
}

fn pictures(browser: &mut Browser) {
    let Some(dir) = env::var_os("SELVEDGE_FAAS_PICTURES") else {
        return;
    };
    fs::create_dir_all(&dir).unwrap();
    for scheme in ["light", "dark"] {
        for width in [390, 1_280] {
            let picture = browser.picture(width, scheme);
            fs::write(
                Path::new(&dir).join(format!("{scheme}-{width}.png")),
                picture,
            )
            .unwrap();
        }
    }
}
