//! The hub as a machine that must not forget: each step's difference is a fact.

use core::cell::Cell;
use core::convert::Infallible;

use selvedge_core::durable::Durable;
use selvedge_core::{Context, Input, Machine, Nested, Untracked};

use crate::{Command, Config, Damage, Difference, Event, Hub, Reject, Saved, Timer, Value};

/// A [`Hub`] that emits a fact for each of its steps: the changes of the step. The fact comes
/// before all other events of the step, so nothing of a step is visible before the step is stored.
///
/// ```
/// use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
/// use selvedge_core::durable::Barrier;
/// use selvedge_core::{Driver, Effect, Input, NodeId, Time};
/// use selvedge_safehome::{Command, Config, DurableEvent, DurableHub, Event, Hub, Routine, Step};
///
/// let hub = Hub::<u8>::new(Config::default())?;
/// // The base is stored first.
/// let base = hub.save();
/// let mut driver = Driver::new(DurableHub::new(hub));
/// let mut rng = ChaCha8Rng::seed_from_u64(7);
/// // It waits for its storage after each step.
/// let mut barrier = Barrier::new(0);
/// let (mut log, mut seen) = (Vec::new(), Vec::new());
/// let lamp = NodeId(1);
/// for command in [
///     Command::AddDevice { device: lamp, state: Some(0) },
///     Command::Submit(Routine { steps: vec![Step::new(lamp, 1)] }),
/// ] {
///     barrier.ready()?;
///     let mut carry_out = |effect| match effect {
///         Effect::Event(DurableEvent::Hub(event)) => seen.push(event),
///         _ => {}
///     };
///     let input = Input::Command(command);
///     driver.step(Time::ZERO, &mut rng, input, |effect| barrier.take(effect, &mut carry_out))?;
///     let mark = barrier.write_facts(|fact| log.push(fact.clone()));
///     mark.into_iter().for_each(|mark| barrier.stored(mark, &mut carry_out));
/// }
/// assert!(seen.iter().any(|event| matches!(event, Event::Issue { device, value: 1, .. } if *device == lamp)));
///
/// // It stops, and begins again from its storage.
/// let recovered = DurableHub::recover(Config::default(), base, log)?;
/// assert_eq!(recovered.hub().save(), driver.machine().hub().save());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How far storage may lag
///
/// A [`Barrier`](selvedge_core::durable::Barrier) with a limit of 0 takes no step while a fact
/// waits. With a higher limit the hub goes on, and the time that storage takes counts for its
/// commands too: a command's timeout runs from the step that issued it, and a command that storage
/// delays for longer is sent after the hub has given it up. So with a higher limit each timeout
/// must be longer than storage and the command take together, or the device's
/// [`SetLateness`](Command::SetLateness) must cover the time that storage takes.
///
/// Takes time in proportion to the state for each step, for the comparison, and keeps the state
/// twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DurableHub<V: Value> {
    hub: Nested<Hub<V>>,
    /// The hub's state according to its facts, so not state of its own.
    last: Untracked<Saved<V>>,
}

/// An event of a [`DurableHub`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DurableEvent<V> {
    /// The fact: the changes of the step. The host stores it, and does nothing else.
    Changed(Difference<V>),
    /// An event of the hub.
    Hub(Event<V>),
}

impl<V: Value> DurableHub<V> {
    /// Starts to make facts of the steps of `hub`. Its current state is the base, and the host
    /// stores that itself ([`Hub::save`]).
    #[must_use]
    pub fn new(hub: Hub<V>) -> Self {
        let last = Untracked(hub.save());
        let hub = Nested::new(hub);
        Self { hub, last }
    }

    /// A hub from a base and the facts that were stored since, in order. It is sent
    /// [`Command::Resume`] before anything else. Takes time in proportion to the state for each.
    ///
    /// # Errors
    /// When facts are missing, or they or the base are damaged, or the settings do not fit.
    pub fn recover(
        config: Config,
        base: Saved<V>,
        facts: impl IntoIterator<Item = Difference<V>>,
    ) -> Result<Self, Damage> {
        let saved = facts.into_iter().try_fold(base, Saved::apply)?;
        Ok(Self::new(Hub::restore(config, saved)?))
    }

    /// The hub, to read from.
    #[must_use]
    pub const fn hub(&self) -> &Hub<V> {
        self.hub.machine()
    }

    /// The state from base and facts: a new base, which the host may store in place of these.
    #[must_use]
    pub const fn saved(&self) -> &Saved<V> {
        &self.last.0
    }
}

impl<V: Value> Machine for DurableHub<V> {
    type Message = Infallible;
    type Timer = Timer;
    type Command = Command<V>;
    type Event = DurableEvent<V>;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let input = match input {
            Input::Message { message, .. } => match message {},
            Input::Tick(timer) => Input::Tick(timer),
            Input::Membership(delta) => Input::Membership(delta),
            Input::Command(command) => Input::Command(command),
        };
        let last = &mut *self.last;
        let changed = Cell::new(None);
        self.hub.with(
            cx,
            |hub, cx| {
                let notified = hub.handle(input, cx);
                notified.map(|()| changed.set(Some(hub.difference(last))))
            },
            |message| message,
            |timer| timer,
            |event, cx| {
                fact(&changed, cx);
                cx.event(DurableEvent::Hub(event));
            },
        )?;
        // A step without events is a fact as well.
        fact(&changed, cx);
        Ok(())
    }
}

/// Emits the changes, once.
fn fact<V: Value>(changed: &Cell<Option<Difference<V>>>, cx: &mut Context<'_, DurableHub<V>>) {
    if let Some(changed) = changed.take() {
        cx.event(DurableEvent::Changed(changed));
    }
}

impl<V: Value> Durable for DurableHub<V> {
    type Fact = Difference<V>;
    type Damage = Damage;

    fn fact(event: &DurableEvent<V>) -> Option<&Difference<V>> {
        match event {
            DurableEvent::Changed(difference) => Some(difference),
            DurableEvent::Hub(_) => None,
        }
    }

    /// Restores the whole hub from each fact: [`recover`](Self::recover) does that once for all.
    fn fold(&mut self, fact: &Difference<V>) -> Result<(), Damage> {
        let hub = self.hub();
        let saved = self.saved().clone().apply(fact.clone())?;
        *self = Self::new(Hub::restored(*hub.config(), hub.rules, saved)?);
        Ok(())
    }
}
