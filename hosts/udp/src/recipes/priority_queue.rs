//! A queue of values with priorities, from any nodes to any nodes.

use super::line::{rank, ranked};
use super::queue::Queue;
use crate::{Error, Map};

/// A priority queue of this name in a map: the item of the smallest priority is taken first, the oldest among equal
/// ones. Otherwise as a [`Queue`].
///
/// ```no_run
/// use selvedge_udp::recipes::priority_queue::PriorityQueue;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let jobs = PriorityQueue::new(node.map("jobs"), "pumps");
/// jobs.push(5, b"report the level").await?;
/// jobs.push(1, b"stop").await?;
/// println!("{:?}", jobs.pop().await?); // Stop.
/// # Ok(())
/// # }
/// ```
///
/// An entry of the map for each item. Items of a great priority wait for as long as smaller ones come.
#[derive(Clone, Debug)]
pub struct PriorityQueue<'a>(Queue<'a>);

impl<'a> PriorityQueue<'a> {
    /// The priority queue of this name. It has no item of the [`Queue`] of this name.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str) -> Self {
        Self(Queue {
            map,
            prefix: format!("priority-queue/{name}/"),
            is_item: |prefix, key| rank(prefix, key).is_some(),
        })
    }

    /// Adds an item, and returns its number: later ones have greater numbers.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub async fn push(&self, priority: u32, value: &[u8]) -> Result<u64, Error> {
        self.0
            .append(&ranked(&self.0.prefix, priority), value)
            .await
    }

    /// Takes the item of the smallest priority, the oldest of them; `None` if there is none. It was the first one at
    /// one moment of this call: an item that is added meanwhile may be behind it.
    ///
    /// # Errors
    /// As [`Queue::try_pop`].
    pub async fn try_pop(&self) -> Result<Option<Vec<u8>>, Error> {
        self.0.try_pop().await
    }

    /// Waits for an item, and takes the first one. Among several nodes that wait, any one gets it. A dropped future
    /// may have taken an item, which is lost then.
    ///
    /// # Errors
    /// As [`Queue::try_pop`].
    pub async fn pop(&self) -> Result<Vec<u8>, Error> {
        self.0.pop().await
    }

    /// Waits until there is an item, which another node may take first. A dropped future has taken none.
    ///
    /// # Errors
    /// As [`Queue::ready`].
    pub async fn ready(&self) -> Result<(), Error> {
        self.0.ready().await
    }
}
