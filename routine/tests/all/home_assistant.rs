//! Scripts and automations of Home Assistant, as people write them.

mod delays;

use selvedge_core::Span;
use selvedge_routine::file::home_assistant::read;
use selvedge_routine::file::{FileError, Format, Home};
use selvedge_routine::trigger::{Clause, Days, SunEvent, TimeOfDay, Trigger, Weekday};
use selvedge_routine::{Catalogue, Comparison, Location, Mode, Number, Priority, State, Step};

fn import(text: &str) -> Home {
    match read(text.as_bytes(), Catalogue::new()) {
        Ok(import) => import,
        Err(missed) => panic!("{missed:#?}\n{text}"),
    }
}

fn missed(text: &str) -> Vec<String> {
    let missed = read(text.as_bytes(), Catalogue::new()).unwrap_err();
    missed.iter().map(FileError::to_string).collect()
}

fn name(home: &Home, step: &Step<State>) -> String {
    format!(
        "{} {}",
        home.catalogue.name(step.device).unwrap(),
        step.value
    )
}

fn steps(import: &Home) -> Vec<String> {
    import.routines[0]
        .routine
        .steps
        .iter()
        .map(|it| name(import, it))
        .collect()
}

const EVENING: &str = r#"
script:
  evening:
    alias: Cosy evening
    description: "Blinds, heating, a little light"
    icon: mdi:sofa
    mode: queued
    sequence:
      - alias: Blinds down
        service: cover.close_cover
        target:
          entity_id:
            - cover.living_room
            - cover.kitchen
      - delay:
          minutes: 1
          seconds: 30
      - action: climate.set_temperature
        target:
          entity_id: climate.living_room
        data:
          temperature: 21.5
        continue_on_error: true
      - if:
          - condition: state
            entity_id: person.ada
            state: home
          - condition: numeric_state
            entity_id: sensor.light
            below: 20
        then:
          - action: light.turn_on
            entity_id: light.sofa, light.shelf
        else:
          - action: input_select.select_option
            target: {entity_id: input_select.mode}
            data: {option: away}
      - repeat:
          count: 2
          sequence:
            - action: switch.turn_on
              target: {entity_id: switch.bell}
            - delay: "00:00:01"
            - action: switch.turn_off
              target: {entity_id: switch.bell}
            - delay: 0.5
"#;

#[test]
fn a_script_as_people_write_it_is_a_routine() {
    let import = import(EVENING);
    assert_eq!(import.routines[0].name, "Cosy evening");
    assert_eq!(
        import.routines[0].mode,
        Mode::Queued {
            limit: core::num::NonZeroU16::new(10).unwrap()
        }
    );
    assert_eq!(
        steps(&import),
        [
            "cover.living_room closed",
            "cover.kitchen closed",
            "climate.living_room 21.5",
            "light.sofa on",
            "light.shelf on",
            "input_select.mode away",
            "switch.bell on",
            "switch.bell off",
            "switch.bell on",
            "switch.bell off",
        ]
    );
    let steps = &import.routines[0].routine.steps;
    assert_eq!(steps[0].hold, Span::ZERO);
    assert_eq!(steps[1].hold, Span::secs(90), "the delay");
    assert_eq!(
        (steps[6].hold, steps[7].hold),
        (Span::secs(1), Span::millis(500))
    );
    assert_eq!(steps[2].priority, Priority::BestEffort);
    assert_eq!(steps[0].priority, Priority::Must);
    let Some(Clause::All(asked)) = &steps[3].condition else {
        panic!("{:?}", steps[3]);
    };
    assert_eq!(asked.len(), 2);
    let below = asked[1].single().unwrap();
    assert_eq!(
        (below.comparison, &below.value),
        (Comparison::Less, &20.into())
    );
    assert!(
        matches!(&steps[5].condition, Some(Clause::Not(it)) if **it == Clause::All(asked.clone()))
    );
    stays(&import);
}

fn stays(home: &Home) {
    for format in [Format::Json, Format::Yaml] {
        let written = home.write_as(format).unwrap();
        let again = Home::read_as(format, written.as_bytes(), Catalogue::new());
        assert_eq!(again.as_ref(), Ok(home), "{written}");
    }
}

const CHOICE: &str = r#"
alias: Leave the house
sequence:
  - condition: state
    entity_id: alarm_control_panel.house
    state: disarmed
  - choose:
      - conditions: "{{ false }}"
        sequence: []
  - choose:
      - conditions:
          - or:
              - condition: state
                entity_id: [lock.front, lock.back]
                state: unlocked
                match: any
              - not:
                  - condition: state
                    entity_id: cover.garage
                    state: [closed, closing]
        sequence:
          - action: light.turn_on
            target: {entity_id: light.porch}
    default:
      - action: alarm_control_panel.alarm_arm_away
        target: {entity_id: alarm_control_panel.house}
mode: single
"#;

#[test]
fn a_choice_behind_a_condition_is_read_but_for_the_template() {
    let found = missed(CHOICE);
    assert_eq!(
        found,
        [
            "sequence[1].choose[0].conditions: the template \"{{ false }}\" is not understood: remove it, or write the routine by hand, at line 8 column 21"
        ]
    );
    let (first, rest) = CHOICE
        .split_once("  - choose:\n      - conditions: \"{{")
        .unwrap();
    let (_, rest) = rest.split_once("sequence: []\n").unwrap();
    let import = import(&format!("{first}{rest}"));
    assert_eq!(
        steps(&import),
        ["light.porch on", "alarm_control_panel.house armed_away"]
    );
    let steps = &import.routines[0].routine.steps;
    // The gate in front, then the branch.
    let Some(Clause::All(asked)) = &steps[0].condition else {
        panic!("{:?}", steps[0]);
    };
    let gate = asked[0].single().unwrap();
    assert_eq!(gate.value, "disarmed".into());
    assert!(matches!(&asked[1], Clause::Any(two) if two.len() == 2));
    let Some(Clause::All(asked)) = &steps[1].condition else {
        panic!("{:?}", steps[1]);
    };
    assert!(matches!(&asked[1], Clause::Not(_)));
    stays(&import);
}

const AUTOMATIONS: &str = r#"
- id: "1690000000001"
  alias: Wake up
  triggers:
    - trigger: time
      at: ["06:30:00", "7:15"]
  conditions:
    - condition: time
      weekday: [mon, tue]
    - condition: state
      entity_id: input_boolean.holiday
      state: "off"
  actions:
    - action: light.turn_on
      target:
        entity_id: light.bedroom
  mode: restart
- alias: Dusk
  trigger:
    - platform: sun
      event: sunset
      offset: "-00:30:00"
    - platform: numeric_state
      entity_id: sensor.light
      above: 1
      below: "40"
  action:
    service: switch.turn_on
    entity_id: switch.lantern
- alias: Door
  trigger:
    platform: state
    entity_id: [binary_sensor.front, binary_sensor.back]
    to: "on"
  action:
    - service: light.turn_on
      data:
        entity_id: light.hall
"#;

#[test]
fn automations_are_routines_with_triggers() {
    let mut import = import(AUTOMATIONS);
    assert_eq!(import.routines[0].mode, Mode::Restart);
    assert_eq!(import.routines[1].mode, Mode::Single);
    let triggers: Vec<_> = import
        .triggers
        .iter()
        .map(|it| (it.name.as_str(), &it.trigger))
        .collect();
    assert_eq!(triggers.len(), 6);
    let at = |text| TimeOfDay::parse(text).unwrap();
    let days = Days::new([Weekday::Monday, Weekday::Tuesday]).unwrap();
    assert_eq!(
        triggers[0],
        (
            "Wake up",
            &Trigger::On {
                days,
                at: at("06:30")
            }
        )
    );
    assert_eq!(
        triggers[1],
        (
            "Wake up",
            &Trigger::On {
                days,
                at: at("07:15")
            }
        )
    );
    let dusk = Trigger::Sun {
        days: Days::ALL,
        event: SunEvent::Set,
        offset_ms: -1_800_000,
    };
    assert_eq!(triggers[2], ("Dusk", &dusk));
    assert!(matches!(&triggers[3].1, Trigger::When(Clause::All(two)) if two.len() == 2));
    for (name, trigger) in &triggers[4..] {
        assert_eq!(*name, "Door");
        assert!(matches!(trigger, Trigger::When(Clause::Is(it)) if it.value == "on".into()));
    }
    let wake = &import.routines[0].routine.steps[0];
    let asked = wake.condition.as_ref().unwrap().single().unwrap();
    assert_eq!(
        import.catalogue.name(asked.device),
        Some("input_boolean.holiday")
    );
    let degrees = |it| Number::from_thousandths(it).unwrap();
    let (latitude, longitude) = (degrees(52_520), degrees(13_405));
    import.location = Some(Location {
        latitude,
        longitude,
    });
    stays(&import);
}

/// A script with these steps, in the order of the lines.
fn script(steps: &str) -> String {
    format!("s:\n  sequence:\n{steps}")
}

#[test]
fn a_mode_is_one_of_a_routine() {
    let on = "  sequence:\n    - {action: light.turn_on, target: {entity_id: light.a}}\n";
    let queued = |limit| Mode::Queued {
        limit: core::num::NonZeroU16::new(limit).unwrap(),
    };
    for (text, mode) in [
        ("", Mode::Single),
        ("  mode: single\n", Mode::Single),
        ("  mode: restart\n", Mode::Restart),
        ("  mode: parallel\n", Mode::Parallel),
        ("  mode: queued\n", queued(10)),
        ("  mode: queued\n  max: 65535\n", queued(65_535)),
        (
            "  mode: queued\n  max: 1\n  max_exceeded: silent\n",
            queued(1),
        ),
    ] {
        let home = import(&format!("s:\n{text}{on}"));
        assert_eq!(home.routines[0].mode, mode, "{text}");
        stays(&home);
    }
}

#[test]
fn nothing_is_dropped_in_silence() {
    let on = "    - {action: light.turn_on, target: {entity_id: light.a}}\n";
    for (text, reported) in [
        (script("    - {action: light.toggle, target: {entity_id: light.a}}"), "s.sequence[0].action: the action \"light.toggle\" is not understood"),
        (script("    - {action: script.other}"), "the action \"script.other\""),
        (script("    - {action: light.turn_on, target: {area_id: hall}}"), "s.sequence[0].target.area_id: the key \"area_id\" is not understood"),
        (script("    - {action: light.turn_on, target: {entity_id: light.a}, data: {brightness: 5}}"), "s.sequence[0].data.brightness: the key \"brightness\" is not understood"),
        (script("    - {action: light.turn_on, target: {entity_id: all}}"), "found \"all\": give an entity, as light.hall"),
        (script("    - {action: light.turn_on}"), "the key \"target\" is missing"),
        (script("    - {action: climate.set_temperature, entity_id: climate.a, data: {temperature: '{{ t }}'}}"), "the template \"{{ t }}\""),
        (script("    - {action: climate.set_temperature, entity_id: climate.a}"), "s.sequence[0].data: the key \"temperature\" is missing"),
        (script("    - {action: light.turn_on, entity_id: light.a, enabled: false}"), "enabled that is false"),
        (script("    - {action: light.turn_on, entity_id: light.a, response_variable: x}"), "the key \"response_variable\""),
        (script("    - {scene: scene.a}"), "the step \"scene\" is not understood"),
        (script("    - {wait_for_trigger: []}"), "the step \"wait_for_trigger\""),
        (script("    - {parallel: []}"), "the step \"parallel\""),
        (script("    - {stop: done}"), "the step \"stop\""),
        (script("    - {variables: {a: 1}}"), "the step \"variables\""),
        (script("    - {event: x}"), "the step \"event\""),
        (script("    - {delay: '{{ 5 }}'}"), "found \"{{ 5 }}\": give seconds"),
        (script("    - {delay: {fortnights: 1}}"), "the key \"fortnights\""),
        (script("    - {delay: 5}"), "a delay stands behind a command"),
        (script("    - {repeat: {while: [], sequence: []}}"), "s.sequence[0].repeat.while: the key \"while\""),
        (script("    - {repeat: {for_each: [], sequence: []}}"), "the key \"for_each\""),
        (script("    - '{{ is_state() }}'"), "the template"),
        (script("    - {condition: template, value_template: x}"), "the condition \"template\""),
        (script("    - {condition: sun, after: sunset}"), "the condition \"sun\""),
        (script("    - {condition: state, entity_id: a.b, state: x, for: 5}"), "the key \"for\""),
        (script("    - {condition: state, entity_id: a.b, attribute: c, state: x}"), "the key \"attribute\""),
        (script("    - {condition: state, entity_id: a.b, state: true}"), "found true: give a word"),
        (script("    - {condition: numeric_state, entity_id: a.b}"), "0 of the keys above and below"),
        (script("    - {condition: numeric_state, entity_id: a.b, above: sensor.c}"), "found \"sensor.c\": give a number"),
        (script("    - {action: light.turn_on, service: light.turn_off, entity_id: light.a}"), "s.sequence[0].service: the key \"service\""),
        (script("    - {and: [{condition: state, entity_id: a.b, state: x}], or: [{condition: state, entity_id: a.b, state: y}]}"), "s.sequence[0].or: the key \"or\""),
        (script("    - {delay: {seconds: 1, seconds: 2}}"), "the key \"seconds\" is there twice"),
        ("- {alias: x, triggers: [{trigger: time, at: '06:30'}], trigger: [{trigger: time, at: '07:30'}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "[0].trigger: the key \"trigger\""),
        ("- {alias: x, triggers: [{trigger: time, platform: sun, at: '06:30'}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "[0].triggers[0].platform: the key \"platform\""),
        ("- {alias: x, triggers: [{trigger: time, at: '06:30'}], actions: [{action: a.turn_on, entity_id: a.b}], action: []}".into(), "[0].action: the key \"action\""),
        ("- {alias: x, triggers: [{trigger: time, at: '06:30'}], conditions: [], condition: [], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "[0].condition: the key \"condition\""),
        (format!("s:\n  mode: often\n  sequence:\n{on}"), "s.mode: \"often\" is no mode: give parallel, single, restart or queued"),
        (format!("s:\n  mode: paralel\n  sequence:\n{on}"), "did you mean \"parallel\"?"),
        (format!("s:\n  mode: queued\n  max: 0\n  sequence:\n{on}"), "s.max: the limit is 0"),
        (format!("s:\n  mode: queued\n  max: many\n  sequence:\n{on}"), "s.max: found \"many\""),
        (format!("s:\n  mode: parallel\n  max: 3\n  sequence:\n{on}"), "s.max: the key \"max\" is not understood"),
        (format!("s:\n  max: 3\n  sequence:\n{on}"), "s.max: the key \"max\" is not understood"),
        (format!("s:\n  fields: {{}}\n  sequence:\n{on}"), "s.fields: the key \"fields\""),
        ("s: {use_blueprint: {path: x}}".into(), "s.use_blueprint: the key \"use_blueprint\""),
        ("s: {sequence: []}".into(), "the list is empty"),
        ("{}".into(), "the list is empty"),
        (format!("a:\n  alias: x\n  sequence:\n{on}b:\n  alias: x\n  sequence:\n{on}"), "a routine is called \"x\" already"),
        ("- {alias: x, triggers: [{trigger: time_pattern, minutes: /5}], actions: []}".into(), "the trigger \"time_pattern\""),
        ("- {alias: x, triggers: [{trigger: state, entity_id: a.b, to: c, from: d}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "[0].triggers[0].from: the key \"from\""),
        ("- {alias: x, triggers: [{trigger: state, entity_id: a.b}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "the key \"to\" is missing"),
        ("- {alias: x, triggers: [{trigger: time, at: input_datetime.x}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "\"input_datetime.x\" is not a time of day"),
        ("- {alias: x, triggers: [{trigger: state, entity_id: a.b, to: c}], conditions: [{condition: time, weekday: mon}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "a condition about days at a trigger that is no time"),
        ("- {alias: x, triggers: [{trigger: time, at: '06:30'}], conditions: [{condition: time, after: '06:00'}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "the key \"after\""),
        ("- {alias: x, triggers: [{trigger: time, at: '06:30'}], conditions: [{condition: time, weekday: mon}, {condition: time, weekday: tue}], actions: [{action: a.turn_on, entity_id: a.b}]}".into(), "no day that all conditions name"),
    ] {
        let found = missed(&text);
        assert!(found.iter().any(|it| it.contains(reported)), "{text}: {found:#?}");
        assert!(found.iter().all(|it| it.contains("at line ")), "{found:#?}");
    }
    // All of it at once, in order.
    let all = script(&format!(
        "    - {{stop: a}}\n{on}    - {{event: b}}\n    - {{parallel: c}}"
    ));
    let found = missed(&all);
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found.is_sorted());
}

#[test]
fn hostile_scripts_end_with_an_error() {
    let many = "    - {stop: a}\n".repeat(5_000);
    assert_eq!(missed(&script(&many)).len(), 100, "no more than is of use");
    let gates = "    - {condition: state, entity_id: a.b, state: x}\n".repeat(2_000);
    let on = "    - {action: light.turn_on, target: {entity_id: light.a}}\n";
    let found = missed(&script(&format!("{gates}{on}")));
    assert!(found[0].contains("parts here and may have 64"), "{found:?}");
    let nested = (0..30).fold(
        "[{action: a.turn_on, entity_id: a.b}]".to_owned(),
        |body, _| format!("[{{repeat: {{count: 1000, sequence: {body}}}}}]"),
    );
    let found = missed(&format!("s: {{sequence: {nested}}}"));
    assert!(found[0].contains("nested more than 64 deep"), "{found:?}");
    let nested = (0..4).fold(
        "[{action: a.turn_on, entity_id: a.b}]".to_owned(),
        |body, _| format!("[{{repeat: {{count: 1000, sequence: {body}}}}}]"),
    );
    let found = missed(&format!("s: {{sequence: {nested}}}"));
    assert!(found[0].contains("commands are too many"), "{found:?}");
}

#[test]
fn an_action_brings_its_entity_into_the_state_that_its_name_says() {
    for (action, data, state) in [
        ("switch.turn_on", "", "on"),
        ("switch.turn_off", "", "off"),
        ("cover.open_cover", "", "open"),
        ("cover.close_cover", "", "closed"),
        ("valve.open_valve", "", "open"),
        ("valve.close_valve", "", "closed"),
        ("lock.lock", "", "locked"),
        ("lock.unlock", "", "unlocked"),
        ("alarm_control_panel.alarm_arm_away", "", "armed_away"),
        ("alarm_control_panel.alarm_arm_home", "", "armed_home"),
        ("alarm_control_panel.alarm_arm_night", "", "armed_night"),
        ("alarm_control_panel.alarm_disarm", "", "disarmed"),
        ("number.set_value", "value: 7", "7"),
        ("input_text.set_value", "value: seven", "seven"),
        ("select.select_option", "option: dim", "dim"),
        ("water_heater.set_temperature", "temperature: 55", "55"),
        ("climate.set_hvac_mode", "hvac_mode: heat", "heat"),
    ] {
        let step = format!("    - {{action: {action}, entity_id: a.b, data: {{{data}}}}}\n");
        assert_eq!(
            steps(&import(&script(&step))),
            [format!("a.b {state}")],
            "{action}"
        );
    }
    // These have no state of their own that a routine could set.
    for domain in ["scene", "script", "automation", "group", "notify"] {
        let step = format!("    - {{action: {domain}.turn_on, entity_id: {domain}.a}}\n");
        let found = missed(&script(&step));
        assert!(
            found[0].contains(&format!(
                "the action \"{domain}.turn_on\" is not understood"
            )),
            "{found:#?}"
        );
    }
}

/// The command behind the tested condition.
const ON: &str = "    - {action: light.turn_on, entity_id: light.a}\n";

fn asked(condition: &str) -> Clause<State> {
    let import = import(&script(&format!("    - {condition}\n{ON}")));
    import.routines[0].routine.steps[0]
        .condition
        .clone()
        .unwrap()
}

#[test]
fn conditions_in_their_long_form_mean_the_same() {
    let is = |it: &Clause<State>| it.single().is_some();
    let [a, b] = ["x", "y"].map(|it| format!("{{condition: state, entity_id: a.{it}, state: on}}"));
    let list = |word: &str| asked(&format!("{{condition: {word}, conditions: [{a}, {b}]}}"));
    assert!(matches!(list("and"), Clause::All(two) if two.len() == 2));
    assert!(matches!(list("or"), Clause::Any(two) if two.len() == 2));
    let Clause::Not(none) = list("not") else {
        panic!("{:?}", list("not"));
    };
    assert!(matches!(*none, Clause::Any(two) if two.len() == 2));
    for (word, clause) in [
        ("and", list("and")),
        ("or", list("or")),
        ("not", list("not")),
    ] {
        assert_eq!(asked(&format!("{{{word}: [{a}, {b}]}}")), clause);
    }
    let two = "{condition: state, entity_id: [a.x, a.y], state: on";
    assert!(matches!(asked(&format!("{two}, match: all}}")), Clause::All(it) if it.len() == 2));
    assert!(matches!(asked(&format!("{two}, match: any}}")), Clause::Any(it) if it.len() == 2));
    // A list with one condition is that condition.
    let choice =
        format!("    - {{if: [{a}], then: [{{action: light.turn_on, entity_id: light.a}}]}}\n");
    let import = import(&script(&choice));
    assert!(is(import.routines[0].routine.steps[0]
        .condition
        .as_ref()
        .unwrap()));
    let none = "    - {if: [], then: [{action: light.turn_on, entity_id: light.a}]}\n";
    assert!(missed(&script(none))[0].contains("the list is empty"));
}

#[test]
fn an_entity_has_a_domain_and_a_name() {
    for entity in [
        ".hall",
        "light.",
        "'light.ha ll'",
        "'light.a,, light.b'",
        "hall",
    ] {
        let found = missed(&script(&format!(
            "    - {{action: light.turn_on, entity_id: {entity}}}\n"
        )));
        assert!(
            found[0].contains("give an entity, as light.hall"),
            "{entity}: {found:#?}"
        );
    }
}

#[test]
fn the_sun_may_be_half_a_day_away() {
    let automation = |event: &str, offset: &str| {
        format!(
            "automation:\n- {{alias: x, triggers: [{{trigger: sun, event: {event}, offset: {offset}}}], actions: [{{action: a.turn_on, entity_id: a.b}}]}}"
        )
    };
    for (name, event, offset, offset_ms) in [
        ("sunrise", SunEvent::Rise, "'12:00:00'", 43_200_000),
        ("sunset", SunEvent::Set, "'-12:00:00'", -43_200_000),
        ("sunset", SunEvent::Set, "'-90'", -90_000),
        ("sunset", SunEvent::Set, "'90'", 90_000),
    ] {
        let days = Days::ALL;
        let sun = Trigger::Sun {
            days,
            event,
            offset_ms,
        };
        assert_eq!(import(&automation(name, offset)).triggers[0].trigger, sun);
    }
    let found = missed(&automation("sunset", "'12:00:00.001'"));
    assert!(
        found[0].contains("automation[0].triggers[0].offset"),
        "{found:#?}"
    );
}

#[test]
fn each_automation_says_what_is_wrong_with_it() {
    let automation = |alias: &str, rest: &str| {
        format!("- {{alias: {alias}, triggers: [{{trigger: time, at: '06:30'}}], {rest}}}\n")
    };
    let fine = automation("fine", "actions: [{action: a.turn_on, entity_id: a.b}]");
    let empty = automation("empty", "actions: []");
    let found = missed(&format!("{fine}{empty}"));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("[1]: the list is empty"), "{found:#?}");
    let found = missed(&automation("x", "actions: [{stop: a}]"));
    assert_eq!(
        found.len(),
        1,
        "that nothing is left of it is no second fault: {found:#?}"
    );
    let two = automation(
        "x",
        "mode: often, actions: [{stop: a}, {action: a.turn_on, entity_id: a.b}]",
    );
    let found = missed(&two);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[1].contains("\"often\" is no mode"), "{found:#?}");
}

#[test]
fn a_script_has_as_many_commands_as_a_hub_can_number() {
    let script = |count: u32| {
        format!(
            "s: {{sequence: [{{repeat: {{count: {count}, sequence: [{{action: a.turn_on, entity_id: a.b}}]}}}}]}}"
        )
    };
    assert_eq!(
        import(&script(65_535)).routines[0].routine.steps.len(),
        65_535
    );
    assert!(missed(&script(65_536))[0].contains("65536"));
}
