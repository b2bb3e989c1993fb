"""Proves that the invariant behind "Why it is safe" is inductive, for any number of members, and that
other rules break it in one step. README.md beside this file says what that covers.

Ends with exit status 0 if all is as expected."""

import sys
import time

from z3 import And, Implies, Not, Or, Solver, sat, unsat

from invariant import RESTS_ON, dead, invariant, lemmas
from protocol import (STEPS, Rules, accept, any_state, install, is_first, lead_by_own,
                      lead_by_promised, learn, send_accept)
from world import World

WORK = 400_000
ATTEMPTS = 20

THREE = {"n": 3, "b": 2, "v": 2, "x": 2}
FIVE = {"n": 5, "b": 2, "v": 1, "x": 2}


def named_dead(w, s, name):
    """Names `dead` in a state. Its definition is given by the member that left a quorum, and by the
    quorum that is still able to decide."""
    s.dead = w.function(name, "bv")
    left, able = w.function(f"{name}_left", "bvq", "n"), w.function(f"{name}_able", "bv", "q")

    def has_left(n, b, v):
        return And(s.promised(n) > b, Not(s.acked(n, b, v)))

    return [
        w.all("bvq", lambda b, v, q: Implies(s.dead(b, v), And(
            w.is_in(left(b, v, q), q), has_left(left(b, v, q), b, v))),
            lambda b, v, q: [(s.dead(b, v), w.decides(q))]),
        w.all("bvn", lambda b, v, n: Implies(
            And(Not(s.dead(b, v)), w.is_in(n, able(b, v))), Not(has_left(n, b, v)))),
        w.all("bv", lambda b, v: w.decides(able(b, v)), lambda b, v: [(s.dead(b, v),)]),
    ]


def quorums(w, s):
    return [
        w.all("b", lambda b: w.promises(s.promisers(b)), lambda b: [(s.led(b),)]),
        w.all("v", lambda v: w.decides(s.deciders(v)), lambda v: [(s.decided(v),)]),
    ]


def any_state_with_names(w):
    s = any_state(w)
    return s, [*w.axioms(), *named_dead(w, s, "dead"), *quorums(w, s)]


def as_goals(w, parts, s):
    w.is_goal = True
    goals = parts(w, s)
    w.is_goal = False
    return goals


def refuses(name, given, known):
    """True if no state fulfils `given` and the known parts: the part of this name alone, the parts on
    which it rests, or all. The solver may get lost in one order of instances and not in the next, so
    it begins again. Limits count its work and not time: a busy machine changes nothing."""
    alone = [known[name]] if name in known else []
    some = alone + [known[it] for it in RESTS_ON.get(name, []) if it in known]
    every = list(known.values())
    for nth in range(ATTEMPTS):
        for facts in [some, every] if nth else [alone, some, every]:
            solver = Solver()
            solver.set("smt.random_seed", nth)
            solver.set("rlimit", WORK)
            solver.set("smt.mbqi", False)  # It looks for models, and there is none to be found.
            solver.add(*given, *facts)
            if solver.check() == unsat:
                return True
    return False


def prove_first():
    w = World()
    s, given = any_state_with_names(w)
    goals = as_goals(w, invariant, s)
    return [it for it, goal in goals.items()
            if not refuses(it, [*given, is_first(w, s), Not(goal)], {})], len(goals)


def prove_lemmas():
    w = World()
    s, given = any_state_with_names(w)
    known, follows = invariant(w, s), lemmas(w, s)
    goals = as_goals(w, lemmas, s)
    failed = []
    for name, goal in goals.items():
        if not refuses(name, [*given, Not(goal)], known):
            failed.append(name)
        known[name] = follows[name]
    return failed, len(goals)


def prove_step(step):
    """From any state that fulfils the invariant, the step leads to such a state."""
    w = World()
    s, given = any_state_with_names(w)
    known = {**invariant(w, s), **lemmas(w, s)}
    can, after = step(w, s, Rules())
    given += can
    after.dead = lambda b, v: dead(w, after, b, v)
    b, v = w.constant("b"), w.constant("v")
    name = "dead for good"
    failed = []
    if not refuses(name, [*given, b >= 0, v >= 0, s.dead(b, v), Not(after.dead(b, v))], known):
        failed.append(name)
    given += named_dead(w, after, "dead_after")
    given.append(w.all("bv", lambda b, v: Implies(s.dead(b, v), after.dead(b, v)),
                       lambda b, v: [(after.dead(b, v),)]))
    goals = as_goals(w, invariant, after)
    failed += [it for it, goal in goals.items() if not refuses(it, [*given, Not(goal)], known)]
    return failed, 1 + len(goals)


def search(bounds, steps, rules, broken):
    """A state that fulfils the invariant, and steps from there to one in which `broken` is untrue.
    Returns the solver's result, and the data to print it."""
    w = World(bounds)
    s = any_state(w)
    s.dead = lambda b, v: dead(w, s, b, v)
    solver = Solver()
    solver.add(*w.axioms(), *invariant(w, s).values())
    states = [s]
    for step in steps:
        can, after = step(w, states[-1], rules)
        solver.add(*can)
        states.append(after)
    after.dead = lambda b, v: dead(w, after, b, v)
    parts = {**invariant(w, after), **lemmas(w, after)}
    solver.add(Not(And([it for name, it in parts.items() if not broken or name == broken])))
    return solver, w, states


def can_happen(step):
    w = World(THREE)
    s = any_state(w)
    s.dead = lambda b, v: dead(w, s, b, v)
    solver = Solver()
    solver.add(*w.axioms(), *invariant(w, s).values(), *step(w, s, Rules())[0])
    solver.add(Or([s.decided(v) for v in w.elements["v"][1:]]))
    return solver.check() == sat


def print_state(w, s, value):
    for n in w.elements["n"]:
        log = [value(s.log(n, v)) for v in w.elements["v"][1:] if value(v <= s.end(n)) == "True"]
        numbers = f"promised {value(s.promised(n))}, accepted {value(s.accepted(n))}"
        leads = ", leads" if value(s.leads(n)) == "True" else ""
        print(f"    {n}: {numbers}, log {' '.join(log) or '-'}, "
              f"committed {value(s.committed(n))}{leads}")
    for b in w.elements["b"][1:]:
        if value(s.led(b)) == "True":
            log = [value(s.proposed(b, v)) for v in w.elements["v"][1:]
                   if value(v <= s.length(b)) == "True"]
            print(f"    ballot {b}, of {value(w.owner(b))}, proposed {' '.join(log) or '-'}")


def print_story():
    """The former rule: one step breaks the invariant, two more break the promise."""
    solver, w, states = search(FIVE, [learn, send_accept, accept], Rules(leads_on=True), "agreement")
    before = states[0]
    # The simplest case: no message is in flight, and the leader has stored its proposals.
    solver.add(w.all("n", lambda n: Implies(
        before.leads(n), before.end(n) == before.length(before.accepted(n)))))
    solver.add(w.all("p", lambda p: Not(before.sent_promise(p))),
               w.all("a", lambda a: Not(before.sent_accept(a))),
               w.all("x", lambda x: Not(w.seals(x))))
    if solver.check() != sat:
        return False
    model = solver.model()

    def value(term):
        return str(model.eval(term, model_completion=True))

    titles = ["a state that fulfils the invariant",
              "a leader learns what another ballot decided, and leads on: a follower's tail is no slice "
              "of what its leader proposes",
              "the leader sends Accept with its commit, and no entry that the follower lacks",
              "the follower commits what it holds: two entries at one version"]
    for title, state in zip(titles, states):
        print(f"  {title}")
        if state is not states[2]:
            print_state(w, state, value)
    return True


def main():
    failures = 0

    def report(title, begin, is_so, note=""):
        nonlocal failures
        failures += not is_so
        print(f"{'ok' if is_so else 'NOT SO':6} {time.time() - begin:5.1f} s  {title}{note}",
              flush=True)

    def proved(title, result, begin):
        failed, count = result
        note = f", {count} parts" if not failed else f": not shown: {', '.join(failed)}"
        report(title, begin, not failed, note)

    print("For any number of members, ballots, versions and messages:")
    begin = time.time()
    proved("a configuration begins in a state that fulfils the invariant", prove_first(), begin)
    begin = time.time()
    proved("from the invariant follows agreement", prove_lemmas(), begin)
    for step in STEPS:
        begin = time.time()
        proved(f"the invariant holds behind {step.__name__}", prove_step(step), begin)

    print("All states of three members, two ballots, two versions, two entries:")
    for step in STEPS:
        begin = time.time()
        report(f"{step.__name__} can be taken where something was decided", begin, can_happen(step))
        begin = time.time()
        solver, *_ = search({**THREE, "p": 2}, [step], Rules(), None)
        report(f"the invariant holds behind {step.__name__}", begin, solver.check() == unsat)

    print("Rules without which it breaks, in one step:")
    for bounds, step, rules, part in [
        (FIVE, learn, Rules(leads_on=True), "tail"),
        (FIVE, install, Rules(leads_on=True), "tail"),
        (THREE, send_accept, Rules(sends_parts=True), "accept"),
        (THREE, accept, Rules(accepts_any=True), "adopted"),
        ({**THREE, "p": 2}, lead_by_own, Rules(adopts_any=True), "adopted"),
        ({**THREE, "p": 2}, lead_by_promised, Rules(adopts_any=True), "adopted"),
    ]:
        begin = time.time()
        solver, *_ = search(bounds, [step], rules, part)
        broken = [name for name, it in vars(rules).items() if it]
        report(f"{broken[0]}: {step.__name__} breaks {part}", begin, solver.check() == sat)

    print("The rule as it was:")
    begin = time.time()
    report("two members commit different entries", begin, print_story())
    return failures


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
