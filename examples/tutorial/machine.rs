//! The lock: one node is the server, the others ask it.

use arbitrary::Arbitrary;
use selvedge_core::{Context, Input, Machine, Member, Span, wire};
use serde::{Deserialize, Serialize};

// ANCHOR: types
/// A node of the lock service. All nodes run this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lock {
    pub(crate) me: Member,
    pub(crate) server: Member,
    pub(crate) rules: Rules,
    pub(crate) stage: Stage,
    /// The number of this node's latest turn.
    pub(crate) turn: u32,
    /// At the server: the node that has the lock, and the turn for which it has it.
    pub(crate) holder: Option<(Member, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Idle,
    Asking,
    Inside,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Message {
    Ask(u32),
    Grant(u32),
    Release(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Arbitrary)]
pub(crate) enum Command {
    Enter,
    Exit,
}
// ANCHOR_END: types

// ANCHOR: rules
/// The versions of the lock in this chapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rules {
    /// All turns have the number 0.
    First,
    /// Each turn has a number of its own.
    Numbers,
    /// And the server reminds the holder when another node asks.
    Reminds,
}
// ANCHOR_END: rules

impl Lock {
    #[must_use]
    pub(crate) const fn new(me: Member, server: Member, rules: Rules) -> Self {
        Self {
            me,
            server,
            rules,
            stage: Stage::Idle,
            turn: 0,
            holder: None,
        }
    }
}

// ANCHOR: machine
impl Machine for Lock {
    type Message = Message;
    type Timer = ();
    type Command = Command;
    type Event = &'static str;
    type Reject = &'static str;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        match input {
            Input::Command(_) if self.me == self.server => return Err("the server takes no turn"),
            Input::Command(Command::Enter) if self.stage == Stage::Idle => {
                self.stage = Stage::Asking;
                self.begin_turn();
                self.ask(cx);
            }
            Input::Command(Command::Exit) if self.stage == Stage::Inside => {
                self.stage = Stage::Idle;
                cx.event("exited");
                cx.send(self.server, Message::Release(self.turn));
            }
            Input::Command(_) => return Err("not now"),
            Input::Tick(()) => self.ask(cx),
            Input::Message { from, message } => match message {
                Message::Ask(turn) => self.on_ask(from, turn, cx),
                Message::Grant(turn) => self.on_grant(turn, cx),
                Message::Release(turn) if self.holder == Some((from, turn)) => self.holder = None,
                Message::Release(_) => {} // Of an earlier turn.
            },
            Input::Membership(_) => {}
        }
        Ok(())
    }
}

impl Lock {
    /// Asks the server, and again each second until it grants.
    fn ask(&self, cx: &mut Context<'_, Self>) {
        cx.send(self.server, Message::Ask(self.turn));
        cx.arm((), Span::secs(1));
    }
}
// ANCHOR_END: machine

impl Lock {
    // ANCHOR: number
    fn begin_turn(&mut self) {
        if self.rules >= Rules::Numbers {
            self.turn += 1;
        }
    }
    // ANCHOR_END: number

    // ANCHOR: server
    fn on_ask(&mut self, from: Member, turn: u32, cx: &mut Context<'_, Self>) {
        match self.holder {
            Some((holder, granted)) if holder != from => {
                if self.rules >= Rules::Reminds {
                    cx.send(holder, Message::Grant(granted));
                }
            }
            Some((_, granted)) if granted > turn => {} // A late message of an earlier turn.
            _ => {
                self.holder = Some((from, turn));
                cx.send(from, Message::Grant(turn));
            }
        }
    }
    // ANCHOR_END: server

    // ANCHOR: grant
    fn on_grant(&mut self, turn: u32, cx: &mut Context<'_, Self>) {
        let is_mine = turn == self.turn;
        match self.stage {
            Stage::Asking if is_mine => {
                self.stage = Stage::Inside;
                cx.disarm(());
                cx.event("entered");
            }
            Stage::Inside if is_mine => {}
            // That turn is over, and the server has yet to learn it.
            _ if self.rules >= Rules::Reminds => cx.send(self.server, Message::Release(turn)),
            Stage::Idle | Stage::Asking | Stage::Inside => {}
        }
    }
    // ANCHOR_END: grant
}

// ANCHOR: wire
impl wire::Message for Message {
    /// 128 and above are free for machines of one's own.
    const KIND: u8 = 202;

    /// The length of a variant, which is one byte, and of a number.
    fn encoded_len(&self) -> usize {
        let (Self::Ask(turn) | Self::Grant(turn) | Self::Release(turn)) = self;
        1 + wire::varint_len(u64::from(*turn))
    }
}
// ANCHOR_END: wire
