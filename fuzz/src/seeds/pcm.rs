//! Frames of PCM: every message, and every update as gateways accept it.

use selvedge_core::wire::Envelope;
use selvedge_core::{Member, NodeId, Stamp};
use selvedge_pcm::{
    Answer, Attachment, DutyCycle, Failure, Function, Hops, Library, Message, Refusal, Returned,
    Run, TaskId, Update, Voters,
};
use selvedge_replica::{self as replica, Body, Proposal};

use super::Seed;
use crate::decode::seal;

const TASK: TaskId = TaskId {
    client: Member::new(700, 2),
    number: 300,
};

fn voters() -> Voters {
    [101, 300].map(NodeId).into_iter().collect()
}

fn duty() -> DutyCycle {
    DutyCycle {
        active_ms: 1_000,
        busy_ms: 0,
        asleep_ms: 30_000,
    }
}

fn function() -> Function {
    Function {
        libraries: [Library(7), Library(u64::MAX), Library(0)]
            .into_iter()
            .collect(),
        ..Function::new(b"7 * 7")
    }
}

fn value() -> Returned {
    Returned::Value(b"49".iter().copied().collect())
}

fn attachment() -> Attachment {
    Attachment {
        member: Member::new(101, 1),
        number: 300,
        gateway: NodeId(2),
        duty: duty(),
        libraries: [Library(7)].into_iter().collect(),
    }
}

fn updates() -> Vec<Update> {
    let (task, attempt) = (TASK, 2);
    let hops = Hops {
        one: NodeId(1),
        other: NodeId(2),
        hops: 3,
    };
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
            answer: value().into(),
            voters: voters(),
        },
        Update::Vote {
            task,
            attempt,
            by: Member::new(101, 1),
            returned: value(),
        },
        Update::Cancel(task),
        Update::Hops(hops),
    ]
}

/// The resource manager has the others accept updates.
fn accept(updates: Vec<Update>) -> Message {
    let proposals = (9..).zip(updates).map(|(number, update)| Proposal {
        by: Member::new(3, 7),
        number,
        first: 1,
        since: 200,
        update,
    });
    let ballot = Stamp {
        number: 3,
        by: NodeId(3),
    };
    let body = Body::Accept {
        ballot,
        after: 5,
        commit: 5,
        round: 2,
        entries: proposals.map(replica::Entry::Update).collect(),
    };
    let message = replica::Message {
        configuration: 1,
        body,
    };
    Message::Tables(Box::new(message))
}

fn to_followers() -> Vec<Message> {
    let (task, attempt) = (TASK, 2);
    let electors = [101, 102, 103].map(|id| Member::new(id, 1));
    let run = Run {
        task,
        attempt,
        term: 1,
        electors: electors.into_iter().collect(),
        to_gateway: false,
        function: function(),
    };
    vec![
        Message::Purged { number: 300 },
        Message::Run(Box::new(run)),
        Message::Over { task, attempt },
        Message::Vote {
            task,
            attempt,
            returned: value(),
        },
        Message::Vote {
            task,
            attempt,
            returned: Returned::Failed(Failure::Trapped),
        },
        Message::Counted { task, attempt },
        Message::Elsewhere,
    ]
}

fn of_clients() -> Vec<Message> {
    let (task, number) = (TASK, 300);
    let answers = [
        value().into(),
        Answer::Failed(Failure::Memory),
        Answer::NoMajority,
        Answer::Unanswered,
        Answer::Cancelled,
    ];
    let answers = answers.map(|answer| Message::Answer {
        task,
        voters: match answer {
            Answer::Value(_) | Answer::Failed(_) => voters(),
            Answer::NoMajority | Answer::Unanswered | Answer::Cancelled => Voters::new(),
        },
        answer,
    });
    let refusals = [Refusal::Full, Refusal::Forgotten, Refusal::TooLong];
    let refusals = refusals.map(|why| Message::Refused { task, why });
    let others = [
        Message::Submit {
            number,
            function: function(),
        },
        Message::Cancel { number },
        Message::Taken { task },
    ];
    others.into_iter().chain(answers).chain(refusals).collect()
}

pub(super) fn decode_seeds() -> Vec<Seed> {
    let to_gateways = [
        Message::Heartbeat {
            ended: [2, 300].map(NodeId).into_iter().collect(),
        },
        Message::Here,
        Message::KeepAlive {
            number: 300,
            duty: duty(),
            libraries: attachment().libraries,
        },
        Message::Verdict {
            task: TASK,
            attempt: 2,
            term: 1,
            answer: value().into(),
            voters: voters(),
        },
    ];
    let one = updates().into_iter().map(|it| accept(vec![it]));
    let all = one.chain([accept(updates())]).chain(to_gateways);
    let all = all.chain(to_followers()).chain(of_clients());
    let seed = |(number, message): (usize, Message)| Seed {
        target: "decode",
        name: format!("pcm-{number}"),
        bytes: seal(&Envelope {
            from: Member::new(3, 7),
            message,
        }),
    };
    all.enumerate().map(seed).collect()
}
