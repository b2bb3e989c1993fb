//! Every pair of settings, with a node that is wrongly declared failed while another node enters,
//! exits, and enters again.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::{Setup, holds};
use crate::Command::{self, Enter, Exit};

const VISIT: &[Command] = &[Enter, Exit];
const TWICE: &[Command] = &[Enter, Exit, Enter, Exit];
const FALSE: &[(u64, Delta)] = &[(1, Delta::Failed(Member::new(2, 0)))];

/// A setting that is not the default, and its name.
type Setting = (&'static str, fn(Setup) -> Setup);

const KEEP: Setting = ("keep", |it| Setup { keep: true, ..it });
const EAGER: Setting = ("eager", |it| Setup { eager: true, ..it });
const TAKEOVER: Setting = ("takeover", |it| Setup {
    takeover: true,
    ..it
});
/// Two of three are too few then, so the false failure makes the request slow.
const SLOW: Setting = ("slow_path", |it| Setup {
    slow: true,
    max_lives: 4,
    ..it
});
const REFRESH: Setting = ("refresh", |it| Setup {
    refresh: true,
    ..it
});
const ONE_BY_ONE: Setting = ("no multicast", |it| Setup {
    multicast: false,
    ..it
});
const COPIES: Setting = ("copies", |it| Setup { copies: 2, ..it });

type Commands = &'static [&'static [Command]];

const ONCE: Commands = &[VISIT, VISIT];
const AGAIN: Commands = &[TWICE, VISIT];

fn pair(states: usize, commands: Commands, one: Setting, other: Setting) -> Scenario {
    let bounds = Bounds {
        deltas: Some(1),
        ..Setup::CALM
    };
    let base = Setup {
        slack: 2,
        deltas: FALSE,
        bounds,
        ..Setup::full(3).visits(commands)
    };
    let name = format!("a false failure with {} and {}", one.0, other.0);
    holds(&name, states, other.1(one.1(base)))
}

/// The pairs under this crate's rules. If late answers, a tree or timers make many states, node 1
/// enters once.
pub(super) fn sound() -> Vec<Scenario> {
    let settings = [
        (26_276, AGAIN, KEEP, EAGER),
        (2_479, AGAIN, KEEP, TAKEOVER),
        (178_118, AGAIN, KEEP, SLOW),
        (2_588, AGAIN, KEEP, REFRESH),
        (1_632, AGAIN, KEEP, ONE_BY_ONE),
        (2_294, AGAIN, KEEP, COPIES),
        (25_673, ONCE, EAGER, TAKEOVER),
        (16_588, ONCE, EAGER, SLOW),
        (16_886, ONCE, EAGER, REFRESH),
        (13_471, ONCE, EAGER, ONE_BY_ONE),
        (22_591, ONCE, EAGER, COPIES),
        (25_963, ONCE, TAKEOVER, SLOW),
        (7_486, ONCE, TAKEOVER, REFRESH),
        (47_815, AGAIN, TAKEOVER, ONE_BY_ONE),
        (5_013, ONCE, TAKEOVER, COPIES),
        (29_926, ONCE, SLOW, REFRESH),
        (22_789, ONCE, SLOW, ONE_BY_ONE),
        (46_636, ONCE, SLOW, COPIES),
        (5_246, ONCE, REFRESH, ONE_BY_ONE),
        (6_830, ONCE, REFRESH, COPIES),
        (63_816, AGAIN, ONE_BY_ONE, COPIES),
    ];
    let all = settings.into_iter();
    all.map(|(states, commands, one, other)| pair(states, commands, one, other))
        .collect()
}

/// Larger scenarios of this kind, for `--deep`.
pub(super) fn deep() -> Vec<Scenario> {
    vec![pair(3_271_457, AGAIN, EAGER, TAKEOVER)]
}
