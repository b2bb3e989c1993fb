//! The virtual network that all contenders go through: 1 to 50 ms a datagram, or always the same time,
//! and a share of the datagrams is lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use chacha20::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Microseconds since the beginning.
pub(crate) type Time = u64;

pub(crate) const PERIOD: Time = 1_000_000;

/// The requests of a contender's node in a call.
pub(crate) struct Out<T> {
    /// Receiver and datagram.
    pub(crate) sends: Vec<(usize, Vec<u8>)>,
    /// The timers, each with the time at which it is due.
    pub(crate) timers: Vec<(Time, T)>,
    /// The nodes that it declared failed.
    pub(crate) failed: Vec<usize>,
}

/// A node of a contender.
pub(crate) trait Peer: Sized {
    type Timer;
    /// A datagram came.
    fn receive(&mut self, now: Time, datagram: &[u8], out: &mut Out<Self::Timer>);
    /// A timer is due.
    fn tick(&mut self, now: Time, timer: Self::Timer, out: &mut Out<Self::Timer>);
}

enum What<T> {
    Datagram(Vec<u8>),
    Timer(T),
}

/// Counts since [`Network::reset`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    pub(crate) received: u64,
    /// The time in the nodes' own code.
    pub(crate) busy: Duration,
    /// The number of calls of nodes' code.
    pub(crate) entered: u64,
}

pub(crate) struct Network<P: Peer> {
    pub(crate) now: Time,
    pub(crate) peers: Vec<P>,
    pub(crate) counted: Counted,
    /// Declared failures: the time, the node that declared, and the failed node.
    pub(crate) failures: Vec<(Time, usize, usize)>,
    down: Vec<bool>,
    loss_percent: u64,
    /// The shortest time that a datagram takes, and the range in microseconds to draw from.
    delays: (Time, Time),
    rng: ChaCha8Rng,
    order: u64,
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    pending: Vec<Option<(usize, What<P::Timer>)>>,
    free: Vec<usize>,
    out: Out<P::Timer>,
}

impl<P: Peer> Network<P> {
    pub(crate) fn new(seed: u64, loss_percent: u64) -> Self {
        Self {
            now: 0,
            peers: Vec::new(),
            counted: Counted::default(),
            failures: Vec::new(),
            down: Vec::new(),
            loss_percent,
            delays: (1_000, 49_001),
            rng: ChaCha8Rng::seed_from_u64(seed),
            order: 0,
            heap: BinaryHeap::new(),
            pending: Vec::new(),
            free: Vec::new(),
            out: Out {
                sends: Vec::new(),
                timers: Vec::new(),
                failed: Vec::new(),
            },
        }
    }

    pub(crate) fn add(&mut self, peer: P) {
        self.peers.push(peer);
        self.down.push(false);
    }

    pub(crate) fn set_loss(&mut self, percent: u64) {
        self.loss_percent = percent;
    }

    /// Each datagram takes this long, so datagrams arrive in the order in which they are sent.
    pub(crate) fn set_delay(&mut self, delay: Time) {
        self.delays = (delay, 1);
    }

    pub(crate) fn crash(&mut self, node: usize) {
        self.down[node] = true;
    }

    /// The nodes that have not crashed.
    pub(crate) fn up(&self) -> impl Iterator<Item = (usize, &P)> {
        let nodes = self.peers.iter().enumerate();
        nodes.filter(|&(node, _)| !self.down[node])
    }

    /// Lets a node act without a datagram or a timer.
    pub(crate) fn with(&mut self, node: usize, act: impl FnOnce(&mut P, Time, &mut Out<P::Timer>)) {
        let mut out = std::mem::replace(
            &mut self.out,
            Out {
                sends: Vec::new(),
                timers: Vec::new(),
                failed: Vec::new(),
            },
        );
        let start = Instant::now();
        node_code(&mut self.peers[node], self.now, &mut out, act);
        self.counted.busy += start.elapsed();
        self.counted.entered += 1;
        for (to, datagram) in out.sends.drain(..) {
            self.counted.sent += 1;
            self.counted.bytes += datagram.len() as u64;
            let (least, spread) = self.delays;
            let delay = least + self.rng.next_u64() % spread;
            if self.rng.next_u64() % 100 >= self.loss_percent {
                self.push(self.now + delay, to, What::Datagram(datagram));
            }
        }
        for (at, timer) in out.timers.drain(..) {
            self.push(at, node, What::Timer(timer));
        }
        for about in out.failed.drain(..) {
            self.failures.push((self.now, node, about));
        }
        self.out = out;
    }

    fn push(&mut self, at: Time, node: usize, what: What<P::Timer>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[place] = Some((node, what));
        self.order += 1;
        self.heap.push(Reverse((at, self.order, place)));
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some(&Reverse((at, _, place))) = self.heap.peek() {
            if at > end {
                break;
            }
            self.heap.pop();
            self.free.push(place);
            let Some((node, what)) = self.pending[place].take() else {
                continue;
            };
            if self.down[node] {
                continue;
            }
            self.now = at;
            match what {
                What::Datagram(datagram) => {
                    self.counted.received += 1;
                    self.with(node, |peer, now, out| peer.receive(now, &datagram, out));
                }
                What::Timer(timer) => self.with(node, |peer, now, out| peer.tick(now, timer, out)),
            }
        }
        self.now = end;
    }

    pub(crate) fn run_for(&mut self, periods: u64) {
        self.run_until(self.now + periods * PERIOD);
    }

    pub(crate) fn reset(&mut self) {
        self.counted = Counted::default();
        self.failures.clear();
    }
}

/// A node's code in a call: `valgrind --tool=callgrind --toggle-collect='*node_code*'` counts its
/// instructions, and none of the network's.
#[inline(never)]
fn node_code<P: Peer>(
    peer: &mut P,
    now: Time,
    out: &mut Out<P::Timer>,
    act: impl FnOnce(&mut P, Time, &mut Out<P::Timer>),
) {
    act(peer, now, out);
}
