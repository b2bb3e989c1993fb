//! States that differ in little are two states.

use selvedge_core::{Context, Input, Machine, Member, Span, Untracked};
use selvedge_sim::check::Model;

/// Says a word, and from the first tick on another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reports {
    word: String,
    then: Untracked<String>,
}

impl Machine for Reports {
    type Message = ();
    type Timer = ();
    type Command = ();
    type Event = ();
    type Reject = &'static str;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        let Input::Tick(()) = input else {
            return Err("it has nothing to ask");
        };
        self.word.clone_from(&self.then);
        // As before: the word alone changes.
        cx.arm((), Span::ZERO);
        Ok(())
    }
}

/// A model of a machine with the word `first` and, after one step, `then`; its property is that the
/// word stays `first`.
fn reports(first: &str, then: &str) -> Model<Reports> {
    let machine = Reports {
        word: first.to_owned(),
        then: Untracked(then.to_owned()),
    };
    let first = first.to_owned();
    Model::new(vec![machine], |_| Member::new(0, 0))
        .start(|_, _, _, cx| {
            cx.arm((), Span::ZERO);
            Ok(())
        })
        .always("the first word", move |state| {
            state.machines().all(|reports| reports.word == first)
        })
}

#[test]
fn a_machine_that_breaks_after_one_step_does_not_hold() {
    let broken = reports("abcdefg", "abcdefg\u{7}").verify().unwrap_err();
    assert_eq!((broken.0.outcome_name(), broken.0.steps), ("breaks", 1));
    assert_eq!(reports("abcdefg", "abcdefg").verify().unwrap(), 1);
}

#[test]
fn a_word_that_is_a_few_bytes_longer_is_another_state() {
    for len in 0..=17 {
        let first = "abcdefghijklmnopq"[..len].to_owned();
        for more in 1..=9 {
            for last in 0..=17_u8 {
                let mut then = first.clone();
                then.extend(core::iter::repeat_n('\0', more - 1));
                then.push(char::from(last));
                let broken = reports(&first, &then).verify();
                let broken = broken.expect_err(&format!("{first:?} and {then:?} are one state"));
                assert_eq!(broken.0.steps, 1, "{first:?} {then:?}");
            }
        }
    }
}
