//! A node of selvedge-membership.

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Time as Moment};
use selvedge_membership::{Command, Config, Event, KIND, Membership, Message};

use crate::network::{Network, Out, Peer, Time};

pub(crate) struct Ours {
    driver: Driver<Membership>,
    rng: ChaCha8Rng,
    /// For when its alarm is set; later ones that were replaced ring for nothing.
    alarm: Option<Time>,
    effects: Vec<Effect<Membership>>,
}

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 1)
}

fn place(id: NodeId) -> usize {
    id.0 as usize - 1
}

impl Ours {
    fn new(node: usize, seed: u64, config: Config) -> Self {
        let machine = Membership::new(member(node), config).expect("settings that work");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(node as u64);
        Self {
            driver: Driver::new(machine),
            rng,
            alarm: None,
            effects: Vec::new(),
        }
    }

    fn command(&mut self, now: Time, command: Command, out: &mut Out<Time>) {
        self.step(now, Input::Command(command), out);
    }

    fn step(&mut self, now: Time, input: Input<Membership>, out: &mut Out<Time>) {
        let effects = &mut self.effects;
        // What a machine refuses is dropped, as a host does.
        let _taken = self
            .driver
            .step(Moment(now), &mut self.rng, input, |effect| {
                effects.push(effect)
            });
        self.carry_out(out);
    }

    fn carry_out(&mut self, out: &mut Out<Time>) {
        let from = self.driver.machine().me();
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send { to, message } => {
                    let mut frame = Vec::with_capacity(64);
                    frame.extend([VERSION, KIND]);
                    let frame = postcard::to_extend(
                        &Envelope {
                            from,
                            message: &message,
                        },
                        frame,
                    );
                    out.sends.push((place(to.id), frame.expect("memory")));
                }
                Effect::Multicast { .. } => {}
                Effect::Event(Event::Membership(Delta::Failed(member))) => {
                    out.failed.push(place(member.id));
                }
                Effect::Event(_) => {}
            }
        }
        self.effects.shrink_to(16);
        if let Some(Moment(at)) = self.driver.deadline()
            && self.alarm.is_none_or(|alarm| at < alarm)
        {
            self.alarm = Some(at);
            out.timers.push((at, at));
        }
    }
}

impl Peer for Ours {
    type Timer = Time;

    fn receive(&mut self, now: Time, datagram: &[u8], out: &mut Out<Time>) {
        let Some(frame) = datagram.strip_prefix(&[VERSION, KIND]) else {
            return;
        };
        if let Ok(Envelope { from, message }) = postcard::from_bytes::<Envelope<Message>>(frame) {
            self.step(now, Input::Message { from, message }, out);
        }
    }

    fn tick(&mut self, now: Time, timer: Time, out: &mut Out<Time>) {
        if self.alarm == Some(timer) {
            self.alarm = None;
        }
        let effects = &mut self.effects;
        self.driver
            .expire(Moment(now), &mut self.rng, |effect| effects.push(effect));
        self.carry_out(out);
    }

    fn live(&self) -> usize {
        self.driver.machine().live()
    }
}

/// A mesh in which everyone knows everyone.
pub(crate) fn settled(nodes: usize, seed: u64) -> Network<Ours> {
    let mut network = Network::new(seed, 0);
    // Few copies of the news while all join, and lists that fit a frame: joining is not measured.
    let joining = Config {
        retransmit_factor: 1,
        frame_budget: u16::MAX,
        ..Config::default()
    };
    for node in 0..nodes {
        network.add(Ours::new(node, seed, joining.clone()));
        let seeds = (node > 0).then(|| member(node / 2).id);
        let seeds = seeds.into_iter().collect();
        network.with(node, |peer, now, out| {
            peer.command(now, Command::Join { seeds }, out);
        });
        network.run_until(network.now + 110_000);
    }
    while network.peers.iter().any(|peer| peer.live() != nodes) {
        network.run_for(1);
    }
    for node in 0..nodes {
        network.with(node, |peer, now, out| {
            let config = Box::new(Config::default());
            peer.command(now, Command::Configure(config), out);
        });
    }
    network
}
