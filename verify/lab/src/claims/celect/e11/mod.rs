//! E11: the cost of an idle mesh that elects its leader, and the time until it has another one.
//! Measured with real processes and real time, so it is not part of a usual run.
//!
//! [`live`] runs one process a node over loopback; [`simulated`] draws the curve of traffic against
//! detection time, and computes the cost of the same frames hop by hop; [`judge`] compares both
//! with the measurements of the thesis and others.

pub mod judge;
pub mod live;
pub mod simulated;

use core::str::FromStr;

use selvedge_core::Span;
use selvedge_membership::SuspicionLength;
use thiserror::Error;

/// A setting of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The protocol period of membership.
    pub period: Span,
    /// The number of periods after which a suspected node has failed; membership's default without
    /// it.
    pub suspicion: Option<u16>,
    /// The time for which a leader leads without being renewed; for ever without it.
    pub lease: Option<Span>,
}

impl Setting {
    pub(crate) const fn suspicion(&self) -> SuspicionLength {
        match self.suspicion {
            Some(periods) => SuspicionLength::Fixed(periods),
            None => SuspicionLength::PerLog(3),
        }
    }
}

impl core::fmt::Display for Setting {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "period {:?}, suspicion ", self.period)?;
        match self.suspicion {
            Some(periods) => write!(f, "{periods}")?,
            None => write!(f, "3 ln n")?,
        }
        match self.lease {
            Some(lease) => write!(f, ", lease {lease:?}"),
            None => Ok(()),
        }
    }
}

/// An error in the text of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{given:?} is not a setting: give PERIOD_MS[:SUSPICION[:LEASE_MS]], as in 2000:1 or 1000:-:9000"
)]
pub struct SettingError {
    given: String,
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let error = || SettingError {
            given: text.to_owned(),
        };
        let mut parts = text.split(':');
        // The bounds of `selvedge node`.
        let number = |part: &str, least: u64, most: u64| {
            let number: u64 = part.parse().map_err(|_| error())?;
            let in_range = (least..=most).contains(&number);
            in_range.then_some(number).ok_or_else(error)
        };
        let period = number(parts.next().unwrap_or_default(), 50, 60_000)?;
        let suspicion = match parts.next() {
            None | Some("-") => None,
            Some(part) => u16::try_from(number(part, 1, u16::MAX.into())?).ok(),
        };
        let lease = match parts.next() {
            None => None,
            Some(part) => Some(Span::millis(number(part, 50, 3_600_000)?)),
        };
        if parts.next().is_some() {
            return Err(error());
        }
        Ok(Self {
            period: Span::millis(period),
            suspicion,
            lease,
        })
    }
}

/// The length of each phase after a crash of the leader, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Takeover {
    /// From the crash until the first node declared it failed, or gave up its lease.
    pub detected: f64,
    /// From there until the first node learned of a new leader.
    pub elected: f64,
    /// From there until all nodes did.
    pub received: f64,
}

impl Takeover {
    /// From the crash until all nodes follow the new leader.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.detected + self.elected + self.received
    }
}

/// The bytes of IPv4 and UDP headers.
pub const HEADERS: u64 = 28;

/// Bytes in this number of seconds, as kbit/s.
#[must_use]
pub fn kbit(bytes: f64, seconds: f64) -> f64 {
    bytes * 8.0 / 1_000.0 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_what_is_none_is_named() {
        let setting = |text: &str| text.parse::<Setting>();
        let full = Setting {
            period: Span::millis(2_000),
            suspicion: Some(1),
            lease: Some(Span::millis(9_000)),
        };
        assert_eq!(setting("2000:1:9000"), Ok(full));
        assert_eq!(full.to_string(), "period 2s, suspicion 1, lease 9s");
        let plain = setting("1000").map(|it| (it.suspicion, it.lease));
        assert_eq!(plain, Ok((None, None)));
        assert_eq!(setting("1000:-:9000").map(|it| it.suspicion), Ok(None));
        for wrong in ["", "10", "1000:0", "1000:1:9000:1", "1000:x"] {
            assert!(setting(wrong).is_err_and(|it| it.to_string().contains(wrong)));
        }
    }
}
