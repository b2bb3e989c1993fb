//! Machines built out of machines.

use core::fmt;
use core::hash::{Hash, Hasher};

use crate::durable::Durable;
use crate::{Context, Effect, Input, Machine, Outbox};

/// An inner machine inside an outer one.
///
/// The effects of the inner machine are translated into effects of the outer one as soon as its
/// step is over, in order, through a buffer that is reused: no allocation in steady state. The
/// outer machine decides how to handle the events of the inner one.
///
/// ```
/// # use selvedge_core::{Context, Input, Machine, Nested, Span};
/// # #[derive(Clone, Debug, PartialEq, Eq, Hash)] struct Bell;
/// # impl Machine for Bell {
/// #     type Message = u8; type Timer = (); type Command = (); type Event = &'static str;
/// #     type Reject = ();
/// #     fn handle(&mut self, _: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
/// #         cx.arm((), Span::secs(1)); cx.event("rung"); Ok(())
/// #     }
/// # }
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Tower { bells: [Nested<Bell>; 2] }
///
/// impl Machine for Tower {
///     type Message = (usize, u8);
///     type Timer = usize;
///     type Command = ();
///     type Event = (usize, &'static str);
///     type Reject = ();
///
///     fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
///         let (which, input) = match input {
///             Input::Message { from, message: (which, message) } =>
///                 (which, Input::Message { from, message }),
///             Input::Tick(which) => (which, Input::Tick(())),
///             _ => return Err(()),
///         };
///         let bell = self.bells.get_mut(which).ok_or(())?;
///         bell.step(
///             cx,
///             input,
///             |message| (which, message),
///             |()| which,
///             |event, cx| cx.event((which, event)),
///         )
///     }
/// }
/// ```
#[derive(Default)]
pub struct Nested<I: Machine> {
    machine: I,
    /// Empty between steps, so not part of the state.
    outbox: Outbox<I>,
}

impl<I: Machine> Nested<I> {
    /// Wraps an inner machine.
    #[must_use]
    pub const fn new(machine: I) -> Self {
        Self {
            machine,
            outbox: Outbox::new(),
        }
    }

    /// The inner machine, to read from.
    #[must_use]
    pub const fn machine(&self) -> &I {
        &self.machine
    }

    /// Takes one step of the inner machine, as part of the outer one's step.
    ///
    /// # Errors
    /// When the inner machine refuses the input. Then nothing changed.
    pub fn step<O: Machine>(
        &mut self,
        cx: &mut Context<'_, O>,
        input: Input<I>,
        message: impl Fn(I::Message) -> O::Message,
        timer: impl Fn(I::Timer) -> O::Timer,
        event: impl FnMut(I::Event, &mut Context<'_, O>),
    ) -> Result<(), I::Reject> {
        self.with(
            cx,
            |inner, cx| inner.handle(input, cx),
            message,
            timer,
            event,
        )
    }

    /// Takes one step through one of the inner machine's own methods.
    ///
    /// # Errors
    /// When the method refuses. Then nothing changed.
    pub fn with<O: Machine, T, E>(
        &mut self,
        cx: &mut Context<'_, O>,
        call: impl FnOnce(&mut I, &mut Context<'_, I>) -> Result<T, E>,
        message: impl Fn(I::Message) -> O::Message,
        timer: impl Fn(I::Timer) -> O::Timer,
        mut event: impl FnMut(I::Event, &mut Context<'_, O>),
    ) -> Result<T, E> {
        let outcome = call(&mut self.machine, &mut cx.inner(&mut self.outbox));
        if outcome.is_err() {
            self.outbox.clear();
            return outcome;
        }
        for (tag, after) in self.outbox.drain_timers() {
            match after {
                Some(after) => cx.arm(timer(tag), after),
                None => cx.disarm(timer(tag)),
            }
        }
        for effect in self.outbox.drain_effects() {
            match effect {
                Effect::Send { to, message: inner } => cx.send(to, message(inner)),
                Effect::Multicast { message: inner } => cx.multicast(message(inner)),
                Effect::Event(inner) => event(inner, cx),
            }
        }
        outcome
    }
}

impl<I: Durable> Nested<I> {
    /// Applies a fact of the inner machine, as part of the outer one's [`fold`](Durable::fold).
    ///
    /// # Errors
    /// The error of the inner machine.
    pub fn fold(&mut self, fact: &I::Fact) -> Result<(), I::Damage> {
        self.machine.fold(fact)
    }
}

impl<I: Machine> Clone for Nested<I> {
    fn clone(&self) -> Self {
        Self::new(self.machine.clone())
    }
}

impl<I: Machine> PartialEq for Nested<I> {
    fn eq(&self, other: &Self) -> bool {
        self.machine == other.machine
    }
}

impl<I: Machine> Eq for Nested<I> {}

impl<I: Machine> Hash for Nested<I> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.machine.hash(state);
    }
}

impl<I: Machine> fmt::Debug for Nested<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)
    }
}
