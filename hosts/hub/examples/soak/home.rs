//! A home with many routines, drawn from a seed.

use chacha20::ChaCha12Rng;
use chacha20::rand_core::Rng as _;
use serde_json::{Value, json};

/// The number of routines.
const ROUTINES: u32 = 400;
/// The number of dummies in ten devices.
const DUMMIES: usize = 2;

/// A state: of a plug, or of a dummy, which is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Plug(bool),
    Dummy(u32),
}

impl State {
    /// The state as the hub reads and shows it.
    fn json(self) -> Value {
        match self {
            Self::Plug(true) => "on".into(),
            Self::Plug(false) => "off".into(),
            Self::Dummy(number) => number.into(),
        }
    }

    /// The state from its shown form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "on" => Some(Self::Plug(true)),
            "off" => Some(Self::Plug(false)),
            _ => text.parse().ok().map(Self::Dummy),
        }
    }
}

/// A command; with a condition, it is done only while a dummy is below a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) device: usize,
    pub(crate) state: State,
    pub(crate) condition: Option<(usize, u32)>,
    hold: u32,
    must: bool,
}

/// Devices, of which the first ones are plugs, and routines.
pub(crate) struct Home {
    pub(crate) plugs: usize,
    pub(crate) devices: usize,
    pub(crate) routines: Vec<Vec<Step>>,
}

impl Home {
    pub(crate) fn draw(devices: usize, rng: &mut ChaCha12Rng) -> Self {
        let plugs = devices - devices * DUMMIES / 10;
        let mut draw = |below: usize| rng.next_u32() as usize % below;
        let mut routine = |nth: u32| {
            let (len, mut steps) = (1 + draw(4), Vec::<Step>::new());
            while steps.len() < len {
                let device = draw(devices);
                if steps.iter().any(|it| it.device == device) {
                    continue;
                }
                let state = match device < plugs {
                    true => State::Plug(draw(2) == 0),
                    // No other routine has this number.
                    false => State::Dummy(nth + 1),
                };
                let asked = plugs + draw(devices - plugs);
                let limit = u32::try_from(draw(ROUTINES as usize)).unwrap();
                steps.push(Step {
                    device,
                    state,
                    condition: (draw(5) == 0).then_some((asked, limit)),
                    hold: [0, 0, 100, 300][draw(4)],
                    must: draw(5) > 0,
                });
            }
            steps
        };
        let routines = (0..ROUTINES).map(&mut routine).collect();
        Self {
            plugs,
            devices,
            routines,
        }
    }

    pub(crate) fn initial(&self, device: usize) -> State {
        if device < self.plugs {
            State::Plug(false)
        } else {
            State::Dummy(0)
        }
    }

    pub(crate) fn name(device: usize) -> String {
        format!("d{device:03}")
    }

    pub(crate) fn routine_name(nth: usize) -> String {
        format!("r{nth}")
    }

    /// The steps of the routine with this name.
    pub(crate) fn routine(&self, name: &str) -> &[Step] {
        &self.routines[name[1..].parse::<usize>().unwrap()]
    }

    /// The file of the home.
    pub(crate) fn file(&self, addresses: &[String]) -> String {
        let devices = (0..self.devices)
            .map(|it| json!({"DevID": Self::name(it), "initial": self.initial(it).json()}));
        let command = |it: &Step| {
            let mut command = json!({
                "DevID": Self::name(it.device),
                "Action": it.state.json(),
                "hold_ms": it.hold,
                "Priority": if it.must { "MUST" } else { "BEST_EFFORT" },
            });
            if let Some((device, limit)) = it.condition {
                command["if"] = json!({"DevID": Self::name(device), "less": limit});
            }
            command
        };
        let routines = self.routines.iter().enumerate().map(|(nth, steps)| {
            let commands = steps.iter().map(command);
            json!({"RoutineName": Self::routine_name(nth), "CommandList": commands.collect::<Value>()})
        });
        let drivers = (0..self.devices).map(|it| {
            let driver = match addresses.get(it) {
                Some(address) => json!({"kasa": {"address": address}}),
                None => json!({"dummy": {}}),
            };
            (Self::name(it), driver)
        });
        let home = json!({
            "devices": devices.collect::<Value>(),
            "routines": routines.collect::<Value>(),
            "hub": {"devices": drivers.collect::<serde_json::Map<_, _>>()},
        });
        home.to_string()
    }
}
