//! A comparison of the measured figures with the paper's.

use std::collections::BTreeMap;

use super::{Case, Figures};

/// Section 5b: steps from one share to the next, with units of five. The percentage by which time
/// falls, and the change of the energy.
const SHARES: [((u64, u64), &str, &str); 3] = [
    ((1, 10), "about 15", "falls"),
    ((10, 50), "up to 10", "rises"),
    ((50, 100), "up to 10", "rises"),
];
const UNIT: u64 = 5;
/// Section 5a: steps from one size to the next, at a share of 10%. The percentages by which time
/// falls and energy rises.
const UNITS: [((u64, u64), &str, &str); 2] =
    [((3, 5), "15", "rises by 17"), ((5, 7), "5", "rises by 20")];
const SHARE: u64 = 10;

/// Prints the steps of which both ends were measured.
pub(super) fn print(all: &BTreeMap<Case, Figures>) {
    let shares = SHARES.map(|((from, to), time, energy)| {
        let case = |share| Case { share, unit: UNIT };
        let name = format!("units of {UNIT}, from {from}% to {to}%");
        (name, case(from), case(to), time, energy)
    });
    let units = UNITS.map(|((from, to), time, energy)| {
        let case = |unit| Case { share: SHARE, unit };
        let name = format!("{SHARE}%, from {from} to {to} followers");
        (name, case(from), case(to), time, energy)
    });
    println!(
        "\n| step | time falls by | the paper's | energy falls by | the paper's |\n|---|---|---|---|---|"
    );
    for (name, from, to, time, energy) in shares.into_iter().chain(units) {
        if let Some((from, to)) = all.get(&from).zip(all.get(&to)) {
            let took = |it: &Figures| it.times.mean().as_secs_f64();
            println!(
                "| {name} | {:.0}% | {time}% | {:.0}% | {energy} |",
                falls(took(from), took(to)),
                falls(from.energy, to.energy),
            );
        }
    }
}

/// The fall from one value to the other, in percent.
fn falls(from: f64, to: f64) -> f64 {
    (1.0 - to / from) * 100.0
}

#[cfg(test)]
mod tests {
    use super::falls;

    #[test]
    fn what_rises_falls_by_less_than_nothing() {
        assert!((falls(4.0, 3.0) - 25.0).abs() < 1e-9);
        assert!((falls(4.0, 5.0) + 25.0).abs() < 1e-9);
    }
}
