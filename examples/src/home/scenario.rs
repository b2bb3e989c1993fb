//! The three scenarios of the paper's evaluation (section 7.2), with names of our own.
//!
//! The morning and the party are files in the routine format; the factory is made by its rule.

use clap::ValueEnum;
use selvedge_core::{Choose, Span, Time};
use selvedge_safehome::file::{FileError, Home, NamedRoutine};
use selvedge_safehome::{Catalogue, Routine, State, Step};

const MORNING: &str = include_str!("../../scenarios/morning.json");
const PARTY: &str = include_str!("../../scenarios/party.json");

/// A home full of people, or a factory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// A family of five gets up: 29 routines within 25 minutes, on 39 devices
    Morning,
    /// One routine goes on for two hours while 11 others come, on 7 devices
    Party,
    /// 50 stages with 8 items each; an item needs devices of its stage, of its neighbours and of
    /// all
    Factory,
}

/// When routines arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// In a random order, at whole seconds from 0 to `window`, all equally likely; the first one
    /// at 0.
    Within {
        /// The last second.
        window: Span,
        /// This one comes first, whatever the order is.
        first: Option<usize>,
        /// This one comes at the end of the window.
        last: Option<usize>,
    },
    /// In lines: the first of a line at a whole second below `start`, each other one when the one
    /// before it would be over if nothing held it up.
    Lines {
        /// So many a line.
        length: usize,
        /// Before then.
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
                length: ITEMS,
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
        arrivals.sort_by_key(|&(at, nth)| (at, nth));
        arrivals
    }
}

fn within(
    routines: usize,
    window: Span,
    first: Option<usize>,
    last: Option<usize>,
    choices: &mut impl Choose,
) -> Vec<(Time, usize)> {
    let is_free = |nth: &usize| first != Some(*nth) && last != Some(*nth);
    let mut rest: Vec<usize> = (0..routines).filter(is_free).collect();
    shuffle(&mut rest, choices);
    let mut order: Vec<usize> = first.into_iter().collect();
    order.append(&mut rest);
    let window = Span(window.0 + 1_000_000);
    let draw = |_: &usize| Time::ZERO + second(window, choices);
    let mut times: Vec<Time> = order.iter().map(draw).collect();
    times.sort_unstable();
    if let Some(time) = times.first_mut() {
        *time = Time::ZERO;
    }
    let mut arrivals: Vec<_> = times.into_iter().zip(order).collect();
    if let Some(last) = last {
        arrivals.push((Time(window.0 - 1_000_000), last));
    }
    arrivals
}

/// A whole second below this.
fn second(below: Span, choices: &mut impl Choose) -> Span {
    Span::secs(choices.below(below.0 / 1_000_000))
}

fn shuffle(list: &mut [usize], choices: &mut impl Choose) {
    for at in (1..list.len()).rev() {
        let other = choices.below(at as u64 + 1);
        list.swap(at, usize::try_from(other).unwrap_or_default());
    }
}

const STAGES: usize = 50;
const ITEMS: usize = 8;
const SHARED: usize = 5;

/// Each stage has four devices, and so has each boundary behind a stage. An item at a stage needs
/// each device of the boundary before it with probability 3/10, then each
/// of the stage with 6/10, each of the boundary behind it with 3/10, and each of those that all
/// share with 1/10, for 1 to 30 s each. The last stage has a boundary behind it, too. One that
/// needs nothing is drawn again.
fn factory(choices: &mut impl Choose) -> Home {
    let mut catalogue = Catalogue::new();
    let mut groups = |name: &str, many: usize| -> Vec<Vec<_>> {
        let numbers = 1..=many;
        let device = |group: usize, letter| format!("{name} {group:02}{letter}");
        let group = |it| {
            let letters = ["a", "b", "c", "d"];
            letters
                .map(|letter| catalogue.id_or_new(&device(it, letter)))
                .to_vec()
        };
        numbers.map(group).collect()
    };
    let (stages, boundaries) = (groups("station", STAGES), groups("belt", STAGES));
    let shared = (1..=SHARED).map(|nth| catalogue.id_or_new(&format!("crane {nth}")));
    let shared: Vec<_> = shared.collect();
    let initial = catalogue
        .iter()
        .map(|(id, _)| (id, "idle".into()))
        .collect();
    let mut routines = Vec::new();
    for (stage, devices) in stages.iter().enumerate() {
        let before = stage.checked_sub(1).and_then(|it| boundaries.get(it));
        let sides = [
            (before.map_or(&[][..], Vec::as_slice), 3),
            (devices, 6),
            (boundaries.get(stage).map_or(&[][..], Vec::as_slice), 3),
            (&shared, 1),
        ];
        for item in 1..=ITEMS {
            let mut steps = Vec::new();
            while steps.is_empty() {
                for (devices, tenths) in sides {
                    for &device in devices {
                        if choices.below(10) < tenths {
                            let state = State::Word(format!("item {item} of stage {}", stage + 1));
                            let mut step = Step::new(device, state);
                            step.hold = Span::secs(1 + choices.below(30));
                            steps.push(step);
                        }
                    }
                }
            }
            routines.push(NamedRoutine {
                name: format!("stage {:02}, item {item}", stage + 1),
                routine: Routine { steps },
            });
        }
    }
    Home {
        catalogue,
        initial,
        routines,
        triggers: Vec::new(),
    }
}
