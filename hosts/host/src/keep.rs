//! The storage of facts, or none.

use core::future::Future;

use selvedge_core::{Effect, Member};

use crate::{Hosted, RunError};

/// The step between the inputs of a round and its effects.
pub(crate) trait Keep<M: Hosted>: Send + 'static {
    /// Begins to store the facts among `effects`. `machine` has taken the steps that caused them.
    fn begin(&mut self, machine: &M, effects: &[(Member, Effect<M>)]);

    /// Waits until they are stored.
    fn end(&mut self) -> impl Future<Output = Result<(), RunError>> + Send;
}

/// No storage.
#[derive(Debug)]
pub(crate) struct Volatile;

impl<M: Hosted> Keep<M> for Volatile {
    fn begin(&mut self, _: &M, _: &[(Member, Effect<M>)]) {}

    async fn end(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

#[cfg(feature = "store")]
pub(crate) use stored::Stored;

#[cfg(feature = "store")]
mod stored {
    use selvedge_core::durable::Durable;
    use selvedge_core::{Effect, Member};
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::Keep;
    use crate::parts::Disk;
    use crate::{Hosted, RunError};

    /// A disk, and the function that makes a base.
    pub(crate) struct Stored<B, F, G> {
        pub(crate) disk: Disk<B, F>,
        pub(crate) base: G,
    }

    impl<M, B, G> Keep<M> for Stored<B, M::Fact, G>
    where
        M: Hosted + Durable<Fact: Serialize + DeserializeOwned + Send>,
        B: Serialize + DeserializeOwned + Send + 'static,
        G: Fn(&M) -> B + Send + 'static,
    {
        fn begin(&mut self, machine: &M, effects: &[(Member, Effect<M>)]) {
            let facts = effects.iter().filter_map(|it| fact(&it.1)).cloned();
            let facts: Vec<_> = facts.collect();
            if facts.is_empty() {
                return;
            }
            let is_due = self.disk.is_due(facts.len());
            self.disk.write(is_due.then(|| (self.base)(machine)), facts);
        }

        async fn end(&mut self) -> Result<(), RunError> {
            self.disk.written().await
        }
    }

    fn fact<M: Durable>(effect: &Effect<M>) -> Option<&M::Fact> {
        match effect {
            Effect::Event(event) => M::fact(event),
            Effect::Send { .. } | Effect::Multicast { .. } => None,
        }
    }
}
