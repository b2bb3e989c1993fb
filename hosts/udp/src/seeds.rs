//! The nodes through which a node joins, and their addresses.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use selvedge_core::{NodeId, Span, Time};
use tokio::net::lookup_host;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::directory::Directory;

/// The most addresses of one seed that are tried.
const ADDRESSES: usize = 16;

/// How long a seed is asked where it was found before its name is looked up again.
const FRESH: Span = Span::secs(5);

type Found = io::Result<Vec<SocketAddr>>;
type Lookup = dyn Fn() -> Pin<Box<dyn Future<Output = Found> + Send>> + Send + Sync;

/// A node that others join through. It is asked at each of its addresses in turn, and one that has
/// a name is looked up again as long as it does not answer.
#[derive(Clone)]
pub struct Seed {
    name: String,
    addresses: Vec<SocketAddr>,
    lookup: Option<Arc<Lookup>>,
}

impl Seed {
    /// The seed that `name` stands for, as ADDRESS:PORT or NAME:PORT. The system looks names up.
    ///
    /// # Errors
    /// When the name has no address now.
    pub async fn named(name: &str) -> io::Result<Self> {
        if let Ok(address) = name.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let addresses = look_up(name.to_owned()).await?;
        let again = name.to_owned();
        Ok(Self::found_by(name, addresses, move || {
            look_up(again.clone())
        }))
    }

    /// Does as [`named`](Self::named), and blocks this thread while the name is looked up. For
    /// applications without a runtime.
    ///
    /// # Errors
    /// When the name has no address now.
    pub fn blocking_named(name: &str) -> io::Result<Self> {
        if let Ok(address) = name.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let again = name.to_owned();
        Ok(Self::found_by(
            name,
            name.to_socket_addrs()?.collect(),
            move || look_up(again.clone()),
        ))
    }

    /// A seed that is at these addresses now, and later where `lookup` says. It is called again
    /// whenever the seed does not answer, and must not panic.
    pub fn found_by<F>(
        name: &str,
        addresses: Vec<SocketAddr>,
        lookup: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Found> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            addresses,
            lookup: Some(Arc::new(move || Box::pin(lookup()))),
        }
    }

    /// What it was called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it was found.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Leaves out the addresses that are not wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(SocketAddr) -> bool) {
        self.addresses.retain(|&address| is_wanted(address));
        self.addresses.truncate(ADDRESSES);
    }
}

impl From<SocketAddr> for Seed {
    fn from(address: SocketAddr) -> Self {
        Self {
            name: address.to_string(),
            addresses: vec![address],
            lookup: None,
        }
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed")
            .field("name", &self.name)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// How many stand-ins the machine asks: membership keeps no more.
const STAND_INS: usize = 16;

/// Which seed is asked next. The machine knows the first few stand-ins alone. The host has each of
/// them, in turn, mean itself and all later ones at the same distance from one another.
#[derive(Debug)]
pub(crate) struct Turns {
    seeds: usize,
    /// Of each stand-in that the machine knows: the seed that is asked next.
    next: Vec<usize>,
}

impl Turns {
    pub(crate) fn new(seeds: usize) -> Self {
        Self {
            seeds,
            next: (0..seeds.min(STAND_INS)).collect(),
        }
    }

    /// The stand-ins that the machine asks.
    pub(crate) fn stand_ins(&self) -> impl Iterator<Item = NodeId> + use<> {
        Directory::stand_ins(self.next.len())
    }

    /// The stand-in of the seed that is asked now, where the machine asks `id`. An id that is none
    /// of the machine's stand-ins stays as it is.
    pub(crate) fn next(&mut self, id: NodeId) -> NodeId {
        let Some(nth) = Directory::seed(id) else {
            return id;
        };
        let Some(next) = self.next.get_mut(nth) else {
            return id;
        };
        let seed = *next;
        *next += STAND_INS;
        if *next >= self.seeds {
            *next = nth;
        }
        Directory::stand_in(seed).unwrap_or(id)
    }
}

async fn look_up(name: String) -> Found {
    Ok(lookup_host(name).await?.collect())
}

/// Looks up those that do not answer: one lookup of each seed at a time.
#[derive(Debug)]
pub(crate) struct Lookups {
    seeds: Vec<(Seed, State)>,
    running: JoinSet<(usize, Found)>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Found(Time),
    Sought,
}

impl Lookups {
    pub(crate) fn new(seeds: Vec<Seed>, now: Time) -> Self {
        let seeds = seeds.into_iter().map(|seed| (seed, State::Found(now)));
        Self {
            seeds: seeds.collect(),
            running: JoinSet::new(),
        }
    }

    /// This seed is asked, so no node at its addresses is known to be alive. Says whether it is
    /// looked up because of that.
    pub(crate) fn asked(&mut self, seed: usize, now: Time) -> bool {
        if let Some((found, state)) = self.seeds.get_mut(seed)
            && let State::Found(at) = *state
            && now.since(at) >= FRESH
            && let Some(lookup) = &found.lookup
        {
            let lookup = lookup();
            self.running.spawn(async move { (seed, lookup.await) });
            *state = State::Sought;
            return true;
        }
        false
    }

    /// The next seed that was looked up, and where it is now: unchanged where it was not found.
    /// Never ready while none is looked up.
    pub(crate) async fn next(&mut self, clock: &Clock) -> (usize, Seed) {
        loop {
            let Some(done) = self.running.join_next().await else {
                return core::future::pending().await;
            };
            // A lookup of the application that panics: its seed is not looked up again.
            let Ok((nth, found)) = done else { continue };
            let Some((seed, state)) = self.seeds.get_mut(nth) else {
                continue;
            };
            *state = State::Found(clock.now());
            if let Ok(addresses) = found {
                seed.addresses = addresses;
            }
            return (nth, seed.clone());
        }
    }
}
