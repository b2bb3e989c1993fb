//! The faults of a home, and its file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(super) const MS: u64 = 1_000;
pub(super) const NAMES: [&str; 4] = ["lamp", "lock", "fan", "blind"];

/// Numbers from a seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ (it >> 31)) % sides
    }

    pub(super) fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }
}

/// The faults of a home.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) down: bool,
    pub(super) refuses: bool,
    pub(super) swallows: bool,
    /// Commands act after they were given up.
    pub(super) late: bool,
    pub(super) hands: bool,
    pub(super) cancels: bool,
    /// The host sleeps for hours.
    pub(super) sleeps: bool,
    pub(super) kills: bool,
    /// The file is another one when the process starts again.
    pub(super) files: bool,
    /// There may be one or two of everything.
    pub(super) limits: bool,
    pub(super) triggers: bool,
}

impl Faults {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let mut may = || dice.one_in(3);
        Self {
            down: may(),
            refuses: may(),
            swallows: may(),
            late: may(),
            hands: may(),
            cancels: may(),
            sleeps: may(),
            kills: may() || may(),
            files: may(),
            limits: may(),
            triggers: may(),
        }
    }

    /// Returns true if no fault is on that may end a run.
    pub(super) const fn is_kind(&self) -> bool {
        !(self.down
            || self.refuses
            || self.swallows
            || self.late
            || self.hands
            || self.cancels
            || self.sleeps
            || self.files)
    }
}

/// The file of a home.
#[derive(Clone)]
pub(super) struct Sheet {
    pub(super) devices: BTreeMap<&'static str, u64>,
    /// The devices that are not in the file now. A device that returns is no faster than before.
    pub(super) ended: BTreeMap<&'static str, u64>,
    /// The device with an unknown state at the start.
    pub(super) unknown: &'static str,
    pub(super) routines: Vec<Value>,
    pub(super) triggers: Vec<Value>,
}

impl Sheet {
    pub(super) fn draw(dice: &mut Dice, faults: Faults) -> Self {
        let lateness = |dice: &mut Dice| [0, 0, 700, 30_000][dice.below(4) as usize];
        let devices = NAMES.map(|it| (it, if faults.late { lateness(dice) } else { 0 }));
        let mut sheet = Self {
            devices: devices.into(),
            ended: BTreeMap::new(),
            unknown: if faults.hands {
                NAMES[dice.below(4) as usize]
            } else {
                ""
            },
            routines: (0..5).map(|it| routine(dice, it)).collect(),
            triggers: Vec::new(),
        };
        if faults.triggers {
            // A routine that triggers itself, and a routine that triggers another.
            let selfish = json!({"RoutineName": "r5", "CommandList": [
                {"DevID": "lamp", "Action": 7}, {"DevID": "lamp", "Action": 8, "hold_ms": 3_000}]});
            sheet.routines.push(selfish);
            sheet.triggers = vec![
                json!({"RoutineName": "r5", "when": {"DevID": "lamp", "equal": 7}}),
                json!({"RoutineName": "r1", "when": {"DevID": "fan", "equal": 2}}),
                json!({"RoutineName": "r2", "every_ms": 20_000}),
            ];
        }
        sheet
    }

    /// Another file: a device leaves or returns, a routine changes, commands act late for longer.
    pub(super) fn change(&mut self, dice: &mut Dice, faults: Faults) {
        let name = NAMES[dice.below(4) as usize];
        match dice.below(3) {
            0 if self.devices.len() > 2 && self.devices.contains_key(name) => {
                let late = self.devices.remove(name);
                self.ended.extend(late.map(|it| (name, it)));
            }
            0 | 1 => {
                let longer = if faults.late { 2_000 } else { 0 };
                let late = self.ended.remove(name);
                *self.devices.entry(name).or_insert(late.unwrap_or_default()) += longer;
            }
            _ => self.routines[0] = routine(dice, 0),
        }
    }

    /// The mode of a routine: the effect of a new run on earlier ones.
    pub(super) fn mode(&self, name: &str) -> &str {
        let found = self.routines.iter().find(|it| it["RoutineName"] == name);
        found.and_then(|it| it["mode"].as_str()).unwrap_or_default()
    }

    pub(super) fn text(&self) -> String {
        let is_here = |it: &Value| {
            let text = it.to_string();
            let mut ended = NAMES.iter().filter(|it| !self.devices.contains_key(*it));
            !ended.any(|it| text.contains(&format!("\"{it}\"")))
        };
        let routines: Vec<_> = self.routines.iter().filter(|it| is_here(it)).collect();
        let has = |it: &&Value| {
            routines
                .iter()
                .any(|r| r["RoutineName"] == it["RoutineName"])
        };
        let triggers = self.triggers.iter().filter(|it| is_here(it)).filter(has);
        let device = |(name, late): (&&str, &u64)| {
            let mut it = json!({"DevID": name, "lateness_ms": late});
            if *name != self.unknown {
                it["initial"] = 0.into();
            }
            it
        };
        let dummies = self
            .devices
            .keys()
            .map(|it| ((*it).into(), json!({"dummy": {}})));
        json!({
            "devices": self.devices.iter().map(device).collect::<Vec<_>>(),
            "routines": routines,
            "triggers": triggers.collect::<Vec<_>>(),
            "hub": {"devices": dummies.collect::<serde_json::Map<_, _>>()},
        })
        .to_string()
    }
}

pub(super) fn routine(dice: &mut Dice, nth: usize) -> Value {
    let steps = (0..1 + dice.below(3)).map(|_| {
        let mut it = json!({"DevID": NAMES[dice.below(4) as usize], "Action": 1 + dice.below(5)});
        if dice.one_in(3) {
            it["Priority"] = "BEST_EFFORT".into();
        }
        if dice.one_in(4) {
            it["hold_ms"] = (1 + dice.below(4_000)).into();
            if dice.one_in(3) {
                it["preemptible"] = true.into();
            }
        }
        if dice.one_in(4) {
            it["timeout_ms"] = (1_000 + dice.below(9_000)).into();
        }
        if dice.one_in(5) {
            it["if"] = json!({"DevID": NAMES[dice.below(4) as usize], "less": dice.below(6)});
        }
        it
    });
    let mut it =
        json!({"RoutineName": format!("r{nth}"), "CommandList": steps.collect::<Vec<_>>()});
    match dice.below(7) {
        0 => it["mode"] = "single".into(),
        1 => it["mode"] = "restart".into(),
        2 => {
            it["mode"] = "queued".into();
            it["limit"] = (1 + dice.below(3)).into();
        }
        _ => {}
    }
    if dice.one_in(4) {
        it["urgency"] = (1 + dice.below(3)).into();
    }
    it
}
