"""Sorts, quantifiers, and the constants: members, quorums, ballots, and the contents of messages."""

from functools import cache
from itertools import combinations, product

from z3 import (And, BoolSort, Const, DeclareSort, EnumSort, Exists, ForAll, Function, Implies,
                IntSort, IntVal, MultiPattern, Not, Or)


@cache
def enumeration(name, letter, count):
    return EnumSort(f"{name}{count}", [f"{letter}{it + 1}" for it in range(count)])


class World:
    """Kinds are letters: n a node, q a quorum, b a ballot, v a version, x an entry, and the messages
    p Promise, a Accept, e Learn. Ballots and versions are natural numbers.

    Without `bounds` there are any number of each, and quorums are any sets of which two share a
    member. With `bounds` quantifiers are spelled out over a few elements of each, and quorums are
    majorities: that finds counterexamples, and checks the proof a second time."""

    def __init__(self, bounds=None):
        self.bounds = bounds
        self.is_goal = False
        self.count = 0
        self.functions = []
        names = {"n": "Node", "q": "Quorum", "x": "Entry", "p": "Promise", "a": "Accept", "e": "Learn"}
        self.sorts = {"b": IntSort(), "v": IntSort()}
        if bounds:
            nodes = range(bounds["n"])
            self.majorities = list(combinations(nodes, len(nodes) // 2 + 1))
            self.elements = {k: [IntVal(it) for it in range(bounds[k] + 1)] for k in "bv"}
            for kind, name in names.items():
                size = len(self.majorities) if kind == "q" else bounds.get(kind, 1)
                self.sorts[kind], self.elements[kind] = enumeration(name, kind, size)
        else:
            self.sorts.update((kind, DeclareSort(name)) for kind, name in names.items())
        self._declare()

    def _declare(self):
        f = self.function
        self.is_in = f("is_in", "nq")
        self.shared = f("shared", "qq", "n")
        self.owner = f("owner", "b", "n")
        self.seals = f("seals", "x")
        # The contents of a message. Each message is an element that was sent, or will be, or never; so
        # messages may be lost, come late, twice, and in any order.
        self.p_from, self.p_ballot = f("p_from", "p", "n"), f("p_ballot", "p", "b")
        self.p_accepted, self.p_committed = f("p_accepted", "p", "b"), f("p_committed", "p", "v")
        self.p_end, self.p_entry = f("p_end", "p", "v"), f("p_entry", "pv", "x")
        self.a_to, self.a_ballot = f("a_to", "a", "n"), f("a_ballot", "a", "b")
        self.a_after, self.a_end = f("a_after", "a", "v"), f("a_end", "a", "v")
        self.a_commit, self.a_entry = f("a_commit", "a", "v"), f("a_entry", "av", "x")
        self.e_after, self.e_end = f("e_after", "e", "v"), f("e_end", "e", "v")
        self.e_entry = f("e_entry", "ev", "x")
        # Hints, true of each quorum: the solver looks for the shared member of a quorum that may
        # decide and a quorum that promised, and of no other pairs.
        self.decides, self.promises = f("decides", "q"), f("promises", "q")

    def function(self, name, kinds, result=None):
        """A function of these kinds of arguments; a relation where no kind of result is named."""
        sort = self.sorts[result] if result else BoolSort()
        it = Function(name, *(self.sorts[k] for k in kinds), sort)
        self.functions.append((it, kinds, result))
        return it

    def constant(self, kind):
        self.count += 1
        return Const(f"{kind}!{self.count}", self.sorts[kind])

    def all(self, kinds, body, hints=None):
        """For all of these kinds. In a goal, for constants that nothing else is known of, which is as
        good. `hints` are the sets of terms that make the solver look at an instance."""
        if self.bounds:
            return And([body(*it) for it in product(*(self.elements[k] for k in kinds))])
        names = [self.constant(k) for k in kinds]
        holds = Implies(And([it >= 0 for k, it in zip(kinds, names) if k in "bv"]), body(*names))
        if self.is_goal:
            return holds
        patterns = [MultiPattern(*it) for it in hints(*names)] if hints else []
        return ForAll(names, holds, patterns=patterns)

    def some(self, kinds, body):
        if self.bounds:
            return Or([body(*it) for it in product(*(self.elements[k] for k in kinds))])
        names = [self.constant(k) for k in kinds]
        return Exists(names, And([it >= 0 for k, it in zip(kinds, names) if k in "bv"]
                                 + [body(*names)]))

    def axioms(self):
        """Any two quorums share a member; numbers are natural numbers."""
        yield self.all("qq", lambda q, r: And(
            self.is_in(self.shared(q, r), q), self.is_in(self.shared(q, r), r)),
            lambda q, r: [(self.decides(q), self.promises(r))])
        for function, kinds, result in self.functions:
            if result in ("b", "v"):
                most = self.bounds[result] if self.bounds else None
                yield self.all(kinds, lambda *of: And(
                    0 <= function(*of), function(*of) <= most if self.bounds else True))
        if self.bounds:
            for q, nodes in zip(self.elements["q"], self.majorities):
                for nth, n in enumerate(self.elements["n"]):
                    yield self.is_in(n, q) if nth in nodes else Not(self.is_in(n, q))
