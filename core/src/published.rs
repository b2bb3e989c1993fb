//! Rules of a paper that a machine can follow instead of Selvedge's.

/// Defines `Rules`: a set of the variants of `Published`, with one question for each rule.
///
/// For a protocol crate with an enum `Published`, of at most 32 variants and `repr(u8)`, that
/// exists with its feature `check`. Without the feature the set is empty and takes no room, and
/// each answer is a constant `false`, so that the published rules cost nothing.
///
/// ```
/// # #![allow(unexpected_cfgs)]
/// #[cfg(feature = "check")]
/// #[derive(Clone, Copy)]
/// #[repr(u8)]
/// pub enum Published {
///     LastWins,
/// }
///
/// selvedge_core::published_rules! {
///     last_wins LastWins
/// }
///
/// assert!(!Rules::default().last_wins());
/// assert_eq!(size_of::<Rules>(), 0);
/// ```
#[macro_export]
macro_rules! published_rules {
    ($($name:ident $rule:ident)*) => {
        /// The published rules that a machine follows: without the feature `check`, none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        pub(crate) struct Rules {
            #[cfg(feature = "check")]
            published: u32,
        }

        #[cfg(feature = "check")]
        impl Rules {
            pub(crate) fn published(rules: &[Published]) -> Self {
                let published = rules.iter().fold(0, |all, &rule| all | 1 << rule as u8);
                Self { published }
            }
        }

        impl Rules {
            $(
                #[cfg_attr(
                    not(feature = "check"),
                    allow(clippy::unused_self, reason = "the same calls as with the feature")
                )]
                pub(crate) const fn $name(self) -> bool {
                    #[cfg(feature = "check")]
                    return self.published & 1 << Published::$rule as u8 != 0;
                    #[cfg(not(feature = "check"))]
                    false
                }
            )*
        }
    };
}
