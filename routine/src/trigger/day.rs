//! Days of the week, and the sun.

use core::fmt;

use super::TimeOfDay;

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs, reason = "a day is a day")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// Some days of the week: one or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Days(u8);

/// An event of the sun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SunEvent {
    /// It comes above the horizon.
    Rise,
    /// It goes below the horizon.
    Set,
}

/// The calendar's data on a day at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Day {
    /// The day of the week.
    pub weekday: Weekday,
    /// The time at which the sun rises, by the local clock; `None` if it does not, or if that is
    /// not known.
    pub sunrise: Option<TimeOfDay>,
    /// The time at which the sun sets, by the local clock; `None` if it does not, or if that is not
    /// known.
    pub sunset: Option<TimeOfDay>,
}

impl Weekday {
    /// All, from Monday.
    pub const ALL: [Self; 7] = [
        Self::Monday,
        Self::Tuesday,
        Self::Wednesday,
        Self::Thursday,
        Self::Friday,
        Self::Saturday,
        Self::Sunday,
    ];

    /// The weekday this many days later.
    #[must_use]
    pub fn after(self, days: u64) -> Self {
        let nth = (self as u64).wrapping_add(days % 7) % 7;
        let found = usize::try_from(nth).ok().and_then(|it| Self::ALL.get(it));
        found.copied().unwrap_or(self)
    }

    /// The short name in files: `mon`, `tue` and so on.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Monday => "mon",
            Self::Tuesday => "tue",
            Self::Wednesday => "wed",
            Self::Thursday => "thu",
            Self::Friday => "fri",
            Self::Saturday => "sat",
            Self::Sunday => "sun",
        }
    }

    /// The day with this short name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.short() == text)
    }
}

impl fmt::Display for Weekday {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

impl Days {
    /// Each day.
    pub const ALL: Self = Self(0x7f);

    /// These days; `None` if the list is empty.
    #[must_use]
    pub fn new(days: impl IntoIterator<Item = Weekday>) -> Option<Self> {
        let bits = days.into_iter().fold(0, |bits, it| bits | 1 << it as u8);
        Self::from_bits(bits)
    }

    const fn from_bits(bits: u8) -> Option<Self> {
        if bits == 0 || bits > Self::ALL.0 {
            return None;
        }
        Some(Self(bits))
    }

    /// Returns true if the day is among them.
    #[must_use]
    pub const fn has(self, day: Weekday) -> bool {
        self.0 >> day as u8 & 1 == 1
    }

    /// The days, from Monday.
    pub fn iter(self) -> impl Iterator<Item = Weekday> {
        Weekday::ALL.into_iter().filter(move |it| self.has(*it))
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Days {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bits = u8::deserialize(deserializer)?;
        let error = || serde::de::Error::custom("no days of the week");
        Self::from_bits(bits).ok_or_else(error)
    }
}

impl Day {
    /// The time of this event.
    #[must_use]
    pub const fn sun(&self, event: SunEvent) -> Option<TimeOfDay> {
        match event {
            SunEvent::Rise => self.sunrise,
            SunEvent::Set => self.sunset,
        }
    }
}
