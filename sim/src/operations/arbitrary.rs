//! Operations from bytes.

use arbitrary::{Arbitrary, Result, Unstructured};
use selvedge_core::{Machine, Span};

use super::Operation;

/// Time passes in quarters of a second, up to eight seconds at once.
const QUARTER: Span = Span::millis(250);

/// All the operations that `bytes` stand for; every byte string is valid. A fuzz target begins with
/// it.
///
/// The iterators of `arbitrary` spend a byte per item on whether another follows, and stop after
/// half of all bytes.
#[must_use]
pub fn list<'a, M: Machine>(bytes: &'a [u8]) -> Vec<Operation<M>>
where
    M::Command: Arbitrary<'a>,
{
    let mut bytes = Unstructured::new(bytes);
    let mut operations = Vec::new();
    while !bytes.is_empty() {
        // Some types refuse some bytes.
        operations.extend(Operation::arbitrary(&mut bytes));
    }
    operations
}

/// Deliveries and commands come most often. No message is forged, and `Learn` brings suspicions and
/// failures alone: correct news of joins and restarts is made by
/// [`Introduce`](Operation::Introduce) and [`Announce`](Operation::Announce).
impl<'a, M: Machine> Arbitrary<'a> for Operation<M>
where
    M::Command: Arbitrary<'a>,
{
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        // Three bits are a seat, five choose the operation.
        let byte = u8::arbitrary(bytes)?;
        let seat = usize::from(byte >> 5);
        let mut number = || u8::arbitrary(bytes).map(usize::from);
        Ok(match byte & 31 {
            0..=5 => Self::Deliver(number()?),
            6..=9 => Self::DeliverAll,
            10 => Self::Duplicate(number()?),
            11 => Self::Lose(number()?),
            12 => Self::Cut(seat),
            13..=15 => Self::Wait(Span(QUARTER.0 * (number()? as u64 % 33))),
            16..=22 => Self::Command(seat, M::Command::arbitrary(bytes)?),
            23 => Self::Suspect(seat, number()?),
            24 => Self::Refute(seat, number()?),
            25 => Self::Fail(seat, number()?),
            26 => Self::Introduce(seat),
            27 => Self::Announce(seat),
            28 => Self::Crash(seat),
            29 => Self::Restart(seat),
            30 => Self::Pause(seat),
            _ => Self::Resume(seat),
        })
    }

    fn size_hint(_: usize) -> (usize, Option<usize>) {
        (1, None)
    }
}
