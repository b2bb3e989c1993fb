"""The invariant behind "Why it is safe", part by part, and its consequences in each state.

The thread through it is `dead`: a ballot can decide a version no more, since of each quorum some
member has promised a higher ballot and had not acknowledged that version before. This is for good:
such a member acknowledges nothing below its promise.

An Accepted carries the length of a member's log, and no more. A member that has learned entries of
another ballot may acknowledge proposals that it does not hold. So no part here states that a member
holds all that it acknowledged: it holds it, or the ballot is dead there (`held`, `promise's claim`)."""

from z3 import And, Implies, Not, Or


def dead(w, s, b, v):
    return w.all("q", lambda q: w.some("n", lambda n: And(
        w.is_in(n, q), s.promised(n) > b, Not(s.acked(n, b, v)))))


def has(s, b, v, entry):
    """The leader of `b` proposed this."""
    return And(v <= s.length(b), s.proposed(b, v) == entry)


def is_final(s, v, entry):
    """This was decided."""
    return And(s.decided(v), s.proposed(s.decider(v), v) == entry)


def invariant(w, s):
    return {**of_members(w, s), **of_ballots(w, s), **of_messages(w, s)}


def of_members(w, s):
    return {
        "numbers": w.all("n", lambda n: And(
            s.stored(n) <= s.committed(n), s.committed(n) <= s.end(n),
            s.accepted(n) <= s.promised(n), s.led(s.accepted(n)),
            Or(s.stored(n) == s.end(n), s.end(n) <= s.length(s.accepted(n))))),
        # All acceptances under one ballot are slices of one sequence.
        "tail": w.all("nv", lambda n, v: Implies(
            And(s.stored(n) < v, v <= s.end(n)), has(s, s.accepted(n), v, s.log(n, v)))),
        "committed": w.all(
            "nv", lambda n, v: Implies(
                And(0 < v, v <= s.committed(n)), is_final(s, v, s.log(n, v))),
            lambda n, v: [(s.log(n, v),), (s.committed(n), s.decided(v))]),
        "leader": w.all("n", lambda n: Implies(s.leads(n), And(
            w.owner(s.accepted(n)) == n, s.promised(n) == s.accepted(n), s.accepted(n) > 0,
            s.end(n) <= s.length(s.accepted(n))))),
        # With "committed": a leader commits its own proposals only, and has others commit only these.
        "leader's log": w.all("nv", lambda n, v: Implies(
            And(s.leads(n), 0 < v, v <= s.end(n)), s.log(n, v) == s.proposed(s.accepted(n), v))),
        "acked": w.all("nbv", lambda n, b, v: Implies(
            s.acked(n, b, v), And(0 < b, s.led(b), b <= s.accepted(n)))),
        "acked in order": w.all("nbvv", lambda n, b, u, v: Implies(
            And(u < v, s.acked(n, b, v)), s.acked(n, b, u))),
        "held": w.all("nbv", lambda n, b, v: Implies(
            And(0 < v, b == s.accepted(n), s.acked(n, b, v)), Or(v <= s.end(n), s.dead(b, v)))),
        # A member takes a ballot over with all that its leader adopted, or the entries that it lacks
        # were never decided.
        "held before": w.all(
            "nbv", lambda n, b, v: Implies(
                And(0 < v, b < s.accepted(n)), Or(v <= s.end(n), s.dead(b, v))),
            lambda n, b, v: [(s.dead(b, v), s.accepted(n))]),
    }


def of_ballots(w, s):
    return {
        "ballots": And(s.length(0) == 0, s.led(0), w.all("b", lambda b: s.start(b) <= s.length(b))),
        "led": w.all("b", lambda b: Implies(And(s.led(b), b > 0), s.promised(w.owner(b)) >= b)),
        "promisers": w.all("bn", lambda b, n: Implies(
            And(s.led(b), b > 0, w.is_in(n, s.promisers(b))), s.promised(n) >= b)),
        # The heart of Paxos: each entry that a lower ballot may have decided, or may yet, was adopted.
        "adopted": w.all(
            "bbv", lambda b, c, v: Implies(
                And(0 < v, b < c, s.led(c)),
                Or(s.dead(b, v), And(v <= s.start(c), has(s, b, v, s.proposed(c, v))))),
            lambda b, c, v: [(s.dead(b, v), s.led(c))]),
        "sealed": w.all("bv", lambda b, v: Implies(
            And(s.led(b), 0 < v, v < s.length(b)), Not(w.seals(s.proposed(b, v))))),
        "decided": w.all("v", lambda v: Implies(And(0 < v, s.decided(v)), And(
            s.led(s.decider(v)), v <= s.length(s.decider(v)),
            w.all("n", lambda n: Implies(w.is_in(n, s.deciders(v)),
                                         s.acked(n, s.decider(v), v)))))),
        "decided in order": w.all("vv", lambda u, v: Implies(
            And(0 < u, u < v, s.decided(v)), s.decided(u))),
    }


def of_messages(w, s):
    return {
        "promise": w.all("p", lambda p: Implies(s.sent_promise(p), And(
            w.p_accepted(p) <= w.p_ballot(p), w.p_ballot(p) <= s.promised(w.p_from(p)),
            s.led(w.p_accepted(p)), w.p_committed(p) <= w.p_end(p),
            Or(w.p_committed(p) == w.p_end(p), w.p_end(p) <= s.length(w.p_accepted(p)))))),
        "promise's tail": w.all("pv", lambda p, v: Implies(
            And(s.sent_promise(p), w.p_committed(p) < v, v <= w.p_end(p)),
            has(s, w.p_accepted(p), v, w.p_entry(p, v)))),
        # A claim (ballot, version) is enough for a candidate.
        "promise's claim": w.all("pbv", lambda p, b, v: Implies(
            And(s.sent_promise(p), 0 < v, b < w.p_ballot(p), s.acked(w.p_from(p), b, v)),
            Or(b < w.p_accepted(p), And(b == w.p_accepted(p), v <= w.p_end(p)), s.dead(b, v)))),
        "promise's claim before": w.all(
            "pbv", lambda p, b, v: Implies(
                And(s.sent_promise(p), 0 < v, b < w.p_accepted(p)),
                Or(v <= w.p_end(p), s.dead(b, v))),
            lambda p, b, v: [(s.sent_promise(p), s.dead(b, v))]),
        "accept": w.all("a", lambda a: Implies(s.sent_accept(a), And(
            0 < w.a_ballot(a), s.led(w.a_ballot(a)), w.a_end(a) <= s.length(w.a_ballot(a)),
            Or(s.start(w.a_ballot(a)) <= w.a_end(a), w.a_ballot(a) <= s.accepted(w.a_to(a)))))),
        "accept's entries": w.all("av", lambda a, v: Implies(
            And(s.sent_accept(a), w.a_after(a) < v, v <= w.a_end(a)),
            w.a_entry(a, v) == s.proposed(w.a_ballot(a), v))),
        # Why its prefix needs no name: a member with a slice of the ballot's sequence holds the decided
        # entries, as far as this commit goes.
        "accept's commit": w.all("av", lambda a, v: Implies(
            And(s.sent_accept(a), 0 < v, v <= w.a_commit(a)),
            And(v <= s.length(w.a_ballot(a)), is_final(s, v, s.proposed(w.a_ballot(a), v))))),
        "learn": w.all("ev", lambda e, v: Implies(
            And(s.sent_learn(e), w.e_after(e) < v, v <= w.e_end(e)),
            is_final(s, v, w.e_entry(e, v)))),
    }


def lemmas(w, s):
    """Consequences of the invariant in each state, each also from the ones before it."""
    return {
        "dead above": w.all(
            "bvv", lambda b, u, v: Implies(And(u < v, s.dead(b, u)), s.dead(b, v)),
            lambda b, u, v: [(s.dead(b, u), s.dead(b, v))]),
        "decided, not dead": w.all(
            "v", lambda v: Implies(And(0 < v, s.decided(v)), Not(s.dead(s.decider(v), v))),
            lambda v: [(s.decided(v),)]),
        # Each ballot, lower or higher, has the decided entry, or decides nothing there.
        "final": w.all(
            "bv", lambda b, v: Implies(
                And(0 < v, s.decided(v), s.led(b)),
                Or(s.dead(b, v), has(s, b, v, s.proposed(s.decider(v), v)))),
            lambda b, v: [(s.decided(v), s.led(b))]),
        "nothing behind a seal": w.all("vv", lambda u, v: Implies(
            And(0 < u, u < v, s.decided(v)), Not(w.seals(s.proposed(s.decider(u), u))))),
        # The promise: no two members apply different entries at one version.
        "agreement": w.all("nnv", lambda m, n, v: Implies(
            And(0 < v, v <= s.committed(m), v <= s.committed(n)), s.log(m, v) == s.log(n, v))),
    }


# The parts on which a part rests, if not on itself alone. Leaving the rest out only makes a proof
# harder, so this needs no trust; but the solver gets lost in all that is true.
RESTS_ON = {
    "held": ["numbers", "tail", "acked", "acked in order", "learn", "final", "dead above"],
    "held before": ["numbers", "tail", "acked", "adopted", "promisers", "learn", "accept", "ballots",
                    "final", "dead above"],
    "adopted": ["numbers", "ballots", "led", "promisers", "acked", "tail", "committed", "held",
                "held before", "promise", "promise's tail", "promise's claim",
                "promise's claim before", "final", "dead above", "decided, not dead"],
    "sealed": ["numbers", "tail", "promise", "promise's tail"],
    "tail": ["numbers", "committed", "leader", "leader's log", "led", "ballots", "promise",
             "promise's tail", "accept", "accept's entries"],
    "committed": ["numbers", "tail", "leader", "leader's log", "decided", "accept", "led",
                  "accept's entries", "accept's commit", "learn", "final", "acked in order"],
    "leader's log": ["numbers", "leader", "tail", "accept", "accept's entries", "learn"],
    "accept's commit": ["numbers", "ballots", "accept", "decided", "led", "leader", "leader's log",
                        "committed"],
    "learn": ["decided", "led", "committed"],
    "nothing behind a seal": ["decided", "decided in order", "sealed", "final", "dead above",
                              "decided, not dead"],
}
