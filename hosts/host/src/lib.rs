//! A host for any machine over UDP, on tokio.
//!
//! A [`Machine`] does no I/O. [`Host::start`] gives it all that it needs: a socket, a clock, timers,
//! a generator, frames around its messages, and optionally encryption
//! ([`Setup::seal`]), another [`transport`] than UDP, and storage (`Host::start_durable`). It returns
//! a [`Handle`], through which threads and tasks submit commands, read events and a published
//! snapshot, and end the host.
//!
//! ```
//! use selvedge_core::wire::{self, bytes_len};
//! use selvedge_core::{Context, Input, Machine, Member};
//! use selvedge_host::{Host, Setup};
//! use serde::{Deserialize, Serialize};
//!
//! /// Shows the latest note that any node wrote.
//! #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
//! struct Board { latest: String }
//!
//! #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
//! struct Note(String);
//!
//! impl wire::Message for Note {
//!     const KIND: u8 = 201; // 128 and above are free for machines of one's own.
//!     fn encoded_len(&self) -> usize { bytes_len(self.0.len()) }
//! }
//!
//! impl Machine for Board {
//!     type Message = Note;
//!     type Timer = ();
//!     type Command = String;
//!     type Event = (Member, String);
//!     type Reject = &'static str;
//!
//!     fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), &'static str> {
//!         match input {
//!             Input::Command(note) if note.is_empty() => return Err("write something"),
//!             Input::Command(note) => {
//!                 self.latest = note.clone();
//!                 cx.multicast(Note(note));
//!             }
//!             Input::Message { from, message: Note(note) } => {
//!                 self.latest = note.clone();
//!                 cx.event((from, note));
//!             }
//!             Input::Tick(()) | Input::Membership(_) => {}
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! // Two nodes in one process. Nodes of two machines use `Setup::new` with an address.
//! let members = [Member::new(1, 0), Member::new(2, 0)];
//! let mut sockets = Vec::new();
//! let mut peers = Vec::new();
//! for member in members {
//!     let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
//!     peers.push((member.id, socket.local_addr()?));
//!     sockets.push(socket);
//! }
//! let mut nodes = Vec::new();
//! for (me, socket) in members.into_iter().zip(sockets) {
//!     let setup = Setup::bound(me, socket)
//!         .peers(peers.clone())
//!         .view(|board: &Board| board.latest.clone());
//!     nodes.push(Host::start(Board::default(), setup).await?);
//! }
//!
//! let mut events = nodes[1].events();
//! nodes[0].submit("back at noon".to_owned()).await?;
//! assert_eq!(events.recv().await?, (members[0], "back at noon".to_owned()));
//! assert_eq!(*nodes[1].snapshot(), "back at noon");
//! assert!(nodes[0].submit(String::new()).await.is_err());
//! nodes[0].stop().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! | promise | under which assumption |
//! |---|---|
//! | the machine gets each input in one step, its timers tick when they are due, and effects are carried out in order | the machine keeps the [rules for machines](selvedge_core) |
//! | each command gets one outcome, also when the host ends meanwhile | |
//! | a reader that saw an event, or got an outcome, reads a snapshot that reflects it | |
//! | any datagram may come: unless it is a frame of the machine's kind from a peer, it is dropped and counted ([`Traffic`]) | |
//! | a message is delivered under the id of the peer that sent it | [`Setup::seal`]; in the clear: no other host sends from a peer's address |
//! | a fact is stored before a message, event, snapshot, answer or [read](Handle::read) of its step, or of a later one, is seen (`Host::start_durable`) | the promises of `selvedge_store` |
//! | a host that cannot store ends, with the error ([`Handle::ended`]) | |
//! | memory is bounded, by the limits of [`Setup`] | the machine's memory is bounded |
//! | the port is free when [`Handle::leave`], [`Handle::stop`] or [`Handle::ended`] returns, and the folder of a durable machine is | for the folder, the disk ends the write that is under way |
//!
//! Delivery is best effort, as everywhere under the contract: datagrams get lost, and the machine sends again.
//!
//! # Limits
//!
//! It looks up no names and announces no addresses, and it detects failures among its fixed peers alone
//! ([`Setup::heartbeat`]). A machine for nodes that come and go gets changes of membership by
//! [`Handle::learn`], or is composed with `selvedge-membership` into one machine. `selvedge-udp` is the
//! host for a node of a mesh, which does all three.
//!
//! # How it works
//!
//! One task owns the [`Driver`](selvedge_core::Driver), the socket, the generator and the store. It
//! works in rounds: it takes the datagrams, commands and timers that are there, up to a bound, stores the
//! facts of the round in one write, carries out its effects, publishes, and answers. The machine takes
//! no input while a write is under way. A host of your own can use its [`parts`].
//!
//! # Features
//!
//! `store`: `Host::start_durable` and `Host::blocking_start_durable`, for machines that are
//! [`Durable`](selvedge_core::durable::Durable), with `selvedge-store`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod beats;
mod blocking;
mod error;
mod handle;
mod host;
mod keep;
pub mod parts;
mod peers;
mod setup;
mod task;
mod traffic;
pub mod transport;

use selvedge_core::Machine;
use selvedge_core::wire;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use blocking::block_on;
pub use error::{HostError, RunError};
pub use handle::{Error, Handle};
pub use host::Host;
pub use setup::Setup;
pub use traffic::Traffic;

/// A machine that a [`Host`] can run: its parts can move to another thread, and its messages can be
/// written to frames. Each such [`Machine`] has this trait without an implementation of its own.
#[diagnostic::on_unimplemented(
    message = "a host cannot run the machine `{Self}`",
    note = "its Message implements `selvedge_core::wire::Message`, `serde::Serialize` and `serde::Deserialize`",
    note = "the machine, its Message, Timer, Command and Reject are `Send`, and its Event is `Send` and `Sync`"
)]
pub trait Hosted:
    Machine<
        Message: wire::Message + Serialize + DeserializeOwned + Send,
        Timer: Send,
        Command: Send,
        Event: Send + Sync,
        Reject: Send,
    > + Send
    + 'static
{
}

impl<M> Hosted for M where
    M: Machine<
            Message: wire::Message + Serialize + DeserializeOwned + Send,
            Timer: Send,
            Command: Send,
            Event: Send + Sync,
            Reject: Send,
        > + Send
        + 'static
{
}

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
