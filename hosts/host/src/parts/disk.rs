//! Writes to a store in the background.

use std::sync::Arc;

use selvedge_store::{Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::RunError;

/// A store that is written to in the background: a disk may be slow, and other tasks share the
/// thread of a host. One write is under way at a time.
#[derive(Debug)]
pub struct Disk<B, F>(State<B, F>);

#[derive(Debug)]
enum State<B, F> {
    Free(Store<B, F>),
    Writes(JoinHandle<Written<B, F>>),
    Failed,
}

type Written<B, F> = (Store<B, F>, Result<(), StoreError>);

impl<B, F> Disk<B, F>
where
    B: Serialize + DeserializeOwned + Send + 'static,
    F: Serialize + DeserializeOwned + Send + 'static,
{
    /// The disk of this store, with a first base. It is stored when this returns.
    ///
    /// # Errors
    /// When the base cannot be stored.
    pub fn new(mut store: Store<B, F>, base: &B) -> Result<Self, StoreError> {
        store.rebase(base, |_| Ok(()))?;
        Ok(Self(State::Free(store)))
    }

    /// Returns true while it can begin a write.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        matches!(self.0, State::Free(_))
    }

    /// Returns true if a base should take the place of the stored facts and of `more` new ones.
    #[must_use]
    pub fn is_due(&self, more: usize) -> bool {
        matches!(&self.0, State::Free(store) if store.is_due(more))
    }

    /// Begins to store facts; or a base, which reflects them, in place of all facts. It does nothing
    /// unless it [is free](Self::is_free).
    pub fn write(&mut self, base: Option<B>, facts: Vec<F>) {
        self.0 = match core::mem::replace(&mut self.0, State::Failed) {
            State::Free(mut store) => State::Writes(spawn_blocking(move || {
                let done = match &base {
                    Some(base) => store.rebase(base, |_| Ok(())),
                    None => store.append(&facts),
                };
                (store, done)
            })),
            busy @ (State::Writes(_) | State::Failed) => busy,
        };
    }

    /// Does other work with the store in the background, after the write that is under way, and waits for it.
    ///
    /// # Errors
    /// When this work or an earlier write failed.
    pub async fn work(
        &mut self,
        work: impl FnOnce(&mut Store<B, F>) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), RunError> {
        self.written().await?;
        if let State::Free(mut store) = core::mem::replace(&mut self.0, State::Failed) {
            self.0 = State::Writes(spawn_blocking(move || {
                let done = work(&mut store);
                (store, done)
            }));
        }
        self.written().await
    }

    /// Waits for the write that is under way, if there is one. A caller that stops waiting may
    /// wait again.
    ///
    /// # Errors
    /// When this write or an earlier one failed.
    pub async fn written(&mut self) -> Result<(), RunError> {
        let writes = match &mut self.0 {
            State::Free(_) => return Ok(()),
            State::Writes(writes) => writes,
            State::Failed => return Err(RunError::Aborted),
        };
        let written = writes.await;
        self.0 = State::Failed;
        let (store, done) = written.map_err(|_aborted| RunError::Aborted)?;
        done.map_err(|error| RunError::Store(Arc::new(error)))?;
        self.0 = State::Free(store);
        Ok(())
    }
}
