//! The three scenarios of the paper's evaluation (section 7.2), with names of our own.
//!
//! The morning and the party are files in the routine format; the factory is made by its rule.

use selvedge_core::{Choose, NodeId, Span, Time};
use selvedge_routine::file::{FileError, Home, NamedRoutine};
use selvedge_routine::{Mode, State, Urgency};
use selvedge_safehome::{Catalogue, Routine, Step};

const MORNING: &str = include_str!("../scenarios/morning.json");
const PARTY: &str = include_str!("../scenarios/party.json");

/// A home full of people, or a factory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A family of five gets up: 29 routines within 25 minutes, on 39 devices.
    Morning,
    /// One routine goes on for two hours while 11 others come, on 7 devices.
    Party,
    /// 50 stages with 8 items each; an item needs devices of its stage, of its neighbours and of
    /// all.
    Factory,
}

/// When routines arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// In a random order, at whole seconds below `window`, all equally likely; the first one at 0.
    Within {
        /// Routines arrive before this.
        window: Span,
        /// This routine comes first, at 0, whatever the order of the others is.
        first: Option<usize>,
        /// This routine comes at the end of the window.
        last: Option<usize>,
    },
    /// In lines: the first routine of a line at a whole second below `start`, each other one when
    /// the one before it would be over if it did not have to wait.
    Lines {
        /// How many routines are in a line.
        length: usize,
        /// Lines begin before this.
        start: Span,
    },
}

impl Scenario {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Morning => "morning",
            Self::Party => "party",
            Self::Factory => "factory",
        }
    }

    /// Its devices and routines. Those of the factory are drawn.
    ///
    /// # Errors
    /// Never, unless the files of this program are damaged.
    pub fn home(self, choices: &mut impl Choose) -> Result<Home, FileError> {
        match self {
            Self::Morning => Home::read(MORNING.as_bytes()),
            Self::Party => Home::read(PARTY.as_bytes()),
            Self::Factory => Ok(factory(choices)),
        }
    }

    /// When the routines of a home arrive in this scenario.
    #[must_use]
    pub fn arrivals(self, routines: usize) -> Arrivals {
        match self {
            // Everybody leaves at the end.
            Self::Morning => Arrivals::Within {
                window: Span::secs(1_500),
                first: None,
                last: routines.checked_sub(1),
            },
            // The dance floor is there from the beginning.
            Self::Party => Arrivals::Within {
                window: Span::secs(7_200),
                first: (routines > 0).then_some(0),
                last: None,
            },
            Self::Factory => Arrivals::Lines {
                length: ITEMS as usize,
                start: Span::secs(100),
            },
        }
    }
}

impl Arrivals {
    /// Draws when each routine comes, in order of time.
    pub fn draw(&self, routines: &[NamedRoutine], choices: &mut impl Choose) -> Vec<(Time, usize)> {
        let mut arrivals = match *self {
            Self::Within {
                window,
                first,
                last,
            } => within(routines.len(), window, first, last, choices),
            Self::Lines { length, start } => {
                let mut arrivals = Vec::new();
                for (line, items) in routines.chunks(length.max(1)).enumerate() {
                    let mut at = Time::ZERO + second(start, choices);
                    for (nth, item) in items.iter().enumerate() {
                        arrivals.push((at, line * length + nth));
                        let holds = item.routine.steps.iter().map(|step| step.hold);
                        at = holds.fold(at, |at, hold| at + hold);
                    }
                }
                arrivals
            }
        };
        arrivals.sort_by_key(|&(at, _)| at);
        arrivals
    }
}

/// The claims' figures rest on these draws in this order.
fn within(
    routines: usize,
    window: Span,
    first: Option<usize>,
    last: Option<usize>,
    choices: &mut impl Choose,
) -> Vec<(Time, usize)> {
    let is_free = |nth: &usize| first != Some(*nth) && last != Some(*nth);
    let mut left: Vec<usize> = (0..routines).filter(is_free).collect();
    let many = left.len();
    let mut order = Vec::with_capacity(many);
    while !left.is_empty() {
        let at = choices.below(left.len() as u64);
        order.push(left.swap_remove(usize::try_from(at).unwrap_or_default()));
    }
    let mut times: Vec<Time> = (0..many)
        .map(|_| Time::ZERO + second(window, choices))
        .collect();
    times.sort_unstable();
    if let (None, Some(time)) = (first, times.first_mut()) {
        *time = Time::ZERO;
    }
    let first = first.map(|it| (Time::ZERO, it));
    let last = last.map(|it| (Time::ZERO + window, it));
    let between = times.into_iter().zip(order);
    first.into_iter().chain(between).chain(last).collect()
}

/// A whole second below this.
fn second(below: Span, choices: &mut impl Choose) -> Span {
    Span::secs(choices.below(below.0 / 1_000_000))
}

/// The factory's stages.
pub const STAGES: u32 = 50;
/// How many items come to each stage of the factory.
pub const ITEMS: u32 = 8;
/// How many devices a stage has, and a boundary behind a stage, and all together.
const GROUP: u32 = 4;
const COMMON: u32 = 5;

/// What an item needs at one of so many stages, and for how many seconds: each device of the
/// boundary before it with probability 3/10, then each of the stage with 6/10, each of the boundary
/// behind it with 3/10, and each of those that all share with 1/10, for 1 to 30 each. The last
/// stage has a boundary behind it, too. An item that would need nothing is drawn again.
///
/// Devices are numbered: first those of the stages, then those of the boundaries, then those that
/// all share.
pub fn item(stage: u32, stages: u32, choices: &mut impl Choose) -> Vec<(u32, u32)> {
    let boundaries = stages * GROUP;
    let common = 2 * boundaries;
    let group = |first: u32, nth: u32| first + nth * GROUP..first + (nth + 1) * GROUP;
    let before = stage.checked_sub(1);
    let sides = [
        (before.map_or(0..0, |it| group(boundaries, it)), 3),
        (group(0, stage), 6),
        (group(boundaries, stage), 3),
        (common..common + COMMON, 1),
    ];
    let most = 3 * GROUP + COMMON;
    let mut needs = Vec::with_capacity(most as usize);
    while needs.is_empty() {
        for (devices, tenths) in sides.clone() {
            for device in devices {
                if choices.below(10) < tenths {
                    let seconds = 1 + u32::try_from(choices.below(30)).unwrap_or_default();
                    needs.push((device, seconds));
                }
            }
        }
    }
    needs
}

fn factory(choices: &mut impl Choose) -> Home {
    let mut catalogue = Catalogue::new();
    let groups = |name: &'static str| {
        let letters =
            move |group: u32| ["a", "b", "c", "d"].map(|it| format!("{name} {group:02}{it}"));
        (1..=STAGES).flat_map(letters)
    };
    let common = (1..=COMMON).map(|nth| format!("crane {nth}"));
    let names = groups("station").chain(groups("belt")).chain(common);
    let devices: Vec<NodeId> = names.map(|name| catalogue.id_or_new(&name)).collect();
    let initial = devices.iter().map(|&id| (id, "idle".into())).collect();
    let mut routines = Vec::new();
    for stage in 0..STAGES {
        for nth in 1..=ITEMS {
            let state = State::Word(format!("item {nth} of stage {}", stage + 1));
            let needs = item(stage, STAGES, choices);
            let steps = needs.into_iter().filter_map(|(device, seconds)| {
                let device = *devices.get(device as usize)?;
                Some(Step {
                    hold: Span::secs(seconds.into()),
                    ..Step::new(device, state.clone())
                })
            });
            let steps = steps.collect();
            routines.push(NamedRoutine {
                name: format!("stage {:02}, item {nth}", stage + 1),
                routine: Routine { steps },
                mode: Mode::Parallel,
                urgency: Urgency::default(),
            });
        }
    }
    Home {
        catalogue,
        initial,
        routines,
        ..Home::default()
    }
}
