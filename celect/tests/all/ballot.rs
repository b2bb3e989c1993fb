//! The order of ballots, also as fencing tokens.

use proptest::prelude::*;
use selvedge_celect::Ballot;
use selvedge_core::{FencingToken, Incarnation, Member, NodeId};

fn ballots() -> impl Strategy<Value = Ballot> {
    let small = || prop_oneof![0..3_u64, any::<u64>()];
    (small(), small(), small(), small()).prop_map(|(epoch, id, incarnation, step)| Ballot {
        epoch,
        initiator: Member {
            id: NodeId(id),
            incarnation: Incarnation(incarnation as u32),
        },
        step: step as u32,
    })
}

proptest! {
    #[test]
    fn fencing_tokens_are_ordered_as_ballots_are(one in ballots(), other in ballots()) {
        let tokens = (FencingToken::from(one), FencingToken::from(other));
        prop_assert_eq!(tokens.0.cmp(&tokens.1), one.cmp(&other));
    }
}
