//! The topics of messages.
//!
//! | topic | messages | read by |
//! |---|---|---|
//! | `selvedge/faas/1/<id>` | messages to node `<id>`: its inbox | the node |
//! | `selvedge/faas/1/<gateway>/relay/<to>` | messages of a follower to another follower | the gateway, which forwards them to the receiver's mailbox |
//! | `selvedge/faas/1/<gateway>/gateways` | the list of gateways; retained | followers and clients that know one broker |
//! | `selvedge/faas/1/<gateway>/status` | the status of the gateway, each second; not retained | `selvedge-faas top`; the page; clients, to learn that the gateway is up |
//!
//! A retained message at another topic than `gateways` is counted, and not read.
//!
//! `1` is the version of this table. An id is a decimal number of 64 bits without leading zeros.

use core::fmt;

use selvedge_core::NodeId;
use thiserror::Error;

/// The prefix of all topics.
const ROOT: &str = "selvedge/faas/1";
/// The length in bytes of the longest topic that is read. The longest valid topic has 63.
const LEN_MAX: usize = 64;

/// A topic of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Messages to a node.
    Inbox(NodeId),
    /// Messages of a follower to another follower by way of a gateway.
    Relay {
        /// The gateway that forwards it.
        gateway: NodeId,
        /// The follower that receives them.
        to: NodeId,
    },
    /// The list of gateways, from this one.
    Gateways(NodeId),
    /// The status of a gateway.
    Status(NodeId),
}

/// The reason why a topic does not belong to this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TopicError {
    /// It is longer than any valid topic.
    #[error(
        "the topic has {0} bytes, the limit is {LEN_MAX}: check for other publishers at this broker"
    )]
    Long(usize),
    /// It has another root or version, or another form.
    #[error("the topic is not below {ROOT}: run the same version of selvedge-faas everywhere")]
    Foreign,
    /// Its id is no decimal number of 64 bits, or has leading zeros.
    #[error("the id in the topic is no number: check for other publishers at this broker")]
    Id,
}

impl Topic {
    /// Reads a topic. Accepts any text.
    ///
    /// # Errors
    /// [`TopicError`], if it does not belong to this host.
    pub fn parse(text: &str) -> Result<Self, TopicError> {
        if text.len() > LEN_MAX {
            return Err(TopicError::Long(text.len()));
        }
        let below = text.strip_prefix(ROOT).and_then(|it| it.strip_prefix('/'));
        let mut parts = below.ok_or(TopicError::Foreign)?.split('/');
        let first = parts.next().unwrap_or_default();
        let (kind, last, more) = (parts.next(), parts.next(), parts.next());
        if more.is_some() {
            return Err(TopicError::Foreign);
        }
        match (kind, last) {
            (None, None) => Ok(Self::Inbox(id(first)?)),
            (Some("gateways"), None) => Ok(Self::Gateways(id(first)?)),
            (Some("status"), None) => Ok(Self::Status(id(first)?)),
            (Some("relay"), Some(to)) => {
                let (gateway, to) = (id(first)?, id(to)?);
                Ok(Self::Relay { gateway, to })
            }
            _ => Err(TopicError::Foreign),
        }
    }

    /// The filter of all messages that a gateway has to forward.
    #[must_use]
    pub fn relays_of(gateway: NodeId) -> String {
        format!("{ROOT}/{gateway}/relay/+")
    }

    /// The filter of the lists of all gateways.
    #[must_use]
    pub fn all_gateways() -> String {
        format!("{ROOT}/+/gateways")
    }
}

fn id(text: &str) -> Result<NodeId, TopicError> {
    let id = text.parse().map_err(|_| TopicError::Id)?;
    // Each node has one inbox: other spellings of its id, as `+7` or `007`, are refused.
    let id = NodeId(id);
    if id.to_string() == text {
        Ok(id)
    } else {
        Err(TopicError::Id)
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inbox(id) => write!(f, "{ROOT}/{id}"),
            Self::Relay { gateway, to } => write!(f, "{ROOT}/{gateway}/relay/{to}"),
            Self::Gateways(id) => write!(f, "{ROOT}/{id}/gateways"),
            Self::Status(id) => write!(f, "{ROOT}/{id}/status"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topics() -> impl Strategy<Value = Topic> {
        (0..4, any::<u64>(), any::<u64>()).prop_map(|(kind, one, other)| match kind {
            0 => Topic::Inbox(NodeId(one)),
            1 => Topic::Gateways(NodeId(one)),
            2 => Topic::Status(NodeId(one)),
            _ => Topic::Relay {
                gateway: NodeId(one),
                to: NodeId(other),
            },
        })
    }

    proptest! {
        #[test]
        fn a_topic_is_read_as_it_was_written(topic in topics()) {
            prop_assert_eq!(Topic::parse(&topic.to_string()), Ok(topic));
        }

        #[test]
        fn what_is_read_is_written_alike(text in "selvedge/faas/1/[0-9+]{0,3}(/(relay|status|x)(/[0-9]{0,2})?)?") {
            if let Ok(topic) = Topic::parse(&text) {
                prop_assert_eq!(topic.to_string(), text);
            }
        }
    }

    #[test]
    fn a_filter_has_all_topics_of_its_kind() {
        let relays = Topic::relays_of(NodeId(7));
        let (gateway, to) = (NodeId(7), NodeId(8));
        let relay = Topic::Relay { gateway, to }.to_string();
        assert_eq!(relays.replace('+', "8"), relay);
        let gateways = Topic::Gateways(NodeId(8)).to_string();
        assert_eq!(Topic::all_gateways().replace('+', "8"), gateways);
    }

    #[test]
    fn the_longest_topic_is_read() {
        let (gateway, to) = (NodeId(u64::MAX), NodeId(u64::MAX));
        let longest = Topic::Relay { gateway, to };
        assert_eq!(longest.to_string().len(), 63);
        assert_eq!(Topic::parse(&longest.to_string()), Ok(longest));
    }

    #[test]
    fn other_topics_are_refused_with_what_is_wrong() {
        for (text, why) in [
            ("", TopicError::Foreign),
            ("selvedge/faas/1", TopicError::Foreign),
            ("selvedge/faas/2/7", TopicError::Foreign),
            ("selvedge/faas/17", TopicError::Foreign),
            ("selvedge/faas/1/7/relay", TopicError::Foreign),
            ("selvedge/faas/1/7/relay/8/9", TopicError::Foreign),
            ("selvedge/faas/1/7/status/8", TopicError::Foreign),
            ("selvedge/faas/1/", TopicError::Id),
            ("selvedge/faas/1/+", TopicError::Id),
            ("selvedge/faas/1/007", TopicError::Id),
            ("selvedge/faas/1/+7", TopicError::Id),
            ("selvedge/faas/1/18446744073709551616", TopicError::Id),
            ("selvedge/faas/1/7/relay/", TopicError::Id),
        ] {
            assert_eq!(Topic::parse(text), Err(why), "{text}");
        }
        let of = |digits| format!("selvedge/faas/1/{}", "7".repeat(digits));
        assert_eq!(Topic::parse(&of(48)), Err(TopicError::Id));
        assert_eq!(Topic::parse(&of(49)), Err(TopicError::Long(65)));
    }
}
