//! One run: three plugs are switched on one after another, and one of them loses its power.

use core::fmt;
use core::time::Duration;
use std::thread;
use std::time::Instant;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::Rng as _;

use crate::home_assistant::until;
use crate::plug::Plug;
use crate::system::{Notified, System, Trio};

/// The interval between two looks at the plugs and at the systems.
const LOOK: Duration = Duration::from_millis(250);
/// The time before the press of the script, in which a plug may be pulled out.
const LEAD: Duration = Duration::from_millis(500);

/// The lengths of time of all runs.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// The time between two commands.
    pub(crate) hold: Duration,
    /// The time for which a plug has no power.
    pub(crate) away: Duration,
    /// The time for which a system may settle when the plug is back and the script has ended.
    pub(crate) settle: Duration,
}

/// The moment at which a plug is unplugged, beside a command.
#[derive(Clone, Copy, Debug)]
enum When {
    Before,
    Hold,
    After,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before a command",
            Self::Hold => "during its hold",
            Self::After => "after its hold",
        })
    }
}

/// The moment at which a plug is unplugged, beside its own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    Before,
    Hold,
    After,
}

/// A plug, and the moment at which it is unplugged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    command: u32,
    when: When,
    victim: usize,
    pub(crate) own: Own,
    /// The time after `LEAD` before the press.
    pull: Duration,
}

impl Case {
    /// Commands, moments beside them and plugs come in turn; the moment is drawn within bounds.
    pub(crate) fn draw(nth: u32, hold: Duration, rng: &mut ChaCha12Rng) -> Self {
        let command = nth % 3;
        let hold_ms = u32::try_from(hold.as_millis()).unwrap();
        let (when, from, len) = match (nth / 3) % 3 {
            0 => (When::Before, -180, 160),
            1 => (When::Hold, 20, hold_ms - 220),
            _ => (When::After, i64::from(hold_ms) + 20, 160),
        };
        let drawn = from + i64::from(rng.next_u32() % len);
        let lead = i64::try_from(LEAD.as_millis()).unwrap();
        let pull = lead + i64::from(command * hold_ms) + drawn;
        let victim = nth / 9 % 3;
        let own = match i64::from(command * hold_ms) + drawn - i64::from(victim * hold_ms) {
            ..0 => Own::Before,
            it if it < i64::from(hold_ms) => Own::Hold,
            _ => Own::After,
        };
        Self {
            command,
            when,
            victim: victim as usize,
            own,
            pull: Duration::from_millis(pull.unsigned_abs()),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (which, plug) = (self.command + 1, self.victim + 1);
        let at = self.pull.as_millis().cast_signed() - LEAD.as_millis().cast_signed();
        write!(f, "{} {which}, at {at} ms, plug {plug} pulled", self.when)
    }
}

/// The observations of a run.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) case: Case,
    pub(crate) notified: Notified,
    /// True for each plug that reports at the end that it is on.
    pub(crate) is_on: [bool; 3],
    /// The same, as the system shows it.
    pub(crate) shown: [Option<bool>; 3],
    /// The time for which a plug with power was shown in another state than it was in.
    pub(crate) wrong: Duration,
    /// The time for which the plug without power was shown as present.
    pub(crate) blind: Duration,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |is_on: Option<bool>| is_on.map_or("gone", |it| if it { "on" } else { "off" });
        let is_on = self.is_on.map(|it| word(Some(it))).join(" ");
        let shown = self.shown.map(word).join(" ");
        let (notified, wrong) = (self.notified, self.wrong.as_secs_f64());
        let (case, blind) = (self.case, self.blind.as_secs_f64());
        write!(
            f,
            "{case}: told {notified:?}, plugs {is_on}, shown {shown}, shown wrong for {wrong:.2} s, and as there without power for {blind:.2} s"
        )
    }
}

impl Seen {
    /// Returns true if the plugs that were not unplugged are all in this state.
    pub(crate) fn others_are(&self, is_on: bool) -> bool {
        let mut others = (0..3).filter(|it| *it != self.case.victim);
        others.all(|it| self.is_on[it] == is_on)
    }

    pub(crate) fn all_are(&self, is_on: bool) -> bool {
        self.is_on == [is_on; 3]
    }

    /// Returns true if a plug is shown in a state that it is not in.
    pub(crate) fn shows_wrong(&self) -> bool {
        let mut both = self.shown.iter().zip(self.is_on);
        both.any(|(shown, is_on)| shown.is_some_and(|it| it != is_on))
    }

    /// Returns true if a plug is shown as absent, or in no state.
    pub(crate) fn lacks(&self) -> bool {
        self.shown.contains(&None)
    }
}

/// A trio of plugs, at one system.
pub(crate) struct Bench<'a> {
    system: &'a dyn System,
    pub(crate) nth: usize,
    trio: Trio,
    plugs: Vec<Plug>,
    times: Times,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(system: &'a dyn System, nth: usize, plugs: Vec<Plug>, times: Times) -> Self {
        Self {
            system,
            nth,
            trio: core::array::from_fn(|it| plugs[it].address.clone()),
            plugs,
            times,
        }
    }

    pub(crate) fn run(&mut self, case: Case) -> Seen {
        self.reset();
        let (system, script) = (self.system, format!("on{}", self.nth));
        let start = Instant::now();
        thread::scope(|scope| {
            let notified = scope.spawn(move || {
                thread::sleep(LEAD);
                system.run(&script)
            });
            let mut watch = Watch::default();
            self.watch_until(start + case.pull, &mut watch);
            self.plugs[case.victim].pull_out();
            let pulled = Instant::now();
            self.watch_until(pulled + self.times.away, &mut watch);
            self.plugs[case.victim].plug_in();
            while !notified.is_finished() {
                self.watch_until(Instant::now() + 4 * LOOK, &mut watch);
            }
            self.watch_until(Instant::now() + self.times.settle, &mut watch);
            let is_on = self.is_on().map(|it| it.expect("all have power"));
            let shown = system.shown(&self.trio);
            let notified = notified.join().unwrap();
            let (wrong, blind) = (watch.wrong.into_iter().max().unwrap(), watch.blind);
            Seen {
                case,
                notified,
                is_on,
                shown,
                wrong,
                blind,
            }
        })
    }

    /// Waits until all are off, and shown as off.
    fn reset(&self) {
        let script = format!("off{}", self.nth);
        until("the plugs are not off", 120, || {
            let shown = self.system.shown(&self.trio);
            if shown.contains(&None) {
                return None;
            }
            if shown == [Some(false); 3] && self.is_on() == shown {
                return Some(());
            }
            self.system.run(&script);
            thread::sleep(LOOK);
            None
        });
    }

    fn is_on(&self) -> [Option<bool>; 3] {
        core::array::from_fn(|it| self.plugs[it].is_on())
    }

    fn watch_until(&self, end: Instant, watch: &mut Watch) {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            thread::sleep(left.min(LOOK));
            if left <= LOOK {
                watch.last = None; // It takes time to unplug one, or to plug it in.
                return;
            }
            let before = self.is_on();
            let shown = self.system.shown(&self.trio);
            // A state that changes meanwhile is not compared.
            watch.note(before, shown, self.is_on());
        }
    }
}

#[derive(Default)]
struct Watch {
    last: Option<Instant>,
    wrong: [Duration; 3],
    blind: Duration,
}

impl Watch {
    fn note(
        &mut self,
        is_on: [Option<bool>; 3],
        shown: [Option<bool>; 3],
        after: [Option<bool>; 3],
    ) {
        let now = Instant::now();
        let since = self.last.map_or(LOOK, |it| now - it);
        self.last = Some(now);
        for nth in 0..3 {
            match (is_on[nth], shown[nth]) {
                (Some(is), Some(shown)) if is != shown && after[nth] == is_on[nth] => {
                    self.wrong[nth] += since;
                }
                (None, Some(_)) => self.blind += since,
                _ => {}
            }
        }
    }
}
