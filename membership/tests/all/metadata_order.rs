//! Metadata that changes often, in a network that loses, repeats and reorders messages: a list never
//! goes back to an older value of the same life, and all lists end with the latest one.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Incarnation, Member, NodeId, Ratio, Span};
use selvedge_membership::{Command, Config, Membership, Metadata};
use selvedge_sim::histories;
use selvedge_sim::network::{Link, Network, Topology};

const NODES: usize = 5;
const PERIOD: Span = Span::secs(1);

struct Run {
    seed: u64,
    rng: ChaCha8Rng,
    network: Network<Membership>,
    /// The number of values that were set, in all.
    count: u32,
    /// The latest value on each list of each life, by its number.
    seen: BTreeMap<(usize, NodeId), (Incarnation, u32)>,
}

/// The number of a value, which stands behind a byte and a length by chance: a value that is newer
/// is not always larger.
fn number(metadata: &[u8]) -> Option<u32> {
    let (_, rest) = metadata.split_first()?;
    Some(u32::from_be_bytes(*rest.first_chunk()?))
}

impl Run {
    fn new(seed: u64) -> Self {
        let link = Link {
            min_delay: Span::millis(1),
            max_delay: Span::millis(700),
            loss: Ratio::new(20, 100),
            duplicate: Ratio::new(20, 100),
            slow: Ratio::new(20, 100),
            slow_by: PERIOD * 4,
            ..Link::default()
        };
        let mut network = Network::new(seed, Topology::full_mesh(NODES).unwrap(), link).unwrap();
        network.set_identity(Membership::me);
        let mut run = Self {
            seed,
            rng: ChaCha8Rng::seed_from_u64(seed),
            network,
            count: 0,
            seen: BTreeMap::new(),
        };
        for node in 0..NODES {
            let (me, machine) = run.life(node, Incarnation(7));
            run.network.add(me, machine).unwrap();
            run.join(node);
        }
        run
    }

    fn life(&self, node: usize, incarnation: Incarnation) -> (Member, Membership) {
        let id = NodeId(node as u64 + 1);
        let me = Member { id, incarnation };
        let config = Config::default().with_period(PERIOD);
        (me, Membership::new(me, config).unwrap())
    }

    /// Each life has a value of its own before it sends anything.
    fn join(&mut self, node: usize) {
        self.set(node);
        let seeds = [1, 2].map(NodeId).to_vec();
        self.network.command(node, Command::Join { seeds }).unwrap();
    }

    fn set(&mut self, node: usize) {
        self.count += 1;
        let mut bytes = vec![self.rng.below(256) as u8];
        bytes.extend(self.count.to_be_bytes());
        bytes.resize(5 + self.rng.below(300) as usize, 0);
        let set = Command::SetMetadata(Metadata(bytes.into()));
        self.network.command(node, set).unwrap();
    }

    /// A short time, and a look at each list.
    fn pass(&mut self) {
        self.network.run_for(Span::millis(50));
        for (node, machine) in self.network.machines() {
            self.seen.retain(|&(observer, id), _| {
                observer != node || (self.network.is_up(node) && machine.member(id).is_some())
            });
            for view in machine.members().filter(|_| self.network.is_up(node)) {
                let Some(now) = number(view.metadata) else {
                    continue;
                };
                let life = view.member.incarnation;
                let former = self.seen.insert((node, view.member.id), (life, now));
                let goes_back =
                    former.is_some_and(|(former, before)| former == life && now < before);
                let (seed, member) = (self.seed, view.member);
                assert!(
                    !goes_back,
                    "seed {seed}: node {node} lists {member} with the older value {now}, after {former:?}"
                );
            }
        }
    }

    fn disturb(&mut self) {
        let node = self.rng.below(NODES as u64) as usize;
        if self.rng.below(10) > 0 {
            return self.set(node);
        }
        let next = self.network.machine(node).unwrap().me().incarnation.next();
        let (me, machine) = self.life(node, next);
        self.network.crash(node).unwrap();
        self.network.restart(node, me, machine).unwrap();
        self.join(node);
    }

    /// True if each list has each node's own value.
    fn agree(&self) -> bool {
        let own = |machine: &Membership| machine.metadata(machine.me().id).and_then(number);
        let truth = || self.network.machines().map(|(_, it)| (it.me(), own(it)));
        self.network.machines().all(|(_, machine)| {
            truth().all(|(member, value)| {
                let view = machine.member(member.id);
                view.is_some_and(|it| it.member == member && number(it.metadata) == value)
            })
        })
    }
}

#[test]
fn an_older_value_of_a_life_never_comes_back_and_the_latest_one_reaches_all_lists() {
    histories(0..40, |seed| {
        let mut run = Run::new(seed);
        for _ in 0..120 {
            for _ in 0..=run.rng.below(20) {
                run.pass();
            }
            run.disturb();
        }
        let calm = Link {
            loss: Ratio::new(5, 100),
            ..Link::default()
        };
        run.network.set_link(calm).unwrap();
        let limit = run.network.now() + PERIOD * 400;
        while !run.agree() {
            assert!(
                run.network.now() < limit,
                "seed {seed}: lists differ after 400 calm periods"
            );
            run.pass();
        }
    });
}
