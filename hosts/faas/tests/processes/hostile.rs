//! Packets that no node of this host sends.

use rumqttc::{Client, Connection, Event, Incoming, MqttOptions, QoS};

use crate::support::{Dir, Node, run, spawn, text, wait_for, wait_until_shown};

/// The longest packet that the broker accepts, without its fixed header: a module plus the
/// envelope.
const PACKET_MAX: usize = 256 * 1024 + 64 + 128;
const INBOX: &str = "selvedge/faas/1/1";

fn gateway(dir: &Dir, at: &str) -> Node {
    let data = dir.file("1");
    let gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    wait_until_shown("manager", &format!("--gateway 1={at}"), "");
    gateway
}

/// A client of the broker that is not a node.
fn stranger(host: &str, name: &str) -> (Client, Connection) {
    let mut options = MqttOptions::new(name, host, 18_831);
    options.set_max_packet_size(1 << 21, 1 << 21);
    Client::new(options, 100)
}

/// Waits until the broker has accepted the published message.
fn wait_until_taken(connection: &mut Connection) {
    for event in connection.iter() {
        match event.unwrap() {
            Event::Incoming(Incoming::PubAck(_)) => return,
            Event::Incoming(_) | Event::Outgoing(_) => {}
        }
    }
}

fn counters(at: &str) -> String {
    let shown = run(&format!("top --once --counters --gateway 1={at}"), "");
    text(&shown.stdout)
}

#[test]
fn a_packet_as_long_as_the_broker_takes_cuts_no_link() {
    let (dir, at) = (Dir::new("longest"), "127.61.23.1:18831");
    let _gateway = gateway(&dir, at);
    let (client, mut connection) = stranger("127.61.23.1", "a-stranger");
    // The broker forwards it with two bytes more.
    let longest = vec![9; PACKET_MAX - 2 - INBOX.len()];
    client
        .publish(INBOX, QoS::AtMostOnce, false, longest)
        .unwrap();
    let after = QoS::AtLeastOnce;
    client.publish(INBOX, after, false, [9, 9]).unwrap();
    wait_until_taken(&mut connection);
    wait_until_shown("versions 2", &format!("--counters --gateway 1={at}"), "");
    let shown = counters(at);
    assert!(shown.contains("lost_links 0"), "{shown}");
}

#[test]
fn what_is_retained_in_an_inbox_is_not_carried_out_at_the_next_link() {
    let (dir, at) = (Dir::new("retained"), "127.61.23.2:18831");
    let _gateway = gateway(&dir, at);
    let (client, mut connection) = stranger("127.61.23.2", "a-stranger");
    let qos = QoS::AtLeastOnce;
    client.publish(INBOX, qos, true, [9, 9]).unwrap();
    wait_until_taken(&mut connection);
    // A node that is connected gets it as any other message.
    let flags = format!("--counters --gateway 1={at}");
    wait_until_shown("versions 1", &flags, "");
    // The broker ends the gateway's connection when a client with the same name comes.
    let (_same, mut connection) = stranger("127.61.23.2", "selvedge-faas-1");
    let up = connection.iter().next().unwrap().unwrap();
    assert!(matches!(up, Event::Incoming(Incoming::ConnAck(_))));
    drop(connection);
    let shown = wait_until_shown("retained 1", &flags, "");
    assert!(shown.contains("versions 1"), "{shown}");
}
