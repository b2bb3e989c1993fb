//! The numbers of this node's own requests.

/// Which numbers this node has given, and to what they are good.
///
/// Invariant: the latest request, the requests that are over and the last entry have numbers of at
/// most `kept_to`. So a number above it was never given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Issued {
    /// The highest number of a request that this node has heard of.
    seen: u64,
    /// The number of our latest request.
    latest: u64,
    /// The highest number of a token that our latest request may enter with. Kept permissions are
    /// good up to this number.
    kept_to: u64,
    /// The highest number of a token that those of our requests that are over might have had. A
    /// request that is made later may have a higher one.
    over: u64,
    /// The number of the token with which we entered last; 0 for never.
    last: u64,
}

impl Issued {
    /// The number of our latest request; 0 for none.
    pub(crate) const fn latest(&self) -> u64 {
        self.latest
    }

    /// The highest number of a token that our latest request may enter with.
    pub(crate) const fn kept_to(&self) -> u64 {
        self.kept_to
    }

    /// The highest number of a token that our requests that are over might have had.
    pub(crate) const fn over(&self) -> u64 {
        self.over
    }

    /// The number of the token with which we entered last; 0 for never.
    pub(crate) const fn last(&self) -> u64 {
        self.last
    }

    /// The highest number of a request of ours, and of a token with which we entered.
    pub(crate) fn highest(&self) -> u64 {
        self.latest.max(self.last)
    }

    /// Another node has given this number.
    pub(crate) fn hear(&mut self, number: u64) {
        self.seen = self.seen.max(number);
    }

    /// The number of our next request: above all that this node has heard of, and above `floor`.
    pub(crate) fn next(&self, floor: u64) -> u64 {
        let heard_of = self.seen.max(floor).max(self.last);
        heard_of.max(self.latest).saturating_add(1)
    }

    /// Whether permissions that were kept are good for a request with this number.
    pub(crate) const fn is_kept_for(&self, number: u64) -> bool {
        number <= self.kept_to && self.over < self.kept_to
    }

    /// A request that may enter with permissions that were kept.
    pub(crate) fn go_on(&mut self, number: u64) {
        self.latest = number;
        self.check();
    }

    /// A request that may enter with tokens up to `slack` above its number. By the highest of these
    /// others tell it from our requests that are over.
    pub(crate) fn begin(&mut self, number: u64, slack: u32) {
        let up_to = number.saturating_add(slack.into());
        let above = self.over.saturating_add(1);
        self.latest = number;
        self.kept_to = self.kept_to.max(up_to).max(above);
        self.check();
    }

    /// All our requests are over.
    pub(crate) fn end_all(&mut self) {
        self.over = self.kept_to;
    }

    /// We entered with this number.
    pub(crate) fn enter(&mut self, number: u64) {
        self.last = number;
        self.hear(number);
        self.check();
    }

    /// Numbers up to these were given before, and those requests are over.
    pub(crate) fn start_above(&mut self, latest: u64, over: u64) {
        self.latest = self.latest.max(latest);
        self.kept_to = self.kept_to.max(over);
        self.over = self.over.max(over);
        self.check();
    }

    fn check(&self) {
        let highest = self.highest().max(self.over);
        debug_assert!(
            highest <= self.kept_to,
            "a number was given twice: {self:?}"
        );
    }
}
