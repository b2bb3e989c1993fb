//! In steady state handling a message allocates nothing; and the memory for a member.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../../core/tests/counting/mod.rs"]
mod counting;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::{Camera, Command, Config, Message, Request, Timer};
use selvedge_core::{Delta, Effect, Input, Member, NodeId, Outbox};

use counting::{ByHand, Host, allocations};

const NODES: u64 = 64;

/// Nodes that know each other and whose messages take no time. The wire has enough room
/// not to allocate.
struct Mesh<H> {
    nodes: Vec<H>,
    wire: Vec<(Member, NodeId, Message)>,
    rng: ChaCha8Rng,
    messages: u64,
    /// Allocations while messages were handled.
    while_handling: u64,
}

impl<H: Host<Camera>> Mesh<H> {
    fn new() -> Self {
        let node = |id| {
            let config = Config::new(NODES as u32);
            H::new(Camera::new(Member::new(id, 0), config).unwrap())
        };
        let mut mesh = Self {
            nodes: (0..NODES).map(node).collect(),
            wire: Vec::with_capacity(16_384),
            rng: ChaCha8Rng::seed_from_u64(NODES),
            messages: 0,
            while_handling: 0,
        };
        for node in 0..NODES {
            for other in (0..NODES).filter(|&other| other != node) {
                let joined = Delta::Joined(Member::new(other, 0));
                mesh.step(node as usize, Input::Membership(joined));
            }
        }
        mesh
    }

    fn step(&mut self, node: usize, input: Input<Camera>) -> u64 {
        let host = &mut self.nodes[node];
        let (me, wire, rng) = (host.machine().me(), &mut self.wire, &mut self.rng);
        allocations(|| {
            host.step(rng, input, &mut |effect| match effect {
                Effect::Send { to, message } => wire.push((me, to.id, message)),
                Effect::Multicast { message } => {
                    for to in (0..NODES).filter(|&to| to != me.id.0) {
                        wire.push((me, NodeId(to), message.clone()));
                    }
                }
                Effect::Event(_) => {}
            });
        })
    }

    /// Gives a command; returns the number of allocations.
    fn command(&mut self, node: usize, command: Command) -> u64 {
        self.step(node, Input::Command(command))
    }

    /// Delivers every message.
    fn settle(&mut self) {
        while let Some((from, to, message)) = self.wire.pop() {
            self.messages += 1;
            let input = Input::Message { from, message };
            self.while_handling += self.step(to.0 as usize, input);
        }
    }

    /// Lets `many` nodes want to enter at once, and ask again while they wait, until each has entered.
    fn rush(&mut self, many: usize) {
        for node in 0..many {
            self.command(node, Command::Enter);
        }
        self.settle();
        for _ in 0..many {
            for node in 0..many {
                // The fourth one also asks the nodes that answered that we have to wait.
                for _ in 0..4 {
                    self.step(node, Input::Tick(Timer::Resend));
                }
            }
            self.settle();
            let is_inside = |node: &usize| self.nodes[*node].machine().token().is_some();
            let holder = (0..many).find(is_inside).unwrap();
            self.command(holder, Command::Exit);
            self.settle();
        }
    }
}

/// Up to three nodes that want to enter at once: an OK names two others without allocating.
fn messages_allocate_nothing<H: Host<Camera>>() {
    let mut mesh = Mesh::<H>::new();
    for _ in 0..2 {
        (1..=3).for_each(|many| mesh.rush(many));
    }
    (mesh.messages, mesh.while_handling) = (0, 0);
    for _ in 0..20 {
        (1..=3).for_each(|many| mesh.rush(many));
    }
    assert!(
        mesh.messages > 20_000,
        "only {} messages were handled",
        mesh.messages
    );
    assert_eq!(mesh.while_handling, 0, "of {} messages", mesh.messages);
}

#[test]
fn the_machine_allocates_nothing_for_a_message() {
    messages_allocate_nothing::<ByHand<Camera>>();
}

#[test]
#[cfg(not(debug_assertions))]
fn the_driver_allocates_nothing_for_a_message() {
    messages_allocate_nothing::<selvedge_core::Driver<Camera>>();
}

/// Few and small allocations: a request's table, an exit's list of nodes that wait, and an OK's list
/// if it names more than two others.
#[test]
fn what_allocates_is_known() {
    let mut mesh = Mesh::<ByHand<Camera>>::new();
    for _ in 0..2 {
        (1..=4).for_each(|many| mesh.rush(many));
    }
    let enter = mesh.command(0, Command::Enter);
    mesh.settle();
    // The list of members at once, and a table that grows to 64 by doubling.
    assert!(enter <= 10, "an enter allocated {enter} times");
    assert_eq!(mesh.command(0, Command::Exit), 0, "nobody waits");
    mesh.settle();

    (mesh.messages, mesh.while_handling) = (0, 0);
    mesh.rush(4);
    let (messages, while_handling) = (mesh.messages, mesh.while_handling);
    assert!(
        while_handling > 0 && while_handling * 10 < messages,
        "{while_handling} allocations while {messages} messages were handled"
    );
}

/// One node of 4,096: at such a number the tables, which grow by doubling, are full.
struct Measured {
    node: ByHand<Camera>,
    rng: ChaCha8Rng,
    before: i64,
}

impl Measured {
    const OTHERS: u64 = 4_095;

    fn new() -> Self {
        let machine = Camera::new(Member::new(0, 0), Config::new(4_096)).unwrap();
        let mut measured = Self {
            node: ByHand::new(machine),
            rng: ChaCha8Rng::seed_from_u64(1),
            before: 0,
        };
        // The room for nodes that are met and not listed is there once, and not for each member.
        let (from, message) = (Member::new(1, 0), Message::Wait { number: 1 });
        measured.step(Input::Message { from, message });
        measured.before = measured.held();
        measured
    }

    fn step(&mut self, input: Input<Camera>) {
        self.node.step(&mut self.rng, input, &mut drop);
    }

    /// Delivers this input from every other node. Returns the bytes a member that the machine holds more
    /// than before, rounded up.
    fn each(&mut self, what: impl Fn(Member) -> Input<Camera>) -> i64 {
        for id in 1..=Self::OTHERS {
            self.step(what(Member::new(id, 0)));
        }
        self.more()
    }

    fn more(&mut self) -> i64 {
        let held = self.held();
        let more = held - self.before;
        self.before = held;
        (more + more.signum() * 4_095) / 4_096
    }

    /// The steps' effects in the outbox do not belong to the machine.
    fn held(&mut self) -> i64 {
        self.node.outbox = Outbox::new();
        counting::held()
    }
}

#[test]
fn what_a_member_takes() {
    let request = |number| {
        move |from| {
            let (up_to, last, after) = (number, 0, None);
            let request = Request {
                number,
                up_to,
                last,
            };
            let message = Message::Request { request, after };
            Input::Message { from, message }
        }
    };
    let release = |from| {
        let message = Message::Release {
            number: 1,
            last: 1,
            over: 1,
        };
        Input::Message { from, message }
    };
    let mut measured = Measured::new();
    let listed = measured.each(|member| Input::Membership(Delta::Joined(member)));
    measured.step(Input::Command(Command::Enter));
    let asked = measured.more();
    let deferred = measured.each(request(9));
    measured.step(Input::Command(Command::Cancel));
    let granted = measured.more() + asked;
    let released = measured.each(release);
    println!(
        "bytes a member: listed {listed}, asked while we wait {asked}, waits for us {deferred}, \
         has our OK {granted}, has released {released}"
    );
    assert_eq!(
        [listed, asked, deferred, granted, released],
        [16, 72, 40, 40, 32]
    );
}
