//! The messages, all of them.

use alloc::sync::Arc;

use selvedge_core::wire::{self, HEADER_LEN, List, MEMBER_MAX_LEN, Room, member_len, varint_len};
use selvedge_core::{Member, NodeId, Span};

use crate::config::FRAME_MIN;
use crate::{Ballot, Source};

/// The protocol's kind in a frame header.
pub const KIND: u8 = 5;

/// Members, in an order that the message defines. Lists of up to 5, the default of
/// [`Config::lowest`](crate::Config::lowest) and [`Config::suspected`](crate::Config::suspected), allocate nothing.
pub type Members = List<Member, 5>;

/// The length of the longest QUERY or RESPONSE without its lists: a ballot, and two numbers and a
/// flag or the lengths of up to three lists.
pub(crate) const ASKED_MAX_LEN: usize = 1 + (10 + 15 + 5) + 3 * 3;

/// The number of names that the shortest RESPONSE holds, for names of any length.
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
    Leading,
    /// It led, and the sender believes that it failed or left.
    Ended,
    /// It leads, and no majority of the nodes that it knows follows it
    /// ([`Config::keep_leader`](crate::Config::keep_leader)).
    NoMajority,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Message {
    /// Asks which nodes the receiver knows. Answered by [`Message::Response`], or by
    /// [`Message::Leader`] where a larger ballot has a leader.
    Query {
        /// The ballot of this round of the sender's run.
        ballot: Ballot,
        /// The number of lowest nodes to name.
        lowest: u8,
        /// The number of most suspected nodes to name, and to leave out of the lowest.
        suspected: u8,
        /// The number of any other nodes to name: 0 unless the sender knows too few.
        want: u16,
        /// Nodes not to name: they did not answer when they were appointed.
        exclude: Members,
        /// True if the sender has no majority of the nodes that it knows, or follows a leader that
        /// has none ([`Config::keep_leader`](crate::Config::keep_leader)).
        no_majority: bool,
    },
    /// Nodes that the sender knows.
    Response {
        /// The ballot of the round that it answers.
        ballot: Ballot,
        /// The lowest nodes, the lowest first. The sender is one of the nodes that it knows.
        candidates: Members,
        /// The most suspected nodes.
        unhealthy: Members,
        /// Other nodes, at most `want`.
        known: Members,
    },
    /// The receiver leads (the thesis' NOTIFYLEADER). Answered by [`Message::Leader`].
    Appoint {
        /// The ballot by which it leads.
        ballot: Ballot,
        /// The incarnation that is appointed: a message may reach a later life of the receiver.
        life: u32,
        /// See [`Message::Query`].
        no_majority: bool,
    },
    /// Announces the leader. Answered by [`Message::LeaderAck`].
    Leader {
        /// The ballot by which it leads.
        ballot: Ballot,
        /// The leader.
        leader: Member,
        /// The number of renewals under this ballot.
        renewal: u32,
        /// The time for which the leader is followed without a renewal: the leader's own
        /// [`Config::lease`](crate::Config::lease). Zero for ever.
        lease: Span,
        /// The state of the leader.
        state: LeaderState,
        /// The nodes that LEADER is sent to, in order and as far as they fit: the receiver does not
        /// send it to them again. Shared by all copies of the message.
        #[cfg_attr(feature = "serde", serde(with = "selvedge_core::wire::items"))]
        covered: Arc<[Member]>,
    },
    /// Acknowledges LEADER.
    LeaderAck {
        /// The ballot of the leader.
        ballot: Ballot,
        /// The renewal that is acknowledged.
        renewal: u32,
    },
    /// Asks which nodes are on the receiver's list, from this id on (SAMPLEQUERY). Answered by
    /// [`Message::SampleResponse`].
    SampleQuery {
        /// The number of the sender's sample.
        run: u32,
        /// Where to begin: the part before it has arrived.
        from: NodeId,
    },
    /// A part of the sender's list (SAMPLERESPONSE).
    SampleResponse {
        /// The number of the receiver's sample.
        run: u32,
        /// The incarnation of the receiver that asked.
        life: u32,
        /// The id with which this part begins.
        from: NodeId,
        /// All nodes on the list from that id on, by id, as far as they fit, without the sender.
        members: Members,
        /// True if more nodes follow these.
        more: bool,
    },
    /// The result of the sender's run that appointed the receiver (FEEDBACKVALUE).
    Feedback {
        /// The ballot by which the receiver leads.
        ballot: Ballot,
        /// The number of other nodes' answers that the run used.
        answers: u16,
        /// The number of them that did not name the receiver.
        missing: u16,
    },
    /// The leader's measured bound on c.
    Estimate {
        /// The ballot by which the sender leads.
        ballot: Ballot,
        /// The number of this estimate among those of this ballot.
        number: u32,
        /// The source of the estimate.
        source: Source,
        /// The upper bound on c.
        upper_bound: u16,
        /// The probability that the bound is too low, in parts per million.
        miss: u32,
    },
}

impl Message {
    /// Returns the length of the message in postcard's encoding, in bytes.
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
                upper_bound,
                miss,
                ..
            } => {
                let numbers = [*number, (*upper_bound).into(), *miss];
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

/// Returns the longest prefix of `members` that fits.
pub(crate) fn cut<C: FromIterator<Member>>(
    members: impl IntoIterator<Item = Member>,
    room: &mut Room,
) -> C {
    room.fill(members, |it| member_len(*it)).0
}
