//! Counts of events in many runs.

/// A struct of counts, with their sum over many runs.
///
/// A plain field is a count: counts are added, and `missing` names the first that is zero. A
/// `maybe` field is a count that may stay zero. A `max` field is a maximum: the larger value stays.
///
/// ```
/// selvedge_sim::counts! {
///     /// What a run did.
///     pub struct Summary {
///         /// Messages that arrived.
///         delivered,
///         /// Crashes.
///         crashes,
///         /// The longest frame in bytes.
///         longest_frame: max usize,
///     }
/// }
///
/// let mut all = Summary::default();
/// all.add(&Summary { delivered: 3, longest_frame: 90, ..Summary::default() });
/// all.add(&Summary { delivered: 4, longest_frame: 80, ..Summary::default() });
/// assert_eq!((all.delivered, all.longest_frame), (7, 90));
/// assert_eq!(all.missing(), Some("crashes"));
/// ```
#[macro_export]
macro_rules! counts {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$doc:meta])* $field:ident $(: $kind:ident $($type:ty)?)?),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name {
            $($(#[$doc])* $vis $field: $crate::counts!(@type $($kind $($type)?)?),)*
        }

        impl $name {
            /// Adds the counts of another run.
            $vis fn add(&mut self, other: &Self) {
                $($crate::counts!(@add self, other, $field $(, $kind)?);)*
            }

            /// The first count that is zero.
            #[must_use]
            $vis fn missing(&self) -> Option<&'static str> {
                $($crate::counts!(@missing self, $field $(, $kind)?);)*
                None
            }
        }
    };
    (@type) => { u64 };
    (@type maybe) => { u64 };
    (@type max $type:ty) => { $type };
    (@add $self:ident, $other:ident, $field:ident $(, maybe)?) => {
        $self.$field += $other.$field
    };
    (@add $self:ident, $other:ident, $field:ident, max) => {
        $self.$field = $self.$field.max($other.$field)
    };
    (@missing $self:ident, $field:ident) => {
        if $self.$field == 0 {
            return Some(stringify!($field));
        }
    };
    (@missing $self:ident, $field:ident, $kind:ident) => {};
}
