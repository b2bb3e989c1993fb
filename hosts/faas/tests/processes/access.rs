//! TLS, and names with passwords: accepted clients, and the errors of refused ones.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::received::spawn_received;
use crate::support::{Dir, Node, run, spawn_with, text, wait_for, wait_until_shown};

/// A certificate that signs others.
struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A certificate for an address, and its key.
    fn vouch(&self, address: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([address.into()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        (signed.pem(), key.serialize_pem())
    }
}

/// A gateway with TLS and two users, and three followers.
struct House {
    dir: Dir,
    ca: String,
    stranger: String,
    /// The flags with the certificate of another gateway.
    other: String,
    _nodes: Vec<Node>,
}

const HOST: &str = "127.61.21.1";
const AT: &str = "127.61.21.1:18831";

impl House {
    fn start() -> Self {
        let dir = Dir::new("access");
        let ca = Ca::new();
        let (certificate, key) = ca.vouch(HOST);
        let (certificate, key) = (
            dir.write("gateway.pem", &certificate),
            dir.write("gateway.key", &key),
        );
        let users = dir.write("users", "# all nodes\nnode:sesame\nreader:other:one\n");
        let stranger = dir.write("stranger.pem", &Ca::new().pem);
        let (other, other_key) = ca.vouch("127.61.21.2");
        let other = dir.write("other.pem", &other);
        let other_key = dir.write("other.key", &other_key);
        let other = format!(" --tls-cert {other} --tls-key {other_key}");
        let (ca, data) = (dir.write("ca.pem", &ca.pem), dir.file("1"));
        let gateway = format!(
            "gateway --id 1 --listen {AT} --data {data} --first --user node --users {users} \
             --tls-ca {ca} --tls-cert {certificate} --tls-key {key}"
        );
        let mut nodes = vec![spawn_with(&gateway, "sesame")];
        wait_for(AT);
        nodes.extend((101..104).map(|id| {
            let follower = format!(
                "follower --executor hash --id {id} --gateway 1={AT} --active 500ms --asleep 200ms \
                 --user node --tls-ca {ca}"
            );
            spawn_with(&follower, "sesame")
        }));
        let _nodes = nodes;
        Self {
            dir,
            ca,
            stranger,
            other,
            _nodes,
        }
    }

    /// The log of a gateway that is refused.
    fn refused_gateway(&self, name: &str, flags: &str, password: &str) -> String {
        let data = self.dir.file(name);
        let gateway = format!(
            "gateway --id 2 --listen 127.61.21.2:18831 --peer 1={AT} --data {data} --first {flags}{}",
            self.other
        );
        let mut gateway = spawn_received(&gateway, password);
        gateway.wait_until_said("gateway 2 cannot reach the broker of gateway 1")
    }
}

#[test]
fn by_tls_a_task_runs_for_those_that_are_known_and_the_others_are_told_why_not() {
    let house = House::start();
    let (ca, stranger) = (&house.ca, &house.stranger);
    // A silent connection does not block others.
    let _silent = TcpStream::connect(AT).unwrap();
    let known = format!("--gateway {AT} --user reader --tls-ca {ca}");
    wait_until_shown("3 followers in 1 units", &known, "other:one");
    let submit = |flags: &str, password: &str| {
        let done = run(&format!("submit --code x --gateway {AT} {flags}"), password);
        (done.status.code(), text(&done.stderr))
    };
    let (code, why) = submit(&format!("--user reader --tls-ca {ca}"), "other:one");
    assert_eq!(code, Some(0), "{why}");
    for (flags, password, notified) in [
        (
            format!("--user reader --tls-ca {stranger}"),
            "other:one",
            "whether --tls-ca vouches for its certificate",
        ),
        (
            "--user reader".into(),
            "other:one",
            "whether it wants TLS (--tls-ca)",
        ),
        (
            format!("--user reader --tls-ca {ca}"),
            "sesame",
            "see --user and SELVEDGE_FAAS_PASSWORD",
        ),
        (
            format!("--tls-ca {ca}"),
            "",
            "see --user and SELVEDGE_FAAS_PASSWORD",
        ),
    ] {
        let (code, why) = submit(&flags, password);
        assert_eq!(code, Some(1), "{flags}: {why}");
        assert!(why.contains(notified), "{flags}: {why}");
    }
    let wrong_ca =
        house.refused_gateway("ca", &format!("--user node --tls-ca {stranger}"), "sesame");
    assert!(wrong_ca.contains("invalid peer certificate"), "{wrong_ca}");
    let wrong = house.refused_gateway("password", &format!("--user node --tls-ca {ca}"), "sesam");
    assert!(
        wrong.contains("see --user and SELVEDGE_FAAS_PASSWORD"),
        "{wrong}"
    );
}

#[test]
fn files_that_are_wrong_are_named() {
    let dir = Dir::new("files");
    let ca = Ca::new();
    let (certificate, key) = ca.vouch(HOST);
    let (_, other) = ca.vouch(HOST);
    let (certificate, key) = (dir.write("a.pem", &certificate), dir.write("a.key", &key));
    let other = dir.write("b.key", &other);
    let twice = dir.write("twice", "node:sesame\nnode:other\n");
    let others = dir.write("others", "node:mesase\n");
    let missing = dir.file("missing");
    for (flags, notified) in [
        (
            format!("--user node --users {twice}"),
            "twice, line 2: the name has a password",
        ),
        (
            format!("--user node --users {missing}"),
            "cannot read the users in",
        ),
        (
            format!("--user node --users {others}"),
            "--users gives --user another password",
        ),
        (
            format!("--tls-cert {certificate} --tls-key {other}"),
            "cannot be used together",
        ),
        (
            format!("--tls-cert {key} --tls-key {key}"),
            "has no certificate in PEM",
        ),
        (
            format!("--tls-cert {certificate} --tls-key {certificate}"),
            "has no private key in PEM",
        ),
        (
            format!("--tls-cert {certificate} --tls-key {key} --tls-ca {key}"),
            "has no certificate in PEM",
        ),
        (
            format!("--tls-cert {certificate} --tls-key {key} --tls-ca {missing}"),
            "check the name",
        ),
        (
            format!("--tls-ca {certificate}"),
            "give --tls-cert and --tls-key",
        ),
        (
            format!("--tls-cert {certificate} --tls-key {key} --peer 2=127.0.0.1:1"),
            "give --tls-ca",
        ),
    ] {
        let data = dir.file("data");
        let gateway =
            format!("gateway --id 1 --listen 127.61.21.9:18831 --data {data} --first {flags}");
        let password = if flags.contains("--user") {
            "sesame"
        } else {
            ""
        };
        let ended = run(&gateway, password);
        let why = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{flags}: {why}");
        assert!(why.contains(notified), "{flags}: {why}");
    }
}

/// A node needs trusted certificates only for connections that it opens, and a certificate only for
/// a broker inside.
#[test]
fn what_one_side_has_no_need_of_is_not_asked_for() {
    let dir = Dir::new("sides");
    let ca = Ca::new();
    let (certificate, key) = ca.vouch(HOST);
    let (certificate, key) = (dir.write("a.pem", &certificate), dir.write("a.key", &key));
    let ca = dir.write("ca.pem", &ca.pem);
    for flags in [
        format!("--broker 127.61.21.9:18831 --tls-ca {ca}"),
        format!("--listen 127.61.21.9:18831 --tls-cert {certificate} --tls-key {key}"),
    ] {
        // Its flags are right, and its directory is empty.
        let data = dir.file("data");
        let ended = run(&format!("gateway --id 1 --data {data} {flags}"), "");
        let why = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{flags}: {why}");
        assert!(why.contains("nothing is stored here"), "{flags}: {why}");
    }
}

/// The gateway has no CA for a connection to itself.
#[test]
fn the_page_of_a_gateway_with_tls_shows_it() {
    let (dir, host, page) = (Dir::new("door"), "127.61.27.1", "127.61.27.1:18880");
    let (certificate, key) = Ca::new().vouch(host);
    let certificate = dir.write("gateway.pem", &certificate);
    let (key, data) = (dir.write("gateway.key", &key), dir.file("1"));
    let _gateway = spawn_with(
        &format!(
            "gateway --id 1 --listen {host}:18831 --data {data} --first --page {page} \
             --tls-cert {certificate} --tls-key {key}"
        ),
        "",
    );
    wait_for(page);
    let status = || {
        let mut stream = TcpStream::connect(page).unwrap();
        let request = "GET /api/status HTTP/1.1\r\nhost: 127.61.27.1\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let until = Instant::now() + Duration::from_secs(20);
    while !status().contains(r#""manager":"1""#) {
        assert!(Instant::now() < until, "{}", status());
        sleep(Duration::from_millis(100));
    }
}
