//! What goes between handles and the task of a node.

use selvedge_camera::sections::Name;
use selvedge_core::shared::{self, Service};
use thiserror::Error;

use selvedge::Reject;

use crate::Observed;
use crate::gates::{Gate, Settings};

/// The types of what goes between handles and the task.
#[derive(Debug)]
pub(crate) struct NodeService;

impl Service for NodeService {
    type Command = Command;
    type Answer = Answer;
    type Event = Observed;
    type Reject = Refused;
}

/// What a handle asks.
#[derive(Debug)]
pub(crate) enum Command {
    /// Something of the machine.
    Machine(selvedge::Command),
    /// A gate to a section. Without settings: with those that it has, or those of all.
    Gate {
        name: Name,
        settings: Option<Settings>,
    },
    /// Leave the mesh, and end.
    Leave,
    /// End at once.
    Kill,
}

/// What comes of a command.
#[derive(Debug)]
pub(crate) enum Answer {
    Done,
    Gate(Gate),
}

/// Why a running node refused what its application asked. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The machine refused it.
    #[error(transparent)]
    Reject(#[from] Reject),
    /// The section is in use with other settings.
    #[error(
        "the section {0:?} is in use with other settings: ask for its gate without settings, or wait until all gates and guards of it are gone"
    )]
    OtherSettings(Name),
}

/// Why what an application asked did not happen: it was refused, or the node has stopped.
pub type Error = shared::Error<Refused>;
