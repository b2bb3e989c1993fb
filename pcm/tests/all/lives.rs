//! Several lives of a node: messages for a former one, and the beginning of a later one.

use selvedge_core::durable::Durable as _;
use selvedge_core::{Input, Member, NodeId, Span};
use selvedge_pcm::follower::{self, Follower, Misbehaviour};
use selvedge_pcm::gateway::{Command, Config, Event, Gateway, Reject};
use selvedge_pcm::{Assignment, DutyCycle, Function, Limits, Message, Run, TaskId};
use selvedge_replica::Configuration;

use super::alone::{Alone, HUB, SECOND, THIRD, hub, keep_alive};

/// A request for a former life waits in the mailbox, or its gateway does not know the present life yet.
#[test]
fn a_task_that_a_former_life_was_given_is_no_misbehaviour() {
    let me = Member::new(11, 5);
    let config = follower::Config::new(DutyCycle::always());
    let mut it = Alone::new(Follower::new(me, config, [HUB.id]).unwrap());
    it.command(follower::Command::Start);
    let mut given_to = |life| {
        let assignment = Assignment {
            attempt: 1,
            term: 0,
            electors: [Member::new(11, life), Member::new(12, 0)]
                .into_iter()
                .collect(),
        };
        let task = TaskId {
            client: Member::new(21, 0),
            number: 1,
        };
        let run = Run::new(task, &assignment, &Function::new(b"f"), false);
        let message = Message::Run(run.into());
        it.forget();
        let taken = it.step(Input::Message { from: HUB, message });
        (
            taken,
            it.notified.len(),
            it.driver.machine().counters().stale,
        )
    };
    assert_eq!(given_to(4), (Ok(()), 0, 1));
    // There is no such life yet.
    let why = follower::Reject::Misbehaviour(Misbehaviour::NotElected(HUB));
    assert_eq!(given_to(6), (Err(why), 0, 1));
    assert_eq!(given_to(5), (Ok(()), 1, 1));
}

/// It may arrive late, and lists gateways that failed then.
#[test]
fn a_heartbeat_of_a_former_life_counts_no_more() {
    let mut it = hub(&[HUB, SECOND, THIRD], Config::new(), Limits::new());
    let second = Member::new(2, 1);
    let ended = |it: Member| Message::Heartbeat {
        ended: [it.id].into_iter().collect(),
    };
    it.receive(second, ended(THIRD));
    assert_eq!(it.taken().pop(), Some((2, Message::Here)));
    it.forget();
    for _ in 0..9 {
        it.receive(SECOND, ended(HUB));
        it.receive(SECOND, ended(SECOND));
    }
    assert_eq!((it.taken(), &*it.notified), (vec![], &[][..]));
}

/// With the facts of its former life the gateway would hold the tables and never have a vote.
#[test]
fn a_later_life_is_not_made_as_the_first_one_was() {
    let first = Configuration::of([HUB, SECOND]);
    let new = |me| Gateway::new(me, Config::new(), first.clone(), Limits::new()).map(|it| it.me());
    assert_eq!(new(HUB), Ok(HUB));
    let again = Member::new(1, 1);
    let (me, named) = (again, Some(HUB));
    assert_eq!(new(again), Err(Reject::NotNamed { me, named }));
    let (me, named) = (THIRD, None);
    assert_eq!(new(THIRD), Err(Reject::NotNamed { me, named }));
}

/// A gateway that is alone loses power between two facts of a change of gateways. Its next life leads, and
/// commits the last entry of the configuration in which it leads, in one step.
#[test]
fn a_manager_that_lost_power_in_mid_change_says_what_it_is() {
    let first = Configuration::of([HUB]);
    let former = Gateway::new(HUB, Config::new(), first, Limits::new()).unwrap();
    let stored = former.replica().stored();
    for next in [
        vec![HUB],
        vec![HUB, SECOND],
        vec![SECOND],
        vec![Member::new(1, 1)],
    ] {
        let mut it = Alone::new(former.clone());
        it.command(Command::Start);
        it.pass(Span::secs(10));
        let mut facts: Vec<_> = it.stored().collect();
        let before = facts.len();
        it.receive(Member::new(11, 0), keep_alive(1));
        it.command(Command::Configure(Configuration::of(next.clone())));
        facts.extend(it.stored());
        assert!(facts.len() > before + 2, "{facts:?}");
        for kept in 0..=facts.len() {
            let me = Member::new(1, 1);
            let others = [SECOND.id].into_iter();
            let again = Gateway::restore(me, Config::new(), stored.clone(), others);
            let mut again = again.unwrap();
            for fact in &facts[..kept] {
                again.fold(fact).unwrap();
            }
            let mut again = Alone::new(again);
            again.command(Command::Start);
            for _ in 0..300 {
                again.pass(Span::millis(100));
            }
            let mut manages = false;
            for event in &again.notified {
                match event {
                    Event::Leading => assert!(!core::mem::replace(&mut manages, true), "{next:?}"),
                    Event::Deposed => assert!(core::mem::take(&mut manages), "{next:?}, {kept}"),
                    _ => {}
                }
            }
            let machine = again.driver.machine();
            assert_eq!(machine.manages(), manages, "{next:?}, {kept}");
            assert_eq!(machine.replica().leads(), manages, "{next:?}, {kept}");
            let alone = machine.replica().configuration().members().count() == 1;
            let is_named = machine.replica().configuration().voter(NodeId(1)).is_some();
            assert_eq!(manages, alone && is_named, "{next:?}, {kept}");
        }
    }
}

impl Alone<Gateway> {
    /// The facts since the last call.
    fn stored(
        &mut self,
    ) -> impl Iterator<Item = <Gateway as selvedge_core::durable::Durable>::Fact> {
        let notified = core::mem::take(&mut self.notified).into_iter();
        notified.filter_map(|it| Gateway::fact(&it).cloned())
    }
}
