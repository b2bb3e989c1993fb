//! The numbers of this node's own requests.

/// The numbers that this node has used, and the range for which its permissions are good.
///
/// Invariant: the latest request, the requests that are over and the last entry have numbers of at
/// most `kept_to`. So a number above it was never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Issued {
    /// The highest number of a request that this node knows.
    seen: u64,
    /// The number of our latest request.
    latest: u64,
    /// The highest number of a token that our latest request may enter with. Kept permissions are
    /// good up to this number.
    kept_to: u64,
    /// The highest number of a token that our requests that are over might have had. A later request
    /// may have a higher one.
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

    /// The highest number of our requests, and of the tokens with which we entered.
    pub(crate) fn highest(&self) -> u64 {
        self.latest.max(self.last)
    }

    /// Takes note that another node has used this number.
    pub(crate) fn receive(&mut self, number: u64) {
        self.seen = self.seen.max(number);
    }

    /// The number of our next request: above all numbers that this node knows, and above `floor`.
    pub(crate) fn next(&self, floor: u64) -> u64 {
        let heard_of = self.seen.max(floor).max(self.last);
        heard_of.max(self.latest).saturating_add(1)
    }

    /// Returns true if our latest request is not over: other nodes may name us as a rival.
    pub(crate) const fn is_open(&self) -> bool {
        self.over < self.kept_to
    }

    /// Returns true if permissions that were kept are good for a request with this number.
    pub(crate) const fn is_kept_for(&self, number: u64) -> bool {
        number <= self.kept_to && self.is_open()
    }

    /// Makes a request that may enter with permissions that were kept.
    pub(crate) fn go_on(&mut self, number: u64) {
        self.latest = number;
        self.check();
    }

    /// Makes a request that may enter with tokens up to `slack` above its number. By the highest of
    /// these, others distinguish it from our requests that are over.
    pub(crate) fn begin(&mut self, number: u64, slack: u32) {
        let up_to = number.saturating_add(slack.into());
        let above = self.over.saturating_add(1);
        self.latest = number;
        self.kept_to = self.kept_to.max(up_to).max(above);
        self.check();
    }

    /// Takes note that all our requests are over.
    pub(crate) fn end_all(&mut self) {
        self.over = self.kept_to;
    }

    /// Takes note that we entered with this number.
    pub(crate) fn enter(&mut self, number: u64) {
        self.last = number;
        self.receive(number);
        self.check();
    }

    /// Takes note that numbers up to these were used before, by requests that are over.
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
