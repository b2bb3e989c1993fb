//! The machines beside membership, in one life.

use alloc::vec::Vec;

#[cfg(feature = "estimate")]
use selvedge_camera::estimate::Estimator;
use selvedge_camera::sections::Sections;
use selvedge_celect::{Celect, Lowest};
use selvedge_core::{Member, Nested, Sha256Sortition};

use crate::keeping::Keeping;
use crate::{ConfigError, Election, Exclusion};

/// The state of one life. Each machine has the incarnation of `me`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Present {
    pub(crate) me: Member,
    pub(crate) sections: Option<Nested<Sections>>,
    /// The open sections whose request stayed open after an exit.
    pub(crate) keeping: Vec<Keeping>,
    #[cfg(feature = "estimate")]
    pub(crate) estimator: Option<Nested<Estimator>>,
    pub(crate) celect: Option<Nested<Celect>>,
    #[cfg(feature = "kgroup")]
    pub(crate) kgroup: Option<Nested<selvedge_kgroup::Kgroup>>,
    /// True while the node waits for a leader: its timer is armed.
    pub(crate) is_leaderless: bool,
}

impl Present {
    pub(crate) fn new(
        me: Member,
        exclusion: Option<&Exclusion>,
        election: Option<&Election>,
    ) -> Result<Self, ConfigError> {
        let mut present = Self {
            me,
            sections: None,
            keeping: Vec::new(),
            #[cfg(feature = "estimate")]
            estimator: None,
            celect: None,
            #[cfg(feature = "kgroup")]
            kgroup: None,
            is_leaderless: false,
        };
        if let Some(exclusion) = exclusion {
            let sections = Sections::new(me, exclusion.sections)?;
            present.sections = Some(Nested::new(sections));
            #[cfg(feature = "estimate")]
            if let Some(counting) = &exclusion.counting {
                let estimator = Estimator::new(me, counting.config.clone())?;
                present.estimator = Some(Nested::new(estimator));
            }
        }
        if let Some(election) = election {
            let by_hash = Lowest::new(Sha256Sortition, &election.label);
            let celect = Celect::new(me, election.config, by_hash)?;
            present.celect = Some(Nested::new(celect));
        }
        Ok(present)
    }
}
