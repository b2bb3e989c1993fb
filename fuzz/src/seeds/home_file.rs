//! Routine files: the paper's form, each key, each kind of trigger, and each kind of mistake.

use super::Seed;

const FILES: &[(&str, &str)] = &[
    (
        "paper",
        r#"{"RoutineName":"Prep. Breakfast", "CommandList":
[{"DevID":"CoffeeMkr", "Action":"ON", "Priority":"MUST"},
{"DevID":"Toaster", "Action":"ON", "Priority":"MUST"}
]}"#,
    ),
    ("empty", "{}"),
    (
        "commands",
        r#"{"RoutineName":"r","CommandList":[{"DevID":"heater","Action":21.5,"Priority":"BEST_EFFORT","hold_ms":600000,"timeout_ms":2500,"undo":-16.125,"if":{"DevID":"heater","less":20}},{"DevID":"d","Action":"","if":{"DevID":"e","not_equal":"x"}}]}"#,
    ),
    (
        "document",
        r#"{"devices":[{"DevID":"lamp","initial":"off"},{"DevID":"heater","initial":999999999999.999,"lateness_ms":86400000},{"DevID":"window"}],"routines":[{"RoutineName":"out","CommandList":[{"DevID":"lamp","Action":"off"}]},{"RoutineName":"in","CommandList":[{"DevID":"lamp","Action":"on","Priority":"MUST"}]}]}"#,
    ),
    (
        "triggers",
        r#"{"routines":[{"RoutineName":"r","CommandList":[{"DevID":"a","Action":1}]}],"triggers":[{"RoutineName":"r","at":"06:30"},{"RoutineName":"r","at":"23:59:59"},{"RoutineName":"r","every_ms":1000},{"RoutineName":"r","manual":true},{"RoutineName":"r","when":{"DevID":"a","equal":1}},{"RoutineName":"r","when":{"any":[{"not":{"DevID":"a","greater":2.5}},{"all":[{"DevID":"b","less":0},{"DevID":"c","not_equal":"\u00e4"}]}]}}]}"#,
    ),
    ("bad-json", r#"{"routines":[}"#),
    ("bad-key", r#"{"routines":[],"rooms":[]}"#),
    ("bad-list", r#"["r",[["d",1]]]"#),
    (
        "bad-priority",
        r#"{"RoutineName":"r","CommandList":[{"DevID":"d","Action":1,"Priority":"MAY"}]}"#,
    ),
    (
        "bad-hold",
        r#"{"RoutineName":"r","CommandList":[{"DevID":"d","Action":1,"hold_ms":-1}]}"#,
    ),
    (
        "bad-undo",
        r#"{"RoutineName":"r","CommandList":[{"DevID":"d","Action":1,"undo":1.0}]}"#,
    ),
    (
        "bad-device",
        r#"{"devices":[{"DevID":"d"}],"routines":[{"RoutineName":"r","CommandList":[{"DevID":"e","Action":1}]}]}"#,
    ),
    (
        "bad-lateness",
        r#"{"devices":[{"DevID":"d","lateness_ms":86400001}]}"#,
    ),
    (
        "bad-clause",
        r#"{"routines":[{"RoutineName":"r","CommandList":[{"DevID":"d","Action":1}]}],"triggers":[{"RoutineName":"r","when":{"all":[{"DevID":"d","equal":1},{"DevID":"d","equal":2}]}}]}"#,
    ),
];

pub(super) fn file_seeds() -> Vec<Seed> {
    let seed = |&(name, text): &(&str, &str)| Seed {
        target: "home_file",
        name: name.into(),
        bytes: text.as_bytes().to_vec(),
    };
    FILES.iter().map(seed).collect()
}
