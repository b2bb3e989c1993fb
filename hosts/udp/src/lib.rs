//! A host for one node over UDP, on tokio: membership, locks of the mesh, its leader, and maps and
//! routines that k-groups hold.
//!
//! [`Host::start`] takes a [`Setup`] and returns a [`Handle`], which threads and tasks clone.
//! Through it they read the node's latest published state ([`Handle::members`],
//! [`Handle::leader`]), send requests ([`Handle::lock`], [`Handle::elect`], [`Handle::map`],
//! [`Handle::leave`]), read events ([`Handle::events`]), and wait for a state ([`Handle::joined`],
//! [`Handle::wait_for`]). [`recipes`] has locks, elections, queues and others of maps.
//!
//! ```no_run
//! use selvedge_udp::seal::{Seal, read_key_file};
//! use selvedge_udp::{Election, Host, NodeId, Seed, Setup, Span};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let setup = Setup::new(NodeId(7), "0.0.0.0:7001".parse()?)
//!     .seeds([Seed::named("mesh.example:7001").await?])
//!     .seal(Seal::new(read_key_file("mesh.key".as_ref())?, "printers"))
//!     .locks(16)
//!     .election(Election::paced(Span::secs(1), 2, 1));
//! let node = Host::start(setup).await?;
//!
//! let mut events = node.events();
//! node.joined().await?;
//! let guard = node.lock("printer".parse()?).await?;
//! println!("{} members, token {:?}", node.members().len(), guard.token());
//! drop(guard);
//! println!("{:?}", events.recv().await?);
//! node.leave().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | membership, locks, elections and k-groups keep the promises of their crates | those of [`selvedge`] |
//! | each command gets one outcome, also when the node stops meanwhile | |
//! | a reader that saw an event, or got an outcome, reads a state that reflects it | |
//! | an event is read, or counted as missed by the reader ([`RecvError::Lagged`](selvedge_core::shared::RecvError::Lagged)) | |
//! | the node's promises in k-groups survive a restart and a power cut ([`Setup::state`]): no message and no event of k-groups is seen before the facts before it are stored | each start has the same folder, and never an earlier copy of it, which is not detected; the promises of `selvedge_store` |
//! | a restarted node has the site that was decided, whatever its program passes | the same; without a folder, another node that has it is up |
//! | all members have the tags that a node set last ([`Handle::set_tags`]), and never go back to an earlier value of the same life | messages arrive in both directions infinitely often; the member is not forgotten meanwhile |
//! | a [`Session`] of a map is kept alive in each life of the node, and ends when it is dropped or the node leaves | those of [`store`](selvedge_groups::store) |
//! | a [`PrefixWatch`] returns each change of its prefix, or that changes were forgotten | the same |
//! | each member answers a question of [`Handle::query`] once at most, and its programs get it once | the member does not begin a new life meanwhile; a node asks no more than 16 questions at once |
//! | memory is bounded, for any datagrams and any slow readers | the limits of [`Setup`] and its settings |
//! | a datagram that is no frame of the mesh is dropped and counted ([`traffic`]) | |
//! | a node at `0.0.0.0` or `[::]` that advertises no address announces the one from which it answers others | no NAT between them: else [`Setup::advertise`], and [`NodeEvent::Announced`] without an address reports it |
//! | a seed's name is looked up while the seed does not answer, and while it has this node's own addresses alone and no other node is known ([`NodeEvent::Seed`]) | [`Seed::named`], [`Seed::found_later`], [`Seed::found_by`] |
//! | a node reports with the error when all its sends fail ([`NodeEvent::Unsent`], [`NodeState::is_mute`]) | after three in a row and two periods |
//! | the port and the folder are free when [`Handle::leave`] or [`Handle::kill`] returns | for the folder, the disk completes the current write |
//!
//! # Waits and their ends
//!
//! A node joins when one of its seeds answers, and at once if no seed is another node. All calls
//! may be made before.
//!
//! | call | waits until | ends early with |
//! |---|---|---|
//! | [`Handle::joined`] | the node is in the mesh | [`Closed`](Error::Closed) when the node has stopped |
//! | [`Handle::wait_for`] | the published state is as wanted | the same |
//! | [`Handle::lock`], [`Handle::lock_until`] | the node has joined, and it is this caller's turn | [`LockError`]: refused, timed out, or the node leaves or has stopped |
//! | [`Handle::elect`], [`Handle::set_max_lives`], [`Handle::set_bounds`] | the node has joined, and has accepted the command | [`Error`]: refused, or the node has stopped |
//! | [`Map`]'s calls, [`Handle::trigger`], [`Handle::reported`], [`Handle::acted`] | the node has joined, and for a request its group has answered | the same; a new life of the node ends a request, and so does a site that differs from that of others ([`Reject::OtherSite`]) |
//! | [`Handle::change_site`] | the node has joined, the registry has decided, and this node has the site | the same; [`Reject::OtherChange`] when another site was decided first |
//! | [`Handle::begin_anew`] | the node has joined, and has accepted it | [`Error`]: refused, or the node has stopped |
//! | [`Handle::set_spared`] | the node has accepted it | the same |
//! | [`Handle::set_tags`] | the node has accepted them, also before it has joined; others have them some periods later | [`Error`]: too long, or the node has stopped |
//! | [`Handle::query`] | the node has joined, and has asked | [`Error`]: refused, or the node has stopped |
//! | [`Answers::next`](query::Answers::next) | another member has answered | `None`: all have answered or ended, the time is over, or the node has stopped or begun a new life |
//! | [`Handle::answer`] | the node has accepted it | [`Error`]: refused, or the node has stopped |
//! | [`Watch::next`] | the entry differs from the last returned one | the same |
//! | [`PrefixWatch::next`] | an entry was changed or removed | the same |
//! | [`Session::lapsed`] | the session may have ended | it has no error: also when the node has stopped |
//! | [`Session::ended`] | the session is over | [`Closed`](Error::Closed) when the node has stopped |
//! | [`Handle::leave`] | guards are dropped, and the announcement has ended | [`Unanswered`](Error::Unanswered) when the node is killed |
//! | [`Guard::fenced`] | another node may have the lock | [`gate::Closed`](selvedge_core::shared::gate::Closed) when this node leaves or has stopped |
//! | [`Events::recv`](selvedge_core::shared::Subscriber::recv) | there is an event | [`RecvError`](selvedge_core::shared::RecvError) |
//!
//! A dropped future stops waiting. A command that the node has already accepted is carried out.
//!
//! # Tags
//!
//! A node has [`Tags`], its application's data: names with values, at most 512 bytes. [`Setup::tags`]
//! gives the first ones, [`Handle::set_tags`] replaces them, and each member has them in its list
//! ([`MemberInfo::tags`]) and learns of a change by an event ([`NodeEvent::TagsChanged`]). A node that is
//! started again has the tags of its new setup.
//!
//! ```no_run
//! use selvedge_udp::{Host, NodeEvent, NodeId, Setup, Tags};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let setup = Setup::new(NodeId(7), "127.0.0.1:7001".parse()?).tags([("role", "storage")]);
//! let node = Host::start(setup).await?;
//! let mut events = node.events_from_oldest();
//! node.set_tags([("role", "storage"), ("load", "3")]).await?;
//! let members = node.members();
//! let stores = members.iter().filter(|it| it.tags.get("role") == Some("storage"));
//! println!("{} nodes store", stores.count());
//! while let Ok(observed) = events.recv().await {
//!     if let NodeEvent::TagsChanged { member, tags } = observed.event {
//!         println!("{member} has {tags}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A change costs as much as a member that joins: each node passes the tags on 3 ceil(ln(N + 1)) times,
//! and a frame has room for few records with long tags. So tags suit data that changes seldom, and short
//! tags are better. Many nodes with long tags that join at once are on all lists later than nodes without
//! tags; refutations have to wait, too, and a few lists may take a live node for failed for a while. Tags are
//! no secret among members, and a member can lie about those of others for a while, see
//! [`selvedge_membership`].
//!
//! # A building that changes
//!
//! A building begins with a site of generation 0, alike on all nodes. Later its nodes, devices and routines
//! change while all nodes run: [`Handle::site`] is the present site, [`Handle::change_site`] of any node
//! makes another one of it, and [`NodeEvent::Site`] reports each that was decided. A node that is started
//! with a site of a later generation proposes that: so a restart of all nodes, one after another, rolls out
//! a new file. A node that the present site does not have waits until a change adds it.
//!
//! Where the site of a node's program cannot become the present one, the node reports it once
//! ([`NodeEvent::OtherSite`]) and refuses requests ([`Reject::OtherSite`]); both name the part that differs.
//! It goes on as a member of groups by the present site.
//!
//! A map that lost its members for good begins anew by [`Handle::begin_anew`]. Clusters and routines begin anew
//! by themselves, unless too many nodes are away for that. The book's chapter on routines without a hub has the
//! tasks of an operator.
//!
//! # Without a runtime
//!
//! [`Host::blocking_start`] gives the node its own thread. Then the application needs no runtime:
//! most waits have a `blocking_` form, and the others go through [`block_on`].
//!
//! ```
//! use selvedge_udp::{FencingToken, Host, NodeId, Setup};
//!
//! let alone = Setup::new(NodeId(7), "127.0.0.1:0".parse()?).locks(1);
//! let node = Host::blocking_start(alone)?;
//! let guard = node.blocking_lock("printer".parse()?)?;
//! println!("page 1, with the token {}", FencingToken::from(guard.token()));
//! drop(guard);
//! node.blocking_leave()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In a task of a tokio runtime, [`block_on`] and the `blocking_` calls of [`Handle`] panic, as
//! tokio's own do: in a runtime with one thread the node would never get to answer. Await the call
//! without `blocking_` there, or move it to [`spawn_blocking`](tokio::task::spawn_blocking). The
//! `blocking_` calls of [`Gate`], [`Guard`] and [`Events`] are core's, which knows no runtime: in
//! such a task they do not panic, and may wait for ever.
//!
//! # A dead holder of a lock
//!
//! Other nodes cannot distinguish a dead holder of a lock from a slow one. After `kill -9` of its
//! process, membership declares it failed within some periods, and the lock still is not given: by
//! default all users that ask for it wait until the holder's end is certain. [`Handle::waits_for`]
//! and [`LockError::TimedOut`] name the members that a lock waits for. [`Handle::members`] has
//! their status, until membership forgets them.
//!
//! | end of the wait | needs |
//! |---|---|
//! | the holder's process is started again under its id: a later life ends the former one | a supervisor that restarts it, and room for the restart in [`Setup::locks`] |
//! | an operator confirms that it is dead: [`Confirm`](selvedge_membership::Command::Confirm), by [`Handle::command`] of one node; the others learn of it | the confirmation is true: if the holder lives, two nodes have the lock |
//! | [`Setup::takeover`]: it is passed over some time after it was declared failed | the resource keeps the greatest token that it has seen, and refuses lower ones: a holder that is slow or cut off has the lock together with its successor |
//!
//! The tokens of later entries are greater in all three. A holder that was passed over and lives
//! learns that as soon as it can be reached ([`Guard::fenced`]); until then only the resource can
//! refuse its writes. With [`Setup::keep`] the same is true of a node that dies outside, while it keeps its
//! permissions; [`Setup::eager`] enters with a quorum and does not wait for the others. None of the three helps if the holder's node runs and its guard is never
//! dropped. If no more than half of the nodes of [`Setup::locks`] can be reached, a lock is
//! refused.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use selvedge_udp::{FencingToken, Host, LockError, NodeId, Setup, Span};
//! use tokio::time::sleep;
//!
//! /// The resource that the lock protects.
//! #[derive(Default)]
//! struct Page {
//!     greatest: FencingToken,
//!     text: String,
//! }
//!
//! impl Page {
//!     fn write(&mut self, token: FencingToken, text: &str) -> Result<(), &'static str> {
//!         if token < self.greatest {
//!             return Err("another node has the lock: ask for it again");
//!         }
//!         self.greatest = token;
//!         self.text = text.to_owned();
//!         Ok(())
//!     }
//! }
//!
//! # async fn run(mut page: Page) -> Result<(), Box<dyn std::error::Error>> {
//! let setup = Setup::new(NodeId(7), "192.0.2.7:7001".parse()?)
//!     .seeds(["192.0.2.1:7001".parse::<std::net::SocketAddr>()?])
//!     .locks(16)
//!     // The page checks tokens.
//!     .takeover(Span::secs(10));
//! let node = Host::start(setup).await?;
//! match node.lock_until("page".parse()?, sleep(Duration::from_secs(60))).await {
//!     Ok(guard) => page.write(guard.token().into(), "new")?,
//!     Err(LockError::TimedOut { waits_for }) => {
//!         let members = node.members();
//!         let awaited = members.iter().filter(|it| waits_for.contains(&it.member));
//!         for it in awaited {
//!             eprintln!("{} is {:?}: is its process dead?", it.member, it.status);
//!         }
//!     }
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! `estimate`: the estimators of `selvedge`, which can raise the bound of locks
//! (`Exclusion::with_counting`) and give elections their c (`estimation` in `Election::config`). Off by
//! default: without measurements a program gives both numbers. `selvedge node` has it.
//!
//! # How it works
//!
//! One task owns the [`Driver`](selvedge_core::Driver), the socket, the [`Directory`](discovery::Directory) and the
//! generator. Handles reach it through [`selvedge_core::shared`].
//!
//! A node announces its addresses and [tags](#tags) as its metadata
//! ([`Announcement`](discovery::Announcement)), so that members learn of one
//! another's addresses together with their existence. A node that listens at `[::]` sends to both
//! families of addresses. A node that listens at all addresses of its host and has none to advertise
//! asks the system from which address datagrams to a member go, at most once a second: the member
//! reaches the node at this address. The node announces as many addresses as fit into the metadata
//! beside its tags.
//! It announces no address of loopback beside others, and no private address that it uses towards a
//! public one, because a NAT is between the two.
//!
//! A link-local address (`fe80::1%eth0`, read by [`address::parse`]) is announced without its
//! scope, because each host numbers its own interfaces. The receiver uses the interface on which
//! datagrams of the member, or the first update about it, arrived, else the interface of its own
//! link-local address.
//!
//! The socket is a [`Transport`](transport::Transport): [`Udp`](transport::Udp), or for tests
//! [`Faulty`](faults::Faulty) around it.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod address;
mod announcement;
mod clock;
mod coordination;
mod directory;
mod error;
mod event;
mod facts;
pub mod faults;
mod gates;
mod handle;
mod host;
mod keeper;
mod kept;
mod locks;
mod map;
mod notice;
mod pending;
mod places;
mod prefix_watch;
mod publisher;
pub mod query;
pub mod recipes;
mod sealing;
mod seeds;
mod sends;
mod service;
mod session;
mod setup;
mod sites;
mod tags;
mod task;
pub mod traffic;
mod watch;

pub use clock::new_life;
pub use directory::MAX_NODE_ID;
pub use error::HostError;
pub use event::{MemberInfo, NodeEvent, NodeState, Observed};
pub use gates::{Gate, Guard, NoEntry};
pub use handle::{Events, Handle};
pub use host::Host;
pub use locks::LockError;
pub use map::Map;
pub use prefix_watch::{PrefixNews, PrefixWatch};
pub use seeds::Seed;
pub use service::{Error, Reject};
pub use session::{Begun, Session};
pub use setup::Setup;
pub use tags::{Tags, TagsTooLong};
pub use watch::Watch;

/// The addresses of members, and news about seeds and about this node itself.
pub mod discovery {
    pub use crate::announcement::Announcement;
    pub use crate::directory::Directory;
    pub use crate::event::{OtherSite, Twin, Unsent};
    pub use crate::seeds::{SeedFound, SeedNews};
}

pub use selvedge;
pub use selvedge::Election;
pub use selvedge::core::{FencingToken, Member, NodeId, Span};
pub use selvedge_host::parts::Clock;
pub use selvedge_host::{block_on, transport};
pub use selvedge_seal as seal;
pub use selvedge_store as store;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
