//! Times of sunrise and sunset. Feature `sun`.
//!
//! The formulas are from the crate `sunrise`, which is no_std: the sunrise equation, for the upper
//! edge of the sun at the horizon with the usual refraction, good to a few minutes up to the polar
//! circles. Obstacles between the observer and the horizon are not considered.
//!
//! ```
//! use selvedge_routine::sun::{Date, Sun, sun};
//! use selvedge_routine::{Location, Number, trigger::Weekday};
//!
//! let degrees = |thousandths| Number::from_thousandths(thousandths).unwrap();
//! let berlin = Location { latitude: degrees(52_520), longitude: degrees(13_405) };
//! let date = Date { year: 2026, month: 6, day: 21 };
//! let Some(Sun::Rises { sunrise, sunset }) = sun(berlin, date, 7_200) else { panic!("it rises") };
//! assert!(sunrise.to_string().starts_with("04:4"), "{sunrise}");
//! assert!(sunset.to_string().starts_with("21:3"), "{sunset}");
//! assert_eq!(date.weekday(), Some(Weekday::Sunday));
//!
//! let tromsoe = Location { latitude: degrees(69_649), longitude: degrees(18_956) };
//! assert_eq!(sun(tromsoe, date, 7_200), Some(Sun::PolarDay));
//! ```

use chrono::{Datelike, NaiveDate};
use sunrise::{Coordinates, SolarDay, SolarEvent};

use crate::Location;
use crate::trigger::{Day, TimeOfDay, Weekday};

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// The year, from 1900 to 2200, the range of the formulas.
    pub year: i32,
    /// From 1.
    pub month: u32,
    /// From 1.
    pub day: u32,
}

/// The course of the sun on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sun {
    /// It rises and sets, by the local clock.
    Rises {
        /// The time of sunrise.
        sunrise: TimeOfDay,
        /// The time of sunset.
        sunset: TimeOfDay,
    },
    /// It does not set: a polar day.
    PolarDay,
    /// It does not rise: a polar night.
    PolarNight,
}

impl Date {
    fn naive(self) -> Option<NaiveDate> {
        let is_near = (1_900..=2_200).contains(&self.year);
        NaiveDate::from_ymd_opt(self.year, self.month, self.day).filter(|_| is_near)
    }

    /// The day of the week; `None` for a day that does not exist, or of another century.
    #[must_use]
    pub fn weekday(self) -> Option<Weekday> {
        let nth = self.naive()?.weekday().num_days_from_monday();
        Some(Weekday::Monday.after(nth.into()))
    }

    /// The value of [`Command::SetToday`](crate::trigger::Command::SetToday) for this day. The local
    /// clock is `utc_offset` seconds ahead of UTC. `None` for a day that does not exist.
    #[must_use]
    pub fn at(self, location: Location, utc_offset: i32) -> Option<Day> {
        let weekday = self.weekday()?;
        let (sunrise, sunset) = match sun(location, self, utc_offset)? {
            Sun::Rises { sunrise, sunset } => (Some(sunrise), Some(sunset)),
            Sun::PolarDay | Sun::PolarNight => (None, None),
        };
        Some(Day {
            weekday,
            sunrise,
            sunset,
        })
    }
}

/// The course of the sun at a place on a day, by a local clock that is `utc_offset` seconds ahead
/// of UTC. `None` for a day that does not exist, or of another century, and for a place that does
/// not exist.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "degrees have at most 6 digits")]
pub fn sun(location: Location, date: Date, utc_offset: i32) -> Option<Sun> {
    let degrees = |it: crate::Number| it.thousandths() as f64 / 1_000.0;
    let latitude = degrees(location.latitude);
    let longitude = degrees(location.longitude);
    Coordinates::new(latitude, longitude)?;
    // At a pole itself the formulas divide by zero.
    let coordinates = Coordinates::new(latitude.clamp(-89.99, 89.99), longitude)?;
    let day = SolarDay::new(coordinates, date.naive()?);
    let local = |event| {
        let utc = day.event_time(event)?.timestamp();
        let seconds = utc.checked_add(i64::from(utc_offset))?;
        let seconds = seconds.rem_euclid(i64::from(TimeOfDay::DAY));
        TimeOfDay::from_seconds(u32::try_from(seconds).ok()?)
    };
    if let (Some(sunrise), Some(sunset)) = (local(SolarEvent::Sunrise), local(SolarEvent::Sunset)) {
        return Some(Sun::Rises { sunrise, sunset });
    }
    // It is summer on the half of the Earth that the sun is above.
    let is_north_summer = (4..=9).contains(&date.month);
    let is_north = location.latitude.thousandths() >= 0;
    Some(if is_north == is_north_summer {
        Sun::PolarDay
    } else {
        Sun::PolarNight
    })
}
