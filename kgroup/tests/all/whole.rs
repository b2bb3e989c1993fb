//! Whole nodes: nodes that come and go, devices, routines and maps.

use selvedge_core::{NodeId, Sha256Sortition, Span};
use selvedge_groups as groups;
use selvedge_groups::{
    GroupId,
    store::{Expected, Operation, StoreCommand, StoreEvent, Stored},
};
use selvedge_kgroup::routines::Stage;
use selvedge_kgroup::{Command, Config, Event, Site, Timer};
use selvedge_routine::trigger::Clause;
use selvedge_routine::{Comparison, Condition};
use selvedge_sim::network::Link;

use crate::building::{Building, device, switching};

fn is(device: NodeId, value: &str) -> Clause<selvedge_routine::State> {
    Clause::Is(Condition {
        device,
        comparison: Comparison::Equal,
        value: value.into(),
    })
}

#[test]
fn a_routine_that_is_triggered_by_hand_has_its_commands_done() {
    let routines = [switching(&[1, 3, 4], "on")];
    let mut house = Building::new(1, 5, 4, 1, Link::default(), routines);
    house.run(Span::secs(5));
    for group in house.site.groups() {
        assert_eq!(house.leader(group).len(), 1, "{group:?}");
    }
    house.trigger(4, 0, 1);
    house.run(Span::secs(5));
    let done: Vec<_> = house.done.iter().map(|it| it.device).collect();
    assert_eq!(done, [1, 3, 4].map(device));
    assert_eq!(house.reports(0), 1);
    assert_eq!(house.routine(0).instance(), 1);
}

#[test]
fn a_clause_that_becomes_true_triggers() {
    let routines = [switching(&[3, 4], "on").with_clause(is(device(1), "open"))];
    let mut house = Building::new(2, 5, 4, 1, Link::default(), routines);
    house.run(Span::secs(5));
    assert!(house.done.is_empty());
    house.devices.get_mut(&device(1)).unwrap().0 = "open".into();
    house.run(Span::secs(10));
    let done: Vec<_> = house.done.iter().map(|it| it.device).collect();
    assert_eq!(done, [3, 4].map(device));
}

#[test]
fn a_routine_goes_on_when_any_one_node_stops() {
    for victim in 0..5 {
        let routines = [switching(&[1, 2, 3, 4], "on")];
        let mut house = Building::new(3, 5, 4, 1, Link::default(), routines);
        house.run(Span::secs(5));
        house.trigger((victim + 1) % 5, 0, 1);
        house.run(Span::millis(30));
        house.kill(victim);
        house.run(Span::secs(20));
        assert_eq!(house.routine(0).report().unwrap().instance, 1, "{victim}");
        for number in 1..=4 {
            assert_eq!(house.devices[&device(number)].0, "on".into(), "{victim}");
        }
    }
}

#[test]
fn groups_move_with_epochs_and_keep_what_they_hold() {
    let routines = [switching(&[1, 3], "on"), switching(&[3, 4], "off")];
    let mut house = Building::new(4, 9, 4, 1, Link::default(), routines);
    house.run(Span::secs(5));
    let mut members = Vec::new();
    for epoch in 2..8 {
        for at in 0..9 {
            house.net.command(at, Command::SetEpoch(epoch)).unwrap();
        }
        house.run(Span::secs(15));
        house.trigger(epoch as usize, 0, epoch);
        house.trigger(8 - epoch as usize, 1, epoch);
        house.run(Span::secs(10));
        let group = Site::routine(0);
        let leader = house.leader(group);
        assert_eq!(leader.len(), 1, "{epoch}");
        let node = house.net.machine(leader[0]).unwrap();
        let configuration = node.groups().replica(group).unwrap().configuration();
        members.push(configuration.voters.clone());
        for routine in 0..2 {
            assert_eq!(house.routine(routine).instance(), epoch - 1, "{epoch}");
            assert_eq!(house.reports(routine), epoch as usize - 1, "{epoch}");
        }
    }
    members.dedup();
    assert!(members.len() > 3, "{members:?}");
    for at in 0..9 {
        let groups = house.net.machine(at).unwrap().groups();
        assert!(groups.former() > 0);
    }
}

#[test]
fn a_map_is_there_for_all_nodes_once_one_asks() {
    let map = GroupId::map("doors", &Sha256Sortition);
    let mut house = Building::new(5, 7, 2, 1, Link::default(), []);
    house.run(Span::secs(3));
    let key = String::from("front");
    let watch = StoreCommand::Watch(key.clone());
    let command = Command::Map {
        map,
        command: watch,
    };
    house.net.command(6, command).unwrap();
    house.run(Span::secs(5));
    for (at, expected, ticket) in [(0, Expected::Absent, 1), (1, Expected::Absent, 2)] {
        let operation = Operation::set(
            key.clone(),
            expected,
            Some(b"shut".iter().copied().collect()),
        );
        let command = StoreCommand::Change { ticket, operation };
        house
            .net
            .command(at, Command::Map { map, command })
            .unwrap();
        house.run(Span::secs(3));
    }
    let get = StoreCommand::Get {
        ticket: 3,
        key: key.clone(),
    };
    house
        .net
        .command(3, Command::Map { map, command: get })
        .unwrap();
    house.run(Span::secs(3));
    let notified: Vec<_> = house
        .events
        .iter()
        .filter_map(|(_, at, event)| match event {
            Event::Map { event, .. } => Some((*at, event.clone())),
            _ => None,
        })
        .collect();
    let changed = |at, ticket, stored| (at, StoreEvent::Changed { ticket, stored });
    assert!(notified.contains(&changed(0, 1, Stored::Done { version: 1 })));
    assert!(notified.contains(&changed(1, 2, Stored::Mismatch { found: Some(1) })));
    let watched = notified.iter().filter(|it| it.0 == 6).count();
    assert_eq!(watched, 2, "nothing, and then what was put: {notified:?}");
    let found = notified.iter().any(|it| {
        it.0 == 3 && matches!(&it.1, StoreEvent::Found { entry: Some(entry), .. } if *entry.value == *b"shut")
    });
    assert!(found, "{notified:?}");
}

/// A watch is renewed with the leader that is known, in every eighth tick.
#[test]
fn a_renewal_of_watches_goes_to_the_leader_however_many_there_are() {
    let map = GroupId::map("doors", &Sha256Sortition);
    let period = Config::new().maps.resend * 8;
    let sent = [1, 3, 10].map(|watches| {
        let mut house = Building::new(11, 20, 2, 1, Link::default(), []);
        house.run(Span::secs(3));
        let members = |house: &Building| {
            let leader = house.leader(map);
            let node = house.net.machine(*leader.first()?)?;
            let configuration = node.groups().replica(map)?.configuration();
            let members = configuration.members().map(|it| it.member.id);
            Some(members.collect::<Vec<_>>())
        };
        let watcher = 19;
        for number in 0..watches {
            let command = StoreCommand::Watch(format!("door {number}"));
            let command = Command::Map { map, command };
            house.net.command(watcher, command).unwrap();
        }
        house.run(Span::secs(10));
        let me = house.member(watcher).id;
        assert!(!members(&house).unwrap().contains(&me));
        let count = |house: &Building| house.net.node_counters(watcher).sent;
        let before = count(&house);
        house.run(period * 5);
        count(&house) - before
    });
    assert_eq!(sent, [5, 5, 5], "a frame for each of five renewals");
}

#[test]
fn a_building_of_one_node_has_maps() {
    let map = GroupId::map("doors", &Sha256Sortition);
    let mut house = Building::new(6, 1, 1, 0, Link::default(), []);
    house.run(Span::secs(3));
    let key = String::from("front");
    let command = StoreCommand::Get { ticket: 1, key };
    house.net.command(0, Command::Map { map, command }).unwrap();
    house.run(Span::secs(5));
    let found = StoreEvent::Found {
        ticket: 1,
        entry: None,
    };
    let found = Event::Map { map, event: found };
    assert!(house.events.iter().any(|it| it.2 == found));
    assert_eq!(house.leader(map), [0]);
}

/// Power domains of two nodes each, one after another dark and back without its memory.
#[test]
fn a_power_domain_that_goes_dark_stops_nothing() {
    let routines = [
        switching(&[1, 2, 3], "on"),
        switching(&[3, 4, 5, 6], "off"),
        switching(&[6, 1], "on"),
    ];
    let mut house = Building::new(6, 10, 6, 2, Link::default(), routines);
    house.run(Span::secs(5));
    for (round, domain) in [[0, 1], [4, 5], [2, 3], [8, 9], [6, 7], [0, 1]]
        .into_iter()
        .enumerate()
    {
        let runs = round as u64 + 1;
        let triggers_from = (domain[1] + 3) % 10;
        for routine in 0..3 {
            house.trigger(triggers_from, routine, runs);
        }
        house.run(Span::millis(7 * runs));
        for node in domain {
            house.kill(node);
        }
        house.run(Span::secs(20));
        for routine in 0..3 {
            let state = house.routine(routine);
            assert_eq!(
                state.report().unwrap().instance,
                runs,
                "{domain:?}, routine {routine}"
            );
            assert_eq!(state.stage(), &Stage::NotTriggered);
        }
        for group in house.site.groups() {
            assert_eq!(house.leader(group).len(), 1, "{domain:?}, {group:?}");
        }
        for node in domain {
            house.revive(node);
        }
        house.run(Span::secs(5));
    }
    // A leader that failed in the middle of a command has it given again, under the same ticket.
    let mut tickets: Vec<_> = house.done.iter().map(|it| it.ticket).collect();
    tickets.sort_unstable();
    tickets.dedup();
    assert_eq!(
        tickets.len(),
        9 * 6,
        "each command is decided once, and done"
    );
}

#[test]
fn nodes_whose_epochs_differ_do_not_move_groups_for_ever() {
    let routines = [switching(&[1, 3], "on")];
    let mut house = Building::new(6, 9, 4, 1, Link::default(), routines);
    house.run(Span::secs(5));
    for at in 0..9 {
        let epoch = 2 + at as u64 % 3;
        house.net.command(at, Command::SetEpoch(epoch)).unwrap();
    }
    house.run(Span::secs(300));
    for group in house.site.groups() {
        let leader = house.leader(group);
        assert_eq!(leader.len(), 1, "{group:?}");
        let node = house.net.machine(leader[0]).unwrap();
        let number = node.groups().replica(group).unwrap().configuration().number;
        // One link for the first epoch, and one for each of the others.
        assert!((1..6).contains(&number), "{group:?} {number}");
    }
}

#[test]
fn a_change_is_done_or_refused_however_long_it_is() {
    let map = GroupId::map("notes", &Sha256Sortition);
    let mut house = Building::new(7, 5, 2, 1, Link::default(), []);
    house.run(Span::secs(3));
    let change = |length: usize| {
        let operation = Operation::set(
            "note",
            Expected::Any,
            Some(std::iter::repeat_n(7, length).collect()),
        );
        let ticket = length as u64;
        let command = StoreCommand::Change { ticket, operation };
        Command::Map { map, command }
    };
    let longest = (0..1_400)
        .rev()
        .find(|length| house.net.command(3, change(*length)).is_ok());
    let longest = longest.unwrap();
    assert!(longest > 1_200, "{longest}");
    house.run(Span::secs(10));
    let is_done = house.events.iter().any(|(_, _, event)| {
        matches!(
            event,
            Event::Map {
                event: StoreEvent::Changed {
                    stored: Stored::Done { .. },
                    ..
                },
                ..
            }
        )
    });
    assert!(is_done, "{longest} bytes are taken, and never decided");
}

/// An epoch's changes are spread over ten seconds; members that have failed are replaced before.
#[test]
fn members_that_are_gone_wait_for_no_epoch() {
    let mut replaced = 0;
    for victim in 0..9 {
        let mut house = Building::new(8, 9, 8, 1, Link::default(), []);
        house.run(Span::secs(15));
        for at in 0..9 {
            house.net.command(at, Command::SetEpoch(2)).unwrap();
        }
        let ended = NodeId(victim as u64 + 1);
        let names_it = |house: &Building, group| {
            let leader = house.leader(group);
            let node = house.net.machine(*leader.first()?)?;
            let configuration = node.groups().replica(group)?.configuration();
            Some(configuration.voter(ended).is_some())
        };
        let groups: Vec<GroupId> = house.site.groups().collect();
        let named = groups
            .iter()
            .filter(|it| names_it(&house, **it) == Some(true));
        replaced += named.count();
        house.kill(victim);
        house.run(Span::secs(3));
        for group in groups {
            assert_eq!(names_it(&house, group), Some(false), "{victim}, {group:?}");
        }
    }
    assert_eq!(replaced, 4 * 3, "each of four groups had three members");
}

/// Commands are under way when the epoch begins.
#[test]
fn a_node_that_leads_a_group_no_more_has_none_of_its_timers() {
    let routines = [switching(&[1, 3], "on"), switching(&[4, 2], "off")];
    let mut house = Building::new(7, 9, 4, 1, Link::default(), routines);
    house.run(Span::secs(5));
    let mut led = Vec::new();
    for epoch in 2..5 {
        for it in house.devices.values_mut() {
            it.1 = false;
        }
        for routine in 0..2 {
            house.trigger(0, routine, epoch);
        }
        for at in 0..9 {
            house.net.command(at, Command::SetEpoch(epoch)).unwrap();
        }
        for _ in 0..1_000 {
            house.run(Span::millis(15));
            for (at, node) in house.net.machines() {
                let timers = house.net.timers(at);
                let of_leaders = timers.filter_map(|(timer, _)| match timer {
                    Timer::Leader(group, _) => Some(group),
                    _ => None,
                });
                for group in of_leaders {
                    assert!(node.leads().any(|it| it == group), "node {at}, {group:?}");
                    led.push((at, group));
                }
            }
        }
        for it in house.devices.values_mut() {
            it.1 = true;
        }
        house.run(Span::secs(10));
    }
    led.sort_unstable();
    led.dedup();
    assert!(led.len() > 8, "leaders changed: {led:?}");
}

/// Questions that take each other's hint would never find their groups.
#[test]
fn a_node_has_hints_for_all_groups_that_it_may_ask_at_once() {
    let config = Config::new().with_groups(groups::Config::new().with_leader_hints(1));
    let routines = [switching(&[1, 3], "on"), switching(&[3, 4], "off")];
    let house = Building::with_config(config, 1, (5, 4, 1), Link::default(), routines);
    let pending = usize::from(config.maps.pending);
    let asked = house.site.groups().count() + 2 * pending;
    for (at, node) in house.net.machines() {
        let leader_hints = usize::from(node.groups().config().leader_hints);
        assert!(leader_hints >= asked, "{at} has {leader_hints} for {asked}");
    }
}
