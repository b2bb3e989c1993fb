//! Fuzz a machine of your own: a lock with a defect, and the list of operations that finds it.
//!
//! `cargo run -p selvedge-sim --example own_operations --features arbitrary`
//!
//! The defect: a node that waits gives its permission to a node with a lower id, and keeps the
//! permission that it has from that node already. So both get in.

#![allow(
    clippy::expect_used,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    reason = "a program that looks for a defect fails by panicking"
)]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::{Context, Effect, Input, Machine, Member, NodeId};
use selvedge_sim::operations::{Broken, Mesh, Operation, Step, Watch, list, run, shrink};

// The machine.

/// A lock: a node asks all others, and is in when all gave their permission.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lock {
    me: Member,
    peers: Vec<Member>,
    /// The number of the last question.
    number: u32,
    stage: Stage,
    /// The questions that are answered at the exit.
    deferred: BTreeMap<NodeId, (Member, u32)>,
    /// True if a node that gives way asks again.
    is_sound: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    /// The questions that are not answered.
    Waiting(BTreeMap<NodeId, u32>),
    Inside,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    Ask(u32),
    Permit(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Arbitrary)]
pub(crate) enum Command {
    Enter,
    Exit,
}

impl Lock {
    fn new(me: Member, members: &[Member], is_sound: bool) -> Self {
        Self {
            me,
            peers: members
                .iter()
                .copied()
                .filter(|it| it.id != me.id)
                .collect(),
            // Permissions for an earlier life are not for this one.
            number: me.incarnation.0 << 16,
            stage: Stage::Idle,
            deferred: BTreeMap::new(),
            is_sound,
        }
    }

    fn ask(&mut self, peer: Member, cx: &mut Context<'_, Self>) {
        self.number += 1;
        if let Stage::Waiting(open) = &mut self.stage {
            open.insert(peer.id, self.number);
        }
        cx.send(peer, Message::Ask(self.number));
    }

    fn on_ask(&mut self, from: Member, number: u32, cx: &mut Context<'_, Self>) {
        let is_ours = match self.stage {
            Stage::Idle => false,
            Stage::Waiting(_) => self.me.id < from.id,
            Stage::Inside => true,
        };
        if is_ours {
            self.deferred.insert(from.id, (from, number));
            return;
        }
        cx.send(from, Message::Permit(number));
        if self.is_sound && matches!(self.stage, Stage::Waiting(_)) {
            self.ask(from, cx);
        }
    }

    fn on_permit(&mut self, from: Member, number: u32, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(open) = &mut self.stage else {
            return;
        };
        if open.get(&from.id) == Some(&number) {
            open.remove(&from.id);
        }
        if open.is_empty() {
            self.stage = Stage::Inside;
            cx.event("entered");
        }
    }
}

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
    ) -> Result<(), Self::Reject> {
        match (input, &self.stage) {
            (Input::Command(Command::Enter), Stage::Idle) => {
                self.stage = Stage::Waiting(BTreeMap::new());
                for peer in self.peers.clone() {
                    self.ask(peer, cx);
                }
            }
            (Input::Command(Command::Exit), Stage::Inside) => {
                self.stage = Stage::Idle;
                for (_, (peer, number)) in std::mem::take(&mut self.deferred) {
                    cx.send(peer, Message::Permit(number));
                }
            }
            (Input::Command(_), _) => return Err("not now"),
            (
                Input::Message {
                    from,
                    message: Message::Ask(number),
                },
                _,
            ) => {
                self.on_ask(from, number, cx);
            }
            (
                Input::Message {
                    from,
                    message: Message::Permit(number),
                },
                _,
            ) => {
                self.on_permit(from, number, cx);
            }
            (Input::Tick(()) | Input::Membership(_), _) => {}
        }
        Ok(())
    }
}

// The promise, and the restart of a node.

/// Watches that one node is inside at a time.
#[derive(Debug)]
pub(crate) struct OneInside {
    members: Vec<Member>,
    is_sound: bool,
    entries: u64,
}

impl Watch<Lock> for OneInside {
    fn after(&mut self, step: &Step<'_, Lock>) -> Result<(), String> {
        let has_entered = step.effects.contains(&Effect::Event("entered"));
        self.entries += u64::from(has_entered);
        let machines = step.seats.iter().filter_map(|seat| seat.machine());
        let inside: Vec<Member> = machines
            .filter(|machine| machine.stage == Stage::Inside)
            .map(|machine| machine.me)
            .collect();
        if inside.len() > 1 {
            return Err(format!("{inside:?} are inside together"));
        }
        Ok(())
    }

    /// A node restarts without memory, as another life.
    fn restart(&mut self, _: usize, before: Member) -> Option<(Member, Lock)> {
        let incarnation = before.incarnation.next();
        let me = Member {
            incarnation,
            ..before
        };
        Some((me, Lock::new(me, &self.members, self.is_sound)))
    }
}

/// Plays a list with three nodes. Returns the number of entries.
///
/// # Errors
/// The broken promise, and the operations up to there.
pub(crate) fn play(operations: &[Operation<Lock>], is_sound: bool) -> Result<u64, Broken<Lock>> {
    let members: Vec<Member> = (0..3).map(|id| Member::new(id, 0)).collect();
    let mut mesh = Mesh::new(64);
    for &me in &members {
        mesh.add(me, Lock::new(me, &members, is_sound));
    }
    let mut watch = OneInside {
        members,
        is_sound,
        entries: 0,
    };
    // This machine chooses nothing.
    let mut choices = selvedge_sim::Bytes::new(&[]);
    run(
        &mut mesh,
        operations.iter().cloned(),
        &mut choices,
        &mut watch,
    )?;
    Ok(watch.entries)
}

/// The list that breaks the lock with the defect; the lock without it holds in all of them.
pub(crate) fn main() {
    let mut found = None;
    let mut entries = 0;
    for seed in 0..3_000 {
        let mut bytes = [0; 240];
        ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
        let operations = list(&bytes);
        entries += play(&operations, true).unwrap();
        if found.is_none() && play(&operations, false).is_err() {
            found = Some((seed, operations));
        }
    }
    assert!(
        entries > 1_000,
        "only {entries} entries: nothing was put to the test"
    );
    let (seed, operations) = found.expect("the defect was not found");
    let broken = shrink(&operations, |list| play(list, false).err());
    let broken = broken.expect("a list that breaks does so again");
    println!("seed {seed}: {broken}");
    assert!(broken.played.len() <= 8, "{broken}");
}
