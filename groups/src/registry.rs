//! The registry: the state of the group that holds the site, and the first members of other groups.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::Member;
use selvedge_core::wire::List;
use serde::{Deserialize, Serialize};

use crate::GroupId;

/// The most bytes of an encoded site: 64 KiB.
pub const SITE_MAX: usize = 64 << 10;

/// The most groups that a registry begins.
pub const BIRTHS_MAX: usize = 4_096;

/// The most sites that are in transfer to the registry at once. Where more nodes propose one, the
/// transfer that was idle for longest begins again.
const DRAFTS_MAX: usize = 4;

/// The configurations that one beginning of a group can have, as a power of two: one each minute
/// for eight years. The number of the first one of each is a multiple of it, and 1.
const NUMBERS_BITS: u32 = 22;

/// The number of times that a group has begun before the configuration with this number.
#[must_use]
pub(crate) const fn instance(number: u64) -> u64 {
    number >> NUMBERS_BITS
}

/// The number of the first configuration of an instance.
pub(crate) const fn first_number(instance: u64) -> u64 {
    (instance << NUMBERS_BITS) + 1
}

/// The number of the first configuration of the next beginning, after this last one of the present
/// beginning, or 0 before the first beginning.
pub(crate) const fn number_after(last: u64) -> u64 {
    match last {
        0 => first_number(0),
        _ => first_number(instance(last) + 1),
    }
}

/// The bytes of a part of an encoded site.
pub type Bytes = List<u8, 16>;

/// The beginning of a group, which the registry has decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Birth {
    /// The number of its first configuration. Configurations of a former beginning have lower ones.
    pub number: u64,
    /// The generation of the site by which the members were chosen.
    pub generation: u32,
    /// The first members, each in the life in which the registry knew it.
    pub founders: List<Member, 1>,
}

impl Birth {
    /// In the place of a beginning where the registry has decided none: a group began with the first site, or never.
    pub(crate) fn before_all() -> Self {
        Self {
            number: first_number(0),
            generation: 0,
            founders: List::new(),
        }
    }
}

/// A change of the registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Registration {
    /// A part of a site that a node proposes.
    Draft {
        /// The node.
        by: Member,
        /// Counts the sites that it proposes.
        number: u64,
        /// The place of the bytes in the encoded site. 0 begins it.
        at: u32,
        /// The part.
        bytes: Bytes,
    },
    /// The proposed site is the site of the next generation, if the present one has the generation
    /// `after`, and all of the draft has arrived.
    Commit {
        /// The node.
        by: Member,
        /// The number of its draft.
        number: u64,
        /// The length of the draft.
        length: u32,
        /// The generation that it changes.
        after: u32,
        /// Its own generation, which is higher.
        generation: u32,
    },
    /// A group begins with these members, if it has begun less often, and the site has the generation
    /// of the beginning: the nodes that were asked are those of the site.
    Birth {
        /// The group.
        group: GroupId,
        /// The beginning.
        birth: Birth,
    },
}

/// A site in transfer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Draft {
    by: Member,
    number: u64,
    bytes: Bytes,
}

/// The present site, and the first members of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Registry {
    generation: u32,
    /// Empty in generation 0: that site is on each node from the start.
    site: Bytes,
    /// The node that proposed it, and its number of it.
    by: Option<(Member, u64)>,
    /// The one that was used last is the last.
    drafts: Vec<Draft>,
    births: BTreeMap<GroupId, Birth>,
}

impl Registry {
    /// The generation of the site.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The encoded site; empty in generation 0.
    #[must_use]
    pub fn site(&self) -> &[u8] {
        &self.site
    }

    /// The beginning of a group, the last one of several. O(log n).
    #[must_use]
    pub fn birth(&self, group: GroupId) -> Option<&Birth> {
        self.births.get(&group)
    }

    /// All groups that it began, by id.
    pub fn births(&self) -> impl ExactSizeIterator<Item = (GroupId, &Birth)> {
        self.births.iter().map(|(group, birth)| (*group, birth))
    }

    /// The encoded site that a [`Registration::Commit`] would make the present one. `None` if the
    /// commit would change nothing.
    #[must_use]
    pub fn committed(&self, registration: &Registration) -> Option<&[u8]> {
        let Registration::Commit {
            by,
            number,
            length,
            after,
            generation,
        } = *registration
        else {
            return None;
        };
        let draft = self.draft(by, number)?;
        let is_whole = draft.bytes.len() == usize::try_from(length).unwrap_or(usize::MAX);
        let is_next = self.generation == after && generation > after;
        (is_whole && is_next).then_some(&draft.bytes)
    }

    /// The number of bytes of a node's draft that have arrived.
    pub(crate) fn drafted(&self, by: Member, number: u64) -> usize {
        self.draft(by, number).map_or(0, |it| it.bytes.len())
    }

    /// The node that proposed the present site, and its number of it.
    pub(crate) const fn by(&self) -> Option<(Member, u64)> {
        self.by
    }

    fn draft(&self, by: Member, number: u64) -> Option<&Draft> {
        self.drafts
            .iter()
            .find(|it| it.by == by && it.number == number)
    }

    /// Makes a change. One that comes twice, or too late, changes nothing.
    pub fn apply(&mut self, registration: &Registration) {
        match registration {
            Registration::Draft {
                by,
                number,
                at,
                bytes,
            } => self.add((*by, *number), *at, bytes),
            &Registration::Commit {
                by,
                number,
                generation,
                ..
            } => {
                let Some(site) = self.committed(registration) else {
                    return;
                };
                self.site = site.iter().copied().collect();
                self.generation = generation;
                self.by = Some((by, number));
                // Others were made from a former site.
                self.drafts.clear();
            }
            Registration::Birth { group, birth } => {
                let present = self.births.get(group).map_or(0, |it| it.number);
                let has_room = present > 0 || self.births.len() < BIRTHS_MAX;
                let is_present = birth.generation == self.generation;
                if birth.number > present && has_room && is_present {
                    self.births.insert(*group, birth.clone());
                }
            }
        }
    }

    fn add(&mut self, (by, number): (Member, u64), at: u32, bytes: &[u8]) {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let is_later = |it: &Draft| it.by.supersedes(by) || it.by == by && it.number > number;
        if self.drafts.iter().any(is_later) {
            return;
        }
        let found = self
            .drafts
            .iter()
            .position(|it| it.by == by && it.number == number);
        let draft = match found {
            Some(place) => Some(self.drafts.remove(place)),
            None => (at == 0).then(|| Draft {
                by,
                number,
                bytes: Bytes::new(),
            }),
        };
        let Some(mut draft) = draft else {
            return;
        };
        if draft.bytes.len() == at && at.saturating_add(bytes.len()) <= SITE_MAX {
            bytes.iter().for_each(|it| draft.bytes.push(*it));
        }
        // A node proposes one site at a time.
        self.drafts.retain(|it| it.by.id != by.id);
        if self.drafts.len() >= DRAFTS_MAX {
            self.drafts.remove(0);
        }
        self.drafts.push(draft);
    }
}
