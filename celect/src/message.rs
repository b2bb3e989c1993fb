//! What is sent; nothing else is.

use alloc::sync::Arc;

use selvedge_core::wire::{self, HEADER_LEN, List, MEMBER_MAX_LEN, Room, member_len, varint_len};
use selvedge_core::{Member, NodeId, Span};

use crate::config::FRAME_MIN;
use crate::{Ballot, Source};

/// The protocol's kind in a frame header.
pub const KIND: u8 = 5;

/// Members, in an order that the sender's message defines. As many as
/// [`Config::x`](crate::Config::x) and [`Config::y`](crate::Config::y) are by default allocate
/// nothing.
pub type Members = List<Member, 5>;

/// The length of the longest QUERY or RESPONSE without its lists: a ballot, and two numbers and a
/// flag or the lengths of up to three lists.
pub(crate) const ASKED_MAX_LEN: usize = 1 + (10 + 15 + 5) + 3 * 3;

/// How many names the shortest RESPONSE holds, whatever the names are.
pub(crate) const NAMES_MIN: usize =
    (FRAME_MIN as usize - HEADER_LEN - MEMBER_MAX_LEN - ASKED_MAX_LEN) / MEMBER_MAX_LEN;

/// The length of the longest LEADER without its list: a ballot, a member, two numbers, a flag, and
/// the length of the list.
pub(crate) const LEADER_MAX_LEN: usize = 1 + (10 + 15 + 5) + 15 + 5 + 10 + 1 + 3;

/// The length of the longest part of a list without the list: two numbers, an id, one more number.
pub(crate) const PART_MAX_LEN: usize = 1 + 5 + 5 + 10 + 1 + 3;

/// The state of a leader, as the sender of LEADER knows it. The order is that of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum LeaderState {
    /// It leads.
    #[default]
    Leads,
    /// It led, and the sender believes that it is gone.
    Gone,
    /// It leads, and no majority of the nodes that it knows follows it
    /// ([`Config::keep_leader`](crate::Config::keep_leader)).
    Few,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Message {
    /// Asks which nodes the receiver knows. Answered by [`Message::Response`], or by
    /// [`Message::Leader`] where a larger ballot has a leader.
    Query {
        /// Of this round of the sender's run.
        ballot: Ballot,
        /// How many of the lowest nodes to name.
        x: u8,
        /// How many of the most suspected nodes to name, and not to name among the lowest.
        y: u8,
        /// How many other nodes to name, whichever they are: 0 unless the sender knows too few.
        want: u16,
        /// Nodes not to name: they did not answer when they were appointed.
        exclude: Members,
        /// Whether the sender has no majority of the nodes that it knows, or follows a leader that
        /// has none ([`Config::keep_leader`](crate::Config::keep_leader)).
        few: bool,
    },
    /// Nodes that the sender knows.
    Response {
        /// Which round it answers.
        ballot: Ballot,
        /// The lowest nodes, the lowest first. The sender is one of the nodes that it knows.
        candidates: Members,
        /// The most suspected nodes.
        unhealthy: Members,
        /// Other nodes, as many as were wanted.
        known: Members,
    },
    /// The receiver leads (the thesis' NOTIFYLEADER). Answered by [`Message::Leader`].
    Appoint {
        /// By this ballot.
        ballot: Ballot,
        /// The incarnation of the receiver that is meant: a message reaches a node in whichever
        /// life the node is.
        life: u32,
        /// As in [`Message::Query`].
        few: bool,
    },
    /// Says which node leads. Answered by [`Message::LeaderAck`].
    Leader {
        /// By this ballot.
        ballot: Ballot,
        /// The leader.
        leader: Member,
        /// How often its lease was renewed.
        renewal: u32,
        /// How long the leader is followed without being renewed: the leader's own
        /// [`Config::lease`](crate::Config::lease). Zero for ever.
        lease: Span,
        /// How the leader stands.
        state: LeaderState,
        /// The nodes that LEADER is sent to, in order and as far as they fit: the receiver does not
        /// send it to them again. Shared by all copies of the message.
        #[cfg_attr(feature = "serde", serde(with = "selvedge_core::wire::items"))]
        covered: Arc<[Member]>,
    },
    /// The sender has heard which node leads.
    LeaderAck {
        /// By which ballot.
        ballot: Ballot,
        /// Of which renewal.
        renewal: u32,
    },
    /// Asks which nodes are on the receiver's list, from this id on (SAMPLEQUERY). Answered by
    /// [`Message::SampleResponse`].
    SampleQuery {
        /// Which sample of the sender.
        run: u32,
        /// Where to begin: the part before it has arrived.
        from: NodeId,
    },
    /// A part of the sender's list (SAMPLERESPONSE).
    SampleResponse {
        /// Which sample of the receiver this answers.
        run: u32,
        /// The incarnation of the receiver that is meant.
        life: u32,
        /// Where this part begins.
        from: NodeId,
        /// All nodes on the list from there on, by id, as far as they fit. The sender is not named.
        members: Members,
        /// Whether more nodes follow these.
        more: bool,
    },
    /// How the sender's run that appointed the receiver went (FEEDBACKVALUE).
    Feedback {
        /// The ballot by which the receiver leads.
        ballot: Ballot,
        /// How many answers of others the run rests on.
        answers: u16,
        /// How many of them did not name the receiver.
        missing: u16,
    },
    /// The c that the leader found.
    Estimate {
        /// The ballot by which the sender leads.
        ballot: Ballot,
        /// Counts the estimates that the leader told under this ballot.
        number: u32,
        /// Where the estimate comes from.
        source: Source,
        /// The upper bound on c.
        upper: u16,
        /// How often the bound is too low, in parts per million.
        miss: u32,
    },
}

impl Message {
    /// How long the message becomes in postcard's encoding.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Query {
                ballot,
                want,
                exclude,
                ..
            } => ballot.encoded_len() + 3 + varint_len((*want).into()) + members_len(exclude),
            Self::Response {
                ballot,
                candidates,
                unhealthy,
                known,
            } => {
                ballot.encoded_len()
                    + members_len(candidates)
                    + members_len(unhealthy)
                    + members_len(known)
            }
            Self::Appoint { ballot, life, .. } => {
                ballot.encoded_len() + varint_len((*life).into()) + 1
            }
            Self::Leader {
                ballot,
                leader,
                renewal,
                lease,
                covered,
                ..
            } => {
                ballot.encoded_len()
                    + member_len(*leader)
                    + varint_len((*renewal).into())
                    + varint_len(lease.0)
                    + 1
                    + members_len(covered)
            }
            Self::LeaderAck { ballot, renewal } => {
                ballot.encoded_len() + varint_len((*renewal).into())
            }
            Self::SampleQuery { run, from } => varint_len((*run).into()) + varint_len(from.0),
            Self::SampleResponse {
                run,
                life,
                from,
                members,
                ..
            } => {
                varint_len((*run).into())
                    + varint_len((*life).into())
                    + varint_len(from.0)
                    + members_len(members)
                    + 1
            }
            Self::Feedback {
                ballot,
                answers,
                missing,
            } => {
                ballot.encoded_len() + varint_len((*answers).into()) + varint_len((*missing).into())
            }
            Self::Estimate {
                ballot,
                number,
                upper,
                miss,
                ..
            } => {
                let numbers = [*number, (*upper).into(), *miss];
                let numbers = numbers.map(|it| varint_len(it.into()));
                ballot.encoded_len() + 1 + numbers.iter().sum::<usize>()
            }
        }
    }
}

impl wire::Message for Message {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        self.encoded_len()
    }
}

fn members_len(members: &[Member]) -> usize {
    let list: usize = members.iter().copied().map(member_len).sum();
    varint_len(members.len() as u64) + list
}

/// As many of `members` as fit, and no others behind them.
pub(crate) fn cut<C: FromIterator<Member>>(
    members: impl IntoIterator<Item = Member>,
    room: &mut Room,
) -> C {
    room.fill(members, |it| member_len(*it)).0
}
