//! The counters of a host.

crate::counters! { pub(crate) Counters, Traffic:
    /// Datagrams dropped: their sender is no peer, has another address than the one listed, or
    /// would exceed the limit of learned addresses.
    unknown_sender,
}
