//! The measurements, as tables in Markdown.

use core::time::Duration;
use std::time::Instant;

use crate::plug::Plug;
use crate::run::{Own, Seen};
use crate::system::{Notified, System};

/// The duration of a press: to the command at the plug, and to the answer.
pub(crate) struct Press {
    seen: Duration,
    answer: Duration,
}

/// Presses of a script with one command, one after the other, without faults.
pub(crate) fn presses(system: &dyn System, plug: &Plug, count: u32) -> Vec<Press> {
    let press = |nth| {
        while plug.commands.try_recv().is_ok() {}
        let script = if nth % 2 == 0 { "first0" } else { "back0" };
        let start = Instant::now();
        let ticket = system.ask(script).unwrap();
        let answer = start.elapsed();
        let seen = plug.commands.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(system.end(ticket), Notified::Done);
        let seen = seen - start;
        Press { seen, answer }
    };
    (0..count).map(press).collect()
}

/// The value below which this percentage lies; the last one for 100.
fn percentile(values: &mut [Duration], percent: usize) -> f64 {
    values.sort_unstable();
    let at = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(at).map_or(0.0, Duration::as_secs_f64)
}

pub(crate) fn print_presses(presses: impl Iterator<Item = (&'static str, Vec<Press>)>) {
    println!("\n| without faults, ms, p50 and p99 | command at the plug | answer |\n|---|---|---|");
    for (name, presses) in presses {
        let both = |of: fn(&Press) -> Duration| {
            let mut values: Vec<_> = presses.iter().map(of).collect();
            let [p50, p99] = [50, 99].map(|it| 1e3 * percentile(&mut values, it));
            format!("{p50:.1}, {p99:.1}")
        };
        println!(
            "| {name} | {} | {} |",
            both(|it| it.seen),
            both(|it| it.answer)
        );
    }
}

/// A question: which runs it is about, and in which of them it holds.
type Question = (&'static str, fn(&Seen) -> bool, fn(&Seen) -> bool);

const QUESTIONS: [Question; 14] = [
    ("done: all three are on", any, |it| it.all_are(true)),
    ("undone: all three are off", any, |it| it.all_are(false)),
    ("half done: some on, some off", any, is_half),
    (
        "half done, pulled out before its own command",
        before,
        is_half,
    ),
    (
        "half done, pulled out during its own hold",
        |it| it.case.own == Own::Hold,
        is_half,
    ),
    (
        "half done, pulled out later",
        |it| it.case.own == Own::After,
        is_half,
    ),
    (
        "half done, not counting the plug that was pulled out",
        any,
        others_differ,
    ),
    (
        "at the end, a plug is shown in a wrong state",
        any,
        Seen::shows_wrong,
    ),
    ("at the end, a plug is shown as not there", any, Seen::lacks),
    ("told \"done\": all are on", was_done, |it| it.all_are(true)),
    (
        "told \"done\": only the plug that was pulled out is off",
        was_done,
        |it| it.others_are(true) && !it.all_are(true),
    ),
    ("told \"done\": another plug is off", was_done, |it| {
        !it.others_are(true)
    }),
    ("told \"failed\": all are off", has_failed, |it| {
        it.all_are(false)
    }),
    ("told \"failed\": a plug is on", has_failed, |it| {
        !it.all_are(false)
    }),
];

const fn any(_: &Seen) -> bool {
    true
}

fn before(seen: &Seen) -> bool {
    seen.case.own == Own::Before
}

fn was_done(seen: &Seen) -> bool {
    seen.notified == Notified::Done
}

fn has_failed(seen: &Seen) -> bool {
    seen.notified == Notified::Failed
}

fn others_differ(seen: &Seen) -> bool {
    !seen.others_are(true) && !seen.others_are(false)
}

fn is_half(seen: &Seen) -> bool {
    !seen.all_are(true) && !seen.all_are(false)
}

/// A line for each question, a column for each system.
pub(crate) fn print(all: &[(&'static str, Vec<Seen>)]) {
    let row = |name: &str, cell: &dyn Fn(&[Seen]) -> String| {
        let cells = all.iter().map(|it| cell(&it.1));
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    let names = all.iter().map(|it| it.0).collect::<Vec<_>>();
    println!(
        "\n| | {} |\n|---{}|",
        names.join(" | "),
        "|---".repeat(names.len())
    );
    for (name, kind, holds) in QUESTIONS {
        row(name, &|seen| {
            let of_kind = seen.iter().filter(|it| kind(it));
            let (count, of) = (
                of_kind.clone().filter(|it| holds(it)).count(),
                of_kind.count(),
            );
            format!("{count} of {of}")
        });
    }
    let seconds = |seen: &[Seen], of: fn(&Seen) -> Duration| {
        let mut values: Vec<_> = seen.iter().map(of).collect();
        let [p50, most] = [50, 100].map(|it| percentile(&mut values, it));
        format!("{p50:.1}, {most:.1}")
    };
    row(
        "a plug with power is shown in a wrong state, s, p50 and most",
        &|seen| seconds(seen, |it| it.wrong),
    );
    row(
        "a plug without power is shown as there, s, p50 and most",
        &|seen| seconds(seen, |it| it.blind),
    );
}
