//! The controllers of a node's gates: they pass requests of threads and tasks to the sections, and
//! events of the sections back.

use core::future::poll_fn;
use core::task::Poll;
use std::collections::BTreeMap;

use selvedge_camera::sections::{Command, Event, Name};
use selvedge_camera::{Refusal, Token};
use selvedge_core::shared::gate::{self, Controller, GateCommand, Limits};
use thiserror::Error;

use selvedge::Reject;

/// A gate to one lock of the mesh. Cloned into threads and tasks, it gives a [`Guard`] with the
/// fencing token to one of them in the whole mesh at a time.
pub type Gate = gate::Gate<Token, NoEntry>;

/// Holds a lock of the mesh until it is dropped, or until the node is fenced.
pub type Guard = gate::Guard<Token, NoEntry>;

/// The reason why a node did not get a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoEntry {
    /// Too few nodes can be reached. Try again later.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The machine refused the command.
    #[error(transparent)]
    Reject(#[from] Reject),
    /// Another node remembered a later life of this one, so the node took a life after that. Try
    /// again.
    #[error(
        "the node began a new life while it waited, because another node remembers a later one: try again, and see \
         that no other process has this id"
    )]
    NewLife,
}

/// The settings of a section, and the limits of its gates' queue.
pub(crate) type Settings = (Option<selvedge_camera::Config>, Limits);

/// The controllers of all gates of one node.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    all: BTreeMap<Name, Section>,
}

#[derive(Debug)]
struct Section {
    controller: Controller<Token, NoEntry>,
    settings: Settings,
    /// True if the section is open. Before, no user can enter, and all wait.
    is_open: bool,
}

impl Gates {
    /// Another gate to a known section, also when all its gates are dropped and it is still in use.
    /// `None` when there is no such section.
    pub(crate) fn get(&self, name: Name) -> Option<Gate> {
        self.all.get(&name).map(|it| it.controller.gate())
    }

    /// The settings of a known section.
    pub(crate) fn settings(&self, name: Name) -> Option<Settings> {
        self.all.get(&name).map(|it| it.settings)
    }

    /// A gate to a section that has to be opened, in place of the section that had this name.
    pub(crate) fn add(&mut self, name: Name, settings: Settings) -> Gate {
        let (gate, controller) = gate::channel(settings.1);
        let section = Section {
            controller,
            settings,
            is_open: false,
        };
        self.all.insert(name, section);
        gate
    }

    /// The number of sections other than `name` that have a gate.
    pub(crate) fn others(&self, name: Name) -> usize {
        let others = self.all.iter().filter(|&(&other, _)| other != name);
        others
            .filter(|(_, it)| !it.controller.is_deserted())
            .count()
    }

    /// Returns true if a section is open, or has a gate.
    pub(crate) fn is_in_use(&self, name: Name) -> bool {
        let section = self.all.get(&name);
        section.is_some_and(|it| it.is_open || !it.controller.is_deserted())
    }

    /// Returns true if some section still has to be closed, because all gates to it are dropped.
    pub(crate) fn is_closing(&self) -> bool {
        let mut all = self.all.values();
        all.any(|it| it.is_open && it.controller.is_deserted())
    }

    /// Returns true if there are no sections.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The commands that open the sections that are not open yet.
    pub(crate) fn to_open(&self) -> Vec<(Name, Command)> {
        let closed = self.all.iter().filter(|(_, section)| !section.is_open);
        closed
            .map(|(&name, section)| {
                let (config, _) = section.settings;
                (name, Command::Open { name, config })
            })
            .collect()
    }

    /// Notes that the section is open.
    pub(crate) fn opened(&mut self, name: Name) {
        if let Some(section) = self.all.get_mut(&name) {
            section.is_open = true;
        }
    }

    /// Gives up a section: its gates are closed.
    pub(crate) fn remove(&mut self, name: Name) {
        self.all.remove(&name);
    }

    /// Admits no more users. Users inside may stay. Sections that were never open are removed.
    pub(crate) fn close(&mut self) {
        self.all.retain(|_, section| section.is_open);
        for section in self.all.values_mut() {
            section.controller.close();
        }
    }

    /// The next command for a section. [`Command::Close`]: no more users will come.
    pub(crate) async fn next(&mut self) -> Command {
        poll_fn(|cx| {
            for (&name, section) in self.all.iter_mut().filter(|(_, it)| it.is_open) {
                match section.controller.poll_recv(cx) {
                    Poll::Ready(Ok(GateCommand::Enter)) => {
                        return Poll::Ready(Command::Enter(name));
                    }
                    Poll::Ready(Ok(GateCommand::Exit)) => return Poll::Ready(Command::Exit(name)),
                    Poll::Ready(Ok(GateCommand::Cancel)) => {
                        return Poll::Ready(Command::Cancel(name));
                    }
                    Poll::Ready(Err(gate::Closed)) => return Poll::Ready(Command::Close(name)),
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Handles a refusal of a command of [`next`](Self::next).
    pub(crate) fn on_refused(&mut self, command: Command, reject: Reject) {
        let (Command::Enter(name) | Command::Exit(name) | Command::Cancel(name)) = command else {
            return;
        };
        let Some(section) = self.all.get_mut(&name) else {
            return;
        };
        let reported = if matches!(command, Command::Enter(_)) {
            section.controller.refused(reject.into())
        } else {
            // The machine has left the section already.
            section.controller.released()
        };
        debug_assert!(reported.is_ok(), "{command:?}: {reported:?}");
    }

    /// Handles an event of a section.
    pub(crate) fn on_event(&mut self, Event { section, event }: Event) {
        use selvedge_camera::Event as It;
        // A section that was given up may still emit the events of its last command.
        let Some(it) = self.all.get_mut(&section) else {
            return;
        };
        let controller = &mut it.controller;
        let reported = match event {
            It::Entered(token) => controller.entered(token),
            It::Released(_) | It::Cancelled => controller.released(),
            It::Refused(why) => controller.refused(why.into()),
            It::Fenced(_) => {
                controller.fenced();
                Ok(())
            }
            It::Waiting(_) | It::SlowPathTaken | It::PassedOver(_) => Ok(()),
            _ => {
                debug_assert!(false, "no gate handles {event:?}");
                Ok(())
            }
        };
        debug_assert!(reported.is_ok(), "{section:?}: {event:?}: {reported:?}");
    }

    /// Begins a new life, in which no section is open. Guards are fenced, and waiting users are
    /// refused.
    pub(crate) fn begin_again(&mut self) {
        for section in self.all.values_mut().filter(|it| it.is_open) {
            section.is_open = false;
            let controller = &mut section.controller;
            // A user inside, leaving or withdrawing; or a waiting user; otherwise there is nothing
            // to report.
            let _reported =
                controller.released().is_ok() || controller.refused(NoEntry::NewLife).is_ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::{Pin, pin};
    use core::task::{Context, Waker};

    use selvedge_core::Member;
    use selvedge_core::shared::gate::{EnterError, TryEnterError};

    use super::*;

    fn name(name: &str) -> Name {
        name.parse().unwrap()
    }

    fn token(number: u64) -> Token {
        let by = Member::new(1, 0);
        Token { number, by }
    }

    fn settings(handovers: u32) -> Settings {
        let limits = Limits {
            handovers,
            ..Limits::default()
        };
        (Some(selvedge_camera::Config::new(handovers)), limits)
    }

    /// Polls a future once.
    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// The next command, if there is one.
    fn next(gates: &mut Gates) -> Option<Command> {
        match poll(pin!(gates.next())) {
            Poll::Ready(command) => Some(command),
            Poll::Pending => None,
        }
    }

    fn event(gates: &mut Gates, event: selvedge_camera::Event) {
        let section = name("door");
        gates.on_event(Event { section, event });
    }

    /// The controllers of one open section, and a gate to it.
    fn open() -> (Gates, Gate) {
        let mut gates = Gates::default();
        let gate = gates.add(name("door"), Settings::default());
        gates.opened(name("door"));
        (gates, gate)
    }

    /// A user that is inside.
    fn enter(gates: &mut Gates, gate: &Gate, number: u64) -> Guard {
        let mut enters = pin!(gate.enter());
        assert!(poll(enters.as_mut()).is_pending());
        assert_eq!(next(gates), Some(Command::Enter(name("door"))));
        event(gates, selvedge_camera::Event::Entered(token(number)));
        let Poll::Ready(entered) = poll(enters) else {
            panic!("it waits");
        };
        entered.unwrap()
    }

    #[test]
    fn a_section_keeps_the_settings_that_it_was_asked_for_with() {
        let mut gates = Gates::default();
        assert!(gates.is_empty());
        assert_eq!(gates.settings(name("door")), None);
        assert!(gates.get(name("door")).is_none());
        let _door = gates.add(name("door"), settings(7));
        let _gate = gates.add(name("gate"), settings(8));
        assert!(!gates.is_empty());
        assert_eq!(gates.settings(name("door")), Some(settings(7)));
        assert_eq!(gates.settings(name("gate")), Some(settings(8)));
        let (config, _) = settings(7);
        let door = name("door");
        let open = Command::Open { name: door, config };
        assert_eq!(gates.to_open().first(), Some(&(door, open)));
        assert_eq!(gates.to_open().len(), 2);
        gates.opened(door);
        assert_eq!(gates.to_open().len(), 1);
    }

    /// A section may be opened with other settings, or make room, only when neither holds.
    #[test]
    fn a_section_is_in_use_while_it_is_open_or_has_a_gate() {
        let mut gates = Gates::default();
        let door = name("door");
        let in_use = |gates: &Gates| (gates.is_in_use(door), gates.is_closing());
        assert_eq!(in_use(&gates), (false, false));
        let gate = gates.add(door, Settings::default());
        assert_eq!(in_use(&gates), (true, false));
        drop(gate);
        assert_eq!(in_use(&gates), (false, false));
        gates.opened(door);
        assert_eq!(in_use(&gates), (true, true));
        let again = gates.get(door);
        assert!(again.is_some());
        assert_eq!(in_use(&gates), (true, false));
        drop(again);
        assert_eq!(next(&mut gates), Some(Command::Close(door)));
        gates.remove(door);
        assert_eq!(in_use(&gates), (false, false));
        assert!(gates.is_empty());
    }

    #[test]
    fn only_other_sections_with_a_gate_take_room() {
        let mut gates = Gates::default();
        let _door = gates.add(name("door"), Settings::default());
        let gate = gates.add(name("gate"), Settings::default());
        let _third = gates.add(name("third"), Settings::default());
        assert_eq!(gates.others(name("door")), 2);
        assert_eq!(gates.others(name("new")), 3);
        drop(gate);
        assert_eq!(gates.others(name("door")), 1);
        assert_eq!(gates.others(name("gate")), 2);
    }

    /// A section that is not open gives no command, even if users wait for it.
    #[test]
    fn a_section_that_is_not_open_has_no_wish() {
        let mut gates = Gates::default();
        let gate = gates.add(name("door"), Settings::default());
        let mut enters = pin!(gate.enter());
        assert!(poll(enters.as_mut()).is_pending());
        assert_eq!(next(&mut gates), None);
        gates.opened(name("door"));
        assert_eq!(next(&mut gates), Some(Command::Enter(name("door"))));
    }

    #[test]
    fn a_user_hears_why_the_machine_refused_and_the_next_one_is_served() {
        let (mut gates, gate) = open();
        let mut enters = pin!(gate.enter());
        assert!(poll(enters.as_mut()).is_pending());
        let command = next(&mut gates).unwrap();
        gates.on_refused(command, Reject::NotPresent);
        let refused = EnterError::Refused(NoEntry::Reject(Reject::NotPresent));
        assert_eq!(poll(enters).map(Result::unwrap_err), Poll::Ready(refused));
        assert_eq!(enter(&mut gates, &gate, 1).token(), token(1));
    }

    /// A machine that refuses to leave, or to withdraw, is outside already.
    #[test]
    fn a_refused_exit_or_cancel_leaves_the_section_free() {
        let (mut gates, gate) = open();
        drop(enter(&mut gates, &gate, 1));
        let exit = next(&mut gates).unwrap();
        assert_eq!(exit, Command::Exit(name("door")));
        gates.on_refused(exit, Reject::NotPresent);
        {
            let mut enters = pin!(gate.enter());
            assert!(poll(enters.as_mut()).is_pending());
            assert_eq!(next(&mut gates), Some(Command::Enter(name("door"))));
        }
        let cancel = next(&mut gates).unwrap();
        assert_eq!(cancel, Command::Cancel(name("door")));
        gates.on_refused(cancel, Reject::NotPresent);
        assert_eq!(enter(&mut gates, &gate, 2).token(), token(2));
    }

    #[test]
    fn a_fenced_node_fences_its_guard_and_what_only_informs_changes_nothing() {
        use selvedge_camera::Event as It;
        let (mut gates, gate) = open();
        let guard = enter(&mut gates, &gate, 1);
        for news in [
            It::Waiting(Member::new(2, 0)),
            It::SlowPathTaken,
            It::PassedOver(Member::new(2, 0)),
        ] {
            event(&mut gates, news);
        }
        assert!(!guard.is_fenced());
        event(&mut gates, It::Fenced(token(2)));
        assert!(guard.is_fenced());
        drop(guard);
        assert_eq!(next(&mut gates), Some(Command::Exit(name("door"))));
        event(&mut gates, It::Released(token(1)));
        assert_eq!(enter(&mut gates, &gate, 3).token(), token(3));
    }

    /// No section is open in a new life: guards are fenced, and each section is opened again.
    #[test]
    fn a_new_life_fences_guards_and_opens_sections_anew() {
        let (mut gates, gate) = open();
        let guard = enter(&mut gates, &gate, 1);
        gates.begin_again();
        assert!(guard.is_fenced());
        assert_eq!(gates.to_open().len(), 1);
        drop(guard);
        assert_eq!(next(&mut gates), None);
        gates.opened(name("door"));
        assert_eq!(enter(&mut gates, &gate, 2).token(), token(2));
    }

    #[test]
    fn a_new_life_refuses_the_user_that_waits() {
        let (mut gates, gate) = open();
        let mut enters = pin!(gate.enter());
        assert!(poll(enters.as_mut()).is_pending());
        assert!(next(&mut gates).is_some());
        gates.begin_again();
        let refused = EnterError::Refused(NoEntry::NewLife);
        assert_eq!(poll(enters).map(Result::unwrap_err), Poll::Ready(refused));
    }

    #[test]
    fn closed_gates_admit_no_more_users_and_keep_the_one_that_is_inside() {
        let (mut gates, gate) = open();
        let never_open = gates.add(name("gate"), Settings::default());
        let guard = enter(&mut gates, &gate, 1);
        gates.close();
        assert!(gates.settings(name("gate")).is_none());
        assert_eq!(never_open.try_enter().unwrap_err(), TryEnterError::Closed);
        assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::Closed);
        assert!(!guard.is_fenced());
        assert_eq!(next(&mut gates), None);
        drop(guard);
        assert_eq!(next(&mut gates), Some(Command::Exit(name("door"))));
    }
}
