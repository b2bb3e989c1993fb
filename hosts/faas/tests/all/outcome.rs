//! Reports of followers about an outcome.

use std::collections::BTreeSet;

use selvedge_faas::{Failure, Outcome, Trap};
use selvedge_pcm::{Failure as Kind, Returned};

#[test]
fn a_value_is_returned_and_a_failure_has_its_kind() {
    let value = Returned::from(Outcome::Value(b"42".to_vec()));
    assert_eq!(value, Returned::Value(b"42".iter().copied().collect()));
    for (failure, kind) in [
        (Failure::NoCall, Kind::NoFunction),
        (Failure::NoExport, Kind::NoFunction),
        (Failure::WrongArguments, Kind::NoFunction),
        (Failure::NoModule, Kind::NoLibrary),
        (Failure::OutOfFuel, Kind::Time),
        (Failure::OutOfMemory, Kind::Memory),
        (Failure::ResultTooLong, Kind::Result),
        (Failure::Host, Kind::Host),
        (Failure::Trapped(Trap::Unreachable), Kind::Trapped),
        (Failure::Trapped(Trap::NoMemory), Kind::Trapped),
    ] {
        let returned = Returned::from(Outcome::Failed(failure));
        assert_eq!(returned, Returned::Failed(kind));
    }
}

#[test]
fn a_kind_of_failure_has_a_number_of_its_own() {
    let known: Vec<Failure> = (0..=u8::MAX).filter_map(Failure::from_code).collect();
    assert_eq!(known.len(), 9 + 12);
    for failure in &known {
        assert_eq!(Failure::from_code(failure.code()), Some(*failure));
    }
    let texts: BTreeSet<String> = known.iter().map(Failure::to_string).collect();
    assert_eq!(texts.len(), known.len());
    // A stored code has the same meaning later.
    assert_eq!(Failure::from_code(5), Some(Failure::OutOfFuel));
    assert_eq!(
        Failure::from_code(16),
        Some(Failure::Trapped(Trap::Unreachable))
    );
    assert_eq!(
        Failure::from_code(26),
        Some(Failure::Trapped(Trap::NoMemory))
    );
    assert_eq!(Failure::from_code(8), Some(Failure::NoImport));
    assert_eq!(Failure::from_code(9), Some(Failure::Host));
    assert_eq!(Failure::from_code(27), Some(Failure::Trapped(Trap::Stub)));
    assert_eq!(Failure::from_code(0), None);
}

#[test]
fn only_what_depends_on_the_follower_is_not_agreed() {
    let known = (0..=u8::MAX).filter_map(Failure::from_code);
    let not_agreed: Vec<Failure> = known.filter(|it| !it.is_agreed()).collect();
    assert_eq!(not_agreed, [Failure::NoModule, Failure::Host]);
}
