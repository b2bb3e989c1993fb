//! A client: it puts modules, submits functions, and hears what they came to.

mod host;

use core::fmt;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::{io, thread};

use selvedge_core::{Choose as _, Member, NodeId, Span};
use selvedge_pcm::client::{Client as Machine, Config, Reject};
use selvedge_pcm::{Answer, Function, Library, Refusal};
use thiserror::Error;

use self::host::{Heard, Host, Wake};
use crate::clock::{self, Clock, NoChance};
use crate::find::Gateways;
use crate::link::Access;
use crate::notice::NotKept;

/// How many wakes may wait.
const WAKES: usize = 1_024;
/// Clients that say no id draw one from here on. The broker remembers each id that it ever saw, so there
/// are not many.
const IDS: u64 = 1_000_000;
const IDS_COUNT: u64 = 1 << 16;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its id. No two clients have the same one at a time.
    pub id: NodeId,
    /// The gateways that it can go to, the first one first.
    pub gateways: Gateways,
    /// The name and the password for their brokers.
    pub access: Access,
    /// The settings of the machine.
    pub config: Config,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// What a function came to.
    Answered {
        /// Its token.
        token: u64,
        /// What it came to.
        answer: Answer,
        /// The followers whose equal votes made that, by id; none where nobody's did.
        voters: Vec<NodeId>,
        /// The unit that had it last, if a gateway said so: how often it was given to one, and its
        /// followers, the orchestrator first.
        unit: Option<(u16, Vec<Member>)>,
    },
    /// A function is not run.
    Refused {
        /// Its token.
        token: u64,
        /// Why.
        why: Refusal,
    },
    /// It cannot be asked for, or not cancelled.
    Rejected {
        /// Its token.
        token: u64,
        /// Why.
        why: Reject,
    },
    /// A module is on the disks of most gateways.
    Kept {
        /// The module.
        library: Library,
        /// On how many.
        by: u16,
    },
    /// A module is not kept; `None` where no gateway answers.
    NotKept {
        /// The module.
        library: Library,
        /// Why.
        why: Option<NotKept>,
    },
}

/// Why a client does not begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The machine refuses its settings.
    #[error(transparent)]
    Machine(#[from] Reject),
    /// There is no chance.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// A thread does not start.
    #[error("cannot start a thread: {0}: see how many this process may have")]
    Thread(#[from] io::Error),
}

/// A client on a thread of its own. It ends when this is dropped.
pub struct Client {
    wake: SyncSender<Wake>,
    told: Receiver<Told>,
    me: Member,
    clock: Clock,
    heard: Heard,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.me).finish()
    }
}

/// An id for a client that needs none for long. One in 65,536 draws gives the same.
///
/// # Errors
/// [`NoChance`].
pub fn any_id() -> Result<NodeId, NoChance> {
    Ok(NodeId(IDS + clock::chance()?.below(IDS_COUNT)))
}

impl Client {
    /// Starts a client in a life of its own, which takes up to 1/8 s.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn start(options: Options) -> Result<Self, ClientError> {
        let (client, mut host) = Self::new(options)?;
        let thread = thread::Builder::new().name("client".into());
        thread.spawn(move || host.run())?;
        Ok(client)
    }

    /// A client, and what is to run on a thread for it.
    fn new(options: Options) -> Result<(Self, Host), ClientError> {
        let me = clock::life(options.id);
        let machine = Machine::new(me, options.config, options.gateways.ids())?;
        let (wake, wakes) = mpsc::sync_channel(WAKES);
        // What is told is as much as was asked.
        let (tell, told) = mpsc::channel();
        let (clock, heard) = (Clock::start(), Heard::default());
        let wakes = (wake.clone(), wakes);
        let host = Host::new(options, machine, clock, wakes, tell, heard.clone())?;
        let client = Self {
            wake,
            told,
            me,
            clock,
            heard,
        };
        Ok((client, host))
    }

    /// Has a function run. [`Told`] names it by this token.
    pub fn submit(&self, token: u64, function: Function) {
        self.say(Wake::Submit(token, function));
    }

    /// Does not want a function any more. It is answered all the same.
    pub fn cancel(&self, token: u64) {
        self.say(Wake::Cancel(token));
    }

    /// Has the gateways keep a module.
    pub fn put(&self, module: Vec<u8>) {
        self.say(Wake::Put(module));
    }

    /// What the client is told next, if it is told something in this time.
    #[must_use]
    pub fn wait(&self, most: Span) -> Option<Told> {
        self.told.recv_timeout(most.into()).ok()
    }

    /// For how long no gateway has said anything, from the client's start on. A gateway that can be reached
    /// says something each second, once the client has asked for something.
    #[must_use]
    pub fn silence(&self) -> Span {
        self.heard.since(self.clock.now())
    }

    /// The client in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    fn say(&self, wake: Wake) {
        // The thread ends with this client, and not before.
        let _said = self.wake.send(wake);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.say(Wake::Close);
    }
}
