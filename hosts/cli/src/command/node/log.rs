//! The log of a node: a line for people, or a JSON object for programs.

mod election;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;

use selvedge_camera::estimate;
use selvedge_celect::{self as celect, Ballot};
use selvedge_cli::output::{Dropped, Output};
use selvedge_core::{Delta, Incarnation, Member, NodeId, Span, Time};
use selvedge_home::term::Colour;
use selvedge_membership::Event;
use selvedge_udp::discovery::{SeedFound, SeedNews, Twin, Unsent};
use selvedge_udp::traffic::TrafficReport;
use selvedge_udp::{Clock, FencingToken, NodeEvent, Observed, Tags};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::Duration;

use super::trouble::Trouble;
use crate::command::Failure;

/// The time for which a node that ends waits for a reader of its last lines.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Writes the events of a node, a line each, and counts the live nodes. It never waits for the
/// reader: lines that the reader is too slow for are dropped, and their number is reported.
pub(super) struct Log {
    form: Form,
    output: Output,
    here: BTreeSet<Member>,
    /// The life that the node reported as its own.
    life: Option<Incarnation>,
    /// The reason why no datagram of the node goes out, while that lasts.
    unsent: Option<String>,
    /// The latest count of nodes, with its upper bound.
    counted: Option<(u32, u32)>,
    /// The latest bound that a sample of lists gave.
    measured: Option<u32>,
}

/// The format of a line.
#[derive(Clone, Copy, Debug)]
struct Form {
    colour: Colour,
    clock: Clock,
    json: bool,
}

/// One line, for people and for programs.
#[derive(Default, Serialize)]
pub(super) struct Line {
    /// The text for people.
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    /// The node's own life.
    #[serde(skip_serializing_if = "Option::is_none")]
    incarnation: Option<Incarnation>,
    /// The number of live nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<usize>,
    /// The tags of the node; bytes that are no text are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ballot: Option<Ballot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<TrafficReport>,
    /// The smoothed round trips to live nodes, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trips_us: Option<BTreeMap<NodeId, Span>>,
    /// The fencing token of a lock, as hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// The number of lists from which a live node may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_from: Option<u32>,
    /// The number of lives of which more than half agree to a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    lives: Option<u32>,
    /// The number of lines missing here.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
    /// The number of lines missing from the beginning to here.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_in_all: Option<u64>,
}

impl Line {
    pub(super) fn new(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    pub(super) fn round_trips(text: String, found: &BTreeMap<NodeId, Span>) -> Self {
        Self {
            round_trips_us: Some(found.clone()),
            ..Self::new(text)
        }
    }

    pub(super) fn lock(text: String, token: FencingToken) -> Self {
        Self {
            token: Some(token.to_string()),
            ..Self::new(text)
        }
    }

    fn tags(node: NodeId, tags: &Tags) -> Self {
        let text = match tags.is_empty() {
            true => format!("node {node} has no tags any more"),
            false => format!("node {node} has the tags {tags}"),
        };
        let tags = tags.iter();
        let tags =
            tags.map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into()));
        Self {
            node: Some(node),
            tags: Some(tags.collect()),
            ..Self::new(text)
        }
    }

    fn missing(dropped: Dropped) -> Self {
        let Dropped { lines, in_all } = dropped;
        let text = format!("{lines} lines were dropped here: the reader was too slow");
        Self {
            dropped: Some(lines),
            dropped_in_all: Some(in_all),
            ..Self::new(text)
        }
    }
}

impl Form {
    /// Formats a line. `at` is by the node's clock; programs get it as microseconds since 1970,
    /// which they can compare.
    fn write(self, at: Time, event: &'static str, line: &Line) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            at_us: u64,
            event: &'static str,
            #[serde(flatten)]
            line: &'a Line,
        }
        if self.json {
            let ago = self.clock.now().since(at);
            let at_us = Span::from(UNIX_EPOCH.elapsed().unwrap_or_default()).0;
            let at_us = at_us.saturating_sub(ago.0);
            // Plain structs of numbers and strings: nothing in there can fail.
            serde_json::to_string(&Object { at_us, event, line }).unwrap_or_default()
        } else {
            let time = Duration::from(Span(at.0)).as_secs_f64();
            let time = self.colour.dim(&format!("+{time:06.2}s"));
            format!("{time}  {}", line.text)
        }
    }
}

impl Log {
    /// A log on the standard output, and a receiver that is notified when that is closed.
    pub(super) fn start(
        clock: Clock,
        json: bool,
    ) -> Result<(Self, oneshot::Receiver<io::Error>), Failure> {
        let colour = if json {
            Colour::NEVER
        } else {
            Colour::on(&io::stdout())
        };
        let form = Form {
            colour,
            clock,
            json,
        };
        let missing = move |dropped| form.write(clock.now(), "dropped", &Line::missing(dropped));
        let (output, closed) =
            Output::start(io::stdout(), Output::LIMIT, missing).map_err(Failure::Runtime)?;
        let log = Self {
            form,
            output,
            here: BTreeSet::new(),
            life: None,
            unsent: None,
            counted: None,
            measured: None,
        };
        Ok((log, closed))
    }

    pub(super) fn say(&self, line: &str) {
        self.write("note", &Line::new(line.to_owned()));
    }

    /// The number of other nodes, according to the lines up to now.
    pub(super) fn others(&self) -> usize {
        self.here.len()
    }

    /// Notes that events of the node were lost because the log read them too late.
    pub(super) fn missed(&mut self, events: u64) {
        let text = format!("{events} events of the node were lost here: the machine is busy");
        let line = Line {
            dropped: Some(events),
            ..Line::new(text)
        };
        self.write("missed", &line);
    }

    pub(super) fn trouble(&self, trouble: Trouble) {
        self.bad("trouble", &trouble.to_string());
    }

    /// Writes a line that a person should see.
    pub(super) fn bad(&self, event: &'static str, text: &str) {
        self.write(event, &Line::new(self.form.colour.bad(text)));
    }

    pub(super) fn report(&self, traffic: TrafficReport) {
        let line = Line {
            traffic: Some(traffic),
            ..Line::default()
        };
        self.write("traffic", &line);
    }

    pub(super) fn write(&self, event: &'static str, line: &Line) {
        self.write_at(self.form.clock.now(), event, line);
    }

    /// Waits for the reader, but not for long, and reports missing lines on the standard error.
    pub(super) fn finish(self) {
        let missing = self.output.finish(Some(LAST_WORDS));
        if missing == 0 {
            return;
        }
        // The standard error may have the same reader.
        let nothing = |_| String::new();
        if let Ok((output, _closed)) = Output::start(io::stderr(), Output::LIMIT, nothing) {
            output.line(format!(
                "selvedge: the reader of the standard output was too slow: lines missing there: {missing}"
            ));
            output.finish(Some(LAST_WORDS));
        }
    }

    fn write_at(&self, at: Time, event: &'static str, line: &Line) {
        self.output.line(self.form.write(at, event, line));
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "events of a later kind have no line yet"
    )]
    pub(super) fn event(&mut self, seen: &Observed) {
        let (event, line) = match &seen.event {
            NodeEvent::Membership(Event::Identified(me)) => ("identity", self.identity(*me)),
            NodeEvent::Membership(Event::Changed(delta)) => match self.delta(*delta) {
                Some(it) => it,
                None => return,
            },
            NodeEvent::Membership(Event::BroadcastReceived { origin, payload }) => {
                let text = format!("{} bytes from node {}", payload.len(), origin.id);
                ("broadcast", Line::new(text))
            }
            NodeEvent::Membership(Event::MetadataChanged(_) | Event::Left) => return,
            NodeEvent::TagsChanged { member, tags } => ("tags", Line::tags(member.id, tags)),
            NodeEvent::Election(celect::Event::Measured(found))
                if self.measured.replace(found.upper_bound) == Some(found.upper_bound) =>
            {
                return;
            }
            NodeEvent::Election(event) => self.election(*event, seen.node),
            NodeEvent::Twin(twin) => ("twin", Line::new(self.twin(*twin, seen.node))),
            NodeEvent::Announced(addresses) => ("announced", self.announced(addresses)),
            NodeEvent::Seed(news) => ("seed", self.seed(news)),
            NodeEvent::Unsent(unsent) => ("unsent", self.unsent(unsent)),
            NodeEvent::SentAgain => {
                self.unsent = None;
                let text = "this node can send again";
                ("sent-again", Line::new(self.form.colour.good(text)))
            }
            NodeEvent::Estimate(event) => match self.counted(*event) {
                Some(line) => ("counted", line),
                None => return,
            },
            NodeEvent::MaxLivesRaised(lives) => {
                let line = Line::new(self.raised(*lives));
                let lives = Some(*lives);
                ("lives", Line { lives, ..line })
            }
            _ => return,
        };
        self.write_at(seen.at, event, &line);
    }

    fn identity(&mut self, me: Member) -> Line {
        let text = match self.life.replace(me.incarnation) {
            None => format!("in the mesh as node {}", me.id),
            Some(_) => format!(
                "other nodes know a later life of node {0}, so this node begins a new one: if that \
                 happens repeatedly, another process has the id {0}, too; else a clock was set back",
                me.id
            ),
        };
        Line {
            incarnation: Some(me.incarnation),
            ..Line::new(text)
        }
    }

    /// The text about a bound of locks that a count has raised.
    fn raised(&self, lives: u32) -> String {
        let (needed, here) = (lives / 2 + 1, self.here.len() + 1);
        let text =
            format!("locks have {lives} lives from now on, of which more than half must answer");
        if here >= needed as usize {
            return text;
        }
        self.form.colour.bad(&format!(
            "{text}: {needed} of them must answer, and {here} nodes are here, so no lock is given until \
             more join; if none will, lower --spare at all nodes and start them again"
        ))
    }

    /// The line about a count. `None` if the last one was the same.
    fn counted(&mut self, event: estimate::Event) -> Option<Line> {
        let estimate::Event::Estimated {
            nodes, max_lives, ..
        } = event
        else {
            let text = format!(
                "the nodes were not counted, give --count to all nodes of the mesh: {event:?}"
            );
            return Some(Line::new(self.form.colour.bad(&text)));
        };
        let found = (nodes, max_lives);
        let is_news = self.counted.replace(found) != Some(found);
        is_news.then(|| Line {
            lives: Some(max_lives),
            ..Line::new(format!(
                "about {nodes} nodes are here, and hardly more than {max_lives}"
            ))
        })
    }

    fn announced(&self, addresses: &[SocketAddr]) -> Line {
        if addresses.is_empty() {
            let text = "this node found no address at which other nodes can reach it: give one \
                        with --advertise";
            return Line::new(self.form.colour.bad(text));
        }
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let addresses = addresses.join(", ");
        Line::new(format!(
            "other nodes reach this one at {addresses}: if they do not, give --advertise"
        ))
    }

    fn seed(&self, news: &SeedNews) -> Line {
        let SeedNews { name, found } = news;
        Line::new(match found {
            SeedFound::Others(addresses) => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                format!("{name} is at {}", addresses.join(", "))
            }
            SeedFound::Itself => {
                format!("{name} is this node alone: it is looked up again until another node joins")
            }
            SeedFound::Nothing(why) => self.form.colour.bad(&format!(
                "cannot find {name}: {why}: it is looked up again until a node there answers"
            )),
            other => format!("{name}: {other:?}"),
        })
    }

    fn unsent(&mut self, unsent: &Unsent) -> Line {
        let Unsent { in_a_row, error } = unsent;
        self.unsent = Some(error.clone());
        let text = format!(
            "this node cannot send, its last {in_a_row} datagrams failed: {error}: check its \
             network, and that it listens at an address from which it can reach other nodes"
        );
        Line::new(self.form.colour.bad(&text))
    }

    /// A line about a leader, with the remark that this node may be cut off.
    fn leads(&self, text: &str) -> String {
        match &self.unsent {
            None => self.form.colour.good(text),
            Some(error) => self.form.colour.bad(&format!(
                "{text}, as far as this node knows: it cannot send ({error})"
            )),
        }
    }

    fn twin(&self, twin: Twin, me: NodeId) -> String {
        let place = twin.address.map(|it| format!(" at {it}"));
        let place = place.unwrap_or_default();
        let text = if twin.is_later {
            format!(
                "another process has the id {me}{place}, and other nodes ignore this process, \
                 which started earlier: stop one of the two and give it another --id; if no other \
                 runs, a clock was set back: this process is accepted once the clock has passed the \
                 former start"
            )
        } else {
            format!(
                "another process has the id {me}{place}, and other nodes ignore it now, as it \
                 started earlier: stop one of the two and give it another --id"
            )
        };
        self.form.colour.bad(&text)
    }

    /// The line for a change of the list. `None` for the end of a life that was never listed as
    /// live: a node that joins learns of failed nodes, too.
    fn delta(&mut self, delta: Delta) -> Option<(&'static str, Line)> {
        let member = delta.member();
        let is_news = match delta {
            Delta::Joined(_) | Delta::Refuted(_) => {
                self.here.insert(member);
                true
            }
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => self.here.remove(&member),
            Delta::Suspected(_) => true,
        };
        if !is_news {
            return None;
        }
        let count = self.here.len() + 1;
        let (event, what) = match delta {
            Delta::Joined(_) => ("joined", "joined"),
            Delta::Suspected(_) => ("suspected", "may have failed"),
            Delta::Refuted(_) => ("refuted", "is alive after all"),
            Delta::Failed(_) => ("failed", "failed"),
            Delta::Left(_) => ("left", "left"),
            Delta::Confirmed(_) => ("confirmed", "ended its former life"),
        };
        let line = format!("node {} {what}: {count} here", member.id);
        let text = match delta {
            Delta::Joined(_) | Delta::Refuted(_) => self.form.colour.good(&line),
            Delta::Failed(_) | Delta::Suspected(_) => self.form.colour.bad(&line),
            Delta::Left(_) | Delta::Confirmed(_) => line,
        };
        let mut line = Line::new(text);
        (line.node, line.here) = (Some(member.id), Some(count));
        Some((event, line))
    }
}
