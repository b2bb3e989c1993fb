//! `selvedge-faas gateway`.

use core::convert::Infallible;
use core::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selvedge_core::{NodeId, Span};
use selvedge_faas::Address;
use selvedge_faas::find::Named;
use selvedge_faas::gateway::{self, Broker, Memory, Options, Room};
use selvedge_faas::users::Users;
use selvedge_pcm::Limits;
use selvedge_pcm::gateway::{Config, Voting};

use super::{AccessArgs, ChildArgs, Failure};

/// Run a gateway: it is always on, keeps mailboxes, and decides with the other gateways
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    /// Id of this gateway; each node has its own
    #[arg(long)]
    id: u64,
    /// Address at which the broker inside listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1883")]
    listen: SocketAddr,
    /// A separate broker, instead of the one inside
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "listen")]
    broker: Option<Address>,
    /// Address of this gateway's broker for other nodes; needed if it listens at all addresses
    /// (0.0.0.0 or [::])
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<Address>,
    /// Another gateway and its broker; may be repeated
    #[arg(long = "peer", value_name = "ID=HOST:PORT")]
    peers: Vec<Named>,
    /// Directory for its state; each gateway needs its own
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// This gateway was never started before
    #[arg(long, conflicts_with = "forgot")]
    first: bool,
    /// Its state is lost. Do not use --first then: a gateway that votes again on something that it
    /// has forgotten breaks its promises
    #[arg(long)]
    forgot: bool,
    /// Gateways that decide
    #[arg(long, value_enum, default_value = "static")]
    voting: VotingArg,
    /// Seconds for which a function may run at any follower
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    function_time: u64,
    /// Seconds after which a silent gateway counts as failed: from 3
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    timeout: u64,
    /// Number of followers that a unit should have; equal at all gateways from their first start on
    #[arg(long, default_value = "5")]
    unit: u16,
    /// Count votes at the gateways, at an update for each vote; equal at all gateways from their
    /// first start on
    #[arg(long)]
    counts_votes: bool,
    /// File with further users of the broker inside, besides --user: NAME:PASSWORD in each line
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "broker",
        requires = "user"
    )]
    users: Option<PathBuf>,
    /// Number of modules to keep
    #[arg(long, default_value = "256")]
    modules: u32,
    /// Serve a page for a browser here, which shows gateways, followers and tasks live
    #[cfg(feature = "page")]
    #[arg(long, value_name = "ADDRESS:PORT")]
    page: Option<SocketAddr>,
    /// Token that readers of the page need, as `?token=` or as a bearer token: 16 to 128 letters,
    /// digits and -._~. Required unless the page is at a loopback address
    #[cfg(feature = "page")]
    #[arg(
        long,
        value_name = "TOKEN",
        requires = "page",
        env = "SELVEDGE_FAAS_PAGE_TOKEN",
        hide_env_values = true
    )]
    page_token: Option<selvedge_faas::page::Token>,
    /// Log changes to the standard error
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    child: ChildArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VotingArg {
    /// More than half of all gateways
    Static,
    /// More than half of the connected gateways
    Dynamic,
}

impl Gateway {
    pub(crate) fn run(self) -> Result<Infallible, Failure> {
        self.child.obey();
        let mut peers = Vec::new();
        for Named { id, address } in self.peers.iter().cloned() {
            let id = id.ok_or(Failure::Usage("--peer has no id: give --peer ID=HOST:PORT"))?;
            if id.0 == self.id {
                let why = "a --peer has the id of this gateway: give each other gateway once";
                return Err(Failure::Usage(why));
            }
            if peers.iter().any(|it: &(NodeId, Address)| it.0 == id) {
                let why = "a --peer id is given twice: give each other gateway its own id";
                return Err(Failure::Usage(why));
            }
            peers.push((id, address));
        }
        self.check_addresses()?;
        #[cfg(feature = "tls")]
        self.access
            .check(self.broker.is_none(), !peers.is_empty())?;
        let memory = match (self.first, self.forgot) {
            (true, _) => Memory::NeverStarted,
            (false, true) => Memory::Lost,
            (false, false) => Memory::Kept,
        };
        let listen = self.listen;
        let voting = match self.voting {
            VotingArg::Static => Voting::Static,
            VotingArg::Dynamic => Voting::Dynamic,
        };
        // A gateway that leads announces decisions at once: here a message costs less than a wait.
        let replica = Config::new().replica.with_commit_delay(Span::millis(5));
        let config = Config::new()
            .with_replica(replica)
            .with_voting(voting)
            .with_function_time(Span::secs(self.function_time))
            .with_timeout(Span::secs(self.timeout));
        let limits = Limits::new()
            .with_unit(self.unit)
            .with_counts_votes(self.counts_votes);
        let options = Options {
            id: NodeId(self.id),
            broker: self
                .broker
                .clone()
                .map_or(Broker::Embedded { listen }, Broker::At),
            advertise: self.advertise.clone(),
            peers,
            access: self.access.access()?,
            users: self.users()?,
            #[cfg(feature = "tls")]
            identity: self.access.identity()?,
            data: self.data.clone(),
            memory,
            config,
            limits,
            room: Room {
                modules: self.modules.max(1),
                bytes: 64 << 20,
            },
            #[cfg(feature = "page")]
            page: self.page.map(|listen| selvedge_faas::page::Options {
                listen,
                token: self.page_token.clone(),
            }),
            is_verbose: self.verbose,
        };
        Ok(gateway::run(options)?)
    }

    /// Checks that other nodes can be given an address of the broker inside.
    fn check_addresses(&self) -> Result<(), Failure> {
        let why = match self.broker {
            None if self.listen.port() == 0 => {
                "--listen has port 0, so no other node could find the broker: choose a port"
            }
            None if self.listen.ip().is_unspecified() && self.advertise.is_none() => {
                "--listen is for all addresses, so other nodes need one at which they find it: give --advertise HOST:PORT"
            }
            None | Some(_) => return Ok(()),
        };
        Err(Failure::Usage(why))
    }

    /// The users of the file. A name in both the file and the flags needs the same password in
    /// both.
    fn users(&self) -> Result<Option<Users>, Failure> {
        let users = self.users.as_deref().map(Users::open).transpose()?;
        let access = self.access.access()?;
        let user = access.user.as_deref().unwrap_or_default();
        let known = users.as_ref().and_then(|it| it.password(user));
        if known.is_some_and(|it| it != access.password) {
            let why = "--users gives --user another password than SELVEDGE_FAAS_PASSWORD does: make them equal";
            return Err(Failure::Usage(why));
        }
        Ok(users)
    }
}
