//! A machine that each test writes the rule of.

use selvedge_core::{Context, Input, Machine, Member, Untracked};
use selvedge_sim::check::{Model, State};

pub(crate) type Rule = fn(&mut Toy, Input<Toy>, &mut Context<'_, Toy>) -> Result<(), &'static str>;

/// Remembers numbers, and follows its rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Toy {
    pub(crate) me: Member,
    pub(crate) seen: Vec<u8>,
    pub(crate) rule: Untracked<Rule>,
}

impl Toy {
    pub(crate) fn new(id: u64, rule: Rule) -> Self {
        Self {
            me: member(id),
            seen: Vec::new(),
            rule: Untracked(rule),
        }
    }
}

impl Machine for Toy {
    type Message = u8;
    type Timer = u8;
    type Command = u8;
    type Event = u8;
    type Reject = &'static str;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        (self.rule)(self, input, cx)
    }
}

pub(crate) const fn member(id: u64) -> Member {
    Member::new(id, 0)
}

/// Nodes 0 up, with ids that are ten times as high.
pub(crate) fn toys(count: u64, rule: Rule) -> Model<Toy> {
    let machines = (0..count).map(|node| Toy::new(node * 10, rule)).collect();
    Model::new(machines, |toy: &Toy| toy.me)
}

/// The numbers that a node remembers.
pub(crate) fn seen<O>(state: &State<Toy, O>, node: usize) -> &[u8] {
    &state.node(node).unwrap().machine().seen
}

/// Remembers messages, ticks (with 100 added) and deltas (as 200); a command is a message to node
/// 1, or a timer if it is 50 or more.
pub(crate) fn remember(
    toy: &mut Toy,
    input: Input<Toy>,
    cx: &mut Context<'_, Toy>,
) -> Result<(), &'static str> {
    match input {
        Input::Message { message, .. } => toy.seen.push(message),
        Input::Tick(timer) => toy.seen.push(100 + timer),
        Input::Membership(_) => toy.seen.push(200),
        Input::Command(number @ 50..) => cx.arm(number, selvedge_core::Span::secs(1)),
        Input::Command(number) => cx.send(member(10), number),
    }
    Ok(())
}
