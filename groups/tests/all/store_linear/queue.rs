//! A queue of items with priorities. With one priority alone it is a queue.

use std::collections::BTreeMap;

use selvedge_groups::store::Transaction;

use super::*;

const PREFIX: &str = "a/queue/";

/// The items by priority and age.
#[derive(Clone)]
struct Queue<const PRIORITIES: u64> {
    items: BTreeMap<(u64, usize), u8>,
    pushed: usize,
}

#[derive(Clone, Debug)]
enum Op {
    Push { priority: u64, item: u8 },
    Pop,
}

impl<const P: u64> SequentialSpec for Queue<P> {
    type Op = Op;
    /// The item that is taken.
    type Ret = Option<u8>;

    fn invoke(&mut self, op: &Op) -> Option<u8> {
        match *op {
            Op::Push { priority, item } => {
                self.pushed += 1;
                self.items.insert((priority, self.pushed), item);
                None
            }
            Op::Pop => self.items.pop_first().map(|it| it.1),
        }
    }
}

impl<const P: u64> Recipe for Queue<P> {
    fn draw(choices: &mut Choices, _: Option<&(Op, Option<u8>)>) -> Op {
        let (priority, item) = (choices.below(P), choices.below(200) as u8);
        match choices.percent(50) {
            true => Op::Push { priority, item },
            false => Op::Pop,
        }
    }

    fn next(op: &Op, answers: &[Answer], _: &dyn Fn(SessionId) -> bool) -> Next<Option<u8>> {
        match (op, answers) {
            (Op::Push { priority, item }, []) => {
                let prefix = format!("{PREFIX}{priority:08x}");
                let append = Transaction::new().append(prefix, &[*item]);
                Next::Ask(Ask::Change(Operation::Transact(append)))
            }
            (Op::Push { .. }, _) => Next::Return(None),
            (Op::Pop, [.., Answer::Listed(all), Answer::Stored(Stored::Done { .. })]) => {
                Next::Return(all.first().map(|it| it.1.value[0]))
            }
            (Op::Pop, [.., Answer::Listed(all)]) => match all.first() {
                None => Next::Return(None),
                Some((key, item)) => {
                    let expected = version(Some(item));
                    Next::Ask(Ask::Change(Operation::set(&**key, expected, None)))
                }
            },
            (Op::Pop, _) => Next::Ask(Ask::List(PREFIX.into())),
        }
    }

    fn is_void(_: &Op) -> bool {
        false
    }
}

fn judge_queue<const P: u64>() {
    judge(&Queue::<P> {
        items: BTreeMap::new(),
        pushed: 0,
    });
}

#[test]
fn an_item_of_a_queue_is_taken_once_and_the_oldest_first() {
    judge_queue::<1>();
}

#[test]
fn an_item_with_a_priority_is_taken_once_and_the_smallest_first() {
    judge_queue::<3>();
}
