//! The outcomes of changes as results.

use selvedge_groups::store::Stored;

use crate::{Error, Reject, Session};

/// The version of a change that was done for a session.
pub(super) fn done(stored: Stored, session: &Session) -> Result<u64, Error> {
    if let Stored::Done { version } = stored {
        return Ok(version);
    }
    Err(match stored == Stored::NoSession {
        true => over(session),
        false => why(stored),
    })
}

/// The reason for which a change was not done, or is not known to be.
pub(super) const fn why(stored: Stored) -> Error {
    Error::Rejected(match matches!(stored, Stored::Full) {
        true => Reject::MapFull,
        false => Reject::NewLife,
    })
}

/// The error of a caller whose session has ended.
pub(super) fn over(session: &Session) -> Error {
    Error::Rejected(Reject::SessionOver(session.id()))
}
