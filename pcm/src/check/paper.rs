//! The paper's gateways to the letter: eras, votes, and tables that are copied whole (Figures 2, 3 and 4,
//! sections 4.1 to 4.3.1).
//!
//! [`Gateway`](crate::gateway::Gateway) has none of this: a replicated state takes its place. So the
//! paper's rules have a small machine of their own, a [`Dispatcher`]. Each rule of the paper that breaks
//! a promise is a [`Published`]. A dispatcher without any of them follows rules that hold, which the
//! errata page names. So each scenario that breaks is due to the one rule that it adds.
//!
//! Left out, because the result does not depend on them: units and tasks (an entry of a table stands for
//! either), and Figure 4 itself. The optimal gateway follows from each gateway's own table and its own
//! routes, which the paper does not replicate; so here each gateway takes any gateway for the optimal one.

mod cases;
mod dispatcher;
mod election;
mod rules;
mod tables;
mod watch;

pub use dispatcher::{Ask, Dispatcher, Message, Timer};
pub use rules::Published;
pub use tables::{Base, Label, Shared};
pub use watch::{Notified, Watch};

pub(super) use cases::{deep, pairs};
