//! Facts of a replica as a damaged disk returns them.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Driver, Input, Member, Time};
use selvedge_replica::{Command, Config, Fact, Replica, State, Stored};
use serde::{Deserialize, Serialize};

/// A state of one number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Sum(pub(crate) u64);

impl State for Sum {
    type Update = u16;
    type Outcome = u64;

    fn apply(&mut self, update: &u16) -> u64 {
        self.0 = self.0.wrapping_add(u64::from(*update));
        self.0
    }
}

/// The member in the life that stored, and in the next one.
pub(crate) const FIRST: Member = Member::new(1, 0);
const NEXT: Member = Member::new(1, 1);

/// Reads `data` as a stored state and the facts after it, restores a member from them, and lets it take
/// part.
///
/// For any bytes, they are refused with an error, or the member runs; nothing panics.
pub fn stored_facts(data: &[u8]) {
    let Some(member) = restored(data) else {
        return;
    };
    let mut driver = Driver::new(member);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut now = Time::ZERO;
    for input in [
        Input::Membership(Delta::Joined(Member::new(2, 0))),
        Input::Command(Command::Campaign),
        Input::Command(Command::Propose(3)),
        Input::Command(Command::Read(1)),
    ] {
        let _refused = driver.step(now, &mut rng, input, |_| ());
        now = driver.deadline().unwrap_or(now).max(now);
        driver.expire(now, &mut rng, |_| ());
    }
}

fn restored(data: &[u8]) -> Option<Replica<Sum>> {
    let (base, facts): (Stored<Sum>, Vec<Fact<Sum>>) = postcard::from_bytes(data).ok()?;
    let mut member = Replica::restore(NEXT, Config::new(), base).ok()?;
    facts.iter().try_for_each(|it| member.fold(it)).ok()?;
    Some(member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    /// A seed that is refused would test nothing.
    #[test]
    fn a_member_is_restored_from_each_seed() {
        let seeds = seeds().filter(|it| it.target == "stored_facts");
        let versions = seeds.map(|it| restored(&it.bytes).map(|it| it.version()));
        assert_eq!(versions.collect::<Vec<_>>(), [Some(2), Some(1), Some(0)]);
    }
}
