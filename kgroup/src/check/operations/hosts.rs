//! Actions of hosts, and changes of devices.

use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::Choose;
use selvedge_sim::Bytes;
use selvedge_sim::operations::Seat;

use super::World;
use super::home::{Task, What};
use super::settings::{ACT_TIMEOUT, state};
use crate::{Command, Outcome};

/// A host that carries out its task, and reports it.
const GOOD: u8 = 0;

impl World {
    /// A host handles one of its tasks: a byte chooses the outcome.
    pub(super) fn host_one(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let at = bytes.pick(self.watch.home.tasks.len());
        let how = bytes.take();
        if self
            .watch
            .home
            .tasks
            .get(at)
            .is_none_or(|it| !self.listens(it.at))
        {
            return Ok(());
        }
        let task = self.watch.home.tasks.remove(at);
        self.host(task, how, bytes)
    }

    /// All hosts that are awake handle their tasks, or pings alone, and all of it succeeds.
    pub(super) fn host_all<C: Choose>(
        &mut self,
        acts: bool,
        choices: &mut C,
    ) -> Result<(), String> {
        let mut waiting = Vec::new();
        // A host's report may give it the next task.
        while let Some(task) = self.watch.home.tasks.pop() {
            let is_ping = matches!(task.what, What::Ping(_));
            match self.listens(task.at) && (acts || is_ping) {
                true => self.host(task, GOOD, choices)?,
                false => waiting.push(task),
            }
        }
        waiting.reverse();
        self.watch.home.tasks = waiting;
        Ok(())
    }

    fn host<C: Choose>(&mut self, task: Task, how: u8, choices: &mut C) -> Result<(), String> {
        let now = self.watch.now;
        let me = self.mesh.seat(task.at).map(Seat::me);
        // A host carries nothing out too late, and the host of another life knows of nothing.
        if me != Some(task.me) || now.since(task.given) >= ACT_TIMEOUT {
            return Ok(());
        }
        let (succeeds, is_received) = (how & 3 != 1, how & 12 != 4);
        let command = match task.what {
            What::Ping(device) => {
                let there = self.watch.home.devices.get(&device);
                let there = there.filter(|it| it.is_up && succeeds);
                there.map(|it| Command::Reported {
                    device,
                    value: Some(it.value.clone()),
                })
            }
            What::Act(ticket, value) => {
                let is_there = self.watch.home.act(ticket, &value, succeeds);
                let outcome = match succeeds {
                    true => Outcome::Done,
                    false => Outcome::Failed,
                };
                if is_there && succeeds {
                    self.watch.summary.done += 1;
                    if task.is_in_time {
                        self.watch.oracle.on_done(ticket)?;
                    }
                }
                is_there.then_some(Command::Acted { ticket, outcome })
            }
        };
        match command.filter(|_| is_received) {
            Some(command) => self.command(task.at, command, choices).map(|_| ()),
            None => Ok(()),
        }
    }

    /// A device is changed by hand, or stops, or starts again.
    pub(super) fn by_hand(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        let devices = &mut self.watch.home.devices;
        let at = usize::from(byte >> 4) % devices.len().max(1);
        if let Some(device) = devices.values_mut().nth(at) {
            match byte & 15 {
                0..=4 => device.is_up = !device.is_up,
                like => device.value = state(like),
            }
        }
        Ok(())
    }
}
