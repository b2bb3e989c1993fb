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

use crate::Clock;
use crate::address::{self, ParseError};
use crate::directory::Directory;

/// The most addresses of one seed that are tried.
pub(crate) const ADDRESSES: usize = 16;

/// The time for which a seed is asked at known addresses before its name is looked up again.
const FRESH: Span = Span::secs(5);

pub(crate) type Found = io::Result<Vec<SocketAddr>>;
type Lookup = dyn Fn() -> Pin<Box<dyn Future<Output = Found> + Send>> + Send + Sync;

/// A node through which others join. It is asked at each of its addresses in turn, and a seed with
/// a name is looked up again while it does not answer.
#[derive(Clone)]
pub struct Seed {
    name: String,
    addresses: Vec<SocketAddr>,
    lookup: Option<Arc<Lookup>>,
    /// True if it was found, and has the node's own addresses alone.
    pub(crate) is_itself: bool,
}

/// A new outcome of looking up a seed's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedNews {
    /// The seed's name.
    pub name: String,
    /// The outcome.
    pub found: SeedFound,
}

/// The outcome of looking up a seed's name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeedFound {
    /// These addresses of other nodes. Each is asked in turn.
    Others(Vec<SocketAddr>),
    /// The node's own addresses alone. The name is looked up again while the node knows no other
    /// node; where no seed is another node, the node begins a mesh.
    Itself,
    /// No address that the node can send to. The seed is asked where it was before, if anywhere,
    /// and its name is looked up again.
    Nothing(String),
}

impl Seed {
    /// The seed that `name` stands for, as ADDRESS:PORT or NAME:PORT. The system looks names up.
    ///
    /// # Errors
    /// When the name has no address now.
    pub async fn named(name: &str) -> io::Result<Self> {
        if let Some(address) = literal(name)? {
            return Ok(address.into());
        }
        let addresses = look_up(name.to_owned()).await;
        // The system's error does not name the seed.
        let unknown = |why: io::Error| io::Error::new(why.kind(), format!("seed {name}: {why}"));
        let addresses = addresses.map_err(unknown)?;
        let mut seed = Self::found_later(name)?;
        seed.addresses = addresses;
        Ok(seed)
    }

    /// Does as [`named`](Self::named), and does not look the name up yet: the node does, when it
    /// asks the seed, and again as long as it does not answer. So a name without an address now is
    /// no error; [`NodeEvent::Seed`](crate::NodeEvent::Seed) reports it.
    ///
    /// # Errors
    /// When `name` is not of the form ADDRESS:PORT or NAME:PORT.
    pub fn found_later(name: &str) -> io::Result<Self> {
        if let Some(address) = literal(name)? {
            return Ok(address.into());
        }
        let again = name.to_owned();
        Ok(Self::found_by(name, Vec::new(), move || {
            look_up(again.clone())
        }))
    }

    /// Does as [`named`](Self::named), and blocks this thread while the name is looked up. For
    /// applications without a runtime.
    ///
    /// # Errors
    /// When the name has no address now.
    pub fn blocking_named(name: &str) -> io::Result<Self> {
        let mut seed = Self::found_later(name)?;
        if seed.lookup.is_some() {
            seed.addresses = name.to_socket_addrs()?.collect();
        }
        Ok(seed)
    }

    /// A seed that is at these addresses now, and later at the addresses that `lookup` returns.
    /// `lookup` is called again whenever the seed does not answer, and must not panic.
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
            addresses: addresses.into_iter().map(address::canonical).collect(),
            lookup: Some(Arc::new(move || Box::pin(lookup()))),
            is_itself: false,
        }
    }

    /// The seed's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it has a name to look up again.
    pub(crate) const fn is_named(&self) -> bool {
        self.lookup.is_some()
    }

    /// The known addresses.
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
            addresses: vec![address::canonical(address)],
            lookup: None,
            is_itself: false,
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

/// The number of stand-ins that the machine asks: membership keeps no more.
const STAND_INS: usize = 16;

/// The order in which seeds are asked. The machine knows only the first few stand-ins. The host
/// maps each of them, in turn, to itself and all later ones at the same distance from one another.
#[derive(Debug)]
pub(crate) struct Turns {
    seeds: usize,
    /// The next seed of each stand-in that the machine knows.
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

    /// The stand-in of the seed to ask, when the machine asks `id`. An id that is not one of the
    /// machine's stand-ins is returned unchanged.
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

/// The address that `name` is, if it is one and no name.
fn literal(name: &str) -> io::Result<Option<SocketAddr>> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    match address::parse(name) {
        Ok(address) => Ok(Some(address)),
        Err(error @ ParseError::Interface(_)) => Err(invalid(error)),
        Err(error @ ParseError::Syntax(_)) => {
            let port = name.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            match port.and_then(|(_, port)| port.parse::<u16>().ok()) {
                Some(_) => Ok(None),
                None => Err(invalid(error)),
            }
        }
    }
}

async fn look_up(name: String) -> Found {
    Ok(lookup_host(name).await?.collect())
}

/// Lookups of silent seeds: one lookup of each seed at a time.
#[derive(Debug)]
pub(crate) struct Lookups {
    seeds: Vec<Sought>,
    running: JoinSet<(usize, Found)>,
}

#[derive(Debug)]
struct Sought {
    seed: Seed,
    state: State,
    /// The last outcome, which was reported.
    found: Option<SeedFound>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It was never looked up.
    Unknown,
    Found(Time),
    Sought,
}

impl Lookups {
    pub(crate) fn new(seeds: Vec<Seed>, now: Time) -> Self {
        let seeds = seeds.into_iter().map(|seed| {
            let is_unknown = seed.addresses.is_empty() && !seed.is_itself;
            Sought {
                state: if is_unknown {
                    State::Unknown
                } else {
                    State::Found(now)
                },
                seed,
                found: None,
            }
        });
        Self {
            seeds: seeds.collect(),
            running: JoinSet::new(),
        }
    }

    /// Returns true if each seed is this node itself, as far as they were looked up.
    pub(crate) fn are_itself(&self) -> bool {
        self.seeds.iter().all(|it| it.seed.is_itself)
    }

    /// Returns true if this seed is this node itself, as far as it was looked up.
    pub(crate) fn is_itself(&self, seed: usize) -> bool {
        self.seeds.get(seed).is_some_and(|it| it.seed.is_itself)
    }

    /// The seeds that are this node itself at its start, to report them.
    pub(crate) fn begin(&mut self) -> Vec<SeedNews> {
        let own = (0..self.seeds.len()).filter(|&it| self.is_itself(it));
        let own: Vec<_> = own.collect();
        let news = own.into_iter();
        news.filter_map(|it| self.note(it, SeedFound::Itself))
            .collect()
    }

    /// Takes the outcome of a look-up of this seed. Returns a report, unless the outcome before was
    /// the same.
    pub(crate) fn note(&mut self, seed: usize, found: SeedFound) -> Option<SeedNews> {
        let it = self.seeds.get_mut(seed)?;
        it.seed.is_itself = match &found {
            SeedFound::Others(addresses) => {
                it.seed.addresses.clone_from(addresses);
                false
            }
            // Where it was another node before, that one is asked on.
            SeedFound::Itself => it.seed.addresses.is_empty(),
            SeedFound::Nothing(_) => it.seed.is_itself,
        };
        let before = it.found.replace(found.clone());
        let is_news = before.is_none_or(|before| !before.is_like(&found));
        is_news.then(|| SeedNews {
            name: it.seed.name.clone(),
            found,
        })
    }

    /// This seed is asked, so no node at its addresses is known to be alive. Says whether it is
    /// looked up because of that.
    pub(crate) fn asked(&mut self, seed: usize, now: Time) -> bool {
        if let Some(it) = self.seeds.get_mut(seed)
            && it.state.is_due(now)
            && let Some(lookup) = &it.seed.lookup
        {
            let lookup = lookup();
            self.running.spawn(async move { (seed, lookup.await) });
            it.state = State::Sought;
            return true;
        }
        false
    }

    /// The next seed that was looked up, and the outcome. Never ready while no look-up runs.
    pub(crate) async fn next(&mut self, clock: &Clock) -> (usize, Found) {
        loop {
            let Some(done) = self.running.join_next().await else {
                return core::future::pending().await;
            };
            // A lookup of the application that panics: its seed is not looked up again.
            let Ok((nth, found)) = done else { continue };
            let Some(it) = self.seeds.get_mut(nth) else {
                continue;
            };
            it.state = State::Found(clock.now());
            return (nth, found);
        }
    }
}

impl SeedFound {
    /// Returns true if both are one, in any order of addresses: servers of names turn them around.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Others(ours), Self::Others(theirs)) => {
                ours.len() == theirs.len() && ours.iter().all(|it| theirs.contains(it))
            }
            (one, other) => one == other,
        }
    }
}

impl State {
    fn is_due(self, now: Time) -> bool {
        match self {
            Self::Unknown => true,
            Self::Found(at) => now.since(at) >= FRESH,
            Self::Sought => false,
        }
    }
}
