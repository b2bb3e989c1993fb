use std::io::{self, BufReader, Read};

use proptest::prelude::*;
use selvedge_core::{Delta, Member, NodeId, Span, Time};
use selvedge_sim::network::{
    Link, MembershipTrace, MembershipTraceError as Wrong, NetworkError, Topology,
};

use crate::network::machines::{Notified, member, quiet};

const HEADER: &str = "selvedge-membership-trace 1\n";

fn delta() -> impl Strategy<Value = Delta> {
    (0..6, any::<u64>(), any::<u32>()).prop_map(|(kind, id, incarnation)| {
        let member = Member::new(id, incarnation);
        match kind {
            0 => Delta::Joined(member),
            1 => Delta::Suspected(member),
            2 => Delta::Refuted(member),
            3 => Delta::Failed(member),
            4 => Delta::Left(member),
            _ => Delta::Confirmed(member),
        }
    })
}

fn trace() -> impl Strategy<Value = MembershipTrace> {
    let entry = (any::<u64>(), any::<u64>(), delta());
    proptest::collection::vec(entry, 0..20).prop_map(|mut entries| {
        entries.sort_by_key(|entry| entry.0);
        let mut trace = MembershipTrace::default();
        for (at, observer, delta) in entries {
            trace.push(Time(at), NodeId(observer), delta);
        }
        trace
    })
}

fn written(trace: &MembershipTrace) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn what_is_written_is_read(trace in trace()) {
        let bytes = written(&trace);
        prop_assert_eq!(&MembershipTrace::read(bytes.as_slice()).unwrap(), &trace);
        // However little a source gives at a time.
        let drips = BufReader::with_capacity(3, bytes.as_slice());
        prop_assert_eq!(&MembershipTrace::read(drips).unwrap(), &trace);
    }

    /// The format has one form, so every file that is accepted is written back byte for byte.
    #[test]
    fn what_is_read_is_written(
        trace in trace(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 0..3),
    ) {
        let mut bytes = written(&trace);
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        if let Ok(read) = MembershipTrace::read(bytes.as_slice()) {
            prop_assert_eq!(written(&read), bytes);
        }
    }

    #[test]
    fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(MembershipTrace::read(bytes.as_slice()).is_err());
        let behind = [HEADER.as_bytes(), &bytes, b"\n"].concat();
        prop_assert!(MembershipTrace::read(behind.as_slice()).is_err());
    }

    #[test]
    fn a_trace_cut_off_within_a_line_is_refused(trace in trace(), at in any::<prop::sample::Index>()) {
        let mut bytes = written(&trace);
        bytes.truncate(at.index(bytes.len()));
        let whole_lines = bytes.last() == Some(&b'\n');
        prop_assert_eq!(MembershipTrace::read(bytes.as_slice()).is_ok(), whole_lines);
    }
}

#[test]
fn errors_name_the_line_what_was_found_and_what_was_expected() {
    let complaint = |text: &str| {
        MembershipTrace::read(text.as_bytes())
            .unwrap_err()
            .to_string()
    };
    let behind = |line: &str| complaint(&format!("{HEADER}1 2 left 3 4\n{line}"));
    for (line, expected) in [
        ("1 2 left 3\n", "line 3: found 4 fields; expected 5"),
        ("\n", "line 3: found 1 fields"),
        ("1 2 left 3 4 5\n", "line 3: found 6 fields"),
        (
            "+1 2 left 3 4\n",
            "line 3: the time is `+1`; expected a number below 2^64",
        ),
        ("1 02 left 3 4\n", "line 3: the observer is `02`"),
        (
            "1 2 Left 3 4\n",
            "line 3: the change is `Left`; expected joined, suspected",
        ),
        ("1 2 left \u{7} 4\n", "line 3: the member is `\\x07`"),
        ("1 2 left  4\n", "line 3: the member is ``"),
        (
            "1 2 left 3 4294967296\n",
            "line 3: the incarnation is `4294967296`; expected a number below 2^32",
        ),
        ("1 2 left 3 4\r\n", "line 3: the incarnation is `4\\r`"),
        (
            "0 2 left 3 4\n",
            "line 3: the time is 0; expected at least 1",
        ),
        (
            "1 2 left 3 4",
            "line 3: found the end of the file; expected a line feed",
        ),
    ] {
        let complaint = behind(line);
        assert!(complaint.starts_with(expected), "{complaint}");
    }
    let long = format!("{HEADER}{}", "9".repeat(129));
    assert_eq!(
        complaint(&long),
        "line 2: found more than 128 bytes; expected a line feed before that"
    );
    assert!(
        complaint("selvedge-membership-trace 2\n").contains("found `selvedge-membership-trace 2`")
    );
    assert!(
        matches!(MembershipTrace::read(io::empty()), Err(Wrong::Header { found }) if found.is_empty())
    );
}

#[test]
fn a_line_may_have_128_bytes_and_no_more() {
    let error = |bytes: usize| {
        let text = format!("{HEADER}{}\n", "9".repeat(bytes));
        MembershipTrace::read(text.as_bytes()).unwrap_err()
    };
    assert!(matches!(error(128), Wrong::Fields { line: 2, found: 1 }));
    assert!(matches!(
        error(129),
        Wrong::TooLong {
            line: 2,
            limit: 128
        }
    ));
}

#[test]
fn an_endless_line_is_given_up_early() {
    let endless = BufReader::new(io::repeat(b'1'));
    assert!(matches!(
        MembershipTrace::read(endless),
        Err(Wrong::TooLong {
            line: 1,
            limit: 128
        })
    ));
    let endless = BufReader::new(HEADER.as_bytes().chain(io::repeat(b'1')));
    assert!(matches!(
        MembershipTrace::read(endless),
        Err(Wrong::TooLong {
            line: 2,
            limit: 128
        })
    ));
}

#[test]
fn what_one_network_learned_another_is_told() {
    let mut first = quiet(1, Topology::full_mesh(3).unwrap(), Link::default());
    first.record_membership(|notified| match notified {
        Notified::Learned(delta) => Some(*delta),
        Notified::Received(..) | Notified::Ticked => None,
    });
    let notified = [
        (0, 0, Delta::Joined(member(2))),
        (5_000, 1, Delta::Suspected(member(2))),
        (5_000, 0, Delta::Failed(member(2))),
        (9_000, 1, Delta::Refuted(member(2))),
    ];
    for (at, node, delta) in notified {
        first.run_until(Time(at));
        first.membership(node, delta).unwrap();
    }
    let bytes = written(&first.take_membership());
    assert!(first.take_membership().entries().is_empty());

    let trace = MembershipTrace::read(bytes.as_slice()).unwrap();
    let mut second = quiet(9, Topology::full_mesh(3).unwrap(), Link::default());
    assert_eq!(second.replay(&trace), Ok(4));
    second.run_for(Span::secs(1));
    let learned = notified.map(|(at, node, delta)| (Time(at), node, Notified::Learned(delta)));
    assert_eq!(second.events(), learned);
}

#[test]
fn a_replay_to_strangers_is_refused_as_a_whole() {
    let mut trace = MembershipTrace::default();
    trace.push(Time(1), member(0).id, Delta::Left(member(1)));
    trace.push(Time(2), NodeId(5), Delta::Left(member(1)));
    let mut network = quiet(1, Topology::full_mesh(2).unwrap(), Link::default());
    let id = NodeId(5);
    assert_eq!(
        network.replay(&trace),
        Err(NetworkError::UnknownObserver { id })
    );
    assert_eq!(network.pending(), 0);
}

#[test]
fn an_entry_from_the_past_takes_the_time_of_the_last_one() {
    let mut trace = MembershipTrace::default();
    trace.push(Time(9), NodeId(1), Delta::Left(member(1)));
    trace.push(Time(3), NodeId(1), Delta::Left(member(2)));
    assert!(trace.entries().iter().all(|entry| entry.at == Time(9)));
}
