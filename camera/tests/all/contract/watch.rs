//! The checks at every moment.

use alloc::collections::{BTreeMap, BTreeSet};

use selvedge_camera::{Camera, Command, Config, Event, Message, Refusal, Reject, Token};
use selvedge_core::Member;
use selvedge_core::wire::{Envelope, HEADER_LEN};

selvedge_sim::counts! {
    /// Counts of the events of histories.
    pub(crate) struct Tally {
        entries,
        /// Entries whose token was compared with the token before.
        compared,
        /// Entries that passed no waiting node whose request had arrived before the request of this
        /// entry was made.
        in_order,
        waits,
        refused,
        slow,
        /// Steps after which permissions were kept outside.
        kept,
        /// Entries that were requested at once after an exit, with a false failure between.
        again,
        crashes,
        restarts,
        slept,
        /// Requests that had to lead to an entry when the trouble was over.
        served,
        /// False failures of the node inside.
        false_of_holder,
        issued_again,
        rebuilt,
        /// The most messages in one second.
        busiest: max u64,
        /// The most moments of one second at which a node sent the same request.
        most_asked: max u64,
    }
}

/// The state of a node, from its commands and its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    Outside,
    Waiting,
    Inside(Token),
}

/// The facts about one life.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) me: Member,
    pub(crate) config: Config,
    pub(crate) stand: Stand,
    /// The moment of its end.
    pub(crate) until: Option<u64>,
    /// The time since which a request of it is open, kept permissions included.
    pub(crate) open: Option<u64>,
    pub(crate) has_asked: bool,
    pub(crate) refusals: u32,
    /// The members for which it has to wait, by its events.
    waits_for: BTreeSet<Member>,
    /// The number of its latest request, the requests that it received, and those that it had received
    /// when it made its own.
    number: u64,
    received: BTreeMap<Member, u64>,
    before: BTreeMap<Member, u64>,
}

/// All lives, and the last holder.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) lives: Vec<Life>,
    pub(crate) moment: u64,
    pub(crate) tally: Tally,
    bound: usize,
    /// The latest token, and the time since which its request was open.
    last: Option<(Token, u64)>,
    /// True if tokens had to rise between all entries until now. If they had not, a node inside may
    /// learn of a higher token that was used before.
    are_tokens_sure: bool,
}

impl Watch {
    pub(crate) fn new(bound: u32) -> Self {
        Self {
            bound: bound as usize,
            are_tokens_sure: true,
            ..Self::default()
        }
    }

    pub(crate) fn begin(&mut self, me: Member, config: Config) -> usize {
        self.moment += 1;
        self.lives.push(Life {
            me,
            config,
            stand: Stand::Outside,
            until: None,
            open: None,
            has_asked: false,
            refusals: 0,
            waits_for: BTreeSet::new(),
            number: 0,
            received: BTreeMap::new(),
            before: BTreeMap::new(),
        });
        self.lives.len() - 1
    }

    pub(crate) fn end(&mut self, life: usize) {
        self.moment += 1;
        self.lives[life].until = Some(self.moment);
        self.lives[life].open = None;
        self.tally.crashes += 1;
    }

    /// Adds the counts of a life at its end.
    pub(crate) fn counts(&mut self, camera: &Camera) {
        self.tally.issued_again += camera.counters().issued_again;
        self.tally.rebuilt += camera.counters().rebuilt;
    }

    /// Notes that a node learns of the failure of `whom`.
    pub(crate) fn is_failed(&mut self, whom: Member) {
        let is_inside = |it: &Life| it.me == whom && matches!(it.stand, Stand::Inside(_));
        self.tally.false_of_holder += u64::from(self.lives.iter().any(is_inside));
    }

    pub(crate) fn is_alive(&self, member: Member) -> bool {
        let mut present = self.lives.iter().filter(|it| it.until.is_none());
        present.any(|it| it.me == member)
    }

    /// Returns true if the bound allows one more life, for each request that is open.
    pub(crate) fn has_room(&self) -> bool {
        let oldest = self.lives.iter().filter_map(|it| it.open).min();
        self.present_since(oldest.unwrap_or(self.moment)) < self.bound
    }

    fn present_since(&self, moment: u64) -> usize {
        let were = |it: &&Life| it.until.is_none_or(|until| until >= moment);
        self.lives.iter().filter(were).count()
    }

    /// The refusal of a command that is about to be given; `None` if it must be taken.
    pub(crate) fn command(&mut self, life: usize, command: Command) -> Option<Reject> {
        self.moment += 1;
        let moment = self.moment;
        let it = &mut self.lives[life];
        let refused = match (command, it.stand) {
            (Command::Enter | Command::GiveBack, Stand::Waiting) => Some(Reject::AlreadyWaiting),
            (Command::Enter | Command::GiveBack, Stand::Inside(_)) => Some(Reject::AlreadyInside),
            (Command::Exit, Stand::Outside | Stand::Waiting) => Some(Reject::NotInside),
            (Command::Cancel, Stand::Outside | Stand::Inside(_)) => Some(Reject::NotWaiting),
            (Command::Enter | Command::GiveBack, Stand::Outside)
            | (Command::Exit, Stand::Inside(_))
            | (Command::Cancel, Stand::Waiting)
            | (Command::SetMaxLives(_), _) => None,
        };
        if refused.is_none() && command == Command::Enter {
            it.stand = Stand::Waiting;
            it.open = it.open.or(Some(moment));
            it.has_asked = true;
            it.waits_for.clear();
            it.before.clone_from(&it.received);
        }
        if let Command::SetMaxLives(max_lives) = command {
            it.config.max_lives = max_lives;
        }
        refused
    }

    /// Checks a message that is sent: its frame keeps the budget, and decodes to the same message.
    pub(crate) fn sends(&mut self, life: usize, message: &Message) {
        let it = &mut self.lives[life];
        let from = it.me;
        if let Some((whose, number)) = request_of(from, message)
            && whose == from
        {
            it.number = number;
        }
        let message = message.clone();
        let frame = Envelope { from, message };
        let bytes = postcard::to_allocvec(&frame).unwrap();
        let budget = usize::from(it.config.frame_budget);
        assert!(HEADER_LEN + bytes.len() <= budget, "{frame:?}");
        let read: Envelope<Message> = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(read.message, frame.message);
    }

    pub(crate) fn receives(&mut self, life: usize, from: Member, message: &Message) {
        if let Some((whose, number)) = request_of(from, message) {
            self.lives[life].received.insert(whose, number);
        }
        // It is outside; when it wants to enter once more, the event comes again.
        if let Some(whose) = end_of(from, message) {
            self.lives[life].waits_for.remove(&whose);
        }
    }

    pub(crate) fn notifies(&mut self, life: usize, event: Event) {
        self.moment += 1;
        let it = &mut self.lives[life];
        let me = it.me;
        match (event, it.stand) {
            (Event::Waiting(whom), Stand::Waiting) => {
                assert!(whom != me && it.waits_for.insert(whom), "{event:?} of {me}");
                self.tally.waits += 1;
            }
            (Event::SlowPathTaken, Stand::Waiting) => {
                assert!(it.config.slow_path);
                self.tally.slow += 1;
            }
            (Event::Entered(token), Stand::Waiting) => self.enters(life, token),
            (Event::Released(token), Stand::Inside(mine)) => {
                assert_eq!(token, mine);
                it.stand = Stand::Outside;
            }
            (Event::Cancelled, Stand::Waiting) => it.stand = Stand::Outside,
            (
                Event::Refused(Refusal::TooFew {
                    answered,
                    max_lives,
                }),
                Stand::Waiting,
            ) => {
                assert!(
                    max_lives == it.config.max_lives && answered > 0 && 2 * answered <= max_lives
                );
                it.stand = Stand::Outside;
                it.refusals += 1;
                self.tally.refused += 1;
            }
            (Event::Fenced(_), Stand::Inside(_)) if !self.are_tokens_sure => {}
            _ => panic!("{me} says {event:?} and is {:?}", it.stand),
        }
    }

    fn enters(&mut self, life: usize, token: Token) {
        let me = &self.lives[life];
        assert!(token.by == me.me && token.number > 0);
        let others = self.lives.iter().filter(|it| it.until.is_none());
        for other in others {
            let is_inside = matches!(other.stand, Stand::Inside(_));
            assert!(!is_inside, "{} enters beside {other:?}", me.me);
            // A node that takes part in few trees has not taken note of each request that it saw.
            let is_noted = me.config.tree_limit > 1 && !me.config.keep;
            if other.stand == Stand::Waiting && is_noted {
                let received = me.before.get(&other.me);
                assert_ne!(received, Some(&other.number), "{} before {other:?}", me.me);
                self.tally.in_order += u64::from(received.is_some());
            }
        }
        let open = me.open.unwrap_or(self.moment);
        if let Some((before, since)) = self.last
            && self.present_since(since) <= self.bound
        {
            assert!(token > before, "{token:?} after {before:?}");
            self.tally.compared += 1;
        } else if self.last.is_some() {
            self.are_tokens_sure = false;
        }
        self.last = Some((token, open));
        self.tally.entries += 1;
        self.lives[life].stand = Stand::Inside(token);
    }

    /// Checks that the machine's accessors match its events.
    pub(crate) fn looks(&mut self, life: usize, camera: &Camera) {
        let it = &mut self.lives[life];
        let stand = match (camera.token(), camera.is_waiting()) {
            (Some(token), false) => Stand::Inside(token),
            (None, true) => Stand::Waiting,
            (None, false) => Stand::Outside,
            (Some(_), true) => panic!("{} waits inside", it.me),
        };
        assert_eq!(stand, it.stand, "{}", it.me);
        assert!(camera.waits_for().is_sorted() && camera.kept().is_sorted());
        assert!(camera.waits_for().all(|whom| whom != it.me));
        assert!(stand == Stand::Waiting || camera.waits_for().next().is_none());
        let keeps = camera.kept().next().is_some();
        assert!(!keeps || it.config.keep);
        if stand == Stand::Outside {
            it.open = it.open.or(Some(self.moment)).filter(|_| keeps);
            self.tally.kept += u64::from(keeps);
        }
    }
}

/// The owner of this request, and its number.
fn request_of(from: Member, message: &Message) -> Option<(Member, u64)> {
    match message {
        Message::Request { request, .. } => Some((from, request.number)),
        Message::Join { tree, .. } => Some((tree.root, tree.number)),
        _ => None,
    }
}

/// The owner of the request that is over.
const fn end_of(from: Member, message: &Message) -> Option<Member> {
    match message {
        Message::Release { .. } => Some(from),
        Message::Over { root, .. } => Some(*root),
        _ => None,
    }
}
