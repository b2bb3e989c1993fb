//! The output of measurements.

use crate::support::{run, text};

/// The output of a measurement in which all tasks had right answers.
fn measure(arguments: &str) -> String {
    let output = run(&format!("measure {arguments}"), "");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out
}

/// The cells of the rows that begin with `begin`.
fn rows(table: &str, begin: &str) -> Vec<Vec<String>> {
    let rows = table.lines().filter(|it| it.starts_with(begin));
    let cells = rows.map(|it| it.split('|').map(|it| it.trim().to_owned()).collect());
    cells.collect()
}

#[test]
fn measurements_print_a_row_for_each_case() {
    let short = "--units 3,5 --tasks 2 --at-once 1 --active 200 --length 100 --seed 1";
    let duty = measure(&format!("duty --shares 50,100 {short}"));
    for (share, unit) in [("50%", "3"), ("50%", "5"), ("100%", "3"), ("100%", "5")] {
        let found = rows(&duty, &format!("| {share} |"));
        let row = found.iter().find(|it| it[3] == unit).unwrap();
        let [median, p99] = [4, 5].map(|it| row[it].parse::<u64>().unwrap());
        assert!(100 <= median && median <= p99, "{duty}");
        // The gateway takes 2.6 W, and three nodes as much.
        let energy: f64 = row[7].parse().unwrap();
        assert!(energy > 0.1 * 2.592_3, "{duty}");
        assert_eq!(row[10], "0", "{duty}");
        // A follower that never sleeps is awake all the time, except at its beginning.
        let awake: u32 = row[8].strip_suffix('%').unwrap().parse().unwrap();
        let least = if share == "100%" { 90 } else { 1 };
        assert!((least..=100).contains(&awake), "{duty}");
    }
    assert_eq!(rows(&duty, "| units of 5, from 50% to 100% |").len(), 1);
    let crowd = measure("crowd --gateways 1 --followers 4 --asleep 500 --seconds 2 --seed 1");
    assert!(crowd.contains("| 10 / 0 / 0 / 0 |"), "{crowd}");
    let memory = &rows(&crowd, "| a follower: PSS")[0][2];
    assert!(
        memory.ends_with(" MiB") && !memory.starts_with("0.00"),
        "{crowd}"
    );
    let rate = measure("rate --units 1 --first 5 --most 5 --limit 60000 --seconds 1 --halves 0");
    let rate = rows(&rate, "| 5 |");
    assert_eq!((rate.len(), rate[0][7].as_str()), (1, "yes"), "{rate:?}");
}
