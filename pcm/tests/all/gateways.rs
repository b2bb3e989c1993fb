//! A gateway's response to followers, clients, other gateways and membership: one gateway, by hand.

use selvedge_core::durable::Durable as _;
use selvedge_core::{Delta, Input, Member, NodeId, Span};
use selvedge_pcm::gateway::{Command, Config, Event, Gateway, Reject, Voting};
use selvedge_pcm::{
    Answer, Attachment, DutyCycle, Function, Libraries, Limits, Message, Refusal, Returned, TaskId,
    Update,
};
use selvedge_replica::{Body, Configuration, Entry, Proposal};

use super::alone::{Alone, HUB, SECOND, THIRD, hub, keep_alive};

impl Alone<Gateway> {
    /// The gateways that count as here, and those that do not.
    fn here(&self) -> (Vec<Member>, Vec<Member>) {
        let (here, ended): (Vec<_>, Vec<_>) = self.driver.machine().gateways().partition(|it| it.1);
        let members = |it: Vec<(Member, bool)>| it.into_iter().map(|it| it.0).collect();
        (members(here), members(ended))
    }

    fn no_room(&self) -> u64 {
        self.driver.machine().counters().no_room
    }

    /// The other gateway has decided this.
    fn decided(&mut self, updates: &[Update]) {
        let version = self.driver.machine().replica().version();
        let entries = updates.iter().zip(version + 1..).map(|(update, number)| {
            Entry::Update(Proposal {
                by: SECOND,
                number,
                first: 1,
                since: 0,
                update: update.clone(),
            })
        });
        let body = Body::Learn {
            after: version,
            entries: entries.collect(),
        };
        let message = selvedge_replica::Message {
            configuration: 1,
            body,
        };
        self.receive(SECOND, Message::Tables(Box::new(message)));
    }

    /// The attachment with which the tables have or had a follower.
    pub(super) fn number_of(&self, id: u64) -> Option<(Member, u32)> {
        let tables = self.driver.machine().tables().unwrap();
        tables.last_attachment(NodeId(id))
    }
}

/// Delivers the messages between gateways until none is left, and returns them with senders and receivers.
pub(super) fn relay(gateways: &mut [Alone<Gateway>]) -> Vec<(Member, u64, Message)> {
    let mut all = Vec::new();
    for _ in 0..50 {
        let mut on_the_way = Vec::new();
        for it in &mut *gateways {
            let from = it.driver.machine().me();
            let sent = it.taken().into_iter();
            on_the_way.extend(sent.map(|(to, message)| (from, to, message)));
        }
        if on_the_way.is_empty() {
            return all;
        }
        all.extend(on_the_way.iter().cloned());
        for (from, to, message) in on_the_way {
            let to = gateways
                .iter_mut()
                .find(|it| it.driver.machine().me().id.0 == to);
            if let Some(to) = to {
                to.receive(from, message);
            }
        }
    }
    panic!("gateways send more and more");
}

/// Three gateways that the first one manages.
pub(super) fn three(config: Config) -> [Alone<Gateway>; 3] {
    let first = Configuration::of([HUB, SECOND, THIRD]);
    let mut all = [HUB, SECOND, THIRD].map(|me| {
        let machine = Gateway::new(me, config, first.clone(), Limits::new()).unwrap();
        let mut it = Alone::new(machine);
        it.command(Command::Start);
        it
    });
    all[0].receive(follower(11), keep_alive(1));
    relay(&mut all);
    assert!(all[0].driver.machine().manages());
    let leader = all[2].driver.machine().replica().leader();
    assert_eq!(leader.map(|it| it.0), Some(HUB.id));
    all
}

/// A follower is at the second gateway.
fn attach(id: u64) -> Update {
    attach_at(SECOND, id, 1)
}

fn attach_at(gateway: Member, id: u64, number: u32) -> Update {
    Update::Attach(Attachment {
        member: Member::new(id, 0),
        number,
        gateway: gateway.id,
        duty: DutyCycle::always(),
        libraries: Libraries::new(),
    })
}

pub(super) fn follower(id: u64) -> Member {
    Member::new(id, 0)
}

#[test]
fn a_gateway_is_started_once() {
    let mut it = hub(&[HUB], Config::new(), Limits::new());
    let again = it.step(Input::Command(Command::Start));
    assert_eq!(again, Err(Reject::Started));
}

#[test]
fn a_task_is_refused_where_as_many_clients_wait_as_may() {
    let mut it = hub(&[HUB], Config::new().with_clients(1), Limits::new());
    let submit = |number, code| Message::Submit {
        number,
        function: Function::new(code),
    };
    let (one, other) = (Member::new(31, 0), Member::new(32, 0));
    it.receive(one, submit(1, b"f"));
    it.receive(one, submit(1, b"f"));
    assert_eq!(it.no_room(), 0);
    it.forget();
    it.receive(other, submit(1, b"g"));
    let refused = Message::Refused {
        task: TaskId {
            client: other,
            number: 1,
        },
        why: Refusal::Full,
    };
    assert_eq!(it.sent, [(32, refused)]);
    assert_eq!(it.no_room(), 1);
}

/// The update that it proposed is not decided: it watches no more followers than the tables have room for.
#[test]
fn a_gateway_watches_no_more_followers_than_find_room() {
    let limits = Limits::new().with_followers(1);
    let mut it = hub(&[HUB, SECOND], Config::new(), limits);
    it.receive(follower(11), keep_alive(1));
    assert_eq!(it.no_room(), 0);
    it.receive(follower(12), keep_alive(1));
    assert_eq!(it.no_room(), 1);
    it.receive(follower(11), keep_alive(2));
    assert_eq!(it.no_room(), 1, "it is watched already");
}

#[test]
fn a_follower_that_others_came_before_is_counted() {
    let limits = Limits::new().with_followers(1);
    let mut it = hub(&[HUB, SECOND], Config::new(), limits);
    it.decided(&[attach(12), attach(13)]);
    assert_eq!(it.no_room(), 1);
    let tables = it.driver.machine().tables().unwrap();
    assert_eq!(tables.followers().count(), 1);
}

#[test]
fn what_a_follower_says_anew_is_in_the_tables() {
    let mut it = hub(&[HUB], Config::new(), Limits::new());
    it.receive(follower(11), keep_alive(1));
    assert_eq!(it.number_of(11), Some((follower(11), 1)));
    it.receive(follower(11), keep_alive(2));
    assert_eq!(it.number_of(11), Some((follower(11), 2)));
    // The former keep-alive is late, or the follower was purged in between: it must send a later number.
    it.forget();
    it.receive(follower(11), keep_alive(1));
    assert_eq!(it.sent, [(11, Message::Purged { number: 2 })]);
    // Any keep-alive of its next life is later.
    it.receive(Member::new(11, 1), keep_alive(1));
    it.forget();
    it.receive(follower(11), keep_alive(7));
    assert_eq!(it.sent, []);
    assert_eq!(it.number_of(11), Some((Member::new(11, 1), 1)));
}

#[test]
fn a_follower_that_is_at_another_gateway_hears_of_its_tasks_from_that_one() {
    let task = TaskId {
        client: Member::new(31, 0),
        number: 1,
    };
    for (gateway, overs) in [(HUB, 1), (SECOND, 0)] {
        let mut it = hub(&[HUB, SECOND], Config::new(), Limits::new());
        let function = Function::new(b"f");
        it.decided(&[attach_at(HUB, 11, 1), Update::Cluster { after: 0 }]);
        it.decided(&[Update::Submit { task, function }]);
        let run = |it: &&(u64, Message)| it.0 == 11 && matches!(it.1, Message::Run(_));
        assert_eq!(it.sent.iter().filter(run).count(), 1);
        it.decided(&[attach_at(gateway, 11, 2), Update::Cancel(task)]);
        let over = |it: &&(u64, Message)| it.0 == 11 && matches!(it.1, Message::Over { .. });
        assert_eq!(it.sent.iter().filter(over).count(), overs);
    }
}

#[test]
fn membership_says_which_gateways_are_here() {
    let all = [HUB, SECOND, THIRD];
    let mut it = hub(
        &all,
        Config::new().with_heartbeat(Span::ZERO),
        Limits::new(),
    );
    let later = Member::new(2, 1);
    for (delta, notified, ended) in [
        (Delta::Suspected(SECOND), None, None),
        (
            Delta::Failed(SECOND),
            Some(Event::Failed(SECOND)),
            Some(SECOND),
        ),
        (Delta::Failed(SECOND), None, Some(SECOND)),
        (Delta::Refuted(SECOND), Some(Event::Returned(SECOND)), None),
        (
            Delta::Left(SECOND),
            Some(Event::Failed(SECOND)),
            Some(SECOND),
        ),
        (Delta::Joined(later), Some(Event::Returned(later)), None),
        (Delta::Confirmed(SECOND), None, None),
        (Delta::Failed(follower(11)), None, None),
    ] {
        it.forget();
        it.learn(delta);
        let events = it.notified.iter();
        let notified_now: Vec<Event> = events
            .filter(|it| matches!(it, Event::Failed(_) | Event::Returned(_)))
            .cloned()
            .collect();
        assert_eq!(notified_now, Vec::from_iter(notified), "{delta:?}");
        assert_eq!(it.here().1, Vec::from_iter(ended), "{delta:?}");
    }
    assert_eq!(it.here().0, [HUB, later, THIRD]);
    // Its host knows better than others whether it has ended.
    it.learn(Delta::Failed(HUB));
    assert!(it.step(Input::Membership(Delta::Left(HUB))).is_err());
    assert_eq!(it.here().0, [HUB, later, THIRD]);
}

#[test]
fn a_gateway_that_is_gone_is_here_again_by_its_own_word_and_not_by_that_of_a_former_life() {
    let mut it = hub(&[HUB, SECOND, THIRD], Config::new(), Limits::new());
    let later = Member::new(2, 1);
    it.learn(Delta::Joined(later));
    it.learn(Delta::Failed(later));
    it.receive(SECOND, Message::Here);
    assert_eq!(it.here().1, [later]);
    it.receive(later, Message::Here);
    assert_eq!(it.here().1, []);
    it.receive(Member::new(3, 1), Message::Here);
    assert_eq!(it.here().0, [HUB, later, Member::new(3, 1)]);
}

#[test]
fn a_gateway_that_is_restored_counts_those_as_gone_that_decide_no_more() {
    let first = Configuration::of([HUB, SECOND]);
    let former = Gateway::new(HUB, Config::new(), first, Limits::new()).unwrap();
    let stored = former.replica().stored();
    let me = Member::new(1, 1);
    let others = [HUB, SECOND, THIRD].map(|it| it.id);
    let it = Alone::new(Gateway::restore(me, Config::new(), stored, others).unwrap());
    assert_eq!(it.here(), (vec![me, SECOND], vec![THIRD]));
}

#[test]
fn former_gateways_make_room_and_those_that_decide_do_not() {
    let first = Configuration::of([HUB, SECOND]);
    let former = Gateway::new(HUB, Config::new(), first, Limits::new()).unwrap();
    let stored = former.replica().stored();
    let me = Member::new(1, 1);
    let others = (3..100).map(NodeId);
    let mut it = Alone::new(Gateway::restore(me, Config::new(), stored, others).unwrap());
    it.learn(Delta::Failed(SECOND));
    assert_eq!(it.here().1.len(), 98);
    it.command(Command::Start);
    let (here, ended) = it.here();
    assert_eq!(here.len() + ended.len(), 64);
    assert_eq!((here, ended[0]), (vec![me], SECOND));
}

#[test]
fn a_gateway_that_folds_what_it_stored_has_the_tables_that_it_had() {
    let first = Configuration::of([HUB]);
    let former = Gateway::new(HUB, Config::new(), first, Limits::new()).unwrap();
    let stored = former.replica().stored();
    let mut it = Alone::new(former);
    it.command(Command::Start);
    it.receive(follower(11), keep_alive(1));
    let mut again = Gateway::restore(Member::new(1, 1), Config::new(), stored, []).unwrap();
    let facts: Vec<_> = it.notified.iter().filter_map(Gateway::fact).collect();
    assert!(!facts.is_empty() && facts.len() < it.notified.len());
    for fact in facts {
        again.fold(fact).unwrap();
    }
    let mut again = Alone::new(again);
    again.command(Command::Start);
    again.pass(Span::secs(10));
    assert_eq!(again.number_of(11), Some((follower(11), 1)));
}

#[test]
fn a_gateway_believes_its_manager_alone_which_others_are_gone() {
    let heartbeat = |ended: &[Member]| Message::Heartbeat {
        ended: ended.iter().map(|it| it.id).collect(),
    };
    let [mut manager, _, mut it] = three(Config::new());
    it.receive(SECOND, heartbeat(&[HUB]));
    assert_eq!(it.here().1, []);
    for ended in [vec![SECOND], vec![]] {
        it.receive(HUB, heartbeat(&ended));
        assert_eq!(it.here().1, ended);
    }
    manager.receive(SECOND, heartbeat(&[THIRD]));
    assert_eq!(manager.here().1, [], "it manages itself");
    let mut it = hub(
        &[HUB, SECOND, THIRD],
        Config::new().with_heartbeat(Span::ZERO),
        Limits::new(),
    );
    it.receive(SECOND, heartbeat(&[THIRD]));
    assert_eq!(it.here().1, [], "membership reports that");
}

#[test]
fn a_manager_that_says_nothing_counts_as_gone_and_is_followed() {
    let config = Config::new().with_review(Span::secs(100));
    let [_, _, mut it] = three(config);
    it.pass(config.timeout);
    assert_eq!(it.here().1, [HUB]);
    it.forget();
    it.pass(config.timeout);
    let stands = |it: &(u64, Message)| match &it.1 {
        Message::Tables(it) => matches!(it.body, Body::Prepare { .. }),
        _ => false,
    };
    assert!(it.sent.iter().any(stands), "{:?}", it.sent);
}

#[test]
fn what_the_replica_does_not_take_is_counted() {
    let config = Config::new();
    let replica = config.replica.with_pending(1);
    let mut it = hub(&[HUB, SECOND], config.with_replica(replica), Limits::new());
    it.receive(follower(11), keep_alive(1));
    let not_proposed = |it: &Alone<Gateway>| it.driver.machine().counters().not_proposed;
    assert_eq!(not_proposed(&it), 0);
    it.receive(follower(12), keep_alive(1));
    assert_eq!(not_proposed(&it), 1);
}

/// Another elector is sent the request, which names the orchestrator, or the notice that the task is over.
#[test]
fn an_orchestrator_alone_says_what_votes_come_to() {
    let (mut it, task, electors) = with_task(Limits::new());
    let attempt = 1;
    let answer = Answer::Value(b"f:f".iter().copied().collect());
    let mut voters: Vec<NodeId> = electors.iter().map(|it| it.id).collect();
    voters.sort_unstable();
    let verdict = Message::Verdict {
        task,
        attempt,
        term: 0,
        answer: answer.clone(),
        voters: voters.into_iter().collect(),
    };
    it.receive(follower(14), verdict.clone());
    assert_eq!(it.sent, []);
    it.receive(electors[1], verdict.clone());
    let [(to, Message::Run(run))] = &it.sent[..] else {
        panic!("{:?}", it.sent);
    };
    assert_eq!((*to, run.electors[0]), (electors[1].id.0, electors[0]));
    it.receive(electors[0], verdict.clone());
    let tables = it.driver.machine().tables().unwrap();
    assert_eq!(tables.answer(task), Some(&answer));
    it.forget();
    it.receive(electors[1], verdict);
    let over = Message::Over { task, attempt };
    assert_eq!(it.sent, [(electors[1].id.0, over)]);
}

/// Three followers, a unit of them, and a task that they have.
fn with_task(limits: Limits) -> (Alone<Gateway>, TaskId, Vec<Member>) {
    let mut it = hub(&[HUB], Config::new(), limits);
    for id in [11, 12, 13] {
        it.receive(follower(id), keep_alive(1));
    }
    it.pass(Span::secs(1));
    let client = Member::new(31, 0);
    let number = 1;
    let function = Function::new(b"f");
    it.receive(client, Message::Submit { number, function });
    let task = TaskId { client, number };
    let tables = it.driver.machine().tables().unwrap();
    let electors = tables.assignment(task).unwrap().electors.to_vec();
    it.forget();
    (it, task, electors)
}

#[test]
fn a_gateway_that_counts_acknowledges_votes_and_says_which_tasks_are_over() {
    let (mut it, task, electors) = with_task(Limits::new().with_counts_votes(true));
    let attempt = 1;
    let returned = Returned::Value(b"f:f".iter().copied().collect());
    let vote = Message::Vote {
        task,
        attempt,
        returned,
    };
    it.receive(electors[0], vote.clone());
    let counted = Message::Counted { task, attempt };
    assert_eq!(it.sent, [(electors[0].id.0, counted)]);
    it.receive(electors[1], vote.clone());
    it.forget();
    it.receive(electors[2], vote);
    assert_eq!(
        it.sent,
        [(electors[2].id.0, Message::Over { task, attempt })]
    );
}

#[test]
fn a_unit_that_does_not_answer_is_tried_again_and_that_is_counted() {
    let (mut it, task, _) = with_task(Limits::new());
    let config = Config::new();
    // Four periods of a second, and the time that the function may take.
    assert_eq!(config.offload_after, 40);
    let waits = Span::secs(4).0 + config.function_time.0;
    let retries = |it: &Alone<Gateway>| it.driver.machine().counters().retries;
    for second in 0..waits / Span::secs(1).0 {
        assert_eq!(retries(&it), 0, "after {second} seconds");
        for id in [11, 12, 13] {
            it.receive(follower(id), keep_alive(1));
        }
        it.pass(Span::secs(1));
    }
    assert_eq!(retries(&it), 1);
    assert!(it.driver.machine().tables().unwrap().is_past(task, 1));
}

#[test]
fn units_are_formed_when_the_first_followers_had_time_to_come() {
    let config = Config::new();
    let mut it = hub(&[HUB], config, Limits::new());
    let units = |it: &Alone<Gateway>| it.driver.machine().tables().unwrap().units();
    for id in [11, 12, 13] {
        assert_eq!(units(&it), 0);
        it.receive(follower(id), keep_alive(1));
        it.pass(Span(config.settle.0 / 3));
    }
    it.pass(Span::millis(1));
    assert_eq!(units(&it), 1, "others that come do not put it off");
}

/// A gateway without tables has sent its host no event yet.
#[test]
fn a_newcomer_may_refuse_what_comes_first() {
    let machine = Gateway::newcomer(HUB, Config::new(), [SECOND.id]).unwrap();
    let mut it = Alone::new(machine);
    let (from, message) = (SECOND, Message::Elsewhere);
    let refused = it.step(Input::Message { from, message });
    assert!(refused.is_err());
    assert_eq!(it.notified, []);
    it.command(Command::Start);
    assert!(it.notified.contains(&Event::Unavailable));
}

/// Messages between gateways name them, so longer ids leave less room in a frame.
#[test]
fn a_gateway_with_a_longer_id_leaves_room_for_results() {
    let config = Config::new().with_voting(Voting::Dynamic);
    let first = Configuration::of([HUB]);
    let limits = |result| Limits::new().with_result(result);
    let new = |me, first, result| Gateway::new(me, config, first, limits(result));
    let fits = |result: &u16| new(HUB, first.clone(), *result).is_ok();
    let longest = (1..1_400).rev().find(fits).unwrap();
    let mut it = Alone::new(new(HUB, first.clone(), longest).unwrap());
    it.command(Command::Start);
    it.pass(Span::secs(10));
    let stored = it.driver.machine().replica().stored();
    let other = Member::new(u64::MAX, 0);
    let me = Member::new(1, 1);
    let again = Gateway::restore(me, config, stored, [other.id]).unwrap();
    let mut it = Alone::new(again);
    it.command(Command::Start);
    it.pass(Span::secs(30));
    it.receive(other, Message::Here);
    it.pass(Span::secs(30));
    let now = it.driver.machine().replica().configuration().clone();
    assert_eq!(now.members().count(), 2);
    assert!(new(me, now, longest).is_ok());
}

/// The manager has ended one task and begun the next one. A gateway that has not received the end is behind:
/// its tables are full.
#[test]
fn a_gateway_that_is_behind_refuses_no_task_that_is_open() {
    let limits = Limits::new().with_open(1);
    let mut it = hub(&[HUB, SECOND], Config::new(), limits);
    let (client, number) = (Member::new(31, 0), 1);
    let task = TaskId { client, number };
    let client = Member::new(32, 0);
    let other = TaskId { client, number };
    let submit = |task| {
        let function = Function::new(b"f");
        Update::Submit { task, function }
    };
    let mut decided = 0;
    let mut decide = |it: &mut Alone<Gateway>, update| {
        decided += 1;
        let entry = Entry::Update(Proposal {
            by: SECOND,
            number: decided,
            first: 1,
            since: 0,
            update,
        });
        let body = Body::Learn {
            after: it.driver.machine().replica().version(),
            entries: [entry].into_iter().collect(),
        };
        let configuration = 1;
        let message = selvedge_replica::Message {
            configuration,
            body,
        };
        it.receive(SECOND, Message::Tables(Box::new(message)));
    };
    decide(&mut it, submit(other));
    it.forget();
    let function = Function::new(b"f");
    it.receive(task.client, Message::Submit { number, function });
    decide(&mut it, Update::Cancel(other));
    decide(&mut it, submit(task));
    let tables = it.driver.machine().tables().unwrap();
    assert!(tables.open_task(task).is_some());
    let is_refusal = |it: &Message| matches!(it, Message::Refused { .. });
    assert!(!it.sent.iter().any(|it| is_refusal(&it.1)));
    assert!(
        it.sent.iter().any(|it| it.0 == SECOND.id.0),
        "it is proposed"
    );
}
