//! A resource manager's duties toward other gateways: three of them, by hand.

use selvedge_core::{Delta, Input, Member, NodeId, Span};
use selvedge_pcm::gateway::{Command, Config, Event, Gateway, Voting};
use selvedge_pcm::{Function, Message, TaskId};
use selvedge_replica::{Body, Configuration, Voter};

use super::alone::{Alone, HUB, SECOND, THIRD, keep_alive};
use super::gateways::{follower, relay, three};

/// Lets time pass for these gateways, with a keep-alive each second from a follower of the first one.
/// Returns the messages of the gateways, with their senders.
fn run(gateways: &mut [Alone<Gateway>], span: Span) -> Vec<(Member, Message)> {
    let mut reported = Vec::new();
    let tick = Span::millis(100);
    for tenth in 0..span.0 / tick.0 {
        for it in &mut *gateways {
            it.pass(tick);
        }
        if tenth % 10 == 0 {
            gateways[0].receive(follower(11), keep_alive(1));
        }
        reported.extend(relay(gateways).into_iter().map(|it| (it.0, it.2)));
    }
    reported
}

/// Returns true if a follower is in the tables.
fn has(it: &Alone<Gateway>, id: u64) -> bool {
    let tables = it.driver.machine().tables().unwrap();
    tables.follower(NodeId(id)).is_some()
}

/// Three gateways; the first one manages, and has one follower, and the third has another one.
fn with_followers(config: Config) -> [Alone<Gateway>; 3] {
    let mut all = three(config);
    all[2].receive(follower(12), keep_alive(1));
    run(&mut all, Span::millis(500));
    assert!(has(&all[0], 11) && has(&all[0], 12));
    all
}

#[test]
fn the_manager_purges_the_followers_of_a_gateway_that_is_gone_and_no_others() {
    let config = Config::new().with_purge_after(100);
    let mut all = with_followers(config);
    run(&mut all, Span::secs(9));
    assert!(has(&all[0], 12), "only its gateway purges it");
    run(&mut all[..2], config.timeout);
    assert!(has(&all[0], 12), "it may come to another gateway");
    run(&mut all[..2], Span::secs(11));
    assert!(has(&all[0], 11) && !has(&all[0], 12));
}

#[test]
fn the_manager_purges_the_followers_of_a_gateway_that_is_taken_off_the_list() {
    let mut all = with_followers(Config::new());
    all[0].command(Command::Configure(Configuration::of([HUB, SECOND])));
    run(&mut all[..2], Span::secs(5));
    assert!(has(&all[0], 11) && !has(&all[0], 12));
}

#[test]
fn a_gateway_that_is_here_again_keeps_its_followers() {
    let mut all = with_followers(Config::new());
    all[0]
        .step(Input::Membership(Delta::Failed(THIRD)))
        .unwrap();
    for _ in 0..8 {
        all[2].receive(follower(12), keep_alive(1));
        run(&mut all, Span::secs(1));
    }
    let purged = all.map(|it| {
        it.notified
            .into_iter()
            .filter(|it| matches!(it, Event::Purged(_)))
            .count()
    });
    assert_eq!(purged, [0; 3]);
}

/// The voters are the gateways that are here, each in its latest life.
#[test]
fn a_voter_that_begins_again_is_named_in_its_later_life() {
    let mut all = three(Config::new().with_voting(Voting::Dynamic));
    let later = Member::new(THIRD.id.0, 1);
    all[0]
        .step(Input::Membership(Delta::Joined(later)))
        .unwrap();
    run(&mut all[..2], Span::millis(500));
    let configuration = all[0].driver.machine().replica().configuration();
    assert_eq!(
        configuration.voter(THIRD.id).map(|it| it.member),
        Some(later)
    );
}

/// Three gateways with followers. The third one lags, and is sent the tables whole instead of the updates.
fn with_whole_tables() -> [Alone<Gateway>; 3] {
    let config = Config::new();
    with_followers(config.with_replica(config.replica.with_window(0)))
}

const CLIENT: Member = Member::new(31, 0);

/// Submits a task at the first gateway. Returns the messages of the gateways within half a second.
fn submit(gateways: &mut [Alone<Gateway>]) -> Vec<(Member, Message)> {
    let submit = Message::Submit {
        number: 1,
        function: Function::new(b"f"),
    };
    gateways[0].receive(CLIENT, submit);
    run(gateways, Span::millis(500))
}

#[test]
fn a_gateway_that_lags_sends_its_followers_the_tasks_that_they_have() {
    let mut all = with_whole_tables();
    run(&mut all[..2], Span::secs(1));
    submit(&mut all[..2]);
    let reported = run(&mut all, Span::secs(2));
    let runs = |it: &&(Member, Message)| it.0 == THIRD && matches!(it.1, Message::Run(_));
    assert_eq!(reported.iter().filter(runs).count(), 1);
}

#[test]
fn a_gateway_that_lags_leaves_followers_that_moved_to_others() {
    for (has_moved, overs) in [(false, 1), (true, 0)] {
        let mut all = with_whole_tables();
        if has_moved {
            all[1].receive(follower(12), keep_alive(2));
        }
        run(&mut all[..2], Span::secs(1));
        submit(&mut all[..2]);
        run(&mut all, Span::secs(1));
        all[0].receive(CLIENT, Message::Cancel { number: 1 });
        let reported = run(&mut all, Span::millis(500));
        let over = |it: &&(Member, Message)| it.0 == THIRD && matches!(it.1, Message::Over { .. });
        assert_eq!(reported.iter().filter(over).count(), overs);
    }
}

#[test]
fn a_task_that_waits_for_a_unit_gets_the_first_one_at_once() {
    let (client, number) = (CLIENT, 1);
    let mut all = three(Config::new());
    submit(&mut all);
    run(&mut all, Span::millis(100));
    let clustered = |it: &Alone<Gateway>| it.driver.machine().tables().unwrap().clustered();
    for _ in 0..30 {
        let before = clustered(&all[0]);
        run(&mut all, Span::millis(100));
        let tables = all[0].driver.machine().tables().unwrap();
        let runs = tables.assignment(TaskId { client, number }).is_some();
        assert_eq!(runs, tables.clustered() > 0);
        if clustered(&all[0]) > before {
            return;
        }
    }
    panic!("no unit is formed");
}

/// Others have the tables as well, and leave it to the manager.
#[test]
fn only_the_manager_gives_tasks_to_units() {
    let mut all = with_followers(Config::new());
    let mut reported = submit(&mut all[..2]);
    reported.extend(run(&mut all[..2], Span::secs(3)));
    assert!(all[1].driver.machine().tables().unwrap().clustered() > 0);
    let proposes = |it: &&(Member, Message)| match &it.1 {
        Message::Tables(it) => matches!(it.body, Body::Propose { .. }),
        _ => false,
    };
    assert_eq!(reported.iter().find(proposes), None);
}

/// Two followers at the third gateway, one at the first, which manages. Returns the number of handovers by
/// the first one, and true if the third one manages in the end.
fn hands_over(third: Voter, is_here: bool) -> (u64, bool) {
    let config = Config::new().with_purge_after(600);
    let mut all = three(config);
    for id in [12, 13] {
        all[2].receive(follower(id), keep_alive(1));
    }
    run(&mut all, Span::millis(500));
    assert!(has(&all[0], 12) && has(&all[0], 13));
    if third.is_witness {
        let voters = [HUB, SECOND].map(Voter::new).into_iter().chain([third]);
        all[0].command(Command::Configure(Configuration {
            voters: voters.collect(),
            ..Configuration::of([HUB])
        }));
    }
    let here = if is_here { 3 } else { 2 };
    run(&mut all[..here], config.review * 2);
    let [first, _, third] = &all;
    let counters = first.driver.machine().counters();
    (counters.handed_over, third.driver.machine().manages())
}

#[test]
fn the_gateway_manages_that_has_most_followers_if_it_is_here_and_holds_tables() {
    assert_eq!(hands_over(Voter::new(THIRD), true), (1, true));
    assert_eq!(hands_over(Voter::new(THIRD), false), (0, false));
    let witness = Voter {
        is_witness: true,
        ..Voter::new(THIRD)
    };
    assert_eq!(hands_over(witness, true), (0, false));
}
