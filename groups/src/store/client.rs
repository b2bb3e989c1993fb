//! A node's requests to maps, on any node.

mod asking;
mod following;
mod keeping;

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Time};

use crate::GroupId;
use crate::store::{
    AROUND, ClientEffect, StoreAnswer, StoreCommand, StoreConfig, StoreEvent, StoreReject,
    StoreRequest,
};
use asking::Asking;

type Out = Vec<ClientEffect>;

/// This node's requests to all maps, in its present life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreClient {
    config: StoreConfig,
    /// The longest operation, in bytes.
    room: usize,
    /// Numbers go on as long as the node lives, so a map is never forgotten.
    maps: BoundedMap<GroupId, Asking>,
}

impl StoreClient {
    /// A client without requests. Frames have this limit in bytes.
    #[must_use]
    pub fn new(config: StoreConfig, frame_budget: u16) -> Self {
        Self {
            config,
            room: usize::from(frame_budget).saturating_sub(AROUND),
            maps: BoundedMap::new(config.pending.into()),
        }
    }

    /// Handles a command of the application.
    ///
    /// # Errors
    /// The command has no room, or a value is out of its range. Nothing changed.
    pub fn on_command(
        &mut self,
        now: Time,
        map: GroupId,
        command: StoreCommand,
        out: &mut Out,
    ) -> Result<(), StoreReject> {
        let limit = self.config.pending;
        let full = StoreReject::Full { limit };
        let (len, room) = (command.encoded_len(), self.room);
        command.check()?;
        if len > room {
            return Err(StoreReject::TooLong { len, room });
        }
        if !self.maps.contains(&map) {
            let asking = Asking::new(map, limit);
            let maps = StoreReject::Maps { limit };
            self.maps.insert(map, asking).map_err(|_| maps)?;
        }
        let asking = self.maps.get_mut(&map).ok_or(full)?;
        let was_idle = asking.is_idle();
        asking.on_command(now, command, out)?;
        if was_idle && !asking.is_idle() {
            self.arm(map, out);
        }
        Ok(())
    }

    /// Handles an answer of the leader of a map's group.
    pub fn on_answered(&mut self, now: Time, map: GroupId, answer: StoreAnswer, out: &mut Out) {
        // Where nothing was asked there is nothing to handle.
        if let Some(asking) = self.maps.get_mut(&map) {
            let was_idle = asking.is_idle();
            asking.on_answered(now, answer, out);
            if was_idle && !asking.is_idle() {
                self.arm(map, out);
            }
        }
    }

    /// Sends unanswered requests again, and requests that are due.
    pub fn on_tick(&mut self, now: Time, map: GroupId, out: &mut Out) {
        let Some(asking) = self.maps.get_mut(&map) else {
            return; // It never asked.
        };
        asking.on_tick(now, out);
        if !asking.is_idle() {
            self.arm(map, out);
        }
    }

    fn arm(&self, map: GroupId, out: &mut Out) {
        let after = self.config.resend;
        out.push(ClientEffect::Arm { map, after });
    }
}

fn ask(map: GroupId, request: StoreRequest, out: &mut Out) {
    out.push(ClientEffect::Ask { map, request });
}

fn report(map: GroupId, event: StoreEvent, out: &mut Out) {
    out.push(ClientEffect::Event { map, event });
}
