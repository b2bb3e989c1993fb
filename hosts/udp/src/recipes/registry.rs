//! Services, and the addresses at which nodes offer them.

use selvedge_core::Span;
use selvedge_groups::store::{Key, Owner, Transaction, appended};

use super::line::is_in_line;
use crate::{Error, Map, PrefixNews, PrefixWatch, Session};

/// The services of a map.
///
/// ```no_run
/// use selvedge_udp::Span;
/// use selvedge_udp::recipes::registry::Registry;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let services = Registry::new(node.map("services"));
/// let listed = services.register("print", 7, "192.0.2.7:631", Span::secs(10)).await?;
/// for (instance, address) in services.resolve("print").await? {
///     println!("{instance}: {address}");
/// }
/// # drop(listed);
/// # Ok(())
/// # }
/// ```
///
/// An entry of the map and a session for each instance.
#[derive(Clone, Debug)]
pub struct Registry<'a> {
    map: Map<'a>,
}

/// The instances of a service that are listed, by number, and their addresses.
pub type Instances = Vec<(u64, String)>;

/// Lists an instance until it is dropped, its node leaves, or its session ends.
#[derive(Debug)]
pub struct Registration(Session);

/// Follows the instances of a service. See [`Registry::watch`].
#[derive(Debug)]
pub struct ServiceWatch<'a> {
    registry: Registry<'a>,
    service: String,
    /// None before the first list, and where the list has to begin again.
    watch: Option<PrefixWatch>,
    /// True if there are changes that were not returned.
    is_behind: bool,
}

impl<'a> Registry<'a> {
    /// The services of this map.
    #[must_use]
    pub const fn new(map: Map<'a>) -> Self {
        Self { map }
    }

    /// Lists an address of an instance of a service. An instance that is listed already is replaced, as when
    /// a program is started again. An instance whose node fails stays listed for this time to live, from a second to
    /// a day, or a little longer.
    ///
    /// # Errors
    /// As [`Map::session_with`].
    pub async fn register(
        &self,
        service: &str,
        instance: u64,
        address: &str,
        ttl: Span,
    ) -> Result<Registration, Error> {
        let key = appended(&prefix(service), instance);
        let put = Transaction::new().put_owned(key, address.as_bytes(), Owner::Begun);
        let begun = self.map.session_with(ttl, put).await?;
        Ok(Registration(begun.session))
    }

    /// The instances of a service, with their addresses.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn resolve(&self, service: &str) -> Result<Instances, Error> {
        let all = self.map.list_all(prefix(service)).await?;
        Ok(instances(
            service,
            all.entries.iter().map(|it| (&it.0, &*it.1.value)),
        ))
    }

    /// Follows the instances of a service.
    #[must_use]
    pub fn watch(&self, service: &str) -> ServiceWatch<'a> {
        ServiceWatch {
            registry: self.clone(),
            service: service.to_owned(),
            watch: None,
            is_behind: false,
        }
    }
}

impl Registration {
    /// Its session, which has the time until which this certainly lasts.
    pub const fn session(&self) -> &Session {
        &self.0
    }

    /// Returns true if it is certainly listed now, unless another one has replaced it.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.0.is_alive()
    }

    /// Waits until it is listed no longer: then register again.
    ///
    /// # Errors
    /// As [`Session::ended`].
    pub async fn ended(&self) -> Result<(), Error> {
        self.0.ended().await
    }

    /// Removes it from the list. A drop does so, too.
    ///
    /// # Errors
    /// As [`Session::end`].
    pub async fn end(self) -> Result<(), Error> {
        self.0.end().await
    }
}

impl ServiceWatch<'_> {
    /// The instances: at once in the first call, then after each change.
    ///
    /// # Errors
    /// As [`PrefixWatch::next`].
    pub async fn next(&mut self) -> Result<Instances, Error> {
        let map = self.registry.map;
        if let Some(watch) = &mut self.watch
            && !self.is_behind
        {
            match watch.next().await? {
                PrefixNews::Changed { .. } => self.is_behind = true,
                PrefixNews::Compacted => self.watch = None,
            }
        }
        let all = map.list_all(prefix(&self.service)).await?;
        if self.watch.is_none() {
            let watch = map.watch_prefix(prefix(&self.service), all.version);
            self.watch = Some(watch.await?);
        }
        self.is_behind = false;
        let entries = all.entries.iter().map(|it| (&it.0, &*it.1.value));
        Ok(instances(&self.service, entries))
    }
}

fn prefix(service: &str) -> Key {
    format!("service/{service}/")
}

fn instances<'a>(service: &str, entries: impl Iterator<Item = (&'a Key, &'a [u8])>) -> Instances {
    let prefix = prefix(service);
    let listed = entries.filter(|it| is_in_line(&prefix, it.0));
    let listed = listed.filter_map(|(key, value)| {
        let instance = u64::from_str_radix(key.strip_prefix(&*prefix)?, 16).ok()?;
        Some((instance, String::from_utf8_lossy(value).into_owned()))
    });
    listed.collect()
}
