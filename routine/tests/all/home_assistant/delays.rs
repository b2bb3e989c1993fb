//! Delays, which are the holds of the commands before them.

use super::*;

/// The hold of the first command, in milliseconds.
fn delay(text: &str) -> u64 {
    let import = import(&script(&format!("{ON}    - delay: {text}\n")));
    import.routines[0].routine.steps[0].hold.0 / 1_000
}

#[test]
fn a_delay_is_as_long_as_it_is_written() {
    for (text, millis) in [
        ("5", 5_000),
        ("'5'", 5_000),
        ("'+0.25'", 250),
        ("'02:10'", 7_800_000),
        ("'01:02:03.5'", 3_723_500),
        ("'23:59:59.999'", 86_399_999),
        ("'00:59'", 3_540_000),
        ("'999999:00'", 999_999 * 3_600_000),
        ("{days: 2, hours: 3}", 183_600_000),
        ("{minutes: 1, seconds: '1.5', milliseconds: 20}", 61_520),
        // A thousand years, less a millisecond.
        ("31557599999.999", 31_557_599_999_999),
    ] {
        assert_eq!(delay(text), millis, "{text}");
    }
    for text in [
        "'-5'",
        "31557600000",
        "'1000000:00'",
        "'00:60'",
        "'00:00:60'",
        "'00:60:00'",
        "'00:00:00:00'",
        "'00:01:-5'",
        "'00:01:+5'",
        "'00:+5'",
        "'00:'",
        "'00:00:'",
        "{}",
        "{milliseconds: 0.5}",
    ] {
        let found = missed(&script(&format!("{ON}    - delay: {text}\n")));
        assert!(
            found[0].contains("give seconds, a time as"),
            "{text}: {found:#?}"
        );
    }
}

#[test]
fn a_delay_stands_behind_what_is_done_for_sure() {
    let gate = "    - {condition: state, entity_id: a.b, state: x}\n";
    let wait = "    - {delay: 5}\n";
    let nested = |steps: &str| {
        let inner = steps.replace("    - ", "        - ");
        format!("    - sequence:\n{inner}")
    };
    // An empty delay needs no command before it.
    assert_eq!(
        steps(&import(&script(&format!("    - {{delay: 0}}\n{ON}")))).len(),
        1
    );
    let sure = import(&script(&format!("{}{wait}", nested(ON))));
    assert_eq!(sure.routines[0].routine.steps[0].hold, Span::secs(5));
    for doubtful in [
        format!("{ON}{gate}{wait}"),
        format!("{}{wait}", nested(&format!("{gate}{ON}"))),
    ] {
        let found = missed(&script(&doubtful));
        assert!(
            found[0].contains("a delay stands behind a command"),
            "{found:#?}"
        );
    }
}
