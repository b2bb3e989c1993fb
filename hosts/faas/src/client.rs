//! A client: it stores modules, submits functions, and receives their answers.

mod host;

use core::fmt;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::{io, thread};

use selvedge_core::{Choose as _, Member, NodeId, Span};
use selvedge_pcm::client::{Client as Machine, Config, Reject};
use selvedge_pcm::{Answer, Function, Library, Refusal};
use thiserror::Error;

use self::host::{Host, Received, Wake};
use crate::clock::{self, Clock, NoChance};
use crate::find::Gateways;
use crate::link::Access;
use crate::notice::NotKept;

/// The number of wakes that may wait.
const WAKES: usize = 1_024;
/// The number of ids from which clients without an id draw. The broker remembers each id that it
/// ever saw, so the number is small.
const IDS: u64 = 1_000_000;
const IDS_COUNT: u64 = 1 << 16;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its id. No two clients have the same one at a time.
    pub id: NodeId,
    /// The gateways that it may connect to, the preferred one first.
    pub gateways: Gateways,
    /// The name and the password for their brokers.
    pub access: Access,
    /// The settings of the machine.
    pub config: Config,
}

/// A notification to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notified {
    /// The answer to a function.
    Answered {
        /// Its token.
        token: u64,
        /// The answer.
        answer: Answer,
        /// The followers whose equal votes made the answer, by id; empty for an answer without
        /// votes.
        voters: Vec<NodeId>,
        /// The last unit that had it, if a gateway reported it: the number of units that it was
        /// given to, and the followers, the orchestrator first.
        unit: Option<(u16, Vec<Member>)>,
    },
    /// The gateways refuse a function.
    Refused {
        /// Its token.
        token: u64,
        /// The reason.
        why: Refusal,
    },
    /// The client cannot submit or cancel a function.
    Rejected {
        /// Its token.
        token: u64,
        /// The reason.
        why: Reject,
    },
    /// A module is on the disks of most gateways.
    Kept {
        /// The module.
        library: Library,
        /// The number of these gateways.
        by: u16,
    },
    /// No majority of gateways keeps a module.
    NotKept {
        /// The module.
        library: Library,
        /// The reason; `None` if no gateway answers.
        why: Option<NotKept>,
    },
}

/// An error that prevents a client from starting.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The machine refuses its settings.
    #[error(transparent)]
    Machine(#[from] Reject),
    /// The system gives no random numbers.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// A thread does not start.
    #[error("cannot start a thread: {0}: check the limit on threads")]
    Thread(#[from] io::Error),
}

/// A client on its own thread. The thread ends when this is dropped.
pub struct Client {
    wake: SyncSender<Wake>,
    notified: Receiver<Notified>,
    me: Member,
    clock: Clock,
    received: Received,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.me).finish()
    }
}

/// An id for a short-lived client. One in 65,536 draws gives an id that was drawn before.
///
/// # Errors
/// [`NoChance`].
pub fn any_id() -> Result<NodeId, NoChance> {
    Ok(NodeId(IDS + clock::chance()?.below(IDS_COUNT)))
}

impl Client {
    /// Starts a client in a new life, which takes up to 1/8 s.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn start(options: Options) -> Result<Self, ClientError> {
        let (client, mut host) = Self::new(options)?;
        let thread = thread::Builder::new().name("client".into());
        thread.spawn(move || host.run())?;
        Ok(client)
    }

    /// A client, and the host to run on its thread.
    fn new(options: Options) -> Result<(Self, Host), ClientError> {
        let me = clock::life(options.id);
        let machine = Machine::new(me, options.config, options.gateways.ids())?;
        let (wake, wakes) = mpsc::sync_channel(WAKES);
        // The number of notifications is bounded by the number of requests.
        let (notify, notified) = mpsc::channel();
        let (clock, received) = (Clock::start(), Received::default());
        let wakes = (wake.clone(), wakes);
        let host = Host::new(options, machine, clock, wakes, notify, received.clone())?;
        let client = Self {
            wake,
            notified,
            me,
            clock,
            received,
        };
        Ok((client, host))
    }

    /// Submits a function. [`Notified`] refers to it by this token.
    pub fn submit(&self, token: u64, function: Function) {
        self.say(Wake::Submit(token, function));
    }

    /// Cancels a function. It is answered all the same.
    pub fn cancel(&self, token: u64) {
        self.say(Wake::Cancel(token));
    }

    /// Asks the gateways to keep a module.
    pub fn put(&self, module: Vec<u8>) {
        self.say(Wake::Put(module));
    }

    /// The next notification, if one comes within this time.
    #[must_use]
    pub fn wait(&self, most: Span) -> Option<Notified> {
        self.notified.recv_timeout(most.into()).ok()
    }

    /// The time since the last message of any gateway, or since the client's start. A gateway that
    /// can be reached sends a message each second, once the client has submitted something.
    #[must_use]
    pub fn silence(&self) -> Span {
        self.received.since(self.clock.now())
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
