//! The guides of the book. Paths in them lead into the repository, which also has a chapter on each
//! protocol.

#[doc = include_str!("../guide/tutorial.md")]
pub mod tutorial {}
#[doc = include_str!("../guide/contract.md")]
pub mod contract {}
#[doc = include_str!("../guide/compose.md")]
pub mod compose {}
#[doc = include_str!("../guide/ids.md")]
pub mod ids {}
#[doc = include_str!("../guide/many-threads.md")]
pub mod many_threads {}
#[doc = include_str!("../guide/blocking-host.md")]
pub mod blocking_host {}
#[doc = include_str!("../guide/building.md")]
pub mod building {}
#[doc = include_str!("../guide/simulator-and-checker.md")]
pub mod simulator_and_checker {}
#[doc = include_str!("../guide/fuzzing.md")]
pub mod fuzzing {}
#[doc = include_str!("../guide/moving.md")]
pub mod moving {}
#[doc = include_str!("../guide/faq.md")]
pub mod faq {}
#[doc = include_str!("../guide/glossary.md")]
pub mod glossary {}
