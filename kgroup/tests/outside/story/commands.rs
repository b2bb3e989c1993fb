//! Commands of applications: triggers of routines, and commands of maps.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_groups::store::{Bytes, Expected, Operation, StoreCommand};
use selvedge_kgroup::{Command, TriggerId};

use super::{Story, maps};

impl Story {
    pub(super) fn trigger(&mut self, node: NodeId, routine: GroupId, id: u64) -> bool {
        self.world.oracle.triggers(routine, id);
        let id = TriggerId(id);
        self.world
            .command(node, Command::Trigger { routine, id })
            .is_none()
    }

    pub(super) fn key(&mut self) -> String {
        ["a", "b", "c"][self.dice().below(3) as usize].to_owned()
    }

    pub(super) fn ask_map(&mut self, node: NodeId) {
        let map = self.dice().pick(&maps()).unwrap();
        let key = self.key();
        self.tickets += 1;
        let ticket = self.tickets;
        let command = if self.dice().percent(40) {
            StoreCommand::Get { ticket, key }
        } else {
            let last = self.world.oracle.maps.last(map, &key);
            let expected = match self.dice().below(4) {
                0 if last > 0 => Expected::Version(last),
                1 => Expected::Absent,
                _ => Expected::Any,
            };
            let value: Bytes = self.unique().to_le_bytes().into_iter().collect();
            let operation = Operation::set(key, expected, Some(value));
            StoreCommand::Change { ticket, operation }
        };
        self.map_command(node, map, command);
    }

    pub(super) fn map_command(
        &mut self,
        node: NodeId,
        map: GroupId,
        command: StoreCommand,
    ) -> bool {
        let life = self.world.nodes[&node].life;
        let now = self.world.now;
        let is_watch = matches!(command, StoreCommand::Watch(_));
        if !is_watch {
            self.world.oracle.maps.ask(now, node, life, map, &command);
        }
        let refused = self.world.command(
            node,
            Command::Map {
                map,
                command: command.clone(),
            },
        );
        if refused.is_none() && is_watch {
            let known = &mut self.world.oracle.maps;
            let StoreCommand::Watch(key) = command else {
                return true;
            };
            known.watched.entry((node, life, map, key)).or_insert(None);
            return true;
        }
        if let (Some(_), StoreCommand::Change { ticket, .. } | StoreCommand::Get { ticket, .. }) =
            (&refused, &command)
        {
            self.world.oracle.maps.pending.remove(&(map, *ticket));
        }
        refused.is_none()
    }
}
