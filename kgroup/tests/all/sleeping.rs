//! Devices that sleep: a valve that wakes each minute, reports, and listens for a short time.

use selvedge_core::{NodeId, Span, Time};
use selvedge_groups::{Node, Place, Selection};
use selvedge_kgroup::routines::{Definition, Report, StepOutcome};
use selvedge_kgroup::{Command, Config, Delivery, Event, LeaderEvent, Site, Status, devices};
use selvedge_sim::network::Link;

use crate::building::{Building, device, switching};

const INTERVAL: Span = Span::secs(60);
/// The time for which the valve listens after its report.
const LISTENS: Span = Span::millis(200);

/// Device 1 is the valve, device 2 a lamp. The valve wakes at each full minute.
struct House {
    building: Building,
    /// The moments of its reports.
    woke: Vec<Time>,
    /// The nodes that led the devices in short epochs.
    leaders: Vec<Vec<usize>>,
}

fn valve() -> NodeId {
    device(1)
}

impl House {
    fn new(seed: u64, interval: Option<Span>, routines: Vec<Definition>) -> Self {
        let place = |at: u64| Place([at as i32 * 100, 0, 0]);
        let nodes = (1..=5).map(|id| Node::new(id, place(id)));
        let all = [1, 2].map(|it| (device(it), place(it)));
        let selection = Selection::new().with_failures(1);
        let site = Site::new(selection, nodes, all, 2).unwrap();
        let site = site.with_wake_interval(valve(), interval).unwrap();
        let site = routines
            .into_iter()
            .fold(site, |site, it| site.with_routine(it).unwrap());
        let building = Building::of_site(Config::new(), seed, site, Link::default());
        let mut house = Self {
            building,
            woke: Vec::new(),
            leaders: Vec::new(),
        };
        house.valve_mut().1 = false;
        house.run_to(5);
        house.report();
        house.listen(LISTENS);
        house
    }

    fn valve_mut(&mut self) -> &mut (selvedge_routine::State, bool) {
        self.building.devices.get_mut(&valve()).unwrap()
    }

    /// Runs while the valve sleeps, until this second.
    fn run_to(&mut self, second: u64) {
        let until = Time::ZERO + Span::secs(second);
        self.building.run(until.since(self.building.net.now()));
    }

    /// Runs until this second, in epochs of 20 seconds.
    fn pass_epochs(&mut self, second: u64) {
        while let now = self.building.net.now().since(Time::ZERO).0 / 1_000_000
            && now < second
        {
            for at in (0..5).filter(|_| now % 20 == 0) {
                let epoch = Command::SetEpoch(2 + now / 20);
                self.building.net.command(at, epoch).unwrap();
            }
            self.run_to(now + 1);
            self.leaders.push(self.building.leader(Site::cluster(0)));
        }
    }

    /// The valve wakes at this second. All nodes receive its report, and all but the leader refuse it.
    fn wake(&mut self, second: u64) {
        self.run_to(second);
        self.report();
        self.listen(LISTENS);
    }

    fn report(&mut self) {
        self.woke.push(self.building.net.now());
        let value = Some(self.valve_mut().0.clone());
        for at in 0..5 {
            let (device, value) = (valve(), value.clone());
            let report = Command::Reported { device, value };
            let _refused = self.building.net.command(at, report).is_err();
        }
    }

    fn listen(&mut self, span: Span) {
        self.valve_mut().1 = true;
        self.building.run(span);
        self.valve_mut().1 = false;
    }

    fn leader(&self) -> usize {
        self.building.leader(Site::cluster(0))[0]
    }

    fn of_valve(&self) -> impl Iterator<Item = (Time, &devices::Event)> {
        self.building.events.iter().filter_map(|it| match &it.2 {
            Event::Leader {
                event: LeaderEvent::Devices(event),
                ..
            } => Some((it.0, event)),
            _ => None,
        })
    }

    fn pings(&self) -> usize {
        let is_ping = |it: &devices::Event| matches!(it, devices::Event::Ping { device } if *device == valve());
        self.of_valve().filter(|it| is_ping(it.1)).count()
    }

    /// The moments when the valve went down or up.
    fn changes(&self) -> Vec<(Time, bool)> {
        let statuses = self.of_valve().filter_map(|(at, event)| match event {
            devices::Event::Status { device, status } if *device == valve() => Some((at, status)),
            _ => None,
        });
        let mut all: Vec<(Time, Status)> = statuses.map(|it| (it.0, it.1.clone())).collect();
        all.sort_by_key(|it| it.1.version);
        let mut changes: Vec<_> = all.iter().map(|it| (it.0, it.1.is_up)).collect();
        changes.dedup_by_key(|it| it.1);
        changes
    }

    /// The commands to the valve, also those that it does not receive.
    fn given(&self) -> Vec<Time> {
        let acts = self.of_valve().filter(
            |it| matches!(it.1, devices::Event::Act { ticket, .. } if ticket.device == valve()),
        );
        acts.map(|it| it.0).collect()
    }

    /// The commands that the valve received.
    fn done(&self) -> usize {
        let done = self.building.done.iter();
        done.filter(|it| it.device == valve()).count()
    }

    fn report_of(&self, routine: u32) -> Option<Report> {
        self.building.routine(routine).report().cloned()
    }

    /// No ping, and each command soon after a report.
    fn assert_sessions(&self) {
        assert_eq!(self.pings(), 0);
        for at in self.given() {
            let mut reports = self.woke.iter().filter(|it| **it <= at);
            assert!(
                reports.any(|it| at.since(*it) < LISTENS),
                "{at:?} {:?}",
                self.woke
            );
        }
    }
}

/// The same house, and the site does not list the valve as one that sleeps.
#[test]
fn a_pinged_device_that_sleeps_is_down_and_its_command_fails() {
    let mut house = House::new(1, None, vec![switching(&[1], "warm")]);
    house.run_to(40);
    house.building.trigger(3, 0, 1);
    house.wake(65);
    house.wake(125);
    house.run_to(130);
    let ups: Vec<_> = house.changes().iter().map(|it| it.1).collect();
    assert_eq!(ups, [false, true, false, true, false, true, false]);
    assert_eq!(house.done(), 0);
    let report = house.report_of(0).unwrap();
    assert_eq!(report.steps, [StepOutcome::Failed]);
}

#[test]
fn a_command_waits_until_its_device_wakes_and_is_given_once() {
    let routine = switching(&[2, 1, 2], "warm");
    let mut house = House::new(1, Some(INTERVAL), vec![routine]);
    house.run_to(10);
    house.building.trigger(3, 0, 1);
    house.run_to(64);
    assert_eq!((house.given().len(), house.report_of(0)), (0, None));
    house.wake(65);
    assert_eq!((house.given().len(), house.done()), (1, 1));
    house.run_to(70);
    let report = house.report_of(0).unwrap();
    assert_eq!(report.steps, [StepOutcome::Done; 3]);
    for minute in 2..6 {
        house.wake(60 * minute + 5);
    }
    assert_eq!((house.given().len(), house.done()), (1, 1));
    assert_eq!(house.changes().len(), 1, "{:?}", house.changes());
    house.assert_sessions();
}

#[test]
fn a_command_waits_when_leaders_change_while_its_device_sleeps() {
    for routine_leader_too in [false, true] {
        let mut house = House::new(2, Some(INTERVAL), vec![switching(&[1], "warm")]);
        house.run_to(10);
        let asks = (house.leader() + 1) % 5;
        house.building.trigger(asks, 0, 1);
        house.run_to(30);
        let victim = house.leader();
        house.building.kill(victim);
        house.run_to(40);
        let victim = match routine_leader_too {
            true => house.building.leader(Site::routine(0))[0],
            false => house.leader(),
        };
        // One of three may be away at a time.
        house.run_to(50);
        house.building.kill(victim);
        house.run_to(64);
        assert_eq!(house.given().len(), 0);
        house.wake(65);
        house.wake(125);
        house.run_to(130);
        let report = house.report_of(0).unwrap();
        assert_eq!(report.steps, [StepOutcome::Done]);
        assert_eq!((house.given().len(), house.done()), (1, 1));
        assert_eq!(house.changes().len(), 1, "{:?}", house.changes());
        house.assert_sessions();
    }
}

/// The leader stops at any moment between the report and the outcome.
#[test]
fn a_command_of_a_leader_that_stops_is_given_again_when_the_device_wakes() {
    let (mut again, mut once) = (0, 0);
    for micros in (0..20_000).step_by(500) {
        for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
            let routine = switching(&[1], "warm").with_deliveries([delivery]);
            let mut house = House::new(3, Some(INTERVAL), vec![routine]);
            house.run_to(10);
            house.building.trigger((house.leader() + 1) % 5, 0, 1);
            house.run_to(65);
            let victim = house.leader();
            house.report();
            house.listen(Span(micros));
            house.building.kill(victim);
            house.run_to(100);
            let early = house.given().len();
            house.wake(125);
            house.run_to(184);
            assert_eq!(house.changes().iter().filter(|it| !it.1).count(), 0);
            house.wake(185);
            house.run_to(200);
            let report = house.report_of(0).unwrap();
            let (given, step) = (house.given().len(), report.steps[0]);
            match delivery {
                Delivery::AtLeastOnce => {
                    assert_eq!(step, StepOutcome::Done, "{micros}");
                    assert!(given <= 2 && house.done() >= 1, "{micros}");
                    again += u32::from(early == 1 && given == 2);
                }
                Delivery::AtMostOnce => {
                    assert!(given <= 1, "{micros}");
                    once += u32::from(given == 1 && step == StepOutcome::Unknown);
                }
            }
            house.assert_sessions();
        }
    }
    assert!(again > 2 && once > 2, "{again}, {once}");
}

#[test]
fn a_report_that_is_lost_is_no_failure() {
    let mut house = House::new(4, Some(INTERVAL), vec![switching(&[1], "warm")]);
    house.wake(65);
    house.run_to(70);
    house.building.trigger(3, 0, 1);
    // That of the second minute is lost, and the device wakes a little late.
    house.wake(184);
    house.run_to(190);
    let report = house.report_of(0).unwrap();
    assert_eq!(report.steps, [StepOutcome::Done]);
    assert_eq!((house.given().len(), house.done()), (1, 1));
    assert_eq!(house.changes().len(), 1);
    house.assert_sessions();
}

#[test]
fn a_device_that_wakes_no_more_goes_down_once_and_up_once_when_it_returns() {
    let mut house = House::new(5, Some(INTERVAL), vec![switching(&[1], "warm")]);
    house.wake(65);
    house.run_to(70);
    house.building.trigger(3, 0, 1);
    house.run_to(400);
    // Two intervals behind the last report.
    let changes = house.changes();
    let times: Vec<_> = changes
        .iter()
        .map(|it| (it.0.since(Time::ZERO).0 / 1_000_000, it.1))
        .collect();
    assert_eq!(times, [(5, true), (185, false)]);
    let report = house.report_of(0).unwrap();
    assert_eq!(report.steps, [StepOutcome::Failed]);
    // A command to a device that is down fails at once.
    house.building.trigger(3, 0, 2);
    house.run_to(402);
    let report = house.report_of(0).unwrap();
    assert_eq!((report.instance, report.steps[0]), (2, StepOutcome::Failed));
    for minute in 7..10 {
        house.wake(60 * minute);
    }
    let ups: Vec<_> = house.changes().iter().map(|it| it.1).collect();
    assert_eq!(ups, [true, false, true]);
    assert_eq!(house.given().len(), 0);
    house.building.trigger(3, 0, 3);
    house.wake(600);
    house.run_to(610);
    assert_eq!(house.report_of(0).unwrap().steps, [StepOutcome::Done]);
    house.assert_sessions();
}

/// It counts on from the time that the group has decided, which is no more than has passed.
#[test]
fn a_new_leader_does_not_count_a_device_as_down_too_early() {
    let mut house = House::new(6, Some(INTERVAL), vec![]);
    house.wake(65);
    house.run_to(170);
    let victim = house.leader();
    house.building.kill(victim);
    house.run_to(184);
    assert_eq!(house.changes().len(), 1);
    house.run_to(250);
    let ups: Vec<_> = house.changes().iter().map(|it| it.1).collect();
    assert_eq!(ups, [true, false]);
}

/// A former leader that is cut off receives the report, too.
#[test]
fn a_leader_that_was_cut_off_gives_nothing_and_its_device_is_not_down() {
    let mut house = House::new(7, Some(INTERVAL), vec![switching(&[1], "warm")]);
    house.run_to(10);
    let old = house.leader();
    house.building.trigger((old + 1) % 5, 0, 1);
    house.run_to(30);
    let cut = house.building.member(old);
    let others: Vec<usize> = (0..5).filter(|it| *it != old).collect();
    let net = &mut house.building.net;
    net.partition(&[[old].as_slice(), &others]).unwrap();
    for at in (0..5).filter(|it| *it != old) {
        net.membership(at, selvedge_core::Delta::Failed(cut))
            .unwrap();
    }
    house.run_to(60);
    assert_eq!(house.building.leader(Site::cluster(0)).len(), 2);
    house.wake(65);
    assert_eq!((house.given().len(), house.done()), (1, 1));
    // It hears nothing of the valve any more, and counts it as down.
    let until = Time::ZERO + Span::secs(250);
    for second in [125, 185, 245] {
        house.run_to(second);
        house.woke.push(house.building.net.now());
        for at in (0..5).filter(|it| *it != old) {
            let report = Command::Reported {
                device: valve(),
                value: None,
            };
            let _refused = house.building.net.command(at, report).is_err();
        }
    }
    house.building.run(until.since(house.building.net.now()));
    house.building.net.heal();
    for at in (0..5).filter(|it| *it != old) {
        let joined = selvedge_core::Delta::Joined(cut);
        house.building.net.membership(at, joined).unwrap();
    }
    house.run_to(260);
    for at in 0..5 {
        let _same = house.building.net.command(at, Command::SetEpoch(2));
    }
    house.wake(305);
    house.run_to(320);
    assert_eq!(house.building.leader(Site::cluster(0)).len(), 1);
    let report = house.report_of(0).unwrap();
    assert_eq!(report.steps, [StepOutcome::Done]);
    assert_eq!((house.given().len(), house.done()), (1, 1));
    assert_eq!(house.changes().len(), 1, "{:?}", house.changes());
    house.assert_sessions();
}

/// Each epoch has another leader, and is shorter than the wake interval.
#[test]
fn a_device_that_wakes_no_more_goes_down_where_leaders_change_more_often_than_it_wakes() {
    let mut house = House::new(8, Some(INTERVAL), vec![switching(&[1], "warm")]);
    house.building.trigger(3, 0, 1);
    house.pass_epochs(65);
    house.wake(65);
    house.pass_epochs(125);
    house.wake(125);
    house.pass_epochs(700);
    house.leaders.dedup();
    assert!(house.leaders.len() > 15, "{:?}", house.leaders);
    let ups: Vec<_> = house.changes().iter().map(|it| it.1).collect();
    assert_eq!(ups, [true, false]);
    let after = house.changes()[1].0.since(house.woke[2]);
    assert!(after >= INTERVAL * 2 && after <= INTERVAL * 6, "{after:?}");
    assert_eq!((house.given().len(), house.done()), (1, 1));
    house.building.trigger(3, 0, 2);
    house.pass_epochs(710);
    let report = house.report_of(0).unwrap();
    assert_eq!((report.instance, report.steps[0]), (2, StepOutcome::Failed));
    house.assert_sessions();
}
