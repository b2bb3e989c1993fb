//! The demo over eight network namespaces: separate stacks, a bridge between them, and a firewall
//! that loses packets and cuts nodes off. Needs Linux, root, `ip` and `nft`; else it prints a line
//! and ends.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a test fails by panicking"
)]

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use selvedge_cli::demo::{Ground, Narrator, Options, run_on, write_table};
use selvedge_core::{NodeId, Span};
use selvedge_home::term::Colour;
use selvedge_udp::faults::{FaultCounts, Faults};

const NODES: u64 = 8;
const PORT: u16 = 7_001;

/// Namespaces with a firewall each, removed on drop.
#[derive(Debug)]
struct Namespaces {
    tag: String,
}

fn call(line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

fn address(node: u64) -> Ipv4Addr {
    Ipv4Addr::new(10, 91, 0, u8::try_from(node).unwrap())
}

impl Namespaces {
    /// Creates everything; `Err` names the tool or right that this machine lacks.
    fn lay_out() -> Result<Self, String> {
        let tag = format!("sv{}", std::process::id() % 100_000);
        let namespaces = Self { tag };
        let tag = &namespaces.tag;
        call("nft --version")?;
        call(&format!("ip link add {tag}br type bridge"))?;
        call(&format!("ip link set {tag}br up"))?;
        for node in 1..=NODES {
            let name = namespaces.name(node);
            let inside = format!("ip -n {name}");
            call(&format!("ip netns add {name}"))?;
            call(&format!(
                "ip link add {name} type veth peer name eth0 netns {name}"
            ))?;
            call(&format!("ip link set {name} master {tag}br up"))?;
            call(&format!(
                "{inside} address add {}/24 dev eth0",
                address(node)
            ))?;
            call(&format!("{inside} link set eth0 up"))?;
            call(&format!("{inside} link set lo up"))?;
            let firewall = [
                "add table ip selvedge",
                "add set ip selvedge beyond { type ipv4_addr; }",
                "add chain ip selvedge in { type filter hook input priority 0; }",
                "add rule ip selvedge in ip saddr @beyond drop",
                "add rule ip selvedge in udp dport 7001 numgen random mod 100 < 5 drop",
            ];
            for rule in firewall {
                call(&format!("ip netns exec {name} nft {rule}"))?;
            }
        }
        Ok(namespaces)
    }

    fn name(&self, node: u64) -> String {
        format!("{}-{node}", self.tag)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Removes everything that was created; the rest fails.
        for node in 1..=NODES {
            let _ended = call(&format!("ip netns del {}", self.name(node))).is_ok();
        }
        let _ended = call(&format!("ip link del {}br", self.tag)).is_ok();
    }
}

impl Ground for Namespaces {
    fn name(&self) -> String {
        format!("{NODES} network namespaces")
    }

    fn faults(&self) -> Faults {
        Faults::none()
    }

    fn socket(&mut self, node: NodeId, former: Option<SocketAddr>) -> io::Result<UdpSocket> {
        let here = SocketAddr::from((address(node.0), PORT));
        assert!(former.is_none_or(|former| former == here));
        let path = format!("/var/run/netns/{}", self.name(node.0));
        // A socket stays in the namespace in which it was created; only this thread enters it.
        let made = std::thread::spawn(move || {
            let namespace = File::open(path)?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            UdpSocket::bind(here)
        });
        made.join().unwrap()
    }

    fn cut_off(&mut self, nodes: &[u64]) -> bool {
        for node in 1..=NODES {
            let is_cut_off = nodes.contains(&node);
            let beyond = (1..=NODES).filter(|other| nodes.contains(other) != is_cut_off);
            let beyond: Vec<String> = beyond.map(|other| address(other).to_string()).collect();
            let nft = format!("ip netns exec {} nft", self.name(node));
            call(&format!("{nft} flush set ip selvedge beyond")).unwrap();
            if !nodes.is_empty() {
                let list = beyond.join(", ");
                call(&format!(
                    "{nft} add element ip selvedge beyond {{ {list} }}"
                ))
                .unwrap();
            }
        }
        true
    }
}

#[tokio::test]
async fn eight_hosts_keep_every_promise() {
    let namespaces = match Namespaces::lay_out() {
        Ok(namespaces) => namespaces,
        Err(why) => {
            eprintln!("skipped: network namespaces cannot be laid out here ({why})");
            return;
        }
    };
    let options = Options {
        nodes: NODES,
        seed: 7,
        period: Span::millis(200),
    };
    let narrator = Narrator::new(io::stderr(), Colour::NEVER);
    let outcome = run_on(Box::new(namespaces), options, narrator)
        .await
        .unwrap();
    write_table(&mut io::stderr(), Colour::NEVER, &outcome.table).unwrap();
    let broken: Vec<_> = outcome.table.iter().filter(|it| !it.held).collect();
    assert!(broken.is_empty(), "seed {}: {broken:#?}", options.seed);
    assert!(outcome.traffic.received > 0 && outcome.met == FaultCounts::default());
}
