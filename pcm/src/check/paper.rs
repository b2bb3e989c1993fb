//! The paper's gateways to the letter: eras, votes, and tables that are copied whole (Figures 2, 3 and 4,
//! sections 4.1 to 4.3.1).
//!
//! [`Gateway`](crate::gateway::Gateway) has none of this: a replicated state takes its place. So the
//! paper's rules have a small machine of their own, a [`Dispatcher`]. Each rule of the paper that breaks
//! a promise is a [`Published`]. A dispatcher without any follows rules that hold: those that the errata
//! page names. So the rule that breaks is the one that was put in, and no other.
//!
//! What is left out, because it decides nothing here: units and tasks (an entry of a table stands for
//! either), and Figure 4 itself. Which gateway is the optimal one follows from each gateway's own table
//! and its own routes, which the paper does not replicate; so here any gateway may be, for each of them.

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
