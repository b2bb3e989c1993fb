//! A record for observers and clients: when followers woke, the calls of tasks, their units, the
//! votes that passed by, and the last answers. The machine does not depend on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_core::{Member, NodeId, Span, Time};
use selvedge_pcm::{Answer, Assignment, Bytes, Function, Message, Open, Tables, TaskId};

use crate::notice::{AnswerStatus, Status, TaskStatus};
use crate::{Call, text_of};

/// The number of followers whose last waking is recorded.
const FOLLOWERS: usize = 4_096;
/// The number of tasks with more details than the tables have; and of further tasks that clients
/// asked for here.
const TASKS: usize = 256;
/// The number of recorded votes of a task.
const VOTES: usize = 16;
/// The length of the longest text of a function, in bytes.
const TEXT: usize = 96;
/// The time for which the waking of a node is recorded that is not a follower of this gateway.
const STRANGE: Span = Span::secs(5);

#[derive(Debug, Default)]
pub(crate) struct Diary {
    woke: BTreeMap<NodeId, Time>,
    tasks: BTreeMap<TaskId, Page>,
    /// The latest first.
    answers: VecDeque<Ended>,
}

/// The record of a task.
#[derive(Clone, Debug)]
struct Page {
    since: Time,
    function: Bytes,
    /// The last known unit of the task.
    unit: Option<Assignment>,
    votes: BTreeSet<NodeId>,
    /// True if a client asked for it here, and waits for its answer.
    is_awaited: bool,
    /// True if it has ended, so that the record is for its client alone.
    has_ended: bool,
}

#[derive(Debug)]
struct Ended {
    task: TaskId,
    answer: Answer,
    page: Page,
    at: Time,
}

impl Diary {
    /// Records a message that was received or relayed.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others have no news")]
    pub(crate) fn on_message(
        &mut self,
        from: Member,
        message: &Message,
        tables: Option<&Tables>,
        now: Time,
    ) {
        match *message {
            Message::KeepAlive { .. } => self.on_woke(from.id, now),
            Message::Vote { task, attempt, .. } => {
                let open = tables.and_then(|it| it.open_task(task));
                if let Some(open) = open {
                    self.on_vote(from, task, attempt, open, now);
                }
            }
            _ => {}
        }
    }

    /// Records a client's request for a task, perhaps repeated. O(n).
    pub(crate) fn on_asked(&mut self, task: TaskId, function: &Function, now: Time) {
        self.open(task, function, now, true);
    }

    /// Returns the unit that had a task whose client is notified of the answer. O(n).
    pub(crate) fn on_answered(&mut self, task: TaskId) -> Option<Assignment> {
        let page = self.tasks.get(&task).filter(|it| it.is_awaited)?;
        let unit = page.unit.clone();
        self.release(|it| it == task);
        unit
    }

    /// Forgets the requests of a client that moved to another gateway. O(n).
    pub(crate) fn on_left(&mut self, client: Member) {
        self.release(|it| it.client == client);
    }

    /// Updates the units of the tasks that clients wait for; a task that has ended has none. O(n).
    pub(crate) fn follow(&mut self, tables: &Tables) {
        let awaited = self.tasks.iter_mut().filter(|it| it.1.is_awaited);
        for (task, page) in awaited {
            page.follow(tables.assignment(*task));
        }
    }

    /// Updates the list of open tasks and their units. O(n) for n tasks.
    pub(crate) fn look(&mut self, me: NodeId, tables: &Tables, now: Time) {
        for (task, open) in tables.open().take(Status::SHOWN) {
            let page = self.open(task, &open.function, now, false);
            page.follow(open.assignment.as_ref());
        }
        // Removes tasks that ended unseen: the tables came as a whole, or a request was refused.
        self.tasks.retain(|task, page| {
            page.is_awaited || tables.open_task(*task).is_some() || now.since(page.since) < STRANGE
        });
        self.woke.retain(|id, woke| {
            let gateway = tables.follower(*id).map(|it| it.gateway);
            gateway == Some(me) || (gateway.is_none() && now.since(*woke) < STRANGE)
        });
    }

    /// Records the end of a task, with the followers whose votes made the answer.
    pub(crate) fn on_ended(
        &mut self,
        task: TaskId,
        answer: Option<(&Answer, &[NodeId])>,
        now: Time,
    ) {
        let page = match self.tasks.get_mut(&task) {
            Some(page) if page.is_awaited => {
                page.has_ended = true;
                Some(page.clone())
            }
            Some(_) | None => self.tasks.remove(&task),
        };
        let Some((answer, voters)) = answer else {
            return;
        };
        let mut page = page.unwrap_or_else(|| Page::new(Bytes::new(), now));
        page.votes = voters.iter().copied().collect();
        self.answers.truncate(Status::ANSWERS - 1);
        let (answer, at) = (answer.clone(), now);
        self.answers.push_front(Ended {
            task,
            answer,
            page,
            at,
        });
    }

    /// The time for which the present period of a follower has lasted.
    pub(crate) fn woke_ms(&self, follower: NodeId, now: Time) -> Option<u32> {
        let woke = self.woke.get(&follower)?;
        Some(millis(*woke, now))
    }

    /// An open task.
    pub(crate) fn task(&self, task: TaskId, open: &Open, now: Time) -> TaskStatus {
        let page = self.tasks.get(&task);
        let unit = open.assignment.as_ref();
        // Records of another attempt do not count for this one.
        let of_this = page.filter(|it| {
            let seen = it.unit.as_ref().map(|it| it.attempt);
            seen == unit.map(|it| it.attempt)
        });
        TaskStatus {
            task,
            attempts: open.attempts,
            electors: unit.map(|it| it.electors.clone()).unwrap_or_default(),
            votes: of_this
                .into_iter()
                .flat_map(|it| it.votes.iter().copied())
                .collect(),
            function: page.map_or_else(|| text(&open.function), |it| it.function.clone()),
            age_ms: page.map_or(0, |it| millis(it.since, now)),
        }
    }

    /// The last answers, the latest first.
    pub(crate) fn answers(&self, now: Time) -> impl Iterator<Item = AnswerStatus> {
        self.answers.iter().map(move |it| {
            let unit = it.page.unit.as_ref();
            AnswerStatus {
                task: it.task,
                answer: it.answer.clone(),
                attempt: unit.map_or(0, |it| it.attempt),
                electors: unit.map(|it| it.electors.clone()).unwrap_or_default(),
                votes: it.page.votes.iter().copied().collect(),
                function: it.page.function.clone(),
                took_ms: millis(it.page.since, it.at),
                ago_ms: millis(it.at, now),
            }
        })
    }

    fn on_woke(&mut self, follower: NodeId, now: Time) {
        if self.woke.len() < FOLLOWERS || self.woke.contains_key(&follower) {
            self.woke.insert(follower, now);
        }
    }

    fn on_vote(&mut self, from: Member, task: TaskId, attempt: u16, open: &Open, now: Time) {
        let page = self.open(task, &open.function, now, false);
        page.follow(open.assignment.as_ref());
        let unit = page.unit.as_ref().filter(|it| it.attempt == attempt);
        let is_elector = unit.is_some_and(|it| it.electors.contains(&from));
        if is_elector && page.votes.len() < VOTES {
            page.votes.insert(from.id);
        }
    }

    /// Forgets that clients wait for these tasks.
    fn release(&mut self, is_released: impl Fn(TaskId) -> bool) {
        self.tasks
            .retain(|task, page| !(page.has_ended && is_released(*task)));
        for (task, page) in &mut self.tasks {
            page.is_awaited &= !is_released(*task);
        }
        self.keep(false, TASKS);
    }

    fn open(&mut self, task: TaskId, function: &Function, now: Time, awaited: bool) -> &mut Page {
        let known = self.tasks.get(&task);
        if !known.is_some_and(|it| it.is_awaited || !awaited) {
            self.keep(awaited, TASKS - 1);
        }
        let page = || Page::new(text(function), now);
        let page = self.tasks.entry(task).or_insert_with(page);
        page.is_awaited |= awaited;
        page
    }

    /// Keeps at most `most` of the tasks that clients wait for, or of the others, and removes the
    /// oldest. O(n).
    fn keep(&mut self, awaited: bool, most: usize) {
        loop {
            let alike = self.tasks.iter().filter(|it| it.1.is_awaited == awaited);
            if alike.clone().count() <= most {
                return;
            }
            let oldest = alike.min_by_key(|it| it.1.since).map(|it| *it.0);
            oldest.and_then(|it| self.tasks.remove(&it));
        }
    }
}

impl Page {
    const fn new(function: Bytes, since: Time) -> Self {
        Self {
            since,
            function,
            unit: None,
            votes: BTreeSet::new(),
            is_awaited: false,
            has_ended: false,
        }
    }

    /// Sets the unit that has the task; votes belong to an attempt.
    fn follow(&mut self, unit: Option<&Assignment>) {
        let Some(unit) = unit.filter(|it| self.unit.as_ref() != Some(it)) else {
            return;
        };
        if self
            .unit
            .as_ref()
            .is_some_and(|it| it.attempt != unit.attempt)
        {
            self.votes.clear();
        }
        self.unit = Some(unit.clone());
    }
}

/// The call of a function, for a reader: `gcd(84i64, 36i64)`.
fn text(function: &Function) -> Bytes {
    let mut text = match Call::from_function(function) {
        Ok(call) => {
            let arguments: Vec<String> = call.arguments().iter().map(ToString::to_string).collect();
            format!("{}({})", call.export(), arguments.join(", "))
        }
        Err(_) => text_of(&function.code),
    };
    if text.len() > TEXT {
        let end = (0..=TEXT).rev().find(|it| text.is_char_boundary(*it));
        text.truncate(end.unwrap_or(0));
        text.push('\u{2026}');
    }
    text.bytes().collect()
}

fn millis(from: Time, to: Time) -> u32 {
    u32::try_from(to.since(from).0 / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use selvedge_pcm::{Attachment, DutyCycle, Failure, Libraries, Limits, Update};
    use selvedge_replica::State as _;

    use super::*;

    const CLIENT: Member = Member::new(9, 1);
    const ME: NodeId = NodeId(1);

    fn tables() -> Tables {
        let mut tables = Tables::new(Limits::new());
        for id in 101..104 {
            tables.apply(&Update::Attach(Attachment {
                member: Member::new(id, 0),
                number: 1,
                gateway: ME,
                duty: DutyCycle::always(),
                libraries: Libraries::new(),
            }));
        }
        tables.apply(&Update::Cluster { after: 0 });
        tables
    }

    const fn task(number: u64) -> TaskId {
        let client = CLIENT;
        TaskId { client, number }
    }

    fn keep_alive() -> Message {
        Message::KeepAlive {
            number: 1,
            duty: DutyCycle::always(),
            libraries: Libraries::new(),
        }
    }

    #[test]
    fn votes_are_seen_of_the_unit_alone() {
        let mut tables = tables();
        let function = Function::new(b"x");
        let submit = Update::Submit {
            task: task(1),
            function,
        };
        tables.apply(&submit);
        let unit = tables.assignment(task(1)).unwrap().clone();
        let mut diary = Diary::default();
        let vote = |attempt| Message::Vote {
            task: task(1),
            attempt,
            returned: selvedge_pcm::Returned::Failed(Failure::Trapped),
        };
        let now = Time::ZERO;
        diary.on_message(Member::new(102, 0), &vote(unit.attempt), Some(&tables), now);
        diary.on_message(Member::new(102, 7), &vote(unit.attempt), Some(&tables), now);
        diary.on_message(
            Member::new(103, 0),
            &vote(unit.attempt + 1),
            Some(&tables),
            now,
        );
        diary.on_message(Member::new(777, 0), &vote(unit.attempt), Some(&tables), now);
        let shown = diary.task(task(1), tables.open_task(task(1)).unwrap(), now);
        assert_eq!(*shown.votes, [NodeId(102)]);
        assert_eq!(*shown.electors, *unit.electors);
        assert_eq!(*shown.function, *b"x");
        // The follower without a vote to this gateway is the orchestrator.
        let (answer, voters) = (Answer::Failed(Failure::Trapped), [NodeId(101), NodeId(102)]);
        diary.on_ended(task(1), Some((&answer, &voters)), now);
        let ended = diary.answers(now).next().unwrap();
        assert_eq!(*ended.votes, voters);
        assert_eq!(*ended.electors, *unit.electors);
        assert!(diary.tasks.is_empty(), "no client waits for it");
    }

    /// The recorded tasks that clients wait for, by number.
    fn awaited(diary: &Diary) -> Vec<u64> {
        let awaited = diary.tasks.iter().filter(|it| it.1.is_awaited);
        awaited.map(|it| it.0.number).collect()
    }

    #[test]
    fn a_client_is_told_the_unit_that_had_its_task_though_that_has_ended() {
        let mut tables = tables();
        let (function, now, mut diary) = (Function::new(b"x"), Time::ZERO, Diary::default());
        diary.on_asked(task(1), &function, now);
        diary.follow(&tables);
        tables.apply(&Update::Submit {
            task: task(1),
            function,
        });
        let unit = tables.assignment(task(1)).unwrap().clone();
        diary.follow(&tables);
        tables.apply(&Update::Cancel(task(1)));
        diary.follow(&tables);
        let answer = Some((&Answer::Cancelled, &[][..]));
        diary.on_ended(task(1), answer, now);
        diary.look(ME, &tables, now + Span::secs(60));
        assert_eq!(diary.answers(now).next().unwrap().attempt, unit.attempt);
        assert_eq!(diary.on_answered(task(1)), Some(unit));
        assert_eq!(diary.on_answered(task(1)), None);
        assert!(diary.tasks.is_empty());
    }

    #[test]
    fn a_task_whose_client_has_left_is_known_while_it_is_open() {
        let mut tables = tables();
        let (function, now, mut diary) = (Function::new(b"x"), Time::ZERO, Diary::default());
        let other = TaskId {
            client: Member::new(8, 1),
            number: 4,
        };
        for task in [task(1), task(2), other] {
            diary.on_asked(task, &function, now);
        }
        tables.apply(&Update::Submit {
            task: task(2),
            function,
        });
        diary.follow(&tables);
        diary.on_ended(task(1), Some((&Answer::NoMajority, &[])), now);
        assert_eq!(awaited(&diary), [4, 1, 2]);
        diary.on_left(CLIENT);
        assert_eq!(awaited(&diary), [4]);
        assert_eq!(diary.tasks.len(), 2, "that of the first one is over");
        assert_eq!(diary.on_answered(task(2)), None);
    }

    #[test]
    fn the_task_that_was_asked_for_first_makes_room_and_others_take_none_of_it() {
        let (function, mut diary) = (Function::new(b"x"), Diary::default());
        let many = TASKS as u64;
        for number in 1..=many {
            // The ids are in descending order.
            diary.on_asked(task(many - number), &function, Time(number));
        }
        diary.on_asked(task(many - 1), &function, Time(many + 1));
        assert_eq!(awaited(&diary).last(), Some(&(many - 1)), "it was known");
        for number in 0..2 * many {
            let at = Time(2 * many + number);
            diary.open(task(10_000 + number), &function, at, false);
        }
        assert_eq!(awaited(&diary).len(), TASKS);
        assert_eq!(diary.tasks.len(), 2 * TASKS);
        diary.on_asked(task(1_000), &function, Time(9 * many));
        let known = awaited(&diary);
        assert_eq!((known.len(), known.first()), (TASKS, Some(&0)));
        assert_eq!(known[TASKS - 2..], [many - 2, 1_000]);
        diary.on_left(CLIENT);
        assert_eq!(diary.tasks.len(), TASKS);
    }

    #[test]
    fn what_was_seen_of_one_attempt_is_nothing_for_the_next() {
        let mut tables = tables();
        let function = Function::new(b"x");
        let task = task(1);
        tables.apply(&Update::Submit { task, function });
        let first = tables.assignment(task).unwrap().clone();
        let mut second = first.clone();
        second.attempt += 1;
        let mut page = Page::new(Bytes::new(), Time::ZERO);
        page.follow(Some(&first));
        page.votes.insert(NodeId(102));
        page.follow(Some(&first));
        page.follow(None);
        assert_eq!((page.unit.as_ref(), page.votes.len()), (Some(&first), 1));
        let mut diary = Diary::default();
        diary.tasks.insert(task, page);
        let shown = diary.task(task, tables.open_task(task).unwrap(), Time::ZERO);
        assert_eq!(*shown.votes, [NodeId(102)]);
        let page = diary.tasks.get_mut(&task).unwrap();
        page.follow(Some(&second));
        assert_eq!((page.unit.as_ref(), page.votes.len()), (Some(&second), 0));
        // The tables are behind: the record is of another attempt than theirs.
        page.votes.insert(NodeId(103));
        let shown = diary.task(task, tables.open_task(task).unwrap(), Time::ZERO);
        assert_eq!(*shown.votes, []);
    }

    #[test]
    fn a_task_has_an_age_and_an_answer_says_how_long_it_took_and_when() {
        let mut tables = tables();
        let (function, task) = (Function::new(b"x"), task(1));
        let mut diary = Diary::default();
        let at = |seconds| Time::ZERO + Span::secs(seconds);
        diary.on_asked(task, &function, at(1));
        diary.on_asked(task, &function, at(2));
        tables.apply(&Update::Submit { task, function });
        let unit = tables.assignment(task).unwrap().clone();
        diary.look(ME, &tables, at(20));
        let shown = diary.task(task, tables.open_task(task).unwrap(), at(3));
        assert_eq!(shown.age_ms, 2_000);
        let answer = Some((&Answer::NoMajority, &[][..]));
        diary.on_ended(task, answer, at(4));
        let shown = diary.answers(at(9)).next().unwrap();
        assert_eq!((shown.took_ms, shown.ago_ms), (3_000, 5_000));
        assert_eq!((shown.attempt, shown.task), (unit.attempt, task));
        assert_eq!(*shown.electors, *unit.electors);
    }

    #[test]
    fn who_is_no_follower_of_this_gateway_is_forgotten_in_five_seconds() {
        let (tables, mut diary) = (tables(), Diary::default());
        let at = |millis| Time::ZERO + Span::millis(millis);
        for id in [101, 777] {
            diary.on_message(Member::new(id, 0), &keep_alive(), None, at(0));
        }
        diary.open(task(7), &Function::new(b"x"), at(0), false);
        let known = |diary: &Diary| (diary.woke.len(), diary.tasks.len());
        diary.look(ME, &tables, at(4_999));
        assert_eq!(known(&diary), (2, 1));
        diary.look(ME, &tables, at(5_000));
        assert_eq!(known(&diary), (1, 0));
        assert_eq!(diary.woke_ms(NodeId(101), at(5_000)), Some(5_000));
        // The client moved to another gateway.
        diary.look(NodeId(2), &tables, at(5_000));
        assert_eq!(known(&diary), (0, 0));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let (tables, mut diary) = (tables(), Diary::default());
        let function = Function::new(&[b'y'; 1_000]);
        for number in 1..=1_000 {
            let now = Time(number);
            diary.on_asked(task(2_000 - number), &function, now);
            let answer = Some((&Answer::NoMajority, &[][..]));
            diary.on_ended(task(number + 5_000), answer, now);
        }
        assert_eq!(diary.tasks.len(), TASKS);
        // The latest are kept, though their ids are in descending order.
        assert!(diary.tasks.contains_key(&task(1_000)));
        assert!(!diary.tasks.contains_key(&task(1_999)));
        assert_eq!(diary.answers.len(), Status::ANSWERS);
        let longest = diary.tasks.values().map(|it| it.function.len()).max();
        assert_eq!(longest, Some(TEXT + '\u{2026}'.len_utf8()));
        for id in 0..10_000 {
            diary.on_message(Member::new(id, 0), &keep_alive(), None, Time::ZERO);
        }
        assert_eq!(diary.woke.len(), FOLLOWERS);
        diary.on_left(CLIENT);
        diary.look(ME, &tables, Time::ZERO + Span::secs(6));
        assert_eq!(diary.woke.len(), 3);
        assert!(diary.tasks.is_empty());
        assert_eq!(
            diary.woke_ms(NodeId(101), Time::ZERO + Span::secs(7)),
            Some(7_000)
        );
        assert_eq!(diary.woke_ms(NodeId(104), Time::ZERO), None);
    }

    #[test]
    fn a_call_is_shown_as_its_user_wrote_it() {
        let module = crate::ModuleId::of(b"any");
        let arguments = ["84i64", "36i64"].map(|it| it.parse().unwrap());
        let call = Call::new(module, "gcd", arguments).unwrap();
        let shown = text(&call.to_function().unwrap());
        assert_eq!(*shown, *b"gcd(84i64, 36i64)");
        let longest = [b'y'; TEXT];
        assert_eq!(*text(&Function::new(&longest)), longest);
    }
}
