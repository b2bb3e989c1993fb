//! Datagrams for a hosted machine: notes and heartbeats of listed nodes, of nodes to learn, and of
//! others, in every mode.

use selvedge::frame;
use selvedge_core::{Member, wire};
use serde::{Deserialize, Serialize};

use super::Seed;
use crate::hosted::{HEARTBEAT, LEARNS, Note, SEALED, TIME};

/// The host's heartbeat.
#[derive(Serialize, Deserialize)]
struct Here;

impl wire::Message for Here {
    const KIND: u8 = 10;

    fn encoded_len(&self) -> usize {
        0
    }
}

pub(super) fn seeds() -> Vec<Seed> {
    let modes = (0..=SEALED | HEARTBEAT | LEARNS).rev();
    modes.map(seed).collect()
}

fn seed(mode: u8) -> Seed {
    let mut bytes = vec![mode];
    // Listed nodes in two lives, with a late datagram of the first one.
    for (id, life) in [(2, 0), (3, 0), (2, 1), (2, 0)] {
        put(&mut bytes, id, &beat(id, life));
        put(&mut bytes, id, &note(id, life, &[7; 40]));
    }
    // More nodes than are learned, one from another address, and one with the address of the host.
    for (id, sender) in [(4, 4), (5, 5), (6, 6), (4, 7), (5, 254)] {
        put(&mut bytes, sender, &note(id, 0, b"note"));
    }
    // A note that the machine refuses, a note that is too long where it is sealed, frames in
    // the name of the host and of another node, another kind, and bytes that are no frame.
    put(&mut bytes, 2, &note(2, 1, &[]));
    put(&mut bytes, 3, &note(3, 0, &[0; 1_390]));
    put(&mut bytes, 1, &note(1, 0, b"note"));
    put(&mut bytes, 3, &note(2, 1, b"note"));
    put(&mut bytes, 3, &[wire::VERSION, 1, 3, 0, 0]);
    put(&mut bytes, 9, b"no frame");
    put(&mut bytes, 2, &[]);
    // The listed nodes fail, and one comes back.
    for _ in 0..8 {
        wait(&mut bytes, 1_000);
    }
    put(&mut bytes, 2, &note(2, 1, b"again"));
    Seed {
        target: "hosted",
        name: format!("mode-{mode}"),
        bytes,
    }
}

fn put(bytes: &mut Vec<u8>, sender: u8, datagram: &[u8]) {
    bytes.push(sender);
    bytes.extend((datagram.len() as u16).to_be_bytes());
    bytes.extend(datagram);
}

fn wait(bytes: &mut Vec<u8>, millis: u16) {
    bytes.push(TIME);
    bytes.extend(millis.to_be_bytes());
}

fn beat(id: u8, life: u32) -> Vec<u8> {
    framed(id, life, &Here)
}

fn note(id: u8, life: u32, text: &[u8]) -> Vec<u8> {
    framed(id, life, &Note(text.to_vec()))
}

fn framed<T: wire::Message + Serialize>(id: u8, life: u32, message: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = frame::encode(Member::new(id.into(), life), message, 1_400, &mut bytes);
    debug_assert!(written.is_ok(), "it fits");
    bytes
}
