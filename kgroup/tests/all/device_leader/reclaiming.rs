//! A cluster that begins again without its memory: its devices are closed until the routines have answered.

mod answers;
mod opening;
mod sites;

use selvedge_kgroup::Progress;
use selvedge_kgroup::check::leaders::Listed;

use super::*;

/// The cluster's group.
const CLUSTER: GroupId = GroupId(50);

/// The generation of the site by which the cluster begins again.
const GENERATION: u32 = 3;

/// The attempt of a routine that rests: behind all tries of its last run.
const RESTS: u32 = u32::MAX;

/// The site of the leader's node.
#[derive(Clone)]
struct Plan {
    generation: u32,
    devices: Vec<NodeId>,
    /// The routines of the site, and the part of them with a present definition that names the lamp.
    routines: Vec<u64>,
    named: Vec<u64>,
}

/// A cluster that has begun again, and the site by which it is led.
struct Anew {
    bench: Bench,
    plan: Plan,
    /// The number of the last question about a device.
    since: u64,
}

impl Anew {
    /// These routines have a step for the lamp.
    fn new(routines: &[u64]) -> Self {
        Self::limited(Limits::new(), routines)
    }

    fn limited(limits: Limits, routines: &[u64]) -> Self {
        let state = Devices::begun_again(limits, 1, GENERATION);
        let plan = Plan {
            generation: GENERATION,
            devices: vec![LAMP],
            routines: routines.to_vec(),
            named: routines.to_vec(),
        };
        let bench = Bench::led(state, 11, Config::new());
        let since = 0;
        let mut anew = Self { bench, plan, since };
        anew.asked();
        anew
    }

    /// Another node leads, with the same site.
    fn succeeded(self, by: u64) -> Self {
        let mut bench = self.bench.succeeded(by);
        bench.decide();
        Self { bench, ..self }
    }

    fn call(&mut self, call: impl FnOnce(&mut DeviceLeader, &Devices, &Listed<'_>, &mut Out)) {
        let Plan {
            generation,
            devices,
            routines,
            named,
        } = &self.plan;
        let has_routine = |it: GroupId| routines.contains(&it.0);
        let routines_of = |_| routines.iter().copied().map(GroupId).collect();
        let names = |it: GroupId, _| named.contains(&it.0);
        let site = Listed {
            generation: *generation,
            devices,
            has_routine: &has_routine,
            routines_of: &routines_of,
            names: &names,
        };
        self.bench
            .call(|leader, state, out| call(leader, state, &site, out));
        for update in &self.bench.proposed {
            let is_due = self.bench.state.judge(update).is_none();
            let opens = matches!(update, Update::Open { .. });
            assert!(is_due || !opens, "it would change nothing");
        }
        self.bench.decide();
    }

    /// The leader follows its site, and asks, as at each ping: returns the routines that it asks about the lamp.
    fn asked(&mut self) -> Vec<u64> {
        self.call(|leader, state, site, out| leader.sync(state, site, out));
        self.bench.effects.clear();
        self.call(|leader, state, site, out| {
            leader.ask_routines(state, (CLUSTER, site), None, out);
        });
        let mut asked = Vec::new();
        for effect in self.bench.effects.drain(..) {
            let Effect::Ask { group, request } = effect else {
                continue;
            };
            let Request::Progress {
                cluster,
                device: LAMP,
                since,
            } = request
            else {
                continue;
            };
            assert_eq!(cluster, CLUSTER);
            self.since = since;
            asked.push(group.0);
        }
        asked
    }

    /// A routine's answer, and the effects of it.
    fn answer_about(&mut self, since: u64, of: u64, progress: Progress, watches: bool) -> Out {
        let answer = Answer::Progress {
            cluster: CLUSTER,
            device: LAMP,
            since,
            progress,
            watches,
        };
        self.bench.effects.clear();
        self.call(|leader, state, site, out| {
            leader.on_progress(state, (GroupId(of), &answer), site, out);
        });
        self.call(|leader, state, site, out| leader.open(state, LAMP, site, out));
        core::mem::take(&mut self.bench.effects)
    }

    fn answer(&mut self, of: u64, progress: Progress) -> Out {
        self.answer_about(self.since, of, progress, false)
    }

    /// A routine has run this often, and rests.
    fn rests(&mut self, routine: u64, instance: u64) {
        self.answer(routine, over(routine, instance));
    }

    fn lock(&mut self, claim: Claim) -> Out {
        self.bench.ask(Request::Lock {
            device: LAMP,
            claim,
            patience: Patience::Queues,
            generation: self.plan.generation,
        })
    }

    fn is_open(&self) -> bool {
        self.bench.state.is_open(LAMP)
    }

    /// A late command of the former beginning can come no more: the device opens, if nothing else is missing.
    fn hold(&mut self) -> Span {
        assert!(self.bench.armed > Span::ZERO, "its timer is armed");
        let held = self.bench.hold();
        self.asked();
        held
    }

    /// The device is open, and passes to this claim when it is free.
    fn passes_to(&mut self, claim: Claim) {
        assert!(self.is_open());
        assert_eq!(self.lock(claim), [notify(HERE, granted(claim))]);
        assert_eq!(self.bench.state.holder(LAMP), Some(claim));
    }
}

const fn over(routine: u64, instance: u64) -> Progress {
    Progress::Over {
        claim: Claim {
            routine: GroupId(routine),
            instance,
            attempt: RESTS,
        },
    }
}

fn executes(claim: Claim, given: u16) -> Progress {
    Progress::Executes { claim, given }
}

fn is_over(claim: Claim) -> Answer {
    let device = LAMP;
    Answer::Over { device, claim }
}
