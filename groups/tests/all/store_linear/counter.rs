//! A counter: an entry that is read, and changed if it is as it was.

use super::*;

const KEY: &str = "a/counter";

#[derive(Clone, Default)]
struct Counter(u8);

fn number(entry: Option<&Entry>) -> u8 {
    entry.map_or(0, |it| it.value[0])
}

/// Adds, or reads where it adds nothing.
impl SequentialSpec for Counter {
    type Op = u8;
    type Ret = u8;

    fn invoke(&mut self, summand: &u8) -> u8 {
        self.0 += summand;
        self.0
    }
}

impl Recipe for Counter {
    fn draw(choices: &mut Choices, _: Option<&(u8, u8)>) -> u8 {
        choices.below(4) as u8
    }

    fn next(&summand: &u8, answers: &[Answer], _: &dyn Fn(SessionId) -> bool) -> Next<u8> {
        match answers {
            [.., Answer::Found(found)] if summand == 0 => Next::Return(number(found.as_ref())),
            [
                ..,
                Answer::Found(found),
                Answer::Stored(Stored::Done { .. }),
            ] => Next::Return(number(found.as_ref()) + summand),
            [.., Answer::Found(found)] => {
                let sum = bytes(number(found.as_ref()) + summand);
                let expected = version(found.as_ref());
                Next::Ask(Ask::Change(Operation::set(KEY, expected, Some(sum))))
            }
            _ => Next::Ask(Ask::Get(KEY.into())),
        }
    }

    fn is_void(&summand: &u8) -> bool {
        summand == 0
    }
}

#[test]
fn sums_of_a_counter_are_linearizable() {
    judge(&Counter::default());
}
