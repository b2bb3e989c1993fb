//! What is said at the hub's topics.

use serde_json::{Value, json};

use super::topic::{COUNTS, Topics, word};
use crate::house::{RunView, View};

/// The hub, or Home Assistant, is there.
pub const ONLINE: &[u8] = b"online";
/// It is not.
pub const OFFLINE: &[u8] = b"offline";
/// A button was pressed.
pub const PRESS: &[u8] = b"PRESS";
/// Why a request that a broker retained is not carried out.
pub(super) const RETAINED: &str =
    "the broker retained this request, which would come again each time: send it without that flag";

type Message = (String, Vec<u8>);

fn message(topic: String, payload: &Value) -> Message {
    (topic, payload.to_string().into_bytes())
}

/// What Home Assistant discovers: a button and a sensor for each routine, and how many run and wait.
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

/// What is said of a house.
#[must_use]
pub fn house(topics: &Topics, view: &View) -> Vec<Message> {
    let waits = view.runs.iter().filter(|it| it.what == "waits").count();
    let open = view.runs.iter().filter(|it| it.ended.is_none()).count();
    let counts = json!({ "runs": open.saturating_sub(waits), "waits": waits });
    let counts = message(topics.runs(), &counts);
    let devices = view.devices.iter().map(|it| {
        let payload = json!({ "state": it.state, "up": it.up });
        message(topics.device(&it.name), &payload)
    });
    core::iter::once(counts).chain(devices).collect()
}

/// What is said of a run.
#[must_use]
pub fn run(view: &RunView) -> Vec<u8> {
    // There is no map in it whose keys are no texts, which is all that could go wrong.
    serde_json::to_vec(view).unwrap_or_default()
}
