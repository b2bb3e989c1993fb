//! Scenarios of sites that change, and of maps that begin.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::super::past::Before::{
    self as Past, Again, Asked as To, Cut, Due, Lost, Notified, Rest, Rounds,
};
use super::super::setup::ticks;
use super::super::{breaks, holds};
use super::Ask::{self, BeginAnew, Change, Epoch, Propose, ProposeNext, Question, Regroup, Remove};
use super::Setup;
use super::Sight::{Applied, AppliedNext, Asked, Begun, Overtaken, Registrars, Taken, Voteless};
use crate::Published;

type Before = Past<Ask>;

const ONE_FAILED: Delta = Delta::Failed(Member::new(1, 1));
const THREE_FAILED: Delta = Delta::Failed(Member::new(3, 1));
const THREE_HERE: Delta = Delta::Joined(Member::new(3, 1));
const THREE_AGAIN: Delta = Delta::Joined(Member::new(3, 2));

/// 2 leads the registry, and all nodes have a site that it decided.
const LED: &[Before] = &[To(1, Change(1, 1)), Rest];

/// The same, and 3 has failed.
const FAILED: &[Before] = &[
    To(1, Change(1, 1)),
    Rest,
    Notified(1, THREE_FAILED),
    Notified(2, THREE_FAILED),
];

/// 3 is away while the next site is decided.
const AWAY: &[Before] = &[
    To(1, Change(1, 1)),
    Rest,
    Cut(&[3]),
    To(1, Change(2, 2)),
    Rest,
    Cut(&[]),
];

/// 1 and 3 decide an update. Then 3 begins again without its memory, and 1 fails.
const FORGOTTEN: &[Before] = &[
    To(1, Question(1)),
    Rest,
    To(1, Question(2)),
    Rest,
    Cut(&[2]),
    To(1, Propose(11)),
    Rest,
    Again(3),
    Cut(&[]),
    Notified(2, THREE_AGAIN),
    Notified(2, ONE_FAILED),
];

/// 3 and 1 decide an update, and reach no other node. Meanwhile the map begins anew with 1, 2 and 4.
const ANEW: &[Before] = &[
    To(1, Question(1)),
    Rest,
    To(1, Question(2)),
    Rest,
    Cut(&[2, 4]),
    To(3, Propose(11)),
    Rest,
    Cut(&[1, 3]),
    Notified(2, THREE_FAILED),
    Notified(4, THREE_FAILED),
    To(2, BeginAnew),
    Rest,
    To(2, Propose(21)),
    Rest,
    To(2, Propose(22)),
    Rest,
    Cut(&[]),
];

/// 1, 2 and 3 have the map, 1 leads it, and an update is decided.
const HELD: &[Before] = &[
    To(1, Question(1)),
    Rest,
    To(1, Question(2)),
    Rest,
    To(1, Propose(11)),
    Rest,
];

/// 3, 1 and 4 have the map, and all nodes have a site without 3. It leads, and its proposal of 1, 4 and 2 as the
/// next members is in flight. Then 1 fails.
const MOVING: &[Before] = &[
    To(1, Question(1)),
    Rest,
    To(1, Question(2)),
    Rest,
    To(3, Propose(11)),
    Rest,
    To(2, Remove(1, 3)),
    Rounds(10),
    Due(3),
    Rounds(2),
    Notified(2, ONE_FAILED),
    Notified(4, ONE_FAILED),
];

/// The same, but 4 answers the inquiry of 3, is cut off, and misses the site, an update and the
/// link. 3 has left the map, and an epoch begins there. Then 4 takes 3 for failed for a while, and 1 fails.
const MISSED: &[Before] = &[
    To(1, Question(1)),
    Rest,
    To(1, Question(2)),
    Rest,
    Cut(&[4]),
    To(2, Remove(1, 3)),
    Rounds(10),
    Cut(&[]),
    Due(3),
    Rounds(1),
    To(3, Propose(11)),
    Lost(4),
    Rounds(1),
    Cut(&[4]),
    Rest,
    To(3, Epoch(2)),
    Cut(&[]),
    Notified(2, ONE_FAILED),
    Notified(4, ONE_FAILED),
    Notified(4, THREE_FAILED),
    Notified(4, THREE_HERE),
    To(4, Propose(44)),
];

const fn three(before: &'static [Before]) -> Setup {
    Setup {
        nodes: 3,
        ..Setup::after(before)
    }
}

const ONE: Setup = Setup {
    asks: &[(3, Change(2, 2))],
    bounds: ticks(2),
    ends_within: Some(2),
    sees: &[Taken(2)],
    ..three(LED)
};

const TWO: Setup = Setup {
    asks: &[(1, Change(2, 2)), (3, Change(2, 3))],
    bounds: ticks(3),
    ends_within: Some(3),
    sees: &[Taken(2), Overtaken],
    ..ONE
};

/// The map moves to other members, as the site has its leader no more.
const MOVED: Setup = Setup {
    nodes: 4,
    down: &[1],
    bounds: ticks(3),
    ends_within: Some(3),
    sees: &[Taken(1)],
    ..Setup::after(MOVING)
};

/// A founder that has lost its memory asks for the map.
const FORGETS: Setup = Setup {
    down: &[1],
    asks: &[(3, Question(3)), (2, Propose(22))],
    bounds: ticks(4),
    // It has no vote, and another founder has failed.
    ends_within: None,
    sees: &[Voteless],
    ..three(FORGOTTEN)
};

/// A former leader and its follower are back.
const BACK: Setup = Setup {
    nodes: 4,
    down: &[2],
    asks: &[(3, Propose(33)), (4, Propose(23))],
    // No registry notifies the former leader of the beginning.
    ends_within: None,
    sees: &[Applied(5), Begun(1)],
    ..Setup::after(ANEW)
};

pub(in super::super) fn quick() -> Vec<Scenario> {
    let mut all = changes();
    all.extend(beginnings());
    all
}

fn changes() -> Vec<Scenario> {
    let a_loss = Bounds {
        drops: 1,
        ..ticks(3)
    };
    let first = Setup {
        before: &[],
        asks: &[(3, Change(1, 2))],
        bounds: ticks(3),
        ends_within: Some(3),
        sees: &[Taken(1), Registrars(1)],
        ..ONE
    };
    let a_copy = Bounds {
        duplicates: 1,
        ..ticks(2)
    };
    let away = Setup {
        before: AWAY,
        asks: &[],
        deltas: &[(1, THREE_HERE)],
        bounds: a_loss,
        ..ONE
    };
    let lost = Setup {
        bounds: a_loss,
        ends_within: Some(3),
        ..ONE
    };
    let replaced_lost = Setup {
        bounds: Bounds {
            drops: 1,
            ..REPLACED.bounds
        },
        ..REPLACED
    };
    let replaced_copied = Setup {
        bounds: Bounds {
            duplicates: 1,
            ..REPLACED.bounds
        },
        ..REPLACED
    };
    let copied = Setup {
        bounds: a_copy,
        ..ONE
    };
    vec![
        holds("a node proposes a site", 309, ONE),
        holds("a node proposes a site, the first one", 5_146, first),
        holds("a node proposes a site, a loss", 2_844, lost),
        holds("a node proposes a site, a copy", 3_260, copied),
        holds("a node that was away takes the site, a loss", 180, away),
        holds(
            "a node that missed a link asks a member that the site has no more, a loss",
            623,
            replaced_lost,
        ),
        holds(
            "a node that missed a link asks a member that the site has no more, a copy",
            792,
            replaced_copied,
        ),
    ]
}

fn beginnings() -> Vec<Scenario> {
    let asked = Setup {
        before: FAILED,
        asks: &[(1, Question(1)), (2, Question(2))],
        bounds: ticks(4),
        ends_within: Some(4),
        down: &[3],
        sees: &[Begun(0), Asked(1)],
        ..ONE
    };
    vec![holds(
        "a map is asked by two nodes, and one has failed",
        2_299,
        asked,
    )]
}

pub(in super::super) fn deep() -> Vec<Scenario> {
    let fails = Setup {
        ends: &[2],
        bounds: Bounds {
            crashes: 1,
            ..ticks(6)
        },
        // A late message of the failed leader is believed for a while.
        ends_within: Some(6),
        sees: &[Taken(2), Registrars(2)],
        ..ONE
    };
    let follower = Setup {
        down: &[3],
        asks: &[(2, Propose(23))],
        ends_within: Some(1),
        sees: &[Applied(4), Begun(1)],
        ..BACK
    };
    let with_a_member = Setup {
        down: &[1],
        ticks_at: &[4],
        bounds: ticks(2),
        ends_within: Some(2),
        ..REPLACED
    };
    vec![
        holds(
            "a map moves from the leader that the site has no more, and another member fails",
            45_024,
            MOVED,
        ),
        holds(
            "a node that missed a link asks a member that the site has no more, and another one is here",
            33_710,
            with_a_member,
        ),
        holds(
            "the registry's leader fails while a node proposes",
            205_400,
            fails,
        ),
        holds(
            "a former follower is back after a map began anew",
            49_922,
            follower,
        ),
    ]
}

/// The site of all nodes has another group and no map.
const REGROUPED: Setup = Setup {
    asks: &[(3, Regroup(1)), (1, Propose(12)), (2, ProposeNext(21))],
    bounds: ticks(5),
    ends_within: Some(5),
    sees: &[Taken(1), AppliedNext(1), Applied(2)],
    ..three(HELD)
};

/// A former member that the site has no more is asked to vote.
const REPLACED: Setup = Setup {
    nodes: 4,
    down: &[1, 2],
    bounds: ticks(4),
    // The only member of the latest configuration that is here has no news of it.
    ends_within: None,
    sees: &[Taken(1)],
    ..Setup::after(MISSED)
};

pub(in super::super) fn pairs() -> Vec<Scenario> {
    let two = "two nodes propose different sites";
    let again = "a founder that has lost its memory is notified of the birth again";
    let back = "a former leader and its follower are back after a map began anew";
    let regrouped = "a node proposes a site with another group in the place of the map";
    let replaced = "a node that missed a link asks a member that the site has no more";
    vec![
        holds(two, 124_041, TWO),
        breaks(two, 2, TWO, &[Published::TakesOwnSite]),
        holds(again, 6_937, FORGETS),
        breaks(again, 8, FORGETS, &[Published::FoundersInAnyLife]),
        holds(back, 24_789, BACK),
        breaks(back, 7, BACK, &[Published::NoInstances]),
        holds(regrouped, 16_666, REGROUPED),
        breaks(regrouped, 11, REGROUPED, &[Published::KeepsGroups]),
        holds(replaced, 233, REPLACED),
        breaks(replaced, 7, REPLACED, &[Published::NoMark]),
    ]
}
