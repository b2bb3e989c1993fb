//! Frames of k-groups: every question, answer and update.

use selvedge_core::wire::Envelope;
use selvedge_core::{Member, NodeId, Span, Stamp};
use selvedge_groups::{
    GroupId, Item,
    store::{
        Change, Changes, Entry, EntryChange, Expected, Operation, Owner, Page, Position, SessionId,
        StoreAnswer, StoreRequest, Stored, Transaction, Wait,
    },
};
use selvedge_kgroup::routines::{self, StepOutcome};
use selvedge_kgroup::{
    Answer, Claim, Delivery, Due, Message, Outcome, Patience, Payload, Progress, Request, Site,
    Status, TriggerId, Update, devices,
};
use selvedge_replica::{self as replica, Body, Proposal};

use super::Seed;
use crate::decode::seal;

const DEVICE: NodeId = NodeId(1_000);
const ROUTINE: GroupId = Site::routine(3);
const CLAIM: Claim = Claim {
    routine: ROUTINE,
    instance: 7,
    attempt: 2,
};

pub(crate) fn operation() -> Operation {
    Operation::set(
        "front",
        Expected::Version(300),
        Some([1, 2, 3].into_iter().collect()),
    )
}

fn entry() -> Option<Entry> {
    Some(Entry {
        created: 280,
        version: 300,
        session: Some(session()),
        value: [1, 2, 3].into_iter().collect(),
    })
}

const fn session() -> SessionId {
    SessionId {
        by: Member::new(300, 7),
        number: 2,
    }
}

/// A transaction with each kind of step.
fn transaction() -> Operation {
    let transaction = Transaction::new()
        .when("front", Expected::Version(300))
        .put_owned("front", &[1, 2], session())
        .append("line/", &[3])
        .otherwise_remove("front");
    Operation::Transact(transaction)
}

/// Changes of sessions, and those of a leader.
fn of_map() -> Vec<Change> {
    let (by, session, term) = (Member::new(300, 7), session(), 3);
    let operations = [
        operation(),
        transaction(),
        Operation::BeginSession {
            ttl: Span::secs(10),
            transaction: Transaction::new().append_owned("line/", &[3], Owner::Begun),
        },
        Operation::EndSession(session),
    ];
    let asked = operations.into_iter().zip(2..);
    let asked = asked.map(|(operation, number)| Change::Asked {
        by,
        number,
        operation,
    });
    let wait = Wait {
        session,
        renewals: 1,
        left: Span::secs(5),
    };
    let waits = [wait].into_iter().collect();
    let own = [
        Change::TakeOver { by },
        Change::Wait { waits, term },
        Change::Renew { session, term },
        Change::Expire { session, term },
    ];
    asked.chain(own).collect()
}

fn status() -> Status {
    Status {
        version: 4,
        is_up: true,
        value: Some("open".into()),
    }
}

pub(crate) fn requests() -> Vec<Request> {
    let (device, claim, routine, step) = (DEVICE, CLAIM, ROUTINE, 1);
    let key = || "front".into();
    vec![
        Request::Lock {
            device,
            claim,
            patience: Patience::Leaves,
            generation: 2,
        },
        Request::Release {
            device,
            claim,
            generation: 2,
        },
        Request::Act {
            device,
            claim,
            step,
            value: "on".into(),
            delivery: Delivery::AtMostOnce,
        },
        Request::Watch {
            device,
            routine,
            generation: 2,
        },
        Request::Seen {
            device,
            routine,
            version: 4,
        },
        Request::Read {
            device,
            claim,
            step,
        },
        Request::Trigger(TriggerId(9)),
        Request::Due(due()),
        Request::Progress {
            cluster: GroupId(5),
            device,
            since: 64,
        },
        Request::Store(StoreRequest::Get {
            number: 1,
            key: key(),
        }),
        Request::Store(StoreRequest::Change {
            number: 2,
            operation: operation().into(),
        }),
        Request::Store(StoreRequest::Watch {
            key: key(),
            known: 300,
        }),
        Request::Store(StoreRequest::Unwatch { key: key() }),
        Request::Store(StoreRequest::List {
            number: 3,
            prefix: key(),
            after: Some("front/1".into()),
        }),
        Request::Store(StoreRequest::WatchPrefix {
            watch: 4,
            number: 1,
            prefix: key(),
            since: Position {
                version: 300,
                after: Some("/1".into()),
                base: 280,
            },
        }),
        Request::Store(StoreRequest::UnwatchPrefix { watch: 4 }),
        Request::Store(StoreRequest::KeepAlive {
            number: 5,
            session: session(),
        }),
    ]
}

fn changed(entry: Option<Entry>) -> EntryChange {
    EntryChange {
        key: "front".into(),
        version: 300,
        entry,
    }
}

const fn due() -> Due {
    Due {
        since: 1,
        trigger: 2,
        occurrence: 20_514,
        is_late: true,
    }
}

fn answers() -> Vec<Answer> {
    let (device, claim, step) = (DEVICE, CLAIM, 1);
    let number = 2;
    vec![
        Answer::Granted { device, claim },
        Answer::Queued { device, claim },
        Answer::Busy { device, claim },
        Answer::Over { device, claim },
        Answer::Released { device, claim },
        Answer::Acted {
            device,
            claim,
            step,
            outcome: Outcome::Unknown,
        },
        Answer::Status {
            device,
            routine: ROUTINE,
            status: status(),
        },
        Answer::NoDevice {
            device,
            routine: ROUTINE,
            generation: 2,
        },
        Answer::Read {
            device,
            claim,
            step,
            status: status(),
        },
        Answer::Triggered(TriggerId(9)),
        Answer::Counted(due()),
        Answer::Progress {
            cluster: GroupId(5),
            device,
            since: 64,
            progress: Progress::Executes { claim, given: 1 },
            watches: true,
        },
        Answer::Asleep {
            device,
            claim,
            step,
        },
        Answer::Store(StoreAnswer::Found {
            number,
            entry: entry(),
        }),
        Answer::Store(StoreAnswer::Changed {
            number,
            stored: Stored::Mismatch { found: Some(300) },
        }),
        Answer::Store(StoreAnswer::Watched {
            key: "front".into(),
            version: 301,
            entry: entry(),
        }),
        Answer::Store(StoreAnswer::Refused),
        Answer::Store(StoreAnswer::Listed {
            number,
            page: Page {
                version: 301,
                entries: entry().map(|it| ("front".into(), it)).into_iter().collect(),
                is_last: true,
            },
        }),
        Answer::Store(StoreAnswer::PrefixChanged {
            watch: 4,
            number,
            found: Changes {
                version: 301,
                changes: [None, entry()].into_iter().map(changed).collect(),
                is_last: false,
            },
        }),
        Answer::Store(StoreAnswer::Compacted { watch: 4, number }),
        Answer::Store(StoreAnswer::KeptAlive {
            number,
            session: session(),
            ttl: Some(Span::secs(10)),
        }),
    ]
}

fn updates() -> Vec<Update> {
    let (device, claim, instance) = (DEVICE, CLAIM, 7);
    let (attempt, step) = (2, 1);
    let of_devices = [
        devices::Update::Lock {
            device,
            claim,
            patience: Patience::Queues,
            generation: 2,
        },
        devices::Update::Release {
            device,
            claim,
            generation: 2,
        },
        devices::Update::Act {
            device,
            claim,
            step,
            value: "on".into(),
            delivery: Delivery::AtLeastOnce,
            by: Member::new(300, 7),
        },
        devices::Update::Acted {
            device,
            number: 5,
            turn: 1,
            outcome: Outcome::Done,
        },
        devices::Update::Observed {
            device,
            after: 3,
            is_up: true,
            value: Some("open".into()),
        },
        devices::Update::Watch {
            generation: 0,
            device,
            routine: ROUTINE,
        },
        devices::Update::TakeOver {
            device,
            number: 5,
            after: 1,
            by: Member::new(300, 7),
        },
        devices::Update::Settled {
            device,
            number: 5,
            turn: 2,
        },
        devices::Update::Waited {
            device,
            number: 5,
            turn: 2,
            waited: Span::secs(3),
        },
        devices::Update::Enter {
            generation: 2,
            device,
        },
        devices::Update::Exit {
            generation: 2,
            device,
        },
        devices::Update::Forget {
            generation: 2,
            device,
            routine: ROUTINE,
        },
        devices::Update::Reclaim {
            device,
            since: 64,
            claim,
            given: Some(1),
        },
        devices::Update::Open {
            generation: 2,
            device,
        },
        devices::Update::Silent {
            device,
            after: Span::secs(1),
            silent: Span::secs(3),
        },
    ];
    let of_routines = [
        routines::Update::Observed {
            device,
            status: status(),
        },
        routines::Update::Trigger(TriggerId(9)),
        routines::Update::Locked { instance, attempt },
        routines::Update::Retry { instance, attempt },
        routines::Update::NoDevice {
            instance,
            attempt,
            device,
        },
        routines::Update::Cleared { instance, step },
        routines::Update::StepDone {
            instance,
            step,
            is_cleared: true,
            outcome: StepOutcome::Skipped,
        },
        routines::Update::Released { instance },
        routines::Update::Held {
            instance,
            step,
            held: Span::secs(2),
        },
        routines::Update::Due(due()),
        routines::Update::Define {
            generation: 2,
            definition: vec![1, 2, 3],
        },
    ];
    let of_devices = of_devices.into_iter().map(Update::Devices);
    let of_routines = of_routines.into_iter().map(Update::Routine);
    of_devices
        .chain(of_routines)
        .chain(of_map().into_iter().map(Update::Map))
        .collect()
}

/// A leader has its members accept an update.
fn accept(update: Update) -> Item<Update, Payload> {
    let proposal = Proposal {
        by: Member::new(300, 7),
        number: 9,
        first: 1,
        since: 200,
        update,
    };
    let ballot = Stamp {
        number: 3,
        by: NodeId(300),
    };
    let body = Body::Accept {
        ballot,
        after: 5,
        commit: 5,
        round: 2,
        entries: [replica::Entry::Update(proposal)].into_iter().collect(),
    };
    Item::Replica {
        group: ROUTINE,
        message: replica::Message {
            configuration: 1,
            body,
        },
    }
}

/// Each item, to a group.
fn items(group: GroupId) -> Vec<Item<Update, Payload>> {
    let ask = |request| Item::Ask {
        group,
        asked: Payload::Request(request),
    };
    let notify = |answer| Item::Answer {
        group,
        life: 3,
        notified: Payload::Answer { of: group, answer },
    };
    let members = [1, 2, 300].map(|it| Member::new(it, 1)).into_iter();
    let at = Item::Where {
        group,
        number: 3,
        leader: Some(NodeId(2)),
        members: members.clone().collect(),
    };
    let inquire = Item::Inquire {
        group,
        number: 2,
        configuration: 4,
    };
    let here = Item::Here {
        group,
        life: 3,
        number: 2,
    };
    let find = Item::Find { group, lost: 1 };
    let lost = Item::Lost { group, number: 3 };
    let end = |is_binding| Item::End {
        group,
        call: 2,
        number: 1 << 22,
        is_binding,
    };
    let ended = Item::Ended {
        group,
        life: 3,
        since: 2,
        call: 2,
        mark: 1 << 22,
        votes: true,
        number: 3,
        members: members.collect(),
    };
    let spared = Item::Spared {
        number: 1,
        is_spared: true,
    };
    let known = notify(Answer::Store(StoreAnswer::Known));
    let all = requests().into_iter().map(ask);
    let all = all.chain(answers().into_iter().map(notify));
    all.chain(updates().into_iter().map(accept))
        .chain([at, inquire, here, known, find, lost])
        .chain([end(false), end(true), ended, spared])
        .collect()
}

fn frame(from: Member, plan: u32, items: &[Item<Update, Payload>]) -> Vec<u8> {
    let items = items.iter().cloned().collect();
    let message = Message {
        plan,
        generation: 0,
        items,
    };
    seal(&Envelope { from, message })
}

/// All items to these groups, from node 2.
pub(super) fn frames(plan: u32, groups: impl Iterator<Item = GroupId>) -> Vec<Vec<u8>> {
    let of_group = |group| {
        let items = items(group);
        let few = items.chunks(24);
        let frames = few.map(|it| frame(Member::new(2, 0), plan, it));
        frames.collect::<Vec<_>>()
    };
    groups.flat_map(of_group).collect()
}

pub(super) fn decode_seeds() -> Vec<Seed> {
    let all = items(Site::cluster(2));
    let one = all.iter().enumerate();
    let one = one.map(|(number, item)| (number.to_string(), vec![item.clone()]));
    let few = all.iter().step_by(4).cloned().collect();
    let frames = one.chain([("many".to_owned(), few)]);
    let seed = |(name, items): (String, Vec<_>)| Seed {
        target: "decode",
        name: format!("kgroup-{name}"),
        bytes: frame(Member::new(300, 7), 0x1234_5678, &items),
    };
    frames.map(seed).collect()
}
