//! Routine files in YAML, and scripts and automations of Home Assistant: each kind of key, and each
//! kind of mistake.

use super::Seed;

const YAML: &[(&str, &str)] = &[
    ("empty", "{}"),
    (
        "home",
        r#"devices:
  - DevID: lamp
    initial: off
  - {DevID: heater, initial: 18.5, lateness_ms: 1000}
location: {latitude: 52.52, longitude: -13.4}
groups:
  all: [lamp, heater]
scenes:
  evening: {lamp: on, heater: "21"}
routines:
  - RoutineName: warm up
    if: {DevID: heater, less: 20}
    CommandList:
      - {DevID: lamp, Action: on, hold_ms: 5, timeout_ms: 9, undo: off, Priority: BEST_EFFORT}
      - {scene: evening}
triggers:
  - {RoutineName: warm up, at: 06:30, days: [mon, fri]}
  - {RoutineName: warm up, at: sunset, offset_ms: -1800000}
  - RoutineName: warm up
    when: {none_of: all, equal: on}
"#,
    ),
    (
        "choices",
        r#"groups: {g: [a, b]}
routines:
- RoutineName: r
  CommandList:
  - repeat: 3
    do:
    - {group: g, Action: 1}
    - {delay_ms: 500}
  - choose:
    - if: {any: [{DevID: x, equal: 1}, {not: {DevID: y, greater: 2}}]}
      then: [{DevID: e, Action: on}]
    - if: {all_of: g, not_equal: 1}
      then: [{DevID: c, Action: on, if: {any_of: g, equal: 2}}]
    else:
    - if: {DevID: z, equal: 1}
      then: [{DevID: c, Action: 2}]
      else: [{DevID: d, Action: 3}]
"#,
    ),
    (
        "runs",
        r#"routines:
- RoutineName: r
  mode: queued
  limit: 3
  urgency: 255
  CommandList:
  - {DevID: a, Action: 1, hold_ms: 5, preemptible: true}
- {RoutineName: s, mode: restart, CommandList: [{DevID: a, Action: 2}]}
- {RoutineName: t, mode: single, CommandList: [{DevID: a, Action: 2, preemptible: false}]}
triggers:
- {RoutineName: r, every_ms: 5, cooldown_ms: 9}
- {RoutineName: s, manual: true}
hub: {devices: {a: {dummy: {}}}}
"#,
    ),
    (
        "bad-mode",
        "RoutineName: r\nmode: queud\nCommandList: [{DevID: a, Action: 1}]",
    ),
    (
        "bad-limit",
        "RoutineName: r\nlimit: 1\nCommandList: [{DevID: a, Action: 1}]",
    ),
    ("bad-yaml", "a: [b"),
    ("bad-alias", "devices: [&a {DevID: d}, *a]"),
    ("bad-tag", "devices: !!set {}"),
    ("bad-number", "devices: [{DevID: d, initial: 0x1f}]"),
    ("bad-delay", "RoutineName: r\nCommandList: [{delay_ms: 5}]"),
    (
        "bad-toggle",
        "RoutineName: r\nCommandList: [{if: {DevID: d, equal: on}, then: [{DevID: d, Action: off}], else: [{DevID: d, Action: on}]}]",
    ),
    ("bad-documents", "{}\n---\n{}"),
];

const SCRIPTS: &[(&str, &str)] = &[
    (
        "modes",
        r#"a:
  mode: queued
  max: 3
  max_exceeded: silent
  sequence: [{action: light.turn_on, entity_id: light.a}]
b:
  mode: restart
  sequence: [{action: light.turn_off, entity_id: light.a}]
c:
  mode: parallel
  sequence: [{action: light.turn_off, entity_id: light.b}]
"#,
    ),
    (
        "bad-max",
        "a: {mode: parallel, max: 3, sequence: [{action: light.turn_on, entity_id: light.a}]}",
    ),
    (
        "scripts",
        r#"script:
  evening:
    alias: Evening
    mode: queued
    sequence:
      - service: cover.close_cover
        target: {entity_id: [cover.a, cover.b]}
      - delay: {minutes: 1, seconds: 30}
      - action: climate.set_temperature
        entity_id: climate.c
        data: {temperature: 21.5}
        continue_on_error: true
      - repeat:
          count: 2
          sequence:
            - action: switch.turn_on
              entity_id: switch.bell
            - delay: "00:00:01"
"#,
    ),
    (
        "choice",
        r#"alias: Leave
sequence:
  - condition: state
    entity_id: person.a
    state: [away, not_home]
  - if: [{condition: numeric_state, entity_id: sensor.a, above: 1, below: "40"}]
    then: [{action: light.turn_on, entity_id: light.a}]
    else: [{action: light.turn_off, entity_id: light.a}]
  - choose:
      - conditions: [{or: [{condition: state, entity_id: lock.a, state: unlocked}, {not: {condition: state, entity_id: lock.b, state: locked}}]}]
        sequence: [{action: lock.lock, target: {entity_id: lock.c}}]
    default: [{action: lock.unlock, target: {entity_id: lock.c}}]
"#,
    ),
    (
        "automations",
        r#"- id: "1"
  alias: Wake up
  triggers:
    - {trigger: time, at: ["06:30:00", "7:15"]}
    - {trigger: sun, event: sunrise, offset: "-00:30:00"}
  conditions:
    - {condition: time, weekday: [mon, tue]}
    - {condition: state, entity_id: input_boolean.a, state: "off"}
  actions: [{action: light.turn_on, target: {entity_id: light.a}}]
  mode: restart
- alias: Door
  trigger: {platform: state, entity_id: binary_sensor.a, to: "on"}
  action: {service: light.turn_on, entity_id: light.b}
"#,
    ),
    ("bad-yaml", "a: [b"),
    ("bad-empty", "{}"),
    (
        "bad-steps",
        "s:\n  sequence:\n    - stop: a\n    - wait_template: '{{ x }}'\n    - {action: light.toggle, entity_id: light.a}\n",
    ),
];

pub(super) fn file_seeds() -> Vec<Seed> {
    let seed = |target: &'static str| {
        move |&(name, text): &(&str, &str)| Seed {
            target,
            name: name.into(),
            bytes: text.as_bytes().to_vec(),
        }
    };
    let yaml = YAML.iter().map(seed("home_file_yaml"));
    yaml.chain(SCRIPTS.iter().map(seed("home_assistant")))
        .collect()
}
