//! Faults on purpose, around another transport: for tests and demonstrations.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, Ratio, Span, Time};
use tokio::time::{Sleep, sleep_until};

use crate::Clock;
use crate::transport::{Datagrams, Transport};

// A transport, and not a setting of a node: a node that can lose datagrams on purpose has code for it on
// its hot path, and tests exercise that code instead of the node.

/// The largest number of datagrams that one socket delays. Further datagrams are lost.
const DELAYED: usize = 4_096;

/// The number of steps into which the range of a delay is divided.
const SLOTS: u64 = 64;

/// Faults of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// The share of datagrams lost on arrival. Default: none.
    pub loss: Ratio,
    /// The shortest and the longest delay of a datagram on arrival; each delay is drawn separately,
    /// so datagrams change their order. Default: no delay.
    pub delay: (Span, Span),
    /// A partition: these addresses reach one another, all others reach one another, and nothing
    /// passes between the two. Empty for no partition. Default: empty.
    pub cut_off: BTreeSet<SocketAddr>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            loss: Ratio::NEVER,
            delay: (Span::ZERO, Span::ZERO),
            cut_off: BTreeSet::new(),
        }
    }
}

impl Faults {
    /// No faults: every datagram passes at once.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Loses this share of datagrams on arrival.
    #[must_use]
    pub fn with_loss(self, loss: Ratio) -> Self {
        Self { loss, ..self }
    }

    /// Delays each datagram by at least `shortest` and at most `longest`.
    #[must_use]
    pub fn with_delay(self, shortest: Span, longest: Span) -> Self {
        Self {
            delay: (shortest, longest),
            ..self
        }
    }

    /// Cuts these addresses off from all others.
    #[must_use]
    pub fn with_cut_off(self, cut_off: BTreeSet<SocketAddr>) -> Self {
        Self { cut_off, ..self }
    }

    /// Returns true if a datagram passes between the two addresses.
    #[must_use]
    pub fn passes(&self, one: SocketAddr, other: SocketAddr) -> bool {
        self.cut_off.contains(&one) == self.cut_off.contains(&other)
    }
}

/// The common state of transports with faults: the present faults, and counters. Clone it into
/// every transport of a mesh, and change it while the nodes run.
#[derive(Clone, Debug, Default)]
pub struct FaultControl {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    faults: Faults,
    counts: FaultCounts,
}

/// The numbers of datagrams that met a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCounts {
    /// Lost on arrival.
    pub lost: u64,
    /// Not sent, because of a partition. Their senders counted them as sent.
    pub held_back: u64,
    /// The bytes of the datagrams held back.
    pub held_back_bytes: u64,
    /// Delayed. Datagrams beyond the limit of delayed ones count as lost.
    pub delayed: u64,
}

impl FaultControl {
    /// A control with these faults.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        let counts = FaultCounts::default();
        let shared = Arc::new(Mutex::new(Shared { faults, counts }));
        Self { shared }
    }

    /// Changes the faults, for all transports at once, from the next datagram on.
    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        // The application's code does not run under the lock.
        let mut faults = self.faults();
        change(&mut faults);
        self.lock().faults = faults;
    }

    /// The present faults.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.lock().faults.clone()
    }

    /// The numbers of datagrams that met a fault until now.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        self.lock().counts
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Each change is one assignment, so the data behind a poisoned lock is valid.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transport with faults: its datagrams are lost, delayed, or meet a partition, as its
/// [`FaultControl`] defines. Loss and delay happen on arrival, a partition holds datagrams back at
/// their sender.
///
/// ```
/// use selvedge_core::Ratio;
/// use selvedge_udp::faults::{FaultControl, Faults, Faulty};
/// use selvedge_udp::transport::Udp;
///
/// let control = FaultControl::new(Faults::none().with_loss(Ratio::new(5, 100)));
/// let transport = Faulty::new(Udp::new(), &control, 7);
/// // Later, while nodes run.
/// control.change(|faults| faults.loss = Ratio::NEVER);
/// assert_eq!(control.counts().lost, 0);
/// # drop(transport);
/// ```
#[derive(Debug)]
pub struct Faulty<T> {
    inner: T,
    control: FaultControl,
    seed: u64,
}

impl<T: Transport> Faulty<T> {
    /// Puts the faults of `control` around `inner`, drawn from `seed`.
    #[must_use]
    pub fn new(inner: T, control: &FaultControl, seed: u64) -> Self {
        Self {
            inner,
            control: control.clone(),
            seed,
        }
    }
}

impl<T: Transport> Transport for Faulty<T> {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        Ok(Box::new(Socket {
            inner: Box::new(self.inner).bind(listen)?,
            control: self.control,
            rng: ChaCha12Rng::seed_from_u64(self.seed),
            clock: Clock::start(),
            delayed: BTreeMap::new(),
            arrived: 0,
            alarm: None,
        }))
    }
}

/// A socket whose datagrams meet faults.
#[derive(Debug)]
struct Socket {
    inner: Box<dyn Datagrams>,
    control: FaultControl,
    rng: ChaCha12Rng,
    clock: Clock,
    /// Delayed datagrams by the time of arrival, and in order.
    delayed: BTreeMap<(Time, u64), (Vec<u8>, SocketAddr)>,
    /// The number of datagrams delayed until now.
    arrived: u64,
    /// An alarm for the first delayed datagram.
    alarm: Option<(Time, Pin<Box<Sleep>>)>,
}

/// The fate of a datagram that arrives.
enum Fate {
    Passes,
    /// It is lost, or comes later.
    Ended,
}

impl Socket {
    fn arrive(&mut self, datagram: &[u8], source: SocketAddr) -> Fate {
        let mut shared = self.control.lock();
        if self.rng.chance(shared.faults.loss) {
            shared.counts.lost += 1;
            return Fate::Ended;
        }
        let (shortest, longest) = shared.faults.delay;
        if longest == Span::ZERO && shortest == Span::ZERO {
            return Fate::Passes;
        }
        if self.delayed.len() >= DELAYED {
            shared.counts.lost += 1;
            return Fate::Ended;
        }
        shared.counts.delayed += 1;
        drop(shared);
        let spread = longest.0.saturating_sub(shortest.0);
        let more = u128::from(spread) * u128::from(self.rng.below(SLOTS)) / u128::from(SLOTS);
        let delay = Span(
            shortest
                .0
                .saturating_add(u64::try_from(more).unwrap_or(spread)),
        );
        self.arrived += 1;
        let due = self.clock.now() + delay;
        self.delayed
            .insert((due, self.arrived), (datagram.to_vec(), source));
        Fate::Ended
    }

    /// The first of the delayed datagrams, if it is due.
    fn due(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let (&(at, _), _) = self.delayed.first_key_value()?;
        if at > self.clock.now() {
            return None;
        }
        let (_, (datagram, source)) = self.delayed.pop_first()?;
        let len = datagram.len().min(buffer.len());
        if let (Some(room), Some(bytes)) = (buffer.get_mut(..len), datagram.get(..len)) {
            room.copy_from_slice(bytes);
        }
        Some((len, source))
    }

    /// Wakes the task when the first delayed datagram is due. Returns ready if it is.
    fn set_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((&(at, _), _)) = self.delayed.first_key_value() else {
            self.alarm = None;
            return Poll::Pending;
        };
        if self.alarm.as_ref().is_none_or(|(set, _)| *set != at) {
            let sleep = Box::pin(sleep_until(self.clock.instant(at)));
            self.alarm = Some((at, sleep));
        }
        match &mut self.alarm {
            Some((_, sleep)) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl Datagrams for Socket {
    fn local(&self) -> SocketAddr {
        self.inner.local()
    }

    fn reaches(&self, address: SocketAddr) -> bool {
        self.inner.reaches(address)
    }

    fn source(&self, address: SocketAddr) -> Option<SocketAddr> {
        self.inner.source(address)
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        loop {
            if let Some(due) = self.due(buffer) {
                return Poll::Ready(Ok(due));
            }
            match self.inner.poll_recv(cx, buffer) {
                Poll::Ready(Ok((len, source))) => {
                    let datagram = buffer.get(..len).unwrap_or_default();
                    if matches!(self.arrive(datagram, source), Fate::Passes) {
                        return Poll::Ready(Ok((len, source)));
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if self.set_alarm(cx).is_pending() => return Poll::Pending,
                // A datagram is due by now.
                Poll::Pending => self.alarm = None,
            }
        }
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            if let Some(due) = self.due(buffer) {
                return Ok(due);
            }
            let (len, source) = self.inner.try_recv(buffer)?;
            let datagram = buffer.get(..len).unwrap_or_default();
            if matches!(self.arrive(datagram, source), Fate::Passes) {
                return Ok((len, source));
            }
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        let mut shared = self.control.lock();
        if !shared.faults.passes(self.inner.local(), to) {
            shared.counts.held_back += 1;
            shared.counts.held_back_bytes += datagram.len() as u64;
            return Poll::Ready(Ok(datagram.len()));
        }
        drop(shared);
        self.inner.poll_send(cx, datagram, to)
    }
}
