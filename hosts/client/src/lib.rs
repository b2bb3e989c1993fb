//! A client of `selvedge-agent`: a program that is no member of a mesh uses the mesh's maps, locks, elections,
//! services and queues through the agent of its host, over HTTP on a loopback address or a Unix socket.
//!
//! [`Agent`] has the mesh's calls and [`Agent::map`] those of a map. A [`Hold`] is a lock, a place in an election
//! or the like, kept by a connection; [`Events`] are reports without end.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use selvedge_client::{Agent, Error, Kind};
//!
//! # async fn run() -> Result<(), Error> {
//! let agent = Agent::new("http://127.0.0.1:7780")?;
//! let settings = agent.map("settings");
//! let version = settings.put("heating/target", "21").await?;
//! let changed = settings.compare_and_set("heating/target", version, "20").await;
//! if changed.is_err_and(|it| it.kind() == Some(Kind::Mismatch)) {
//!     println!("another program was faster");
//! }
//!
//! let patient = agent.with_wait(Duration::from_secs(60));
//! let lock = patient.lock("printer", Duration::from_secs(10)).await?;
//! tokio::select! {
//!     () = print(lock.token()) => lock.release().await?,
//!     () = lock.lapsed() => println!("stopped: another program may print now"),
//! }
//! # Ok(())
//! # }
//! # async fn print(token: Option<&selvedge_client::Token>) {}
//! ```
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | a [`Hold`] lapses before the mesh gives it to another program, also while its agent is stopped | the host is not suspended: that time does not count on every system; clocks differ by less than an eighth in speed |
//! | it lapses when its agent reports that it was released or lost its session in the mesh | its runtime runs tasks |
//! | it lapses as soon as its connection breaks, and has ended its time to live later | the system closes the connections of a process that ends |
//! | it ends when its agent was silent for its time to live, and at least for [`Hold::SILENCE`] | as for the lapse |
//! | a dropped hold ends | the agent sees that the connection is closed; else its time to live after |
//! | a call ends: with an answer, or an [`Error`] at most [`Agent::GRACE`] after its [wait](Agent::with_wait) | |
//! | an answer of any bytes is a value or an error, and takes bounded memory: [`Agent::LONGEST`] bytes for an answer or an event | |
//! | [`Error::Unreachable`] and [`Error::Refused`] of another kind than [`Timeout`](Kind::Timeout) and [`Unavailable`](Kind::Unavailable): nothing was changed; else it may have been | the agent's own promise |
//! | the token is in no `Debug` text | |
//!
//! A program may use a hold late: between a look at [`is_held`](Hold::is_held) and the use there may be a pause of
//! the process, of any length, or a suspended host. A resource that must not be used by two checks [`Hold::token`]:
//! tokens of one map grow from holder to holder.
//!
//! Without TLS: an agent on another host is reached through a tunnel. Every call has a connection of its own, and a
//! task of the runtime of tokio on which it is made.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

mod agent;
mod calls;
mod connection;
mod error;
mod events;
mod hold;
mod map;
mod standing;
mod types;

pub use self::agent::Agent;
pub use self::error::{Error, Kind};
pub use self::events::Events;
pub use self::hold::Hold;
pub use self::map::{Listing, Map, MapEvent, Outcome, Step, Transaction};
pub use self::types::{
    Answers, Candidate, Change, Elected, Entry, HoldInfo, Info, Instance, Leader, LockPlace,
    Member, MemberAnswer, MeshEvent, Part, PartOutcome, Question, Reloaded, Status, Token, Value,
};
