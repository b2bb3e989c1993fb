//! Requests of applications.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::Choose;
use selvedge_groups::{
    GroupId,
    store::{self, Expected, Key, StoreCommand},
};
use selvedge_sim::Bytes;

use super::World;
use super::asked::{Question, value_of};
use crate::{Command, TriggerId};

/// The number of runs that are asked for by name; a group remembers as many.
const TRIGGERS: u64 = crate::routines::TRIGGERS_MAX as u64;

impl World {
    pub(super) fn trigger(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let routines: Vec<GroupId> = self.watch.settings.routines().collect();
        let byte = bytes.take();
        let routine = routines.get(usize::from(byte) % routines.len().max(1));
        // Some are asked for twice, by two nodes.
        if self.triggers == 0 || byte & 6 != 0 && self.triggers < TRIGGERS - 1 {
            self.triggers += 1;
        }
        let Some(&routine) = routine.filter(|_| self.listens(seat)) else {
            return Ok(());
        };
        self.ask_for_run(seat, routine, bytes)
    }

    pub(super) fn ask_for_run<C: Choose>(
        &mut self,
        seat: usize,
        routine: GroupId,
        choices: &mut C,
    ) -> Result<(), String> {
        let id = TriggerId(self.triggers);
        self.watch.asked.triggers.insert((routine, id));
        self.watch.asked.runs.insert((seat, routine, id));
        let command = Command::Trigger { routine, id };
        if !self.command(seat, command, choices)? {
            self.watch.asked.runs.remove(&(seat, routine, id));
        }
        Ok(())
    }

    pub(super) fn ask_map(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        if !self.listens(seat) {
            return Ok(());
        }
        let key: Key = if byte & 1 == 0 { "a" } else { "b" }.into();
        match byte >> 1 & 7 {
            0..=3 => {
                let map = self.watch.oracle.map();
                let present = map.present(&key).map(|it| it.version);
                let expected = match (byte >> 4 & 3, present) {
                    (0, _) => Expected::Any,
                    (1 | 2, Some(version)) => Expected::Version(version),
                    _ => Expected::Absent,
                };
                self.change(seat, (key, expected, byte >> 6 != 3), bytes)
            }
            4 | 5 => {
                let ticket = self.next_ticket();
                let since = self.watch.oracle.map().latest();
                let question = Question::Get(key.clone(), since);
                self.ask(
                    seat,
                    ticket,
                    question,
                    StoreCommand::Get { ticket, key },
                    bytes,
                )
            }
            6 => {
                self.watch.asked.watch(seat, &key);
                self.command_map(seat, StoreCommand::Watch(key), bytes)
            }
            _ => {
                self.watch.asked.watches.remove(&(seat, key.clone()));
                self.command_map(seat, StoreCommand::Unwatch(key), bytes)
            }
        }
    }

    /// Each change puts a value of its own, or takes an entry away.
    pub(super) fn change<C: Choose>(
        &mut self,
        seat: usize,
        (key, expected, puts): (Key, Expected, bool),
        choices: &mut C,
    ) -> Result<(), String> {
        let ticket = self.next_ticket();
        let value = puts.then(|| format!("{ticket}").bytes().collect());
        let operation = store::Operation::set(key, expected, value);
        if let Some(value) = value_of(&operation) {
            self.watch.asked.puts.insert(value, operation.clone());
        }
        let question = Question::Change(operation.clone());
        let command = StoreCommand::Change { ticket, operation };
        self.ask(seat, ticket, question, command, choices)
    }

    const fn next_ticket(&mut self) -> u64 {
        self.watch.asked.tickets += 1;
        self.watch.asked.tickets
    }

    fn ask<C: Choose>(
        &mut self,
        seat: usize,
        ticket: u64,
        question: Question,
        command: StoreCommand,
        choices: &mut C,
    ) -> Result<(), String> {
        self.watch.asked.waiting.insert((seat, ticket), question);
        let map = self.watch.settings.map;
        if !self.command(seat, Command::Map { map, command }, choices)? {
            self.watch.asked.waiting.remove(&(seat, ticket));
        }
        Ok(())
    }

    pub(super) fn command_map<C: Choose>(
        &mut self,
        seat: usize,
        command: StoreCommand,
        choices: &mut C,
    ) -> Result<(), String> {
        let map = self.watch.settings.map;
        self.command(seat, Command::Map { map, command }, choices)?;
        Ok(())
    }
}
