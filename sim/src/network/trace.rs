//! The trace of a run, line by line.

use core::fmt;

use selvedge_core::{Delta, Machine, Member, Time};

use super::Loss;

/// A line of a network's trace.
///
/// It displays as `<time in µs> <node> <what>`, where the machine's own values are in the form of
/// their `Debug`. The same seed gives the same lines, byte for byte, in every build and on every
/// platform, as long as these `Debug` forms stay the same.
#[derive(Debug)]
#[non_exhaustive]
pub struct TraceLine<'a, M: Machine> {
    /// The time.
    pub at: Time,
    /// The node; `None` for the whole network.
    pub node: Option<usize>,
    /// The event.
    pub what: What<'a, M>,
}

/// The event of a [`TraceLine`].
#[derive(Debug)]
#[non_exhaustive]
pub enum What<'a, M: Machine> {
    /// The node was added, or restarted.
    Started(Member),
    /// The node crashed.
    Crashed,
    /// The node was moved.
    Moved,
    /// The network was cut into this number of groups.
    Partitioned(usize),
    /// All partitions were removed.
    Healed,
    /// Links changed.
    Relinked,
    /// The node sent, to one peer or (`None`) to all neighbours.
    Sent {
        /// The receiver.
        to: Option<Member>,
        /// The message.
        message: &'a M::Message,
    },
    /// A copy sent here will never arrive, or a copy did not arrive here.
    Lost {
        /// The node it was meant for; `None` for an id that no node has.
        to: Option<usize>,
        /// Why.
        why: Loss,
    },
    /// The node received a message.
    Got {
        /// The sender.
        from: Member,
        /// The message.
        message: &'a M::Message,
    },
    /// The node's timers are due.
    Due,
    /// The node's storage has this number of facts more.
    Stored(usize),
    /// The node's application issued a command.
    Command(&'a M::Command),
    /// The node's application called a method of the machine.
    Called,
    /// The node was notified of a membership change.
    Membership(Delta),
    /// The node's machine rejected the input of the line before.
    Rejected(&'a M::Reject),
    /// The node's machine sent its application an event.
    Event(&'a M::Event),
}

impl<M: Machine> fmt::Display for TraceLine<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at.0)?;
        match self.node {
            Some(node) => write!(f, "{node} ")?,
            None => f.write_str("- ")?,
        }
        match &self.what {
            What::Started(member) => write!(f, "start {member}"),
            What::Crashed => f.write_str("crash"),
            What::Moved => f.write_str("move"),
            What::Partitioned(groups) => write!(f, "partition {groups}"),
            What::Healed => f.write_str("heal"),
            What::Relinked => f.write_str("link"),
            What::Sent {
                to: Some(to),
                message,
            } => write!(f, "send {to} {message:?}"),
            What::Sent { to: None, message } => write!(f, "multicast {message:?}"),
            What::Lost { to: Some(to), why } => write!(f, "lost {to} {why:?}"),
            What::Lost { to: None, why } => write!(f, "lost - {why:?}"),
            What::Got { from, message } => write!(f, "got {from} {message:?}"),
            What::Due => f.write_str("due"),
            What::Stored(facts) => write!(f, "stored {facts}"),
            What::Command(command) => write!(f, "command {command:?}"),
            What::Called => f.write_str("called"),
            What::Membership(delta) => write!(f, "membership {delta:?}"),
            What::Rejected(why) => write!(f, "rejected {why:?}"),
            What::Event(event) => write!(f, "event {event:?}"),
        }
    }
}

pub(super) type Sink<M> = Box<dyn FnMut(&TraceLine<'_, M>) + Send>;

/// The receivers of lines: none, unless requested.
pub(super) struct Tracer<M: Machine> {
    pub(super) sink: Option<Sink<M>>,
    pub(super) digest: Option<Fnv>,
}

impl<M: Machine> Tracer<M> {
    pub(super) fn line(&mut self, at: Time, node: Option<usize>, what: What<'_, M>) {
        if self.sink.is_none() && self.digest.is_none() {
            return;
        }
        let line = TraceLine { at, node, what };
        if let Some(digest) = &mut self.digest {
            digest.line(&line);
        }
        if let Some(sink) = &mut self.sink {
            sink(&line);
        }
    }
}

/// FNV-1a with 64 bits, over the text of all lines. It distinguishes runs; it is no protection
/// against an attacker who wants two runs to look alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fnv(pub(super) u64);

impl Fnv {
    pub(super) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    fn line(&mut self, line: &impl fmt::Display) {
        use fmt::Write as _;
        // Writing into a digest fails only when a machine's `Debug` does; the part written counts.
        writeln!(self, "{line}").ok();
    }
}

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write as _;

    #[test]
    fn digest_is_fnv_1a() {
        // Test vectors of the algorithm's authors.
        for (text, digest) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut fnv = Fnv::EMPTY;
            fnv.write_str(text).unwrap();
            assert_eq!(fnv.0, digest, "{text}");
        }
    }
}
