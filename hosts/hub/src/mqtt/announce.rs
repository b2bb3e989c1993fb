//! The messages at the hub's topics.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::topic::{COUNTS, Topics, word};
use crate::house::{RunView, View};

/// The payload when the hub, or Home Assistant, is online.
pub const ONLINE: &[u8] = b"online";
/// The payload when it is not.
pub const OFFLINE: &[u8] = b"offline";
/// The payload of a button.
pub const PRESS: &[u8] = b"PRESS";
/// The answer to a request that a broker retained.
pub(super) const RETAINED: &str =
    "the broker retained this request, and would repeat it: send it without the retain flag";

type Message = (String, Vec<u8>);

fn message(topic: String, payload: &Value) -> Message {
    (topic, payload.to_string().into_bytes())
}

/// The announcements for Home Assistant: a button and a sensor for each routine, and the numbers of running
/// and waiting runs.
#[must_use]
pub fn discovery(topics: &Topics) -> Vec<Message> {
    if !topics.announces() {
        return Vec::new();
    }
    let node = topics.node();
    let common = |name: &str, id: String| {
        json!({
            "name": name,
            "unique_id": format!("{node}-{id}"),
            "availability_topic": topics.status(),
            "device": {
                "identifiers": [format!("selvedge-{node}")],
                "name": "Selvedge",
                "manufacturer": "Selvedge",
                "model": "hub",
                "sw_version": env!("CARGO_PKG_VERSION"),
            },
        })
    };
    let with = |mut it: Value, more: Value| {
        if let (Value::Object(it), Value::Object(more)) = (&mut it, more) {
            it.extend(more);
        }
        it
    };
    let mut all = Vec::new();
    for name in topics.routines() {
        let more = json!({ "command_topic": topics.run(name), "payload_press": "PRESS", "qos": 1 });
        let button = with(common(name, format!("run-{}", word(name))), more);
        all.push(message(topics.button(name), &button));
        let last = topics.last(name);
        let more = json!({
            "state_topic": last,
            "value_template": "{{ value_json.what }}",
            "json_attributes_topic": last,
            "icon": "mdi:script-text",
        });
        let title = format!("{name}: latest run");
        let sensor = with(common(&title, format!("last-{}", word(name))), more);
        all.push(message(topics.sensor(name), &sensor));
    }
    for what in COUNTS {
        let more = json!({
            "state_topic": topics.runs(),
            "value_template": format!("{{{{ value_json.{what} }}}}"),
            "state_class": "measurement",
        });
        let title = format!("routines: {what}");
        let sensor = with(common(&title, format!("count-{what}")), more);
        all.push(message(topics.count(what), &sensor));
    }
    all
}

/// The messages about a house.
#[must_use]
pub fn house(topics: &Topics, view: &View) -> Vec<Message> {
    let waits = view.runs.iter().filter(|it| it.what == "waits").count();
    let open = view.runs.iter().filter(|it| it.ended.is_none()).count();
    let counts = json!({ "runs": open.saturating_sub(waits), "waits": waits });
    let counts = message(topics.runs(), &counts);
    // Of two devices with the same topic, the device in the file counts.
    let (known, gone): (Vec<_>, Vec<_>) = view
        .devices
        .iter()
        .partition(|it| topics.has_device(&it.name));
    let devices = gone.into_iter().chain(known).map(|it| {
        let payload = json!({ "state": it.state, "up": it.up });
        message(topics.device(&it.name), &payload)
    });
    let devices: BTreeMap<_, _> = devices.collect();
    core::iter::once(counts).chain(devices).collect()
}

/// The message about a run. A text that is too long for a packet is cut, with a mark.
#[must_use]
pub fn run(view: &RunView) -> Vec<u8> {
    let whole = json(view);
    if whole.len() <= RUN_MAX {
        return whole;
    }
    let cut = |texts: &[String]| cut(texts, RUN_MAX / 3, view.id);
    json(&RunView {
        why: view.why.as_ref().map(|it| short(it, TEXT_MAX)),
        notes: cut(&view.notes),
        steps: cut(&view.steps),
        ..view.clone()
    })
}

fn json(view: &RunView) -> Vec<u8> {
    // Only a map with keys that are not strings can fail, and the view has no such map.
    serde_json::to_vec(view).unwrap_or_default()
}

/// The longest message about a run, in bytes; it leaves room for a topic and a header.
const RUN_MAX: usize = 60 * 1024;
/// The longest text in it, in bytes.
pub(super) const TEXT_MAX: usize = 4 * 1024;

/// A text, cut to this number of bytes in JSON, with a mark if it was cut.
#[must_use]
pub(super) fn short(text: &str, most: usize) -> String {
    let mut left = most;
    let mut fits = |it: char| {
        let is_escaped = it.is_control() || matches!(it, '"' | '\\');
        let bytes = if is_escaped { 6 } else { it.len_utf8() };
        left.checked_sub(bytes).map(|it| left = it).is_some()
    };
    match text.char_indices().find(|it| !fits(it.1)) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// The first texts of a list, with a mark that has the number of texts left out.
fn cut(texts: &[String], most: usize, id: u64) -> Vec<String> {
    let mut left = most;
    let fits = |it: &&String| {
        let bytes = serde_json::to_string(it).map_or(usize::MAX, |it| it.len() + 1);
        left.checked_sub(bytes).map(|it| left = it).is_some()
    };
    let mut kept: Vec<String> = texts.iter().take_while(fits).cloned().collect();
    let more = texts.len() - kept.len();
    if more > 0 {
        kept.push(format!("… {more} more are left out: see /api/runs/{id}"));
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::house::{Cause, Counts, DeviceView};

    fn of(steps: usize, text: &str) -> RunView {
        RunView {
            id: 7,
            name: "r".into(),
            cause: Cause::Hand,
            came: 1,
            started: None,
            ended: None,
            what: "undone",
            why: Some(text.into()),
            since: None,
            until: None,
            notes: vec![text.into(); steps],
            steps: vec![text.into(); steps],
            at: None,
            place: None,
        }
    }

    #[test]
    fn what_is_said_of_a_run_fits_a_packet_and_says_what_is_left_out() {
        let whole = of(20, "lamp: on");
        assert_eq!(run(&whole), serde_json::to_vec(&whole).unwrap());
        for (steps, text) in [
            (10_000, "lamp: on"),
            (400, "\u{1}\"\\ü"),
            (200, &*"\u{7}".repeat(512)),
            (1, &*"ü".repeat(100_000)),
            (0, &*"\"".repeat(100_000)),
        ] {
            let reported = run(&of(steps, text));
            assert!(reported.len() <= RUN_MAX, "{}", reported.len());
            let reported: Value = serde_json::from_slice(&reported).unwrap();
            if text.len() > TEXT_MAX {
                assert!(reported["why"].as_str().unwrap().ends_with('…'));
            }
            for list in ["steps", "notes"] {
                let list = reported[list].as_array().unwrap();
                let Some((mark, kept)) = list.split_last() else {
                    continue;
                };
                assert!(kept.iter().all(|it| it == text));
                let bytes = serde_json::to_vec(kept).unwrap().len();
                assert!(bytes <= RUN_MAX / 3 + 2, "{bytes}");
                if kept.len() + 1 == steps && mark == text {
                    continue; // All of them.
                }
                // As many as there is room for.
                let one = serde_json::to_vec(text).unwrap().len() + 1;
                assert_eq!(kept.len(), RUN_MAX / 3 / one);
                let more = steps - kept.len();
                let notified = format!("… {more} more are left out: see /api/runs/7");
                assert_eq!(mark, &notified);
            }
        }
    }

    #[test]
    fn a_list_that_fits_has_no_mark_beside_one_that_does_not() {
        let notes = vec![String::from("lamp: late")];
        let view = RunView {
            notes: notes.clone(),
            ..of(10_000, "lamp: on")
        };
        let reported: Value = serde_json::from_slice(&run(&view)).unwrap();
        assert_eq!(reported["notes"], Value::from(notes));
        assert!(reported["steps"].as_array().unwrap().len() < 10_000);
    }

    #[test]
    fn a_text_has_as_many_bytes_in_json_as_it_may_at_most() {
        for (one, bytes) in [('a', 1), ('\u{fc}', 2), ('"', 6), ('\\', 6), ('\u{1}', 6)] {
            let text = |len| String::from(one).repeat(len);
            let fits = 60 / bytes;
            assert_eq!(short(&text(fits), 60), text(fits));
            assert_eq!(short(&text(fits + 1), 60), text(fits) + "…", "{one:?}");
        }
    }

    #[test]
    fn of_a_house_it_is_said_how_many_run_and_wait_and_how_each_device_is() {
        let one = |what, ended| RunView {
            what,
            ended,
            ..of(0, "")
        };
        let device = |name: &str, state: Option<&str>| DeviceView {
            name: name.into(),
            state: state.map(Into::into),
            up: state.is_some(),
            why: None,
            lineage: Vec::new(),
        };
        let view = View {
            devices: vec![
                device("lamp", Some("on")),
                device("a/b", None),
                // These have left the file and are in use.
                device("a#b", Some("on")),
                device("fan#1", Some("off")),
            ],
            routines: Vec::new(),
            runs: vec![
                one("waits", None),
                one("runs", None),
                one("runs", None),
                one("undone", Some(2)),
            ],
            refused: 0,
            counts: Counts::default(),
        };
        let names = ["lamp", "a/b"].map(String::from).into();
        let topics = Topics::new("own".into(), "ha".into(), &names, &[].into()).unwrap();
        let reported: BTreeMap<String, Value> = house(&topics, &view)
            .into_iter()
            .map(|(topic, payload)| (topic, serde_json::from_slice(&payload).unwrap()))
            .collect();
        let all = [
            ("own/runs", json!({ "runs": 2, "waits": 1 })),
            (
                "own/device/lamp/state",
                json!({ "state": "on", "up": true }),
            ),
            (
                "own/device/a_b/state",
                json!({ "state": null, "up": false }),
            ),
            (
                "own/device/fan_1/state",
                json!({ "state": "off", "up": true }),
            ),
        ];
        assert_eq!(reported, all.map(|(topic, it)| (topic.into(), it)).into());
    }
}
