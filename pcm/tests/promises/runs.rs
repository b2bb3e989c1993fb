//! The host of a follower: it fetches, runs functions, and gets libraries.

use selvedge_core::Member;
use selvedge_pcm::follower::{self, Event, Phase};
use selvedge_pcm::{Failure, Function, Library, Returned, TaskId};
use selvedge_sim::histories::{History, Host};

use crate::node::{Role, to_follower};
use crate::world::{Spec, Then, World};

impl World {
    fn host(&mut self, who: Member) -> Option<&mut Host<Self>> {
        let host = self.nodes.get_mut(&who.id.0)?.host.as_mut()?;
        (host.me == who).then_some(host)
    }

    fn sleeps(&mut self, me: Member) -> bool {
        self.host(me)
            .is_some_and(|it| it.own.work.phase == Some(Phase::Asleep))
    }

    pub(crate) fn follower_event(&mut self, me: Member, event: Event) {
        self.say(|| format!("{me:?} {event:?}"));
        let asleep = {
            let Some(host) = self.host(me) else { return };
            host.own.work.phase == Some(Phase::Asleep)
        };
        match event {
            Event::PhaseChanged(phase) => {
                let host = self.host(me).unwrap();
                assert!(host.own.work.phase != Some(phase) || phase == Phase::Active);
                host.own.work.phase = Some(phase);
            }
            Event::Fetch(gateway) => {
                assert!(!asleep, "{me:?} sleeps, and fetches");
                let after = 100 + self.below(self.weather.delay);
                let (follower, gateway) = (me, gateway.0);
                self.then(after, Then::Fetch { follower, gateway });
            }
            Event::Load(library) => {
                assert!(!asleep, "{me:?} sleeps, and loads");
                let host = self.host(me).unwrap();
                assert!(!host.own.work.libraries.contains(&library));
                host.own.work.loading = Some(library);
                let after = 1_000 + self.below(100_000);
                self.then(after, Then::Library(me, library));
            }
            Event::Unload(library) => {
                assert!(self.host(me).unwrap().own.work.libraries.remove(&library));
            }
            Event::Run {
                task,
                function,
                memory,
            } => self.begins(me, task, &function, memory),
            Event::Stop(task) => {
                let host = self.host(me).unwrap();
                let running = host.own.work.running.take();
                assert!(
                    running.is_some_and(|it| it.0 == task),
                    "{me:?} stops {task:?}, and {running:?} runs"
                );
                self.oracle.stopped.insert((me, task));
            }
            other => panic!("{other:?}"),
        }
    }

    fn begins(&mut self, me: Member, task: TaskId, function: &Function, memory: u32) {
        let Role::Follower { config, liar, .. } = self.nodes[&me.id.0].own.role.clone() else {
            panic!("{me:?} is no follower");
        };
        let most = self.limits.attempts;
        let (run, late) = (self.next_run, self.percent(self.habits.late));
        self.next_run += 1;
        let host = self.host(me).unwrap();
        assert_eq!(memory, config.memory);
        assert_eq!(
            host.own.work.phase,
            Some(Phase::Active),
            "{me:?} runs {task:?}"
        );
        assert_eq!(host.own.work.running, None, "{me:?} runs two functions");
        assert!(function.code.len() <= usize::from(config.code));
        for library in function.libraries.iter() {
            assert!(host.own.work.libraries.contains(library), "{library:?}");
        }
        host.own.work.running = Some((task, run));
        let runs = host.own.work.runs.entry(task).or_default();
        *runs = runs.saturating_add(1);
        let runs = *runs;
        self.oracle.runs(me, task, function, runs, most);
        let spec = self.spec(&function.code);
        let returned = match liar {
            true => self.lie(&spec),
            false if spec.fails_at.contains(&me.id.0) => Returned::Failed(Failure::Trapped),
            false => Returned::Value(spec.result.iter().copied().collect()),
        };
        // A late host returns after the function's time, or after the request to stop.
        let takes = spec.takes + if late { 7_000_000 } else { 0 };
        self.then(
            takes,
            Then::Ends {
                follower: me,
                task,
                run,
                returned,
            },
        );
    }

    fn spec(&self, code: &[u8]) -> Spec {
        let spec = self.specs.get(code).cloned();
        spec.unwrap_or(Spec {
            result: code.iter().copied().take(5).collect(),
            fails_at: [].into(),
            takes: 1_000,
        })
    }

    /// Returns a wrong result, the same for most liars.
    fn lie(&mut self, spec: &Spec) -> Returned {
        match self.below(10) {
            0 => Returned::Failed(Failure::Memory),
            1 => Returned::Value(spec.result.iter().copied().collect()),
            2 => Returned::Value([0xEE, self.below(9) as u8].into_iter().collect()),
            _ => Returned::Value([0xEE].into_iter().collect()),
        }
    }

    pub(crate) fn ends(&mut self, me: Member, task: TaskId, run: u64, returned: Returned) {
        if self.host(me).is_none() || self.nodes[&me.id.0].asleep {
            return; // A function that ran while the host slept took too long: no result.
        }
        if self.sleeps(me) {
            let again = Then::Ends {
                follower: me,
                task,
                run,
                returned,
            };
            return self.then(100_000, again);
        }
        let was = self.host(me).unwrap().own.work.running;
        if was.is_some_and(|it| it.0 == task) {
            // It may be a former run of a task that runs again: it returns the same.
            self.host(me).unwrap().own.work.running = None;
        }
        let command = follower::Command::Returned {
            task,
            returned: returned.clone(),
        };
        // A result for another task than the running one is refused.
        if was.is_none_or(|it| it.0 == task) {
            self.oracle.returned(me, task, &returned);
        }
        let outcome = self.step(me.id.0, Some(to_follower(command)));
        let runs = was.is_some_and(|it| it.0 == task);
        assert_eq!(outcome.is_ok(), runs, "{me:?} {task:?} {run}: {outcome:?}");
    }

    pub(crate) fn library(&mut self, me: Member, library: Library) {
        if self.host(me).is_none() {
            return;
        }
        if self.sleeps(me) {
            return self.then(100_000, Then::Library(me, library));
        }
        let missing = self.missing.contains(&library);
        let host = self.host(me).unwrap();
        let asked = host.own.work.loading == Some(library);
        if asked {
            host.own.work.loading = None;
            if !missing {
                host.own.work.libraries.insert(library);
            }
        }
        let command = match missing {
            true => follower::Command::Missing(library),
            false => follower::Command::Loaded(library),
        };
        let outcome = self.step(me.id.0, Some(to_follower(command)));
        if outcome.is_err() && asked && !missing {
            self.host(me).unwrap().own.work.libraries.remove(&library);
        }
    }
}
