//! The map itself: single questions and changes.

use selvedge_core::Member;
use selvedge_groups::store::Transaction;

use super::*;
use crate::store_model::Model;

const PREFIX: &str = "a/";

/// The model of a map.
#[derive(Clone, Default)]
struct Map(Model);

impl SequentialSpec for Map {
    type Op = Ask;
    type Ret = Answer;

    fn invoke(&mut self, op: &Ask) -> Answer {
        match op {
            Ask::Change(operation) => {
                Answer::Stored(self.0.operate(Member::new(0, 0), 0, operation))
            }
            Ask::Get(key) => Answer::Found(self.0.entries.get(key).cloned()),
            Ask::List(prefix) => {
                let all = self.0.entries.clone().into_iter();
                Answer::Listed(all.filter(|it| it.0.starts_with(prefix)).collect())
            }
        }
    }
}

impl Recipe for Map {
    fn draw(choices: &mut Choices, last: Option<&(Ask, Answer)>) -> Ask {
        let key = format!("{PREFIX}{}", choices.below(2));
        // The version of the entry that it has seen last.
        let expected = match last {
            Some((Ask::Get(_), Answer::Found(found))) => version(found.as_ref()),
            Some((_, Answer::Stored(Stored::Done { version }))) => Expected::Version(*version),
            _ => Expected::Absent,
        };
        let value = bytes(choices.below(200) as u8);
        match choices.below(6) {
            0 => Ask::Change(Operation::set(key, Expected::Any, Some(value))),
            1 => Ask::Change(Operation::set(key, expected, Some(value))),
            2 => Ask::Change(Operation::set(key, expected, None)),
            3 => Ask::Change(Operation::Transact(
                Transaction::new().append(PREFIX, &value[..]),
            )),
            4 => Ask::List(PREFIX.into()),
            _ => Ask::Get(key),
        }
    }

    fn next(op: &Ask, answers: &[Answer], _: &dyn Fn(SessionId) -> bool) -> Next<Answer> {
        match answers.first() {
            None => Next::Ask(op.clone()),
            Some(answer) => Next::Return(answer.clone()),
        }
    }

    fn is_void(op: &Ask) -> bool {
        !matches!(op, Ask::Change(_))
    }
}

#[test]
fn reads_and_changes_of_a_map_are_linearizable() {
    judge(&Map::default());
}
