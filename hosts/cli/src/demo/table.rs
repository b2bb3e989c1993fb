//! The table of promises and measured values, for the terminal and for programs.

use std::io::{self, Write};

use super::promises::Promise;
use selvedge_home::term::Colour;

/// The verdict about a row that needs a faster machine.
pub(crate) const UNJUDGED: &str = "slow machine: not judged";

/// The limit of a promise, for people.
#[must_use]
pub(crate) fn limit(promise: &Promise) -> String {
    number(promise, promise.limit)
}

/// The measured value, for people.
#[must_use]
pub(crate) fn seen(promise: &Promise) -> String {
    promise
        .seen
        .map_or_else(|| "never".to_owned(), |seen| number(promise, seen))
}

fn number(promise: &Promise, number: f64) -> String {
    if promise.unit == "s" {
        format!("{number:.2} s")
    } else {
        format!("{number:.0} {}", promise.unit)
    }
}

/// Writes the table.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_table(out: &mut impl Write, colour: Colour, table: &[Promise]) -> io::Result<()> {
    let width = |text: fn(&Promise) -> String| {
        let lengths = table.iter().map(|it| text(it).chars().count());
        lengths.max().unwrap_or_default()
    };
    let (first, second, third) = (
        width(|it| it.promise.clone()),
        width(limit).max("at most".len()),
        width(seen),
    );
    writeln!(
        out,
        "\n{:first$}  {:>second$}  {:>third$}",
        "promised", "at most", "seen"
    )?;
    for it in table {
        let verdict = match (it.held, it.judged) {
            (true, _) => colour.good("held"),
            (false, true) => colour.bad("BROKEN"),
            (false, false) => UNJUDGED.to_owned(),
        };
        writeln!(
            out,
            "{:first$}  {:>second$}  {:>third$}  {verdict}",
            it.promise,
            limit(it),
            seen(it)
        )?;
    }
    writeln!(out, "\nwhere the limits come from")?;
    let mut reasons: Vec<(String, &str)> = Vec::new();
    for it in table {
        match reasons.iter_mut().find(|(_, why)| *why == it.why) {
            Some((ids, _)) => *ids = format!("{ids}, {}", it.id),
            None => reasons.push((it.id.clone(), &it.why)),
        }
    }
    for (ids, why) in reasons {
        writeln!(out, "  {ids}: {}", colour.dim(why))?;
    }
    Ok(())
}
