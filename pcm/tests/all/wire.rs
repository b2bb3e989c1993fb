//! Messages on the wire: exact bytes, computed lengths, and the room of a frame.

use selvedge_core::wire::{Envelope, Message as _, VERSION, frame_len};
use selvedge_core::{Member, NodeId};
use selvedge_pcm::{
    Answer, Attachment, DutyCycle, Failure, Function, Hops, KIND, Library, Limits, Message,
    Refusal, Returned, Run, TaskId, Update, Voters,
};
use selvedge_replica::{Body, Proposal};

use super::world::bytes;

const TASK: TaskId = TaskId {
    client: Member::new(9, 1),
    number: 200,
};

fn function() -> Function {
    Function {
        libraries: [Library(300)].into_iter().collect(),
        ..Function::new(b"f")
    }
}

fn attachment() -> Attachment {
    Attachment {
        member: Member::new(101, 1),
        number: 300,
        gateway: NodeId(2),
        duty: DutyCycle::always(),
        libraries: [Library(7)].into_iter().collect(),
    }
}

fn updates() -> Vec<Update> {
    let (task, attempt) = (TASK, 2);
    vec![
        Update::Attach(attachment()),
        Update::Purge(attachment()),
        Update::Cluster { after: 300 },
        Update::Submit {
            task,
            function: function(),
        },
        Update::Retry { task, after: 1 },
        Update::Answer {
            task,
            attempt,
            term: 1,
            answer: Answer::Failed(Failure::Time),
            voters: [NodeId(101), NodeId(300)].into_iter().collect(),
        },
        Update::Vote {
            task,
            attempt,
            by: Member::new(101, 1),
            returned: Returned::Value(bytes(b"v")),
        },
        Update::Cancel(task),
        Update::Hops(Hops {
            one: NodeId(1),
            other: NodeId(2),
            hops: 3,
        }),
    ]
}

fn proposed(update: Update) -> Proposal<Update> {
    Proposal {
        by: Member::new(1, 0),
        number: 3,
        first: 1,
        since: 2,
        update,
    }
}

fn tables(update: Update) -> Message {
    let proposals = [proposed(update)].into_iter().collect();
    let message = selvedge_replica::Message {
        configuration: 5,
        body: Body::Propose { proposals },
    };
    Message::Tables(Box::new(message))
}

fn messages() -> Vec<Message> {
    let (task, attempt, number) = (TASK, 2, 200);
    let run = Run {
        task,
        attempt,
        term: 1,
        electors: [101, 102]
            .map(|id| Member::new(id, 0))
            .into_iter()
            .collect(),
        to_gateway: true,
        function: function(),
    };
    vec![
        tables(Update::Cluster { after: 1 }),
        Message::Heartbeat {
            ended: [NodeId(300)].into_iter().collect(),
        },
        Message::Here,
        Message::KeepAlive {
            number: 300,
            duty: DutyCycle::always(),
            libraries: attachment().libraries,
        },
        Message::Purged { number: 300 },
        Message::Run(Box::new(run)),
        Message::Over { task, attempt },
        Message::Vote {
            task,
            attempt,
            returned: Returned::Failed(Failure::Trapped),
        },
        Message::Counted { task, attempt },
        Message::Verdict {
            task,
            attempt,
            term: 1,
            answer: Answer::Value(bytes(b"v")),
            voters: [NodeId(101)].into_iter().collect(),
        },
        Message::Submit {
            number,
            function: function(),
        },
        Message::Cancel { number },
        Message::Taken { task },
        Message::Answer {
            task,
            answer: Answer::Cancelled,
            voters: Voters::new(),
        },
        Message::Refused {
            task,
            why: Refusal::Forgotten,
        },
        Message::Elsewhere,
    ]
}

fn hex(value: &impl serde::Serialize) -> String {
    let bytes = postcard::to_allocvec(value).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Nodes of earlier releases refuse a frame that changes: note it in the changelog, under Wire.
#[test]
fn messages_stay_as_they_are() {
    let all: Vec<String> = messages().iter().map(hex).collect();
    assert_eq!(all, GOLDEN_MESSAGES, "{:?}", messages());
    for message in &messages() {
        let bytes = postcard::to_allocvec(message).unwrap();
        assert_eq!(&postcard::from_bytes::<Message>(&bytes).unwrap(), message);
    }
}

#[test]
fn updates_stay_as_they_are() {
    let all: Vec<String> = updates().iter().map(hex).collect();
    assert_eq!(all, GOLDEN_UPDATES, "{:?}", updates());
    for update in &updates() {
        let bytes = postcard::to_allocvec(update).unwrap();
        assert_eq!(&postcard::from_bytes::<Update>(&bytes).unwrap(), update);
    }
}

const GOLDEN_MESSAGES: [&str; 16] = [
    "0005090101000301020201",
    "0101ac02",
    "02",
    "03ac02e80700000107",
    "04ac02",
    "050901c8010201026500660001016601ac02",
    "060901c80102",
    "070901c801020103",
    "080901c80102",
    "090901c80102010001760165",
    "0ac801016601ac02",
    "0bc801",
    "0c0901c801",
    "0d0901c8010400",
    "0e0901c80101",
    "0f",
];

const GOLDEN_UPDATES: [&str; 9] = [
    "006501ac0202e80700000107",
    "016501ac0202e80700000107",
    "02ac02",
    "030901c801016601ac02",
    "040901c80101",
    "050901c801020101040265ac02",
    "060901c801026501000176",
    "070901c801",
    "08010203",
];

#[test]
fn lengths_are_foretold() {
    let from = Member::new(300, 7);
    let all = messages().into_iter();
    for message in all.chain(updates().into_iter().map(tables)) {
        let envelope = Envelope {
            from,
            message: message.clone(),
        };
        let frame = postcard::to_extend(&envelope, vec![VERSION, KIND]).unwrap();
        assert_eq!(frame_len(from, &message), frame.len(), "{message:?}");
        assert_eq!(Message::KIND, KIND);
    }
}

/// The longest code that gateways take beside four libraries (`peers.rs` has the limit).
pub(crate) const LONGEST_CODE: usize = 1_191;

/// The longest of each kind that nodes with default settings send.
#[test]
fn each_message_of_default_settings_fits_a_datagram() {
    const MOST: u64 = u64::MAX;
    const LONGEST: usize = 1_400;
    let limits = Limits::new();
    let member = Member::new(MOST, u32::MAX);
    let task = TaskId {
        client: member,
        number: MOST,
    };
    let (attempt, term) = (u16::MAX, u16::MAX);
    let value = bytes(&vec![0xff; limits.result.into()]);
    let libraries = || (0..4).map(|it| Library(MOST - it)).collect();
    let duty = DutyCycle {
        active_ms: 40_000,
        busy_ms: 40_000,
        asleep_ms: 40_000,
    };
    let run = Run {
        task,
        attempt,
        term,
        electors: (0..u64::from(limits.unit) + 2)
            .map(|it| Member::new(MOST - it, u32::MAX))
            .collect(),
        to_gateway: true,
        function: Function {
            libraries: libraries(),
            ..Function::new(&vec![0xff; LONGEST_CODE])
        },
    };
    let voters: Voters = run.electors.iter().map(|it| it.id).collect();
    let all = [
        Message::Heartbeat {
            ended: (0..u64::from(limits.gateways))
                .map(|it| NodeId(MOST - it))
                .collect(),
        },
        Message::KeepAlive {
            number: u32::MAX,
            duty,
            libraries: libraries(),
        },
        Message::Run(Box::new(run)),
        Message::Vote {
            task,
            attempt,
            returned: Returned::Value(value.clone()),
        },
        Message::Verdict {
            task,
            attempt,
            term,
            answer: Answer::Value(value.clone()),
            voters: voters.clone(),
        },
        Message::Answer {
            task,
            answer: Answer::Value(value),
            voters,
        },
    ];
    for message in all {
        let len = frame_len(member, &message);
        assert!(len <= LONGEST, "{len} bytes: {message:?}");
    }
}
