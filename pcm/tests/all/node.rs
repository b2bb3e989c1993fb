//! The mailbox of a node.

use selvedge_core::{Input, Member, Span};
use selvedge_pcm::follower::{Command, Config, Follower, Misbehaviour, Phase, Reject};
use selvedge_pcm::node::{self, WithMailbox};
use selvedge_pcm::{DutyCycle, Message};

use super::alone::{Alone, HUB};

/// A message that a follower answers at once.
const PURGED: Message = Message::Purged { number: 1 };

/// A message that is not for followers.
const MISDIRECTED: Message = Message::Here;

/// A follower that is awake in one second of ten, at the beginning of its sleep.
fn asleep() -> Alone<WithMailbox> {
    let duty = DutyCycle {
        active_ms: 1_000,
        busy_ms: 0,
        asleep_ms: 9_000,
    };
    let follower = Follower::new(Member::new(11, 0), Config::new(duty), [HUB.id]);
    let mut it = Alone::new(WithMailbox::new(follower.unwrap()));
    it.command(Command::Start.into());
    it.pass(Span::secs(1));
    assert_eq!(phase(&it), Some(Phase::Asleep));
    it.forget();
    it
}

fn phase(it: &Alone<WithMailbox>) -> Option<Phase> {
    it.driver.machine().node().follower().unwrap().phase()
}

/// The attachments in the keep-alives that it sends.
fn attachments(it: &mut Alone<WithMailbox>) -> Vec<u32> {
    let sent = it.taken().into_iter();
    let reported = sent.filter_map(|(_, message)| match message {
        Message::KeepAlive { number, .. } => Some(number),
        _ => None,
    });
    reported.collect()
}

#[test]
fn messages_to_a_follower_wait_until_it_wakes() {
    let mut it = asleep();
    it.receive(HUB, MISDIRECTED);
    it.receive(HUB, PURGED);
    it.pass(Span::secs(8));
    assert_eq!(attachments(&mut it), [0_u32; 0], "it sleeps");
    it.pass(Span::secs(1));
    assert_eq!(phase(&it), Some(Phase::Active));
    assert_eq!(attachments(&mut it), [1, 2], "it wakes, and then is purged");
    it.receive(HUB, Message::Purged { number: 2 });
    assert_eq!(
        attachments(&mut it),
        [3],
        "nothing waits for one that is up"
    );
    let (from, message) = (HUB, MISDIRECTED);
    let refused = Misbehaviour::Misdirected(HUB);
    let refused = node::Reject::Follower(Reject::Misbehaviour(refused));
    assert_eq!(it.step(Input::Message { from, message }), Err(refused));
}

#[test]
fn a_mailbox_that_is_full_loses_its_oldest_message() {
    for (others, reported) in [
        (WithMailbox::ROOM - 1, &[1, 2][..]),
        (WithMailbox::ROOM, &[1]),
    ] {
        let mut it = asleep();
        it.receive(HUB, PURGED);
        for _ in 0..others {
            it.receive(HUB, MISDIRECTED);
        }
        it.pass(Span::secs(9));
        assert_eq!(attachments(&mut it), reported);
    }
}
