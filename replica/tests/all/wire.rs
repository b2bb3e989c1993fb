//! The wire format: exact bytes, and predicted lengths.

use selvedge_core::{Member, NodeId, Span, Stamp};
use selvedge_replica::{
    Body, Configuration, Entry, Lease, Message, Proposal, QuorumRule, SnapshotId, Voter, Wants,
};

use super::frames;

fn samples() -> Vec<Message<u16>> {
    let ballot = Stamp {
        number: 300,
        by: NodeId(9),
    };
    let none = Stamp::default();
    let proposal = Proposal {
        by: Member::new(2, 1),
        number: 200,
        first: 1,
        since: 130,
        update: 1_000,
    };
    let mut next = Configuration::of([Member::new(2, 1)]);
    next.number = 6;
    next.also = vec![Voter::witness(Member::new(3, 0))];
    next.quorum = QuorumRule::AtLeast(1);
    next.lease = Some(Lease {
        span: Span::millis(1),
        drift: 200,
    });
    let bodies = [
        Body::Prepare {
            ballot,
            committed: 7,
            accepted: none,
            end: 8,
            handed_over: ballot,
        },
        Body::Promise {
            ballot,
            committed: 7,
            accepted: none,
            end: 9,
            tail: [Entry::Update(proposal.clone()), Entry::Elided]
                .into_iter()
                .collect(),
        },
        Body::Refuse {
            ballot,
            promised: none,
            leader: ballot,
        },
        Body::Accept {
            ballot,
            after: 7,
            commit: 6,
            round: 2,
            entries: [Entry::Configure(next.clone().into())]
                .into_iter()
                .collect(),
        },
        Body::Accepted {
            ballot,
            end: 8,
            committed: 6,
            round: 2,
        },
        Body::Missing {
            committed: 128,
            wants: Wants::State,
        },
        Body::Learn {
            after: 128,
            entries: [Entry::Update(proposal.clone())].into_iter().collect(),
        },
        Body::Fetch {
            snapshot: SnapshotId {
                version: 128,
                is_bare: true,
                total: 302,
            },
            offset: 300,
        },
        Body::Page {
            snapshot: SnapshotId {
                version: 128,
                is_bare: false,
                total: 302,
            },
            offset: 300,
            bytes: [200, 1].into_iter().collect(),
        },
        Body::Propose {
            proposals: [proposal].into_iter().collect(),
        },
        Body::Read { number: 4 },
        Body::ReadAt {
            life: 200,
            number: 4,
            version: 128,
        },
        Body::Stand { ballot },
        Body::Current {
            configuration: next.into(),
            is_active: true,
        },
        Body::Rejoin { life: 1 },
    ];
    let message = |body| Message {
        configuration: 5,
        body,
    };
    bodies.into_iter().map(message).collect()
}

#[test]
fn the_format_stays_as_it_is() {
    let golden = [
        "010701000500ac020907000008ac0209",
        "010701000501ac02090700000902000201c801018201e80702",
        "010701000502ac02090000ac0209",
        "010701000503ac02090706020101060102010001030001010101e807c801f80a40",
        "010701000504ac0209080602",
        "010701000505800101",
        "010701000506800101000201c801018201e807",
        "010701000507800101ae02ac02",
        "010701000508800100ae02ac0202c801",
        "010701000509010201c801018201e807",
        "01070100050a04",
        "01070100050bc801048001",
        "01070100050cac0209",
        "01070100050d060102010001030001010101e807c801f80a4001",
        "01070100050e01",
    ];
    frames::stay(&samples(), &golden);
}

#[test]
fn lengths_are_foretold() {
    frames::lengths_are_foretold(&samples());
}
