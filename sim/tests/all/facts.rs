//! Machines that must not forget: voters that have one vote each, for ever, and a counter. A voter
//! that answers before it has stored its vote may give it twice. And a teller with events that are
//! no facts.

use core::convert::Infallible;

use selvedge_core::durable::Durable;
use selvedge_core::{Context, Input, Machine, Member, NodeId};

/// Candidate or voter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Voter {
    pub(crate) me: Member,
    /// True if it answers first, and emits its vote after that.
    pub(crate) is_rash: bool,
    pub(crate) vote: Option<NodeId>,
    pub(crate) is_elected: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    Ask,
    Granted,
}

/// The promise of a voter: the fact.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Voted(pub(crate) NodeId);

impl Voter {
    pub(crate) const fn new(id: u64, is_rash: bool) -> Self {
        Self {
            me: Member::new(id, 0),
            is_rash,
            vote: None,
            is_elected: false,
        }
    }
}

impl Machine for Voter {
    type Message = Message;
    type Timer = ();
    /// Asks this voter for its vote.
    type Command = Member;
    type Event = Voted;
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match input {
            Input::Command(voter) => cx.send(voter, Message::Ask),
            Input::Message {
                message: Message::Granted,
                ..
            } => self.is_elected = true,
            Input::Message {
                from,
                message: Message::Ask,
            } => match self.vote {
                Some(id) if id == from.id => cx.send(from, Message::Granted),
                Some(_) => {}
                None => {
                    self.vote = Some(from.id);
                    if self.is_rash {
                        cx.send(from, Message::Granted);
                        cx.event(Voted(from.id));
                    } else {
                        cx.event(Voted(from.id));
                        cx.send(from, Message::Granted);
                    }
                }
            },
            Input::Tick(()) | Input::Membership(_) => return Err(()),
        }
        Ok(())
    }
}

impl Durable for Voter {
    type Fact = Voted;
    type Damage = Infallible;

    fn fact(event: &Voted) -> Option<&Voted> {
        Some(event)
    }

    fn fold(&mut self, Voted(id): &Voted) -> Result<(), Infallible> {
        self.vote = Some(*id);
        Ok(())
    }
}

/// Gives out numbers, and knows which it got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Counter {
    pub(crate) last: u32,
    pub(crate) got: Vec<u32>,
}

impl Machine for Counter {
    type Message = u32;
    type Timer = ();
    /// Gives this node the next number.
    type Command = Member;
    type Event = u32;
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match input {
            Input::Command(to) => {
                self.last += 1;
                cx.event(self.last);
                cx.send(to, self.last);
            }
            Input::Message { message, .. } => self.got.push(message),
            Input::Tick(()) | Input::Membership(_) => return Err(()),
        }
        Ok(())
    }
}

impl Durable for Counter {
    type Fact = u32;
    type Damage = Infallible;

    fn fact(event: &u32) -> Option<&u32> {
        Some(event)
    }

    fn fold(&mut self, last: &u32) -> Result<(), Infallible> {
        assert_eq!(*last, self.last + 1, "in order, and none is missing");
        self.last = *last;
        Ok(())
    }
}

/// Emits each number that it is asked for. Even numbers are facts, and 10 is the first fact that it
/// refuses to fold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Notifier {
    pub(crate) folded: Vec<u8>,
}

impl Machine for Notifier {
    type Message = ();
    type Timer = ();
    type Command = u8;
    type Event = u8;
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        let Input::Command(number) = input else {
            return Err(());
        };
        cx.event(number);
        Ok(())
    }
}

impl Durable for Notifier {
    type Fact = u8;
    type Damage = u8;

    fn fact(event: &u8) -> Option<&u8> {
        Some(event).filter(|number| *number % 2 == 0)
    }

    fn fold(&mut self, number: &u8) -> Result<(), u8> {
        if *number >= 10 {
            return Err(*number);
        }
        self.folded.push(*number);
        Ok(())
    }
}
