//! Named checks with their expected outcome, as a protocol crate exports them.

use alloc::sync::Arc;
use core::fmt;
#[cfg(feature = "stateright")]
use core::net::SocketAddr;
use core::ops::ControlFlow;

use selvedge_core::Machine;

#[cfg(feature = "stateright")]
use super::{Disagreement, ExploreError, Verdict};
use super::{Expected, Limits, Model, Observer, Report, Rules, Surprise};

type News<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

type Run = dyn Fn(&Limits, News<'_>) -> Vec<Report> + Send + Sync;

#[cfg(feature = "stateright")]
type RunBoth =
    dyn Fn(&Limits, News<'_>) -> (Vec<Report>, Result<Verdict, Disagreement>) + Send + Sync;

#[cfg(feature = "stateright")]
type Explore =
    dyn Fn(SocketAddr, &mut dyn FnMut(SocketAddr)) -> Result<(), ExploreError> + Send + Sync;

/// A machine whose models may be checked on any thread. Implemented for each machine whose types
/// may be sent and shared.
pub trait Threaded:
    Machine<Message: Send + Sync, Timer: Send + Sync, Command: Send + Sync, Event: Send + Sync>
    + Send
    + Sync
    + 'static
{
}

impl<M> Threaded for M
where
    M: Machine + Send + Sync + 'static,
    M::Message: Send + Sync,
    M::Timer: Send + Sync,
    M::Command: Send + Sync,
    M::Event: Send + Sync,
{
}

/// A model with a name and its expected outcome. Scenarios of different machines go into one list.
///
/// The list is run by tests, by the `selvedge check` command, and by a host that composes the
/// machines in another way, to see that the parts hold.
pub struct Scenario {
    name: String,
    rules: Rules,
    deep: bool,
    expected: Expected,
    run: Box<Run>,
    #[cfg(feature = "stateright")]
    run_both: Box<RunBoth>,
    #[cfg(feature = "stateright")]
    explore: Box<Explore>,
}

impl Scenario {
    /// A scenario with this expected outcome. `model` is called when it is run, on any thread.
    pub fn new<M, O>(
        name: impl Into<String>,
        expected: Expected,
        model: impl Fn() -> Model<M, O> + Send + Sync + 'static,
    ) -> Self
    where
        M: Threaded,
        O: Observer<M> + Send + Sync + 'static,
    {
        let model = Arc::new(model);
        #[cfg(feature = "stateright")]
        let (both, explored) = (Arc::clone(&model), Arc::clone(&model));
        Self {
            name: name.into(),
            rules: Rules::Ours,
            deep: false,
            expected,
            run: Box::new(move |limits, news| model().check_with(limits, news)),
            #[cfg(feature = "stateright")]
            run_both: Box::new(move |limits, news| both().check_both(limits, news)),
            #[cfg(feature = "stateright")]
            explore: Box::new(move |address, ready| {
                super::explore(explored(), &Limits::default(), address, ready)
            }),
        }
    }

    /// A scenario that holds in this number of states, under our rules.
    pub fn holds<M, O>(
        name: impl Into<String>,
        states: usize,
        model: impl Fn() -> Model<M, O> + Send + Sync + 'static,
    ) -> Self
    where
        M: Threaded,
        O: Observer<M> + Send + Sync + 'static,
    {
        Self::new(name, Expected::Holds { states }, model)
    }

    /// A scenario that breaks after this number of steps, under the paper's rules.
    pub fn breaks<M, O>(
        name: impl Into<String>,
        steps: usize,
        model: impl Fn() -> Model<M, O> + Send + Sync + 'static,
    ) -> Self
    where
        M: Threaded,
        O: Observer<M> + Send + Sync + 'static,
    {
        Self::new(name, Expected::Breaks { steps }, model).published()
    }

    /// Marks that it runs the paper's rules to the letter.
    #[must_use]
    pub const fn published(mut self) -> Self {
        self.rules = Rules::Published;
        self
    }

    /// Marks that it takes more than a few seconds, so it is run only on request.
    #[must_use]
    pub const fn deep(mut self) -> Self {
        self.deep = true;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules that it runs.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// Returns true if it takes long.
    #[must_use]
    pub const fn is_deep(&self) -> bool {
        self.deep
    }

    /// The expected outcome.
    #[must_use]
    pub const fn expected(&self) -> Expected {
        self.expected
    }

    /// Runs it and reports on each of its properties. Calls `news` repeatedly with the number of
    /// states found, and `news` may stop the search.
    #[must_use]
    pub fn run(&self, limits: &Limits, news: News<'_>) -> Vec<Report> {
        self.named((self.run)(limits, news))
    }

    /// Runs it as [`run`](Self::run), and at the same time by stateright. `Ok` is the verdict of
    /// both engines. Takes two threads, and about as long as stateright takes.
    #[cfg(feature = "stateright")]
    pub fn run_both(
        &self,
        limits: &Limits,
        news: News<'_>,
    ) -> (Vec<Report>, Result<Verdict, Disagreement>) {
        let (reports, verdict) = (self.run_both)(limits, news);
        (self.named(reports), verdict)
    }

    /// Serves stateright's Explorer over its model: see [`explore`](super::explore).
    ///
    /// # Errors
    /// When nothing can listen at `address`.
    #[cfg(feature = "stateright")]
    pub fn explore(
        &self,
        address: SocketAddr,
        ready: &mut dyn FnMut(SocketAddr),
    ) -> Result<(), ExploreError> {
        (self.explore)(address, ready)
    }

    fn named(&self, mut reports: Vec<Report>) -> Vec<Report> {
        for report in &mut reports {
            report.name.clone_from(&self.name);
            report.rules = self.rules;
            report.expected = Some(self.expected);
        }
        reports
    }

    /// Runs it within the default limits.
    ///
    /// # Errors
    /// The first report that is not as expected. It shows the trace.
    pub fn verify(&self) -> Result<Vec<Report>, Surprise> {
        let reports = self.run(&Limits::default(), &mut |_| ControlFlow::Continue(()));
        match reports.iter().find(|report| !report.as_expected()) {
            Some(report) => Err(Surprise(Box::new(report.clone()))),
            None => Ok(reports),
        }
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .field("deep", &self.deep)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}
