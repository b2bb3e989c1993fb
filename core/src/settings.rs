//! Settings of a protocol: numbers with a range, and methods that set them.

use core::fmt;

use thiserror::Error;

use crate::Span;

/// A number among the settings, and its range.
///
/// ```
/// use selvedge_core::settings::{self, Setting};
/// use selvedge_core::Span;
///
/// const RANGES: [Setting; 2] = [
///     Setting::number("copies", 8, 1, 255),
///     Setting::time("resend", Span::ZERO, Span::millis(1), Span::secs(60)),
/// ];
/// let refused = settings::check(&RANGES).unwrap_err();
/// assert_eq!(refused.to_string(), "resend is 0 us: set it to 1000 us or more, up to 60000000 us");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// The field's name.
    pub name: &'static str,
    /// The value of the field.
    pub value: u64,
    /// The smallest value that works.
    pub least: u64,
    /// The largest value that works.
    pub most: u64,
    /// The unit of the numbers; empty where the name shows it.
    pub unit: &'static str,
}

impl Setting {
    /// A plain number.
    #[must_use]
    pub const fn number(name: &'static str, value: u64, least: u64, most: u64) -> Self {
        Self {
            name,
            value,
            least,
            most,
            unit: "",
        }
    }

    /// A length of time, in microseconds.
    #[must_use]
    pub const fn time(name: &'static str, value: Span, least: Span, most: Span) -> Self {
        Self::number(name, value.0, least.0, most.0).counts("us")
    }

    /// The same setting with this unit.
    #[must_use]
    pub const fn counts(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Returns true if the value lies in its range.
    #[must_use]
    pub const fn is_within(&self) -> bool {
        self.least <= self.value && self.value <= self.most
    }
}

/// The error of a setting outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub struct OutOfRange(pub Setting);

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting {
            name,
            value,
            least,
            most,
            unit,
        } = self.0;
        let space = if unit.is_empty() { "" } else { " " };
        write!(f, "{name} is {value}{space}{unit}: set it to ")?;
        match (least, most) {
            (0, _) => write!(f, "at most {most}{space}{unit}"),
            (_, u64::MAX) => write!(f, "at least {least}{space}{unit}"),
            _ => write!(f, "{least}{space}{unit} or more, up to {most}{space}{unit}"),
        }
    }
}

/// Checks each setting in turn. O(settings).
///
/// # Errors
/// The first setting that is outside its range.
pub const fn check(settings: &[Setting]) -> Result<(), OutOfRange> {
    let mut rest = settings;
    while let [setting, others @ ..] = rest {
        if !setting.is_within() {
            return Err(OutOfRange(*setting));
        }
        rest = others;
    }
    Ok(())
}

/// Defines a `with_` method for each named field of a struct of settings, inside its `impl`.
///
/// A `#[non_exhaustive]` struct cannot be written as an expression in another crate; these methods
/// take the place of it, and another field does not break its users.
///
/// ```
/// #[non_exhaustive]
/// pub struct Config {
///     /// The number of copies that are sent.
///     pub copies: u8,
/// }
///
/// impl Config {
///     selvedge_core::with_settings! {
///         with_copies copies: u8,
///     }
/// }
///
/// const CONFIG: Config = Config { copies: 1 }.with_copies(8);
/// assert_eq!(CONFIG.copies, 8);
/// ```
#[macro_export]
macro_rules! with_settings {
    ($($with:ident $field:ident: $type:ty),* $(,)?) => {
        $(
            #[doc = concat!("These settings with another [`", stringify!($field), "`](Self::", stringify!($field), ").")]
            #[must_use]
            pub const fn $with(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_first_number_outside_its_range_is_named_with_the_range() {
        let fine = Setting::number("copies", 8, 1, 8);
        assert_eq!(check(&[fine, fine]), Ok(()));
        for (setting, reports) in [
            (
                Setting::number("copies", 9, 1, 8),
                "copies is 9: set it to 1 or more, up to 8",
            ),
            (
                Setting::number("copies", 0, 1, u64::MAX),
                "copies is 0: set it to at least 1",
            ),
            (
                Setting::number("drift", 3, 0, 2).counts("ppm"),
                "drift is 3 ppm: set it to at most 2 ppm",
            ),
        ] {
            let outside = check(&[fine, setting, Setting::number("last", 1, 2, 3)]);
            assert_eq!(outside, Err(OutOfRange(setting)));
            assert_eq!(OutOfRange(setting).to_string(), reports);
        }
    }
}
