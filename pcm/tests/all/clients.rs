//! The requests of a client, and its moves to another gateway.

use selvedge_core::{Input, Member, NodeId, Span};
use selvedge_pcm::client::{self, Client, Command, Event, Reject};
use selvedge_pcm::{Answer, Failure, Function, Message, Refusal, TaskId, Voters};

use super::alone::Alone;

const ME: Member = Member::new(31, 0);

/// A client of the gateways 1, 2 and 3.
fn client(config: client::Config) -> Alone<Client> {
    Alone::new(Client::new(ME, config, [1, 2, 3].map(NodeId)).unwrap())
}

impl Alone<Client> {
    /// Asks for a task.
    fn submit(&mut self) {
        self.command(Command::Submit(Function::new(b"f")));
    }

    /// The gateways asked, each with the number of the task.
    fn asked(&self) -> Vec<(u64, u64)> {
        let asked = self.sent.iter().map(|(to, message)| match message {
            Message::Submit { number, .. } | Message::Cancel { number } => (*to, *number),
            other => panic!("no client sends {other:?}"),
        });
        asked.collect()
    }

    /// Lets a client's waiting time pass without an answer, and returns its next requests.
    fn wait(&mut self) -> Vec<(u64, u64)> {
        self.sent.clear();
        self.pass(Span::secs(2));
        self.asked()
    }
}

fn gateway(id: u64) -> Member {
    Member::new(id, 0)
}

fn task(number: u64) -> TaskId {
    TaskId { client: ME, number }
}

fn voters() -> Voters {
    [NodeId(11), NodeId(12)].into_iter().collect()
}

fn failed(number: u64) -> Message {
    Message::Answer {
        task: task(number),
        answer: Answer::Failed(Failure::Trapped),
        voters: voters(),
    }
}

#[test]
fn a_client_asks_a_gateway_as_often_as_is_set_before_it_goes_to_the_next() {
    let mut it = client(client::Config::new().with_repeats(3));
    it.submit();
    assert_eq!(it.asked(), [(1, 1)]);
    let asked: Vec<_> = (0..9).flat_map(|_| it.wait()).map(|it| it.0).collect();
    assert_eq!(asked, [1, 1, 2, 2, 2, 3, 3, 3, 1]);
}

#[test]
fn a_gateway_that_is_heard_counts_as_asked_once_again() {
    for word in [
        Message::Taken { task: task(1) },
        failed(1),
        Message::Refused {
            task: task(1),
            why: Refusal::Full,
        },
    ] {
        let mut it = client(client::Config::new());
        it.submit();
        it.submit();
        assert_eq!(it.wait(), [(1, 1), (1, 2)]);
        it.receive(gateway(1), word.clone());
        let asked = it.wait();
        assert!(asked.contains(&(1, 2)), "{word:?}: {asked:?}");
        let asked = it.wait();
        assert!(asked.contains(&(2, 2)), "{word:?}: {asked:?}");
    }
}

#[test]
fn a_client_goes_elsewhere_at_the_word_of_its_gateway_alone() {
    let mut it = client(client::Config::new());
    it.submit();
    it.receive(gateway(3), Message::Elsewhere);
    assert_eq!(it.wait(), [(1, 1)], "it is not at the third one");
    it.receive(gateway(1), Message::Elsewhere);
    assert_eq!(it.driver.machine().speaks_to(), NodeId(2));
    assert_eq!(it.wait(), [(2, 1)]);
}

#[test]
fn a_client_hears_gateways_of_its_list_alone() {
    let mut it = client(client::Config::new());
    it.submit();
    let from = gateway(4);
    let message = failed(1);
    let refused = it.step(Input::Message { from, message });
    assert_eq!(refused, Err(Reject::Misdirected(from)));
    assert_eq!(it.notified, []);
}

#[test]
fn a_client_asks_again_while_a_task_waits_and_no_longer() {
    let mut it = client(client::Config::new().with_repeats(9));
    it.submit();
    it.submit();
    assert_eq!(it.wait(), [(1, 1), (1, 2)]);
    it.receive(gateway(1), failed(1));
    assert_eq!(it.wait(), [(1, 2)]);
    it.receive(gateway(1), failed(2));
    assert_eq!(it.driver.deadline(), None, "nothing is left to wait for");
    let answers = [1, 2].map(|number| Event::Answered {
        number,
        answer: Answer::Failed(Failure::Trapped),
        voters: voters(),
    });
    assert_eq!(it.notified, answers);
    // It reports the outcome of a task once.
    it.receive(gateway(1), failed(2));
    assert_eq!(it.notified, answers);
}

#[test]
fn a_task_is_cancelled_while_it_waits_and_no_other_one() {
    let mut it = client(client::Config::new().with_repeats(9));
    let cancel = |number| Input::Command(Command::Cancel(number));
    assert_eq!(it.step(cancel(1)), Err(Reject::NoTask(1)));
    it.submit();
    assert_eq!(it.step(cancel(2)), Err(Reject::NoTask(2)));
    assert_eq!(it.step(cancel(1)), Ok(()));
    assert_eq!(it.asked(), [(1, 1), (1, 1)]);
    assert_eq!(it.driver.machine().waiting().collect::<Vec<_>>(), [1]);
    assert_eq!(it.wait(), [(1, 1)]);
    let cancelled = Message::Answer {
        task: task(1),
        answer: Answer::Cancelled,
        voters: Voters::new(),
    };
    it.receive(gateway(1), cancelled);
    let answered = Event::Answered {
        number: 1,
        answer: Answer::Cancelled,
        voters: Voters::new(),
    };
    assert_eq!(it.notified, [answered]);
    assert_eq!(it.step(cancel(1)), Err(Reject::NoTask(1)));
}

#[test]
fn a_client_waits_for_no_more_tasks_than_are_set() {
    let mut it = client(client::Config::new().with_tasks(2));
    it.submit();
    it.submit();
    let more = Input::Command(Command::Submit(Function::new(b"f")));
    assert_eq!(it.step(more.clone()), Err(Reject::Full(2)));
    it.receive(gateway(1), failed(1));
    assert_eq!(it.step(more), Ok(()));
    assert_eq!(it.driver.machine().waiting().collect::<Vec<_>>(), [2, 3]);
}
