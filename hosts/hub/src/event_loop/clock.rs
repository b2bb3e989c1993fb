//! The local clock, by the zone of the process or of the machine.

use jiff::Zoned;
use jiff::tz::TimeZone;
use selvedge_routine::sun::Date;
use selvedge_routine::trigger::TimeOfDay;

use crate::house::Happening;

/// Logs the time zone by which the local clock is read.
pub fn log_zone() {
    match TimeZone::try_system() {
        Ok(zone) => {
            let name = zone.iana_name().unwrap_or("without a name");
            tracing::info!(name, "time zone");
        }
        Err(why) => tracing::warn!(
            %why,
            "times of day are in UTC: set TZ or /etc/localtime to an installed zone"
        ),
    }
}

/// The time and date of the local clock, if they can be represented.
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
#[must_use]
pub fn local() -> Option<Happening> {
    let now = Zoned::now();
    let (time, date) = (now.time(), now.date());
    let parts = [
        (time.hour(), 3_600),
        (time.minute(), 60),
        (time.second(), 1),
    ];
    let seconds = parts
        .iter()
        .map(|(it, unit)| u32::try_from(*it).unwrap_or(0) * unit);
    let date = Date {
        year: date.year().into(),
        month: u32::try_from(date.month()).ok()?,
        day: u32::try_from(date.day()).ok()?,
    };
    let time = TimeOfDay::from_seconds(seconds.sum())?;
    Some(Happening::Clock(time, date, now.offset().seconds()))
}
