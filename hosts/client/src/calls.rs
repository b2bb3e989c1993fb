//! Calls to the mesh, and to its locks, services and queues.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;

use crate::agent::{Call, parse};
use crate::{
    Agent, Answers, Candidate, Elected, Error, Events, Hold, Info, Instance, Leader, LockPlace,
    Member, MeshEvent, Reloaded, Value,
};

/// The mesh. Each call has the errors of [`Error`]; a documented one is particular to it.
#[allow(
    clippy::missing_errors_doc,
    reason = "the errors of all calls are those of `Error`"
)]
impl Agent {
    /// Returns the member that the agent is.
    pub async fn info(&self) -> Result<Info, Error> {
        self.call(Method::GET, &["info"]).value().await
    }

    /// Returns the members of the mesh, as the agent sees them.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        self.call(Method::GET, &["members"]).value().await
    }

    /// Returns the leader of the mesh, if it has one.
    pub async fn leader(&self) -> Result<Option<Leader>, Error> {
        self.call(Method::GET, &["leader"]).value().await
    }

    /// Reports each present member first, then the leader, then each change and each message.
    pub async fn monitor(&self) -> Result<Events<MeshEvent>, Error> {
        let stream = self.call(Method::GET, &["monitor"]).stream().await?;
        Ok(Events::new(stream, mesh_event))
    }

    /// Lets the agent leave the mesh and end.
    pub async fn leave(&self) -> Result<(), Error> {
        self.call(Method::POST, &["leave"]).done().await
    }

    /// Has the agent read its settings again, as SIGHUP does.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        self.call(Method::POST, &["reload"]).value().await
    }

    /// Reports that a member has failed for certain: it is not asked any more.
    pub async fn confirm(&self, member: u64) -> Result<(), Error> {
        let parts = ["members", &member.to_string(), "confirm"];
        self.call(Method::POST, &parts).done().await
    }

    /// Adds a node to the nodes that hold maps.
    pub async fn add_node(&self, node: u64) -> Result<(), Error> {
        let call = self.call(Method::POST, &["nodes", &node.to_string(), "add"]);
        call.done().await
    }

    /// Removes a node from the nodes that hold maps.
    pub async fn remove_node(&self, node: u64) -> Result<(), Error> {
        let call = self.call(Method::POST, &["nodes", &node.to_string(), "remove"]);
        call.done().await
    }

    /// Sends a message to all members. Their [monitors](Self::monitor) report it; one may miss it.
    pub async fn send(&self, name: &str, message: impl Into<Bytes>) -> Result<(), Error> {
        let call = self.call(Method::POST, &["messages", name]);
        call.body(message).done().await
    }

    /// Asks all members, and returns the answers of the programs there: when all have answered, or after `wait`, up to
    /// a minute. Each member answers once at most, and one without such a program never.
    pub async fn query(
        &self,
        name: &str,
        question: impl Into<Bytes>,
        wait: Duration,
    ) -> Result<Answers, Error> {
        let agent = self.clone().with_wait(wait);
        let call = agent.call(Method::POST, &["queries", name]);
        call.body(question).value().await
    }

    /// Answers a question of a [monitor](Self::monitor), once: [`Kind::NotFound`](crate::Kind::NotFound) when its time
    /// is over, [`Kind::Mismatch`](crate::Kind::Mismatch) when another program at this agent has answered it.
    pub async fn answer(&self, question: &str, answer: impl Into<Bytes>) -> Result<(), Error> {
        let call = self.call(Method::POST, &["answers", question]);
        call.body(answer).done().await
    }

    /// Replaces the tags of the agent.
    pub async fn set_tags(&self, tags: &BTreeMap<String, String>) -> Result<(), Error> {
        self.call(Method::PUT, &["tags"]).json(tags)?.done().await
    }
}

/// Locks, elections, services, queues and counters. A time to live is from a second to a day: the time
/// for which a hold outlives its agent.
#[allow(
    clippy::missing_errors_doc,
    reason = "the errors of all calls are those of `Error`"
)]
impl Agent {
    /// Waits for a lock. [`Kind::Timeout`](crate::Kind::Timeout) when it is taken.
    pub async fn lock(&self, name: &str, ttl: Duration) -> Result<Hold, Error> {
        self.call(Method::POST, &["locks", name]).hold(ttl).await
    }

    /// Waits for a lock that others share, and no one has alone. A lock that is taken otherwise excludes it.
    pub async fn lock_shared(&self, name: &str, ttl: Duration) -> Result<Hold, Error> {
        let call = self.call(Method::POST, &["locks", name]);
        call.query("shared", true).hold(ttl).await
    }

    /// Waits for the lock of several names: all of them, or none. Programs that ask for names in this way never wait
    /// for each other in a circle, in whatever order they give them.
    pub async fn lock_all(&self, names: &[&str], ttl: Duration) -> Result<Hold, Error> {
        self.lock_names(names)?.hold(ttl).await
    }

    /// Does as [`lock_all`](Self::lock_all), and shares each name as [`lock_shared`](Self::lock_shared) does.
    pub async fn lock_all_shared(&self, names: &[&str], ttl: Duration) -> Result<Hold, Error> {
        let call = self.lock_names(names)?;
        call.query("shared", true).hold(ttl).await
    }

    fn lock_names(&self, names: &[&str]) -> Result<Call<'_>, Error> {
        let names = BTreeMap::from([("names", names)]);
        self.call(Method::POST, &["locks"]).json(&names)
    }

    /// Returns the holders of a lock and those that wait, in the order of their requests.
    pub async fn lock_places(&self, name: &str) -> Result<Vec<LockPlace>, Error> {
        self.call(Method::GET, &["locks", name]).value().await
    }

    /// Waits for one of this number of permits, which all programs give alike.
    pub async fn permit(&self, name: &str, permits: u32, ttl: Duration) -> Result<Hold, Error> {
        let call = self.call(Method::POST, &["semaphores", name]);
        call.query("permits", permits).hold(ttl).await
    }

    /// Becomes a candidate with this value, and waits until it leads. Its priority is [`Agent::PRIORITY`].
    pub async fn campaign(
        &self,
        election: &str,
        value: impl Into<Bytes>,
        ttl: Duration,
    ) -> Result<Hold, Error> {
        let call = self.call(Method::POST, &["elections", election]);
        call.body(value).hold(ttl).await
    }

    /// Does as [`campaign`](Self::campaign) with another priority: where no one leads, the candidate of the smallest
    /// priority does, and the one that waits longest among equal ones.
    pub async fn campaign_with_priority(
        &self,
        election: &str,
        priority: u32,
        value: impl Into<Bytes>,
        ttl: Duration,
    ) -> Result<Hold, Error> {
        let call = self.call(Method::POST, &["elections", election]);
        let call = call.query("priority", priority);
        call.body(value).hold(ttl).await
    }

    /// Hands the leadership of an election over, for a program that is not the leader: to the candidate with this
    /// session, or to the first one. The leader's program learns first that its hold lapses; the candidate leads when that
    /// program has let go, or is certain to lead no longer. The agent has to be the leader's one. Where the program does
    /// not let go, only a wait above its time to live hands over ([`with_wait`](Self::with_wait)).
    ///
    /// [`Kind::Mismatch`](crate::Kind::Mismatch) when no such candidate waits: the leader leads on;
    /// [`Kind::NotFound`](crate::Kind::NotFound) when no program leads through this agent;
    /// [`Kind::Unavailable`](crate::Kind::Unavailable) also when a later request takes the place of this one.
    pub async fn hand_over_election(&self, election: &str, to: Option<&str>) -> Result<(), Error> {
        let call = self.call(Method::POST, &["elections", election, "hand-over"]);
        call.maybe("to", to).done().await
    }

    /// Returns the candidates that wait, in the order in which they lead.
    pub async fn candidates(&self, election: &str) -> Result<Vec<Candidate>, Error> {
        let parts = ["elections", election, "candidates"];
        self.call(Method::GET, &parts).value().await
    }

    /// Returns the candidate that leads an election.
    pub async fn elected(&self, election: &str) -> Result<Option<Elected>, Error> {
        let call = self.call(Method::GET, &["elections", election]);
        call.value().await
    }

    /// Reports the candidate that leads, and each change.
    pub async fn observe(&self, election: &str) -> Result<Events<Option<Elected>>, Error> {
        let call = self.call(Method::GET, &["elections", election]);
        Ok(Events::new(call.stream().await?, |name, data| match name {
            "leader" => parse(data).map(Some),
            _ => Ok(None),
        }))
    }

    /// Lists an address of a service until the hold ends. The instance has a random number unless one is given.
    pub async fn register(
        &self,
        service: &str,
        instance: Option<u64>,
        address: &str,
        ttl: Duration,
    ) -> Result<Hold, Error> {
        let call = self.call(Method::POST, &["services", service]);
        let call = call.maybe("instance", instance);
        call.body(address.to_owned()).hold(ttl).await
    }

    /// Returns the instances of a service.
    pub async fn resolve(&self, service: &str) -> Result<Vec<Instance>, Error> {
        let call = self.call(Method::GET, &["services", service]);
        call.value().await
    }

    /// Reports the instances of a service, and all of them again at each change.
    pub async fn follow(&self, service: &str) -> Result<Events<Vec<Instance>>, Error> {
        let call = self.call(Method::GET, &["services", service]);
        Ok(Events::new(call.stream().await?, |name, data| match name {
            "instances" => parse(data).map(Some),
            _ => Ok(None),
        }))
    }

    /// Waits until this number of programs have arrived at a barrier.
    pub async fn arrive(&self, barrier: &str, number: u32, ttl: Duration) -> Result<Hold, Error> {
        let call = self.call(Method::POST, &["barriers", barrier]);
        call.query("number", number).hold(ttl).await
    }

    /// Appends an item to a queue, and returns the version of its map.
    pub async fn push(&self, queue: &str, item: impl Into<Bytes>) -> Result<u64, Error> {
        let call = self.call(Method::POST, &["queues", queue]);
        Ok(call.body(item).value::<Version>().await?.version)
    }

    /// Appends an item with another priority than [`Agent::PRIORITY`]: smaller ones are taken first.
    pub async fn push_with_priority(
        &self,
        queue: &str,
        priority: u32,
        item: impl Into<Bytes>,
    ) -> Result<u64, Error> {
        let call = self.call(Method::POST, &["queues", queue]);
        let call = call.query("priority", priority).body(item);
        Ok(call.value::<Version>().await?.version)
    }

    /// Takes the item of the smallest priority from a queue, the oldest among equal ones. [`Kind::Timeout`](crate::Kind::Timeout) when it is empty. An item may be
    /// lost with its answer.
    pub async fn pop(&self, queue: &str) -> Result<Vec<u8>, Error> {
        let call = self.call(Method::DELETE, &["queues", queue]);
        Ok(call.bytes().await?.0)
    }

    /// Returns the number of a counter; 0 at first.
    pub async fn count(&self, counter: &str) -> Result<i64, Error> {
        let call = self.call(Method::GET, &["counters", counter]);
        Ok(call.value::<Number>().await?.value)
    }

    /// Adds to a counter, and returns the sum. After [`Error::Lost`] or [`Error::Silent`] it may have been added.
    pub async fn add(&self, counter: &str, summand: i64) -> Result<i64, Error> {
        let call = self.call(Method::POST, &["counters", counter]);
        let call = call.query("add", summand);
        Ok(call.value::<Number>().await?.value)
    }
}

#[derive(Deserialize)]
pub(crate) struct Version {
    pub(crate) version: u64,
}

#[derive(Deserialize)]
struct Number {
    value: i64,
}

fn mesh_event(name: &str, data: &[u8]) -> Result<Option<MeshEvent>, Error> {
    #[derive(Deserialize)]
    struct Message {
        name: String,
        from: u64,
        #[serde(flatten)]
        value: Value,
    }
    #[derive(Deserialize)]
    struct Missed {
        missed: u64,
    }
    Ok(Some(match name {
        "member" => MeshEvent::Member(parse(data)?),
        "leader" => MeshEvent::Leader(parse(data)?),
        "missed" => MeshEvent::Missed(parse::<Missed>(data)?.missed),
        "message" => {
            let Message { name, from, value } = parse(data)?;
            MeshEvent::Message { name, from, value }
        }
        "question" => MeshEvent::Question(parse(data)?),
        _ => return Ok(None),
    }))
}
