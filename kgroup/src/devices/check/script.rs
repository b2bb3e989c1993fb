//! A routine as far as a cluster sees it: it takes locks, has a device do something, and gives back.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};
use selvedge_groups::GroupId;

use super::party::{Party, Payload, Tick};
use crate::devices::Published;
use crate::{Answer, Claim, Delivery, Patience, Request};

/// The actions of a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Play {
    /// The devices that it locks, in order.
    pub(super) devices: &'static [u64],
    pub(super) patience: Patience,
    /// The number of tries; then its run is over.
    pub(super) attempts: u32,
    /// The delivery of the command to the first device, if it gives one.
    pub(super) acts: Option<Delivery>,
    /// True if it may release its devices before it receives the outcome of its command.
    pub(super) hurries: bool,
    /// True if it watches the first device, and does nothing else.
    pub(super) watches: bool,
    /// The generation of its first site.
    pub(super) since: u32,
    /// It adopts another site, or is removed, at any moment after its last run began.
    pub(super) until: Option<Until>,
}

/// A change of a routine's site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// Its node adopts the site of this generation.
    Adopts(u32),
    /// It is removed: its group ends.
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Idle,
    /// It has these locks.
    Locks(Vec<NodeId>),
    /// It has all its locks. This is EXECUTING.
    Executes,
    /// These devices have not confirmed yet that they have their locks back.
    Releases {
        left: Vec<NodeId>,
        again: bool,
    },
}

/// A routine's group with a leader that never fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Script {
    pub(super) claim: Claim,
    pub(super) stage: Stage,
    /// The latest version of the watched device that it has received.
    pub(super) seen: Option<u64>,
    /// The generation of its site.
    generation: u32,
    is_removed: bool,
    play: Play,
    rules: &'static [Published],
}

impl Script {
    pub(super) fn new(routine: u64, play: Play, rules: &'static [Published]) -> Self {
        Self {
            claim: Claim {
                routine: GroupId(routine),
                instance: 0,
                attempt: 1,
            },
            stage: Stage::Idle,
            seen: None,
            generation: play.since,
            is_removed: false,
            play,
            rules,
        }
    }

    /// Returns true if it works with its devices now, this one among them.
    pub(super) fn executes_with(&self, device: NodeId) -> bool {
        self.stage == Stage::Executes && self.devices().any(|it| it == device)
    }

    pub(super) fn devices(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.play.devices.iter().copied().map(NodeId)
    }

    pub(super) const fn watches(&self) -> bool {
        self.play.watches
    }

    pub(super) fn show(&self) -> String {
        let Claim {
            instance, attempt, ..
        } = self.claim;
        let seen = self.seen.map(|it| format!(", saw version {it}"));
        let seen = seen.unwrap_or_default();
        format!("run {instance}, try {attempt}: {:?}{seen}", self.stage)
    }

    /// It is triggered; it was idle.
    pub(super) fn run(&mut self, cx: &mut Context<'_, Party>) -> bool {
        if self.stage != Stage::Idle {
            return false;
        }
        if self.play.watches {
            self.ask(cx);
            return true;
        }
        self.claim.instance += 1;
        self.claim.attempt = 1;
        self.stage = Stage::Locks(Vec::new());
        self.ask(cx);
        true
    }

    pub(super) fn on_site(&mut self, change: Until, cx: &mut Context<'_, Party>) {
        match change {
            Until::Adopts(generation) => self.adopt(generation, cx),
            Until::Removed => self.remove(cx),
        }
    }

    fn adopt(&mut self, generation: u32, cx: &mut Context<'_, Party>) {
        self.generation = generation;
        if self.stage != Stage::Idle {
            self.ask(cx);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_, Party>) {
        self.is_removed = true;
        self.stage = Stage::Idle;
        cx.disarm(Tick::Resend);
        cx.disarm(Tick::Finish);
    }

    pub(super) fn on_tick(&mut self, timer: Tick, cx: &mut Context<'_, Party>) {
        match (timer, &self.stage) {
            (Tick::Finish, Stage::Executes) => self.release(false, cx),
            (Tick::Resend, _) => self.ask(cx),
            _ => {}
        }
    }

    pub(super) fn on_answer(&mut self, answer: &Answer, cx: &mut Context<'_, Party>) {
        if self.is_removed {
            return;
        }
        match *answer {
            Answer::Granted { device, claim } if self.is_mine(claim) => {
                let Stage::Locks(held) = &mut self.stage else {
                    return;
                };
                let Err(at) = held.binary_search(&device) else {
                    return;
                };
                held.insert(at, device);
                if held.len() == self.play.devices.len() {
                    self.stage = Stage::Executes;
                    cx.disarm(Tick::Resend);
                    if self.play.acts.is_none() || self.play.hurries {
                        cx.arm(Tick::Finish, super::SOON);
                    }
                    if self.play.acts.is_none() {
                        return;
                    }
                    self.ask(cx);
                } else if self.play.patience == Patience::Queues {
                    self.ask(cx);
                }
            }
            Answer::Busy { claim, .. } if self.is_mine(claim) => {
                if matches!(self.stage, Stage::Locks(_)) {
                    let again = self.claim.attempt < self.play.attempts;
                    self.release(again, cx);
                }
            }
            Answer::Acted { claim, .. } if self.is_mine(claim) && self.stage == Stage::Executes => {
                cx.disarm(Tick::Finish);
                self.release(false, cx);
            }
            Answer::Released { device, claim } if self.is_mine(claim) => {
                self.on_released(device, cx);
            }
            Answer::Status {
                device, ref status, ..
            } if self.play.watches => {
                self.seen = self.seen.max(Some(status.version));
                cx.disarm(Tick::Resend);
                let seen = Request::Seen {
                    device,
                    routine: self.claim.routine,
                    version: status.version,
                };
                cx.send(super::CLUSTER, Payload::Request(seen));
            }
            Answer::NoDevice { generation, .. } if generation >= self.generation => {
                self.stage = Stage::Idle;
                cx.disarm(Tick::Resend);
                cx.disarm(Tick::Finish);
            }
            Answer::Granted { .. }
            | Answer::Queued { .. }
            | Answer::Busy { .. }
            | Answer::Over { .. }
            | Answer::Released { .. }
            | Answer::Acted { .. }
            | Answer::Status { .. }
            | Answer::NoDevice { .. }
            | Answer::Read { .. }
            | Answer::Triggered(_)
            | Answer::Counted(_)
            | Answer::Store(_)
            | Answer::Progress { .. }
            | Answer::Asleep { .. } => {}
        }
    }

    fn on_released(&mut self, device: NodeId, cx: &mut Context<'_, Party>) {
        let Stage::Releases { left, again } = &mut self.stage else {
            return;
        };
        left.retain(|it| *it != device);
        if !left.is_empty() {
            return;
        }
        cx.disarm(Tick::Resend);
        if *again {
            self.claim.attempt += 1;
            self.stage = Stage::Locks(Vec::new());
            self.ask(cx);
        } else {
            self.stage = Stage::Idle;
        }
    }

    fn release(&mut self, again: bool, cx: &mut Context<'_, Party>) {
        self.stage = Stage::Releases {
            left: self.devices().collect(),
            again,
        };
        self.ask(cx);
    }

    /// Repeats all requests that have no answer.
    fn ask(&self, cx: &mut Context<'_, Party>) {
        let claim = self.claim;
        let mut all = Vec::new();
        match &self.stage {
            Stage::Idle => {
                all.extend(self.devices().take(1).map(|device| Request::Watch {
                    device,
                    routine: claim.routine,
                    generation: self.generation,
                }));
            }
            Stage::Locks(held) => {
                let open = self.devices().filter(|it| !held.contains(it));
                let at_once = match self.play.patience {
                    Patience::Queues => 1,
                    Patience::Leaves => usize::MAX,
                };
                all.extend(open.take(at_once).map(|device| Request::Lock {
                    device,
                    claim,
                    patience: self.play.patience,
                    generation: self.generation,
                }));
            }
            Stage::Executes => {
                if let (Some(delivery), Some(device)) = (self.play.acts, self.devices().next()) {
                    all.push(Request::Act {
                        device,
                        claim,
                        step: 0,
                        value: 1.into(),
                        delivery,
                    });
                }
            }
            Stage::Releases { left, .. } => {
                all.extend(left.iter().map(|&device| Request::Release {
                    device,
                    claim,
                    generation: self.generation,
                }));
            }
        }
        for request in all {
            cx.send(super::CLUSTER, Payload::Request(request));
        }
        cx.arm(Tick::Resend, super::SOON);
    }

    /// Returns true if an answer is about its present claim, as far as the rules can distinguish.
    fn is_mine(&self, claim: Claim) -> bool {
        let is_known = |rule| self.rules.contains(&rule);
        if is_known(Published::Unnumbered) {
            return claim.routine == self.claim.routine;
        }
        if is_known(Published::Unlabelled) {
            let same = (self.claim.routine, self.claim.instance);
            return (claim.routine, claim.instance) == same;
        }
        claim == self.claim
    }
}
