//! A home in the model checker: a hub, its devices, and external events.

mod device;
mod happening;
mod judge;
mod runs;
mod setup;
mod show;

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Context, Delta, Input, Machine, Member, Nested, NodeId, Span};

use crate::{
    Command, Config, Event, Hub, Outcome, Placed, Reject, RoutineId, SkipReason, Timer, Visibility,
};

use judge::is_harsh;
pub use setup::{As, Do, Happening, Promise, Setup};

/// A hub with its devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    hub: Nested<Hub<u8>>,
    things: Vec<Thing>,
    happenings: &'static [Happening],
    in_order: bool,
    /// The routine of each happening, if it is one and has happened.
    submitted: Vec<Option<RoutineId>>,
    faults: u8,
    /// True if devices report their state before their commands have outcomes.
    echoes: bool,
    /// True if commands may act after their outcomes were reported as unknown.
    lates: bool,
    skipped: Vec<(RoutineId, u16, SkipReason)>,
    /// The reported serial order.
    order: Vec<Placed<u8>>,
    /// The number of committed or aborted routines.
    finished: usize,
    /// True after a command was issued to a device that had one.
    clash: bool,
    /// True after a routine started on a device for which another had waited for too long.
    overtaken: bool,
    /// True after a routine was aborted for a device that it could do without.
    harsh: bool,
    /// True after a device was restored though the next run sets it at once.
    flickers: bool,
}

/// The true state of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Thing {
    state: u8,
    is_down: bool,
    flight: Option<(u64, u8)>,
    /// Its command has taken effect, and it has reported that; the outcome is still missing.
    is_done: bool,
    /// The hub asks for its state, with this token.
    asked: Option<u64>,
    /// A command without an outcome that acts later.
    late: Option<u8>,
}

/// The next possible event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tick {
    /// An external event.
    Happens(usize),
    /// A device that failed is up again.
    IsBack(u64),
    /// A device does its command and reports the outcome.
    Does(u64),
    /// A device refuses its command.
    Refuses(u64),
    /// A device does its command and reports its state. The outcome is reported later, or never.
    Reports(u64),
    /// A device reports its state.
    Answers(u64),
    /// A device does a command without an outcome.
    Acts(u64),
    /// A timer of the hub; after the timer of a command it is unknown whether the command was done.
    Hub(Timer),
}

impl Home {
    fn new(setup: &Setup) -> Self {
        let config = Config {
            visibility: setup.visibility,
            scheduler: setup.scheduler,
            search_limit: setup.search_limit,
            undo_attempts: u8::MAX,
            ..Config::default()
        };
        Self {
            hub: Nested::new(Hub::unchecked(
                config,
                crate::published::Rules::published(setup.rules),
            )),
            things: vec![Thing::default(); usize::try_from(setup.devices).unwrap_or_default()],
            happenings: setup.happenings,
            in_order: setup.in_order,
            submitted: vec![None; setup.happenings.len()],
            faults: setup.faults,
            echoes: setup.echoes,
            lates: setup.lates,
            skipped: Vec::new(),
            order: Vec::new(),
            finished: 0,
            clash: false,
            overtaken: false,
            harsh: false,
            flickers: false,
        }
    }

    /// The hub.
    #[must_use]
    pub const fn hub(&self) -> &Hub<u8> {
        self.hub.machine()
    }

    fn begin(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        for nth in 0..self.things.len() as u64 {
            let device = NodeId(nth);
            let state = Some(0);
            self.notify(Input::Command(Command::AddDevice { device, state }), cx)?;
            if self.lates {
                let lateness = Span::secs(1);
                self.notify(
                    Input::Command(Command::SetLateness { device, lateness }),
                    cx,
                )?;
            }
        }
        let first = if self.in_order {
            1
        } else {
            self.happenings.len()
        };
        (0..first).for_each(|nth| self.expect(nth, cx));
        Ok(())
    }

    fn notify(&mut self, input: Input<Hub<u8>>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let late = self.late();
        self.carry_out(input, cx)?;
        self.overtaken |= late.iter().any(|it| it.is_overtaken(self.hub()));
        Ok(())
    }

    fn carry_out(
        &mut self,
        input: Input<Hub<u8>>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        // Models without this promise need no separate states for it.
        let spares = self.hub().config().visibility == Visibility::Eventual;
        let mut restored = Vec::new();
        let Self {
            hub,
            things,
            skipped,
            order,
            finished,
            clash,
            faults,
            echoes,
            happenings,
            submitted,
            harsh,
            ..
        } = self;
        let notified = hub.step(
            cx,
            input,
            |message| match message {},
            Tick::Hub,
            |event, cx| match event {
                Event::Issue {
                    device,
                    token,
                    value,
                    routine,
                } => {
                    if routine.is_none() {
                        restored.push(device);
                    }
                    let nth = usize::try_from(device.0).unwrap_or(usize::MAX);
                    if let Some(thing) = things.get_mut(nth) {
                        *clash |= thing.flight.is_some();
                        thing.is_sent(device.0, (token, value), *echoes, *faults > 0, cx);
                    }
                }
                Event::Ask { device, token } => {
                    let nth = usize::try_from(device.0).unwrap_or(usize::MAX);
                    if let Some(thing) = things.get_mut(nth) {
                        thing.is_asked(device.0, token, cx);
                    }
                }
                Event::Skipped { routine, step, why } => skipped.push((routine, step, why)),
                Event::Ordered(placed @ (Placed::Routine(_) | Placed::Set { .. })) => {
                    order.push(placed);
                }
                Event::Committed(_) | Event::Aborted { .. } => *finished += 1,
                Event::Aborting { routine, why } => {
                    *harsh |= spares && is_harsh(happenings, submitted, routine, why);
                }
                Event::Accepted(_)
                | Event::Started(_)
                | Event::Restored(_)
                | Event::Stuck(_)
                | Event::GivenUp(_)
                | Event::Ordered(_)
                | Event::CutShort { .. }
                | Event::Incongruent { .. } => {}
            },
        );
        self.flickers |= restored.into_iter().any(|it| self.is_set_next(it));
        notified
    }

    fn thing(&mut self, id: u64) -> Option<&mut Thing> {
        self.things.get_mut(usize::try_from(id).ok()?)
    }
}

impl Machine for Home {
    type Message = core::convert::Infallible;
    type Timer = Tick;
    type Command = ();
    type Event = ();
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { message, .. } => match message {},
            Input::Membership(_) | Input::Command(()) => Ok(()),
            Input::Tick(Tick::Happens(nth)) => self.happens(nth, cx),
            Input::Tick(Tick::IsBack(id)) => {
                // A command in flight is lost, or was done before.
                if self.thing(id).is_some_and(|it| it.flight.is_some()) {
                    self.times_out(NodeId(id), cx)?;
                    cx.disarm(Tick::Hub(Timer::Timeout(NodeId(id))));
                }
                if let Some(thing) = self.thing(id) {
                    thing.is_down = false;
                    if thing.asked.is_some() {
                        cx.arm(Tick::Answers(id), Span::ZERO);
                    }
                }
                self.notify(Input::Membership(Delta::Refuted(Member::new(id, 0))), cx)
            }
            Input::Tick(Tick::Answers(id)) => self.answers(id, cx),
            Input::Tick(Tick::Does(id)) => self.lands(id, Outcome::Done, cx),
            Input::Tick(Tick::Reports(id)) => self.reports(id, cx),
            Input::Tick(Tick::Refuses(id)) => {
                if self.faults == 0 {
                    return Ok(());
                }
                self.faults -= 1;
                self.lands(id, Outcome::Refused, cx)
            }
            Input::Tick(Tick::Acts(id)) => {
                if let Some(thing) = self.thing(id) {
                    thing.state = thing.late.take().unwrap_or(thing.state);
                }
                Ok(())
            }
            Input::Tick(Tick::Hub(Timer::Late(device))) => self.is_over_late(device, cx),
            Input::Tick(Tick::Hub(Timer::Timeout(device))) => self.times_out(device, cx),
            Input::Tick(Tick::Hub(timer)) => self.notify(Input::Tick(timer), cx),
        }
    }
}
