//! The machine that these tests run.

use selvedge_core::{Context, Delta, Input, Machine, Member, Span};
use selvedge_sim::network::{Link, Network, Topology};

/// Sends a random number to a random peer every `every`, once started.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Chatter {
    pub(crate) peers: Vec<Member>,
    pub(crate) every: Span,
    pub(crate) received: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    Start,
    Say(Member, u32),
    Shout(u32),
    Nonsense,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Notified {
    Received(Member, u32),
    Ticked,
    Learned(Delta),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwanted;

impl Machine for Chatter {
    type Message = u32;
    type Timer = u8;
    type Command = Ask;
    type Event = Notified;
    type Reject = Unwanted;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Unwanted> {
        match input {
            Input::Message { message: 666, .. } | Input::Command(Ask::Nonsense) => {
                return Err(Unwanted);
            }
            Input::Message { from, message } => {
                self.received += 1;
                cx.event(Notified::Received(from, message));
            }
            Input::Tick(_) => {
                cx.event(Notified::Ticked);
                self.chat(cx);
            }
            Input::Command(Ask::Start) => self.chat(cx),
            Input::Command(Ask::Say(to, number)) => cx.send(to, number),
            Input::Command(Ask::Shout(number)) => cx.multicast(number),
            Input::Membership(delta) => cx.event(Notified::Learned(delta)),
        }
        Ok(())
    }
}

impl Chatter {
    pub(crate) fn quiet() -> Self {
        Self {
            peers: Vec::new(),
            every: Span::secs(1),
            received: 0,
        }
    }

    fn chat(&mut self, cx: &mut Context<'_, Self>) {
        let chosen = cx.below(self.peers.len() as u64);
        if let Some(&peer) = self.peers.get(chosen as usize) {
            let number = cx.below(600) as u32;
            cx.send(peer, number);
        }
        cx.arm(0, self.every);
    }
}

/// The member that node `index` runs as at first.
pub(crate) fn member(index: usize) -> Member {
    Member::new(100 + index as u64, 0)
}

/// Nodes that send only on command, in every place of the topology.
pub(crate) fn quiet(seed: u64, topology: Topology, link: Link) -> Network<Chatter> {
    let places = topology.len();
    let mut network = Network::new(seed, topology, link).unwrap();
    for index in 0..places {
        assert_eq!(network.add(member(index), Chatter::quiet()), Ok(index));
    }
    network
}

/// Nodes that will talk to each other by themselves, once started.
pub(crate) fn talkative(
    seed: u64,
    topology: Topology,
    link: Link,
    every: Span,
) -> Network<Chatter> {
    let places = topology.len();
    let mut network = Network::new(seed, topology, link).unwrap();
    for index in 0..places {
        let peers = (0..places).filter(|&peer| peer != index).map(member);
        let chatter = Chatter {
            peers: peers.collect(),
            every,
            received: 0,
        };
        network.add(member(index), chatter).unwrap();
    }
    network
}

pub(crate) fn start(network: &mut Network<Chatter>) {
    for index in 0..network.len() {
        network.command(index, Ask::Start).unwrap();
    }
}

/// Nodes that talk to each other by themselves.
pub(crate) fn talking(seed: u64, topology: Topology, link: Link, every: Span) -> Network<Chatter> {
    let mut network = talkative(seed, topology, link, every);
    start(&mut network);
    network
}

/// `0 - 1 - 2 - ..`.
pub(crate) fn line(nodes: usize) -> Topology {
    let edges: Vec<_> = (1..nodes).map(|node| (node - 1, node)).collect();
    Topology::from_edges(nodes, &edges).unwrap()
}

/// The receivers and senders of messages, since the last drain.
pub(crate) fn received(network: &mut Network<Chatter>) -> Vec<(usize, u32)> {
    network
        .drain_events()
        .filter_map(|(_, node, event)| match event {
            Notified::Received(_, number) => Some((node, number)),
            Notified::Ticked | Notified::Learned(_) => None,
        })
        .collect()
}

/// `sent + duplicated == delivered + lost + in flight`.
pub(crate) fn assert_balanced(network: &Network<Chatter>) {
    let c = network.counters();
    assert_eq!(
        c.sent + c.duplicated,
        c.delivered + c.lost() + network.in_flight() as u64,
        "{c:?}"
    );
}
