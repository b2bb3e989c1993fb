//! Crashes and restarts: state that is forgotten, messages that arrive, and the names of nodes.

use selvedge_core::{Delta, Incarnation, Input, Member, Span};
use selvedge_sim::check::{Bounds, Model, Observer};

use crate::check::toy::{Toy, member, remember, seen, toys};

fn reborn(id: u64, life: u32) -> Toy {
    let mut toy = Toy::new(id, remember);
    toy.me = Member {
        incarnation: Incarnation(life),
        ..toy.me
    };
    toy
}

#[test]
fn a_life_that_has_not_begun_is_not_confirmed_as_ended() {
    let model = mortal(1)
        .deltas(0, [Delta::Confirmed(Member::new(10, 1))])
        .bounds(Bounds {
            crashes: 2,
            restarts: 1,
            ..Bounds::default()
        })
        .crash_when(|_, node| node == 1)
        .always("life 1 has ended", |state| {
            let node = state.node(1).unwrap();
            !seen(state, 0).contains(&200) || (node.life() == 1 && !node.is_up())
        })
        .sometimes("confirmed", |state| seen(state, 0).contains(&200));
    model.verify().unwrap();
}

/// Node 1 may crash once and come back `restarts` times; node 0 sends it a 1.
fn mortal(restarts: u32) -> Model<Toy> {
    toys(2, remember)
        .commands(0, [1])
        .bounds(Bounds {
            crashes: 1,
            restarts,
            ..Bounds::default()
        })
        .crash_when(|_, node| node == 1)
        .restart(|_, life, _| reborn(10, life))
}

#[test]
fn a_letter_to_the_dead_is_buried() {
    let model = mortal(0).always("none on its way to the dead", |state| {
        state.node(1).unwrap().is_up() || state.letters().len() == 0
    });
    // Issued or not, on its way or read: three while up; down with and without having read, before
    // and after: unasked, asked and lost, read.
    assert_eq!(model.verify().unwrap(), 3 + 3);
}

#[test]
fn a_letter_may_arrive_in_the_next_life_or_find_nobody() {
    let model = mortal(1)
        .sometimes("arrives in the next life", |state| {
            state.node(1).unwrap().life() == 1 && seen(state, 1) == [1]
        })
        .sometimes("finds nobody", |state| {
            let node = state.node(1).unwrap();
            node.life() == 1
                && node.machine().seen.is_empty()
                && state.letters().len() == 0
                && state.node(0).unwrap().issued() == 1
        })
        .always("one life, one name", |state| {
            let node = state.node(1).unwrap();
            node.member() == Member::new(10, node.life())
        });
    model.verify().unwrap();
}

#[test]
fn memory_is_what_restart_takes_over() {
    let forgets = mortal(1).always("forgets", |state| {
        let node = state.node(1).unwrap();
        node.life() == 0 || node.machine().seen.len() <= 1
    });
    forgets.verify().unwrap();
    let remembers = mortal(1)
        .restart(|_, life, old| Toy {
            seen: old.seen.clone(),
            ..reborn(10, life)
        })
        .sometimes("remembers", |state| {
            let node = state.node(1).unwrap();
            node.life() == 1 && seen(state, 1) == [1] && node.timers().is_empty()
        });
    let all = remembers.verify().unwrap();
    // Forgetting at the crash makes states equal.
    let forgotten = mortal(1)
        .remains(|_| reborn(10, 0))
        .always("true", |_| true)
        .verify()
        .unwrap();
    assert!(forgotten < all, "{forgotten} {all}");
}

#[test]
fn timers_die_and_starts_happen_in_every_life() {
    let model = toys(1, remember)
        .bounds(Bounds {
            crashes: 1,
            restarts: 1,
            ..Bounds::default()
        })
        .start(|_, life, _, cx| {
            cx.arm(u8::try_from(life).unwrap(), Span::secs(1));
            Ok(())
        })
        .restart(|_, life, _| reborn(0, life))
        .always("its own timers", |state| {
            let node = state.node(0).unwrap();
            let life = u8::try_from(node.life()).unwrap();
            node.timers().iter().all(|&timer| timer == life)
                && (node.is_up() || node.timers().is_empty())
        });
    // First life: armed, fired. Down after each. Second life: armed, fired; it forgot the rest.
    assert_eq!(model.verify().unwrap(), 2 + 2 + 2);
}

#[test]
fn letters_keep_the_name_under_which_they_were_sent() {
    // Node 0 changes its name in mid-life.
    let rule = |toy: &mut Toy, input, cx: &mut selvedge_core::Context<'_, Toy>| match input {
        Input::Command(99) => {
            toy.me.incarnation = toy.me.incarnation.next();
            cx.send(member(10), 99);
            Ok(())
        }
        Input::Message { from, message } => {
            toy.seen.push(message);
            toy.seen.push(u8::try_from(from.incarnation.0).unwrap());
            Ok(())
        }
        other => remember(toy, other, cx),
    };
    let model = toys(2, rule)
        .commands(0, [1, 99, 2])
        .always("names", |state| {
            seen(state, 1)
                .chunks(2)
                .all(|pair| matches!(pair, [1, 0] | [99, 1] | [2, 1]))
        })
        .progress("all arrive", |state| seen(state, 1).len() == 6);
    model.verify().unwrap();
}

#[test]
fn given_members_count_their_lives() {
    let machines = vec![(Member::new(7, 3), Toy::new(0, remember))];
    let model = Model::with_members(machines)
        .bounds(Bounds {
            crashes: 1,
            restarts: 1,
            ..Bounds::default()
        })
        .restart(|_, _, old| old.clone())
        .always("3, then 4", |state| {
            let node = state.node(0).unwrap();
            node.member() == Member::new(7, 3 + node.life())
        });
    assert_eq!(model.verify().unwrap(), 3);
}

/// Counts commands and events in each life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Watch {
    log: Vec<(usize, u8)>,
}

impl Observer<Toy> for Watch {
    fn event(&mut self, node: usize, event: &u8) {
        self.log.push((node, *event));
    }
    fn commanded(&mut self, node: usize, command: &u8) {
        self.log.push((node, 50 + command));
    }
    fn crashed(&mut self, node: usize) {
        self.log.push((node, 100));
    }
    fn restarted(&mut self, node: usize) {
        self.log.push((node, 101));
    }
}

#[test]
fn an_observer_sees_commands_events_crashes_and_restarts_in_order() {
    let rule = |toy: &mut Toy, input, cx: &mut selvedge_core::Context<'_, Toy>| {
        match input {
            // Refused in the first life, so it is not seen there.
            Input::Command(2) if toy.me.incarnation.0 == 0 => return Err("later"),
            Input::Command(number) => cx.event(number),
            _ => {}
        }
        Ok(())
    };
    let model = Model::observed(vec![Toy::new(0, rule)], |toy| toy.me, Watch::default())
        .commands(0, [1, 2])
        .bounds(Bounds {
            crashes: 1,
            restarts: 1,
            ..Bounds::default()
        })
        .restart(|_, _, old| {
            let mut toy = old.clone();
            toy.me.incarnation = toy.me.incarnation.next();
            toy
        })
        .sometimes("between", |state| {
            state.observer().log == [(0, 51), (0, 1), (0, 100), (0, 101), (0, 52), (0, 2)]
        })
        .always("in order", |state| {
            let log = state.observer().log.iter().map(|it| it.1);
            let log: Vec<u8> = log.filter(|it| *it < 100).collect();
            [51, 1, 52, 2].starts_with(&log)
        });
    model.verify().unwrap();
}
