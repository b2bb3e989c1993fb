//! What the corpora begin with: inputs that reach every kind of message.

use selvedge_core::Member;
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_membership::{
    Body, Broadcast, Broadcasts, Claim, Digest, KIND, Key, Message, Metadata, Record, Records,
};

use crate::decode::seal;

/// One input of one target's corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// For which target.
    pub target: &'static str,
    /// The name of its file behind `seed-`.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// All seeds of all targets. `cargo run -p selvedge-fuzz --bin seeds` writes them.
pub fn seeds() -> impl Iterator<Item = Seed> {
    decode_seeds().into_iter()
}

fn decode_seeds() -> Vec<Seed> {
    let mut frames = Vec::new();
    for body in bodies() {
        let bare = Message::bare(body);
        let loaded = Message {
            records: records(),
            broadcasts: broadcasts(),
            ..bare.clone()
        };
        frames.push((name(&body).to_owned(), frame(Member::new(1, 1), bare)));
        frames.push((
            format!("{}-loaded", name(&body)),
            frame(Member::new(u64::MAX, u32::MAX), loaded),
        ));
    }
    // A list that claims 2^32 - 1 records and has none: it must reserve nothing.
    let hostile = [VERSION, KIND, 1, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x0f];
    frames.push(("bad-length".to_owned(), hostile.to_vec()));
    frames.push((
        "bad-version".to_owned(),
        vec![VERSION + 1, KIND, 1, 1, 4, 0, 0],
    ));
    frames
        .into_iter()
        .map(|(name, bytes)| Seed {
            target: "decode",
            name,
            bytes,
        })
        .collect()
}

fn frame(from: Member, message: Message) -> Vec<u8> {
    seal(&Envelope { from, message })
}

/// One of every kind, and both forms of what is optional.
fn bodies() -> Vec<Body> {
    let member = Member::new(300, 2);
    vec![
        Body::Ping {
            digest: Digest([1, 2]),
            origin: None,
        },
        Body::Ack {
            origin: Some(member),
        },
        Body::PingRequest { target: member },
        Body::RelayedAck { target: member },
        Body::Unlucky,
        Body::Join,
        Body::Welcome {
            you: member,
            next: Some(Key(1 << 40)),
        },
        Body::Known { life: member },
        Body::Digests {
            buckets: [Digest([3, 4]); 32],
        },
        Body::Pull {
            first: Key(0),
            last: Key(u64::MAX),
        },
        Body::Records {
            first: Key(1 << 59),
            last: Key((1 << 60) - 1),
            next: None,
            exchange: true,
        },
        Body::Farewell,
    ]
}

/// A new kind of body does not compile until it is named here: give it a line in [`bodies`] too.
const fn name(body: &Body) -> &'static str {
    match body {
        Body::Ping { .. } => "ping",
        Body::Ack { .. } => "ack",
        Body::PingRequest { .. } => "ping-request",
        Body::RelayedAck { .. } => "relayed-ack",
        Body::Unlucky => "unlucky",
        Body::Join => "join",
        Body::Welcome { .. } => "welcome",
        Body::Known { .. } => "known",
        Body::Digests { .. } => "digests",
        Body::Pull { .. } => "pull",
        Body::Records { .. } => "records",
        Body::Farewell => "farewell",
    }
}

/// One of every claim.
fn records() -> Records {
    let claims = [
        Claim::Alive(Metadata(Box::from(*b"kitchen"))),
        Claim::Suspect(Metadata::default()),
        Claim::Failed(Metadata(Box::from(*b"cellar"))),
        Claim::Left,
    ];
    let records = (2_u64..).zip(claims).map(|(id, claim)| Record {
        member: Member::new(id, 0),
        revision: 128,
        claim,
    });
    Records(records.collect())
}

fn broadcasts() -> Broadcasts {
    let payloads: [&[u8]; 2] = [b"", b"the lamp is on"];
    let broadcasts = (0_u32..).zip(payloads).map(|(number, payload)| Broadcast {
        origin: Member::new(9, 1),
        number,
        payload: payload.into(),
    });
    Broadcasts(broadcasts.collect())
}
