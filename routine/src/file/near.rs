//! "Did you mean".

use alloc::string::String;

/// Longer names are not compared: that takes time in proportion to the product of their lengths.
const LONGEST: usize = 64;

/// The most similar known name, if a slip of the hand explains the difference: another case, or a
/// letter in three that is different, missing, or in another place.
pub(super) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    let known = known.into_iter().filter(|it| it.len() <= LONGEST);
    let compared = known.map(|it| {
        let other = it.to_lowercase();
        let distance = strsim::osa_distance(&lower, &other);
        let longest = lower.chars().count().max(other.chars().count());
        (distance, longest, it)
    });
    let like = compared.filter(|&(distance, longest, _)| {
        distance <= longest.div_ceil(3).min(4) && distance < longest
    });
    like.min_by_key(|it| it.0).map(|it| it.2.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_mended_and_another_word_is_not() {
        let known = ["hold_ms", "timeout_ms", "undo", "if", "Ä"];
        for (name, meant) in [
            ("hold", Some("hold_ms")),
            ("Timeout_ms", Some("timeout_ms")),
            ("udno", Some("undo")),
            ("fi", Some("if")),
            ("x", None),
            ("brightness", None),
            ("", None),
            ("ä", Some("Ä")),
        ] {
            assert_eq!(near(name, known).as_deref(), meant, "{name}");
        }
        assert_eq!(near(&"h".repeat(65), ["h"]), None);
        for (length, is_compared) in [(63, true), (64, true), (65, false), (66, false)] {
            let (name, other) = ("h".repeat(length), "h".repeat(64));
            assert_eq!(near(&name, [other.as_str()]).is_some(), is_compared);
            assert_eq!(near(&other, [name.as_str()]).is_some(), is_compared);
        }
    }
}
