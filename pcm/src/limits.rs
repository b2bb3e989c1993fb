//! The limits of the tables.

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::wire::{MEMBER_MAX_LEN, varint_len};
use serde::{Deserialize, Serialize};

/// The limits of the tables, and the size of units. They are part of the replicated state, because all
/// gateways must refuse the same updates and form the same units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// The greatest number of followers: from 1. Default 4,096.
    pub followers: u32,
    /// The number of libraries that are recorded for a follower, the latest ones: from 0. Default 4.
    pub libraries: u16,
    /// The number of followers that a unit should have: from 3 to 15. Default 5 (section 5a).
    /// A unit has up to two more if the remaining followers are too few for a unit of their own.
    pub unit: u16,
    /// The difference of availability at which a follower takes another one's class, in parts per million: up
    /// to 1,000,000. Default 20,000.
    pub margin: u32,
    /// The greatest number of gateways between which distances are recorded: from 1. Default 16.
    pub gateways: u16,
    /// The number of former followers that are remembered: from 0. Default 1,024. A late message of its former
    /// gateway may bring back a follower that is not remembered, until that gateway purges it.
    pub tombstones: u32,
    /// The greatest number of open tasks: from 1. Default 256.
    pub open: u32,
    /// The number of ended tasks that are kept with their answers: from 1. Default 1,024.
    pub done: u32,
    /// The number of results that are kept for functions that clients submit again: from 0. Default 256.
    pub cache: u32,
    /// The number of clients for which the tables remember that tasks are forgotten: from 1. Default 1,024. A
    /// task of a client that is not remembered may run twice.
    pub clients: u32,
    /// The number of times that a task is given to a unit before it counts as unanswered: from 1. Default 5.
    pub attempts: u16,
    /// True if gateways count the votes themselves, so that no orchestrator has to be trusted (erratum Q5).
    /// It costs an update for each vote. Default no.
    pub counts_votes: bool,
    /// The greatest length of a result in bytes: from 1. Default 256. It must fit into a frame together with
    /// its task and the ids of its voters:
    /// [`gateway::Reject::NoRoomForResult`](crate::gateway::Reject::NoRoomForResult) gives the room.
    pub result: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

impl Limits {
    /// The greatest number of followers of a unit, for any [`unit`](Self::unit).
    pub const UNIT_MOST: u16 = 17;

    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            followers: 4_096,
            libraries: 4,
            unit: 5,
            margin: 20_000,
            gateways: 16,
            tombstones: 1_024,
            open: 256,
            done: 1_024,
            cache: 256,
            clients: 1_024,
            attempts: 5,
            counts_votes: false,
            result: 256,
        }
    }

    selvedge_core::with_settings! {
        with_followers followers: u32,
        with_libraries libraries: u16,
        with_unit unit: u16,
        with_margin margin: u32,
        with_gateways gateways: u16,
        with_tombstones tombstones: u32,
        with_open open: u32,
        with_done done: u32,
        with_cache cache: u32,
        with_clients clients: u32,
        with_attempts attempts: u16,
        with_counts_votes counts_votes: bool,
        with_result result: u16,
    }

    /// The greatest length in bytes of the tables when they are sent whole, with functions of `code` bytes.
    #[must_use]
    pub const fn largest_state(&self, code: u32) -> u64 {
        // Numbers of varying length: up to 5 bytes for 32 bits, up to 10 for 64 bits.
        let member = 20;
        let follower = member + 5 + 10 + 15 + 5 + 10 * self.libraries as u64;
        let seat = 1 + 5 + 3;
        let attached = 1 + follower + seat + (10 + 5) + (1 + 5) + 1;
        let left = 10 + follower + 10 + 20;
        let task = member + 10;
        let value = 1 + 3 + self.result as u64;
        let electors = self.most_electors();
        let vote = member + value;
        let elector = 10 + task;
        let open = task + 10 + code as u64 + 20 + electors * (member + vote + elector);
        let voters = 1 + electors * 10;
        let done = 2 * task + value + voters;
        let cached = 2 * 32 + value + voters;
        let client = 10 + member + 20 + 20;
        let unit = 15 + 2 * 15;
        let hops = self.gateways as u64 * self.gateways as u64 * 21;
        let mut sum = 1_024 + hops;
        // One more of each, because an entry is added before the oldest one is dropped.
        sum += (self.followers as u64 + 1) * (attached + unit);
        sum += (self.tombstones as u64 + 1) * left;
        sum += (self.open as u64 + 1) * open;
        sum += (self.done as u64 + 1) * done;
        sum += (self.cache as u64 + 1) * cached;
        sum + (self.clients as u64 + 1) * client
    }

    /// The number of bytes of an update besides its result: of an orchestrator's answer with its whole unit as
    /// voters, or of a vote if gateways count.
    pub(crate) const fn around_result(&self) -> usize {
        let task = MEMBER_MAX_LEN + varint_len(u64::MAX);
        let attempt = varint_len(u16::MAX as u64);
        let by = match self.counts_votes {
            true => MEMBER_MAX_LEN,
            false => attempt + 1 + self.most_electors() as usize * varint_len(u64::MAX),
        };
        // The kinds of the update and of its outcome, and the length of the result.
        1 + task + attempt + by + 1 + varint_len(u16::MAX as u64)
    }

    /// The greatest number of followers of a unit.
    const fn most_electors(&self) -> u64 {
        self.unit as u64 + 2
    }

    /// Checks that these limits can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        let most = u32::MAX as u64;
        settings::check(&[
            Setting::number("followers", self.followers as u64, 1, most),
            Setting::number("unit", self.unit as u64, 3, 15).counts("followers"),
            Setting::number("margin", self.margin as u64, 0, 1_000_000).counts("ppm"),
            Setting::number("gateways", self.gateways as u64, 1, u16::MAX as u64),
            Setting::number("open", self.open as u64, 1, most).counts("tasks"),
            Setting::number("done", self.done as u64, 1, most).counts("tasks"),
            Setting::number("clients", self.clients as u64, 1, most),
            Setting::number("attempts", self.attempts as u64, 1, u16::MAX as u64),
            Setting::number("result", self.result as u64, 1, u16::MAX as u64).counts("bytes"),
        ])
    }
}

#[cfg(test)]
mod tests {
    use selvedge_core::Member;

    use super::*;
    use crate::{Answer, Bytes, Returned, TaskId, Update};

    #[test]
    fn what_stands_around_a_result_is_as_long_as_foretold() {
        let by = Member::new(u64::MAX, u32::MAX);
        let (client, number, attempt) = (by, u64::MAX, u16::MAX);
        let task = TaskId { client, number };
        let value: Bytes = core::iter::repeat_n(7, usize::from(u16::MAX)).collect();
        let answer = Update::Answer {
            task,
            attempt,
            term: u16::MAX,
            answer: Answer::Value(value.clone()),
            voters: core::iter::repeat_n(by.id, 7).collect(),
        };
        let vote = Update::Vote {
            task,
            attempt,
            by,
            returned: Returned::Value(value),
        };
        for (update, counts_votes) in [(answer, false), (vote, true)] {
            let limits = Limits::new().with_counts_votes(counts_votes);
            let len = postcard::to_allocvec(&update).unwrap().len();
            assert_eq!(limits.around_result() + usize::from(u16::MAX), len);
        }
    }
}
