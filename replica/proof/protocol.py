"""The memories of members, and each step that one of them can take, within one configuration.

A step changes the state at once, as a machine's does. Each function returns when it can be taken,
and the state behind it. Names in brackets are those of the functions in `../src`."""

from dataclasses import dataclass, replace
from typing import Callable

from z3 import And, If, Implies, Not, Or


@dataclass
class State:
    # Of each member. Its log is the committed entries up to `committed`, and the tail up to `end`,
    # which it accepted under `accepted`. `stored` is the last commit that its facts hold: a
    # later life begins there, and has the rest in its tail.
    promised: Callable
    accepted: Callable
    stored: Callable
    committed: Callable
    end: Callable
    log: Callable
    leads: Callable
    # Of each ballot: if it was led; the entries that its leader adopted, up to `start`, and proposed, up
    # to `length`. While a leader leads, this is its log. The stored part of it is its log as a
    # member: it sends entries before it has stored them, and counts itself when it has.
    led: Callable
    start: Callable
    length: Callable
    proposed: Callable
    # Messages that were sent. `acked(n, b, v)`: an Accepted of ballot b, with an end of v or more.
    acked: Callable
    sent_promise: Callable
    sent_accept: Callable
    sent_learn: Callable
    # History, which no member reads: the quorum that promised a ballot that was led; whether a leader
    # has committed a version, the first one that did, and the quorum that it counted.
    promisers: Callable
    decided: Callable
    decider: Callable
    deciders: Callable
    # True if a ballot can no longer decide a version: `dead` in `invariant.py`.
    dead: Callable = None


def any_state(w):
    f = w.function
    return State(
        promised=f("promised", "n", "b"), accepted=f("accepted", "n", "b"),
        stored=f("stored", "n", "v"), committed=f("committed", "n", "v"), end=f("end", "n", "v"),
        log=f("log", "nv", "x"), leads=f("leads", "n"), led=f("led", "b"),
        start=f("start", "b", "v"), length=f("length", "b", "v"),
        proposed=f("proposed", "bv", "x"), acked=f("acked", "nbv"),
        sent_promise=f("sent_promise", "p"), sent_accept=f("sent_accept", "a"),
        sent_learn=f("sent_learn", "e"), promisers=f("promisers", "b", "q"),
        decided=f("decided", "v"), decider=f("decider", "v", "b"), deciders=f("deciders", "v", "q"))


def is_first(w, s):
    """The beginning of a configuration: at version 0 all is committed. Ballot 0 has proposed nothing."""
    return And(
        w.all("n", lambda n: And(
            s.promised(n) == 0, s.accepted(n) == 0, s.stored(n) == 0, s.committed(n) == 0,
            s.end(n) == 0, Not(s.leads(n)))),
        w.all("b", lambda b: And(s.led(b) == (b == 0), s.start(b) == 0, s.length(b) == 0)),
        w.all("nbv", lambda n, b, v: Not(s.acked(n, b, v))), w.all("v", lambda v: Not(s.decided(v))),
        w.all("p", lambda p: Not(s.sent_promise(p))), w.all("a", lambda a: Not(s.sent_accept(a))),
        w.all("e", lambda e: Not(s.sent_learn(e))))


@dataclass
class Rules:
    """Each of these, set to true, breaks the invariant."""
    # The former rule: a leader that learns an entry of another, or installs a state, goes on
    # with its ballot. Its log has the entries in place of its own.
    leads_on: bool = False
    # A part of the adopted entries is sent to a member that has accepted nothing under the ballot.
    sends_parts: bool = False
    # A member accepts under a ballot below its promise.
    accepts_any: bool = False
    # A leader takes the tail of any member that promised.
    adopts_any: bool = False


def at(function, key, value):
    return lambda k: If(k == key, value, function(k))


def highest(a, b):
    return If(a >= b, a, b)


def is_here(w, s, n):
    """A member that has committed the entry that seals the configuration acts in the next one."""
    return w.all("v", lambda v: Implies(And(0 < v, v <= s.committed(n)),
                                        Not(w.seals(s.log(n, v)))))


def promise(w, s, rules):
    """A Prepare arrives [on_prepare, grant]. What it holds is left out: a member may promise any
    ballot at any time, also again. It sends its tail always, not only where its claim is higher."""
    n, b, p = w.constant("n"), w.constant("b"), w.constant("p")
    return [
        is_here(w, s, n), s.promised(n) <= b, 0 < b, w.owner(b) != n,
        w.p_from(p) == n, w.p_ballot(p) == b, w.p_accepted(p) == s.accepted(n),
        w.p_committed(p) == s.committed(n), w.p_end(p) == s.end(n),
        w.all("v", lambda v: w.p_entry(p, v) == s.log(n, v)),
    ], replace(
        s, promised=at(s.promised, n, b), sent_promise=at(s.sent_promise, p, True),
        leads=at(s.leads, n, And(s.leads(n), s.promised(n) == b)))


def lead_by_own(w, s, rules):
    """A candidate has the highest claim itself [evaluate, lead]."""
    return lead(w, s, rules, True)


def lead_by_promised(w, s, rules):
    """A candidate adopts the tail of another member's promise [evaluate, lead]."""
    return lead(w, s, rules, False)


def lead(w, s, rules, is_own):
    """Of each member of a quorum one Promise is counted. The candidate promises last."""
    n, b, q, best = (w.constant(k) for k in "nbqp")
    counted = w.function("counted", "n", "p")
    accepted = s.accepted(n) if is_own else w.p_accepted(best)
    end = s.end(n) if is_own else w.p_end(best)

    def is_lower(a, e):
        return Or(a < accepted, And(a == accepted, e <= end), rules.adopts_any)

    def is_counted(m):
        p = counted(m)
        return And(s.sent_promise(p), w.p_from(p) == m, w.p_ballot(p) == b,
                   is_lower(w.p_accepted(p), w.p_end(p)))

    def entry(v):
        return s.log(n, v) if is_own else If(v <= s.committed(n), s.log(n, v), w.p_entry(best, v))

    start = highest(s.committed(n), end)
    return [
        is_here(w, s, n), w.owner(b) == n, s.promised(n) < b, w.promises(q),
        is_own or And(s.sent_promise(best), w.p_ballot(best) == b,
                      w.p_committed(best) <= s.committed(n)),
        is_lower(s.accepted(n), s.end(n)),
        w.all("n", lambda m: Implies(And(w.is_in(m, q), m != n), is_counted(m))),
    ], replace(
        s, promised=at(s.promised, n, b), accepted=at(s.accepted, n, b),
        stored=at(s.stored, n, s.committed(n)), end=at(s.end, n, start),
        log=lambda m, v: If(m == n, entry(v), s.log(m, v)),
        leads=at(s.leads, n, True), led=at(s.led, b, True), start=at(s.start, b, start),
        length=at(s.length, b, start),
        proposed=lambda c, v: If(c == b, entry(v), s.proposed(c, v)),
        acked=lambda m, c, v: Or(s.acked(m, c, v), And(m == n, c == b, v <= start)),
        promisers=at(s.promisers, b, q))


def append(w, s, rules):
    """A leader appends any entries, nothing behind one that seals [append_backlog]."""
    n, length = w.constant("n"), w.constant("v")
    entry = w.function("appended", "v", "x")
    b = s.accepted(n)
    before = s.length(b)
    return [
        is_here(w, s, n), s.leads(n), before < length,
        w.all("v", lambda v: Implies(And(0 < v, v <= before), Not(w.seals(s.proposed(b, v))))),
        w.all("v", lambda v: Implies(And(before < v, v < length), Not(w.seals(entry(v))))),
    ], replace(
        s, length=at(s.length, b, length),
        proposed=lambda c, v: If(And(c == b, before < v, v <= length), entry(v), s.proposed(c, v)))


def send_accept(w, s, rules):
    """A leader sends a slice of its log: all that is not committed, or to a member that has
    acknowledged the ballot any part [send_accept]. Also to itself: that stands for its storing."""
    n, a = w.constant("n"), w.constant("a")
    b = s.accepted(n)
    is_whole = And(w.a_after(a) <= s.committed(n), w.a_end(a) == s.length(b))
    return [
        is_here(w, s, n), s.leads(n), w.a_ballot(a) == b, w.a_end(a) <= s.length(b),
        w.a_commit(a) <= s.committed(n),
        Or(is_whole, s.acked(w.a_to(a), b, 0), rules.sends_parts),
        w.all("v", lambda v: w.a_entry(a, v) == s.proposed(b, v)),
    ], replace(s, sent_accept=at(s.sent_accept, a, True))


def accept(w, s, rules):
    """An Accept arrives [on_accept, accept, commit]. Entries that are held stay as they are. The
    fact holds the commit, too; where nothing but that changes there is no fact."""
    n, a, stored = w.constant("n"), w.constant("a"), w.constant("v")
    b = w.a_ballot(a)
    in_ballot = s.accepted(n) == b
    held = If(in_ballot, s.end(n), s.committed(n))
    end = highest(held, w.a_end(a))
    commit = If(w.a_commit(a) <= end, w.a_commit(a), end)
    committed = highest(s.committed(n), commit)
    return [
        is_here(w, s, n), s.sent_accept(a), w.a_to(a) == n, w.a_after(a) <= held,
        Or(s.promised(n) <= b, rules.accepts_any),
        Or(stored == committed, And(in_ballot, stored == s.stored(n))),
    ], replace(
        s, promised=at(s.promised, n, highest(s.promised(n), b)), accepted=at(s.accepted, n, b),
        stored=at(s.stored, n, stored), committed=at(s.committed, n, committed),
        end=at(s.end, n, end),
        log=lambda m, v: If(And(m == n, held < v, v <= end), w.a_entry(a, v), s.log(m, v)),
        leads=at(s.leads, n, And(s.leads(n), in_ballot)),
        acked=lambda m, c, v: Or(s.acked(m, c, v), And(m == n, c == b, v <= end)))


def commit(w, s, rules):
    """A leader commits entries that a quorum has acknowledged [on_accepted, advance]. That each Accepted
    arrives at some time needs no step of its own: the leader may count all that were sent."""
    n, q, version = w.constant("n"), w.constant("q"), w.constant("v")
    b = s.accepted(n)

    def is_new(v):
        return And(0 < v, v <= version, Not(s.decided(v)))

    return [
        is_here(w, s, n), s.leads(n), s.committed(n) < version, version <= s.end(n), w.decides(q),
        w.all("n", lambda m: Implies(w.is_in(m, q), s.acked(m, b, version))),
    ], replace(
        s, committed=at(s.committed, n, version),
        decided=lambda v: Or(s.decided(v), is_new(v)),
        decider=lambda v: If(is_new(v), b, s.decider(v)),
        deciders=lambda v: If(is_new(v), q, s.deciders(v)))


def send_learn(w, s, rules):
    """Any member sends committed entries [send_learn], or, from version 0 on, a state [send_page]."""
    n, e = w.constant("n"), w.constant("e")
    return [
        w.e_end(e) <= s.committed(n), w.all("v", lambda v: w.e_entry(e, v) == s.log(n, v)),
    ], replace(s, sent_learn=at(s.sent_learn, e, True))


def learn(w, s, rules):
    """Committed entries arrive [on_learn, learn]. If they differ from the tail, the tail is dropped. A
    witness cannot see that, for it holds no updates: so the tail may be kept, too."""
    n, e, end = w.constant("n"), w.constant("e"), w.constant("v")
    until = w.e_end(e)
    differs = w.some("v", lambda v: And(
        s.committed(n) < v, v <= until, v <= s.end(n), s.log(n, v) != w.e_entry(e, v)))
    kept = highest(s.end(n), until)
    return [
        is_here(w, s, n), s.sent_learn(e), w.e_after(e) <= s.committed(n), s.committed(n) < until,
        Or(end == kept, And(differs, end == until)),
    ], take_committed(w, s, rules, n, e, end, True)


def install(w, s, rules):
    """A state arrives [on_state, install]. What is behind it in the tail is kept, unseen."""
    n, e = w.constant("n"), w.constant("e")
    return [
        is_here(w, s, n), s.sent_learn(e), w.e_after(e) == 0, s.committed(n) < w.e_end(e),
    ], take_committed(w, s, rules, n, e, highest(s.end(n), w.e_end(e)), False)


def take_committed(w, s, rules, n, e, end, is_seen):
    until, b = w.e_end(e), s.accepted(n)

    def is_news(v):
        return And(s.committed(n) < v, v <= until)

    was_proposed = w.all("v", lambda v: Implies(
        is_news(v), And(v <= s.length(b), s.proposed(b, v) == w.e_entry(e, v))))
    after = replace(
        s, stored=at(s.stored, n, until), committed=at(s.committed, n, until), end=at(s.end, n, end),
        log=lambda m, v: If(And(m == n, is_news(v)), w.e_entry(e, v), s.log(m, v)))
    if not rules.leads_on:
        # The rule: a leader that learns an entry that it did not propose, or cannot compare, is
        # deposed [end_lead].
        return replace(after, leads=at(s.leads, n, And(s.leads(n), was_proposed, is_seen)))
    is_kept = end == highest(s.end(n), until)
    length = If(is_kept, highest(s.length(b), until), until)
    return replace(
        after, length=lambda c: If(And(s.leads(n), c == b), length, s.length(c)),
        proposed=lambda c, v: If(And(s.leads(n), c == b, is_news(v)),
                                 w.e_entry(e, v), s.proposed(c, v)))


def step_down(w, s, rules):
    """A leader stops leading, or stands again, for any reason."""
    return [], replace(s, leads=at(s.leads, w.constant("n"), False))


def restart(w, s, rules):
    """A later life has the facts of the one before [restore, fold]. A commit alone is no fact, so
    the entries committed behind the last one are in the tail again."""
    n, version = w.constant("n"), w.constant("v")
    return [
        s.stored(n) <= version, version <= s.committed(n),
    ], replace(s, leads=at(s.leads, n, False), committed=at(s.committed, n, version))


STEPS = [promise, lead_by_own, lead_by_promised, append, send_accept, accept, commit, send_learn,
         learn, install, step_down, restart]
