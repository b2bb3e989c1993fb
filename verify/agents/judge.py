"""Checks of what clients were answered, over the whole run. All times are of one clock, the monotonic one of this
machine. A request with an unknown outcome may have been carried out at any time after it began, or never."""

import bisect
from collections import defaultdict

from workload import DONE, REFUSED, UNKNOWN

EXCLUSION = "no more clients rely on a hold at once than may"
TOKENS = "a later holder has a greater token"
LEADERS = "a leader that is read has the value with which it campaigned"
SUMS = "each acknowledged addition is in the sum once"
ORDER = "a sum has all that was acknowledged before it was asked for"
TOTAL = "the last sum is what was added"
READS = "a read has the last acknowledged change, or a later one"
VALUES = "an entry has a value that was put as this version"
CHAIN = "a change with a version follows that version at once"
TAKEN_ONCE = "an item of a queue is taken once"
PUSHED = "an item that is taken was pushed"
KEPT = "an acknowledged item is taken, unless an answer to a client was lost"
IN_TURN = "items are taken in the order of their pushes"
WATCH_ORDER = "a watch reports versions in order"
WATCH_ALL = "a watch reports each acknowledged change, or a later one of its entry"


def by_name(records):
    named = defaultdict(list)
    for record in records:
        named[record["name"]].append(record)
    return named


def spans(record):
    """The times in which a client relied on its hold."""
    end = record.get("gives_up", float("inf"))
    return [(begins, min(ends, end)) for begins, ends in record["spans"] if begins < end]


def holds(checks, records):
    for name, held in by_name(records).items():
        limit = held[0]["limit"]
        changes = []
        for nth, record in enumerate(held):
            for begins, ends in spans(record):
                changes += [(begins, 1, nth), (ends, 0, nth)]
        relied = defaultdict(int)
        for at, is_begin, nth in sorted(changes):
            relied[nth] += 1 if is_begin else -1
            if not relied[nth]:
                del relied[nth]
            if is_begin:
                found = [(it, held[it]["token"], spans(held[it])) for it in relied] if len(relied) > limit else None
                checks.that(EXCLUSION, len(relied) <= limit, f"{name} at {at:.3f}: {found}")
        rising(checks, TOKENS, name, [it for it in held if it["token"] is not None], lambda it: it["token"][1], 1)
        maps = {it["token"][0] for it in held if it["token"] is not None}
        checks.that(TOKENS, len(maps) <= 1, f"{name} has tokens of the maps {maps}")
        # By the time at which they relied on it: a holder with a smaller token does not come later.
        uses = sorted((begins, it["token"][1]) for it in held if it["token"] for begins, _ in spans(it))
        for (_, before), (at, after) in zip(uses, uses[1:]):
            checks.that(TOKENS, before <= after, f"{name} at {at:.3f}: {after} is used after {before}")
        tokens = [it["token"] for it in held if it["token"]]
        checks.that(TOKENS, len(tokens) == len(set(tokens)), f"{name}: a token was given twice")


def rising(checks, check, name, records, value, least):
    """A request that begins after the end of another one has a greater value, by `least(it)` or that number."""
    greater = least if callable(least) else lambda _: least
    ended = sorted(records, key=lambda it: it["ends"])
    at, most, by = 0, None, None
    for record in sorted(records, key=lambda it: it["begins"]):
        while at < len(ended) and ended[at]["ends"] < record["begins"]:
            if most is None or value(ended[at]) > most:
                most, by = value(ended[at]), ended[at]
            at += 1
        if most is not None:
            checks.that(check, value(record) >= most + greater(record), f"{name}: {record} after {by}")


def leaders(checks, held, read):
    values = {it["token"]: it["value"] for it in held if it["token"] and it["value"]}
    for record in read:
        if record["token"] in values:
            checks.that(LEADERS, values[record["token"]] == record["value"], f"{record}")


def counters(checks, records, last):
    for name, all_of in by_name(records).items():
        done = [it for it in all_of if it["outcome"] == DONE]
        unknown = sum(it["add"] for it in all_of if it["outcome"] == UNKNOWN)
        rising(checks, ORDER, name, done, lambda it: it["sum"], lambda it: it["add"])
        before = 0
        adds = sorted((it for it in done if it["add"]), key=lambda it: it["sum"])
        gaps = 0
        for record in adds:
            begins = record["sum"] - record["add"]
            checks.that(SUMS, begins >= before, f"{name}: {record} adds to {begins}, after a sum of {before}")
            gaps += max(begins - before, 0)
            before = record["sum"]
        checks.that(SUMS, gaps <= unknown, f"{name}: {gaps} more than acknowledged, of {unknown} unknown")
        if name in last:
            acknowledged = sum(it["add"] for it in adds)
            checks.that(TOTAL, acknowledged <= last[name] <= acknowledged + unknown,
                        f"{name} is {last[name]}, acknowledged {acknowledged}, unknown {unknown}")


def entries(checks, records):
    for key, all_of in by_name(records).items():
        writes = [it for it in all_of if it["kind"] == "write"]
        known = {it["version"]: it["value"] for it in writes if it["outcome"] == DONE}
        possible = {it["value"] for it in writes if it["outcome"] != REFUSED}
        seen = [it for it in all_of if it["outcome"] == DONE]
        for record in seen:
            version, value = record["version"], record["value"]
            is_put = value in possible if version else value is None
            checks.that(VALUES, is_put and known.setdefault(version, value) == value, f"{key}: {record}")
        rising(checks, READS, key, seen, lambda it: it["version"], lambda it: it["kind"] == "write")
        versions = sorted(known.keys() | {0})
        for write in writes:
            if write["outcome"] == DONE:
                at = versions.index(write["version"]) if len(versions) < 50 else bisect.bisect_left(
                    versions, write["version"])
                checks.that(CHAIN, versions[at - 1] == write["over"], f"{key}: {write} follows {versions[at - 1]}")


def queue(checks, pushes, pops):
    pushed = {it["name"]: it for it in pushes}
    taken = [it for it in pops if it["outcome"] == DONE]
    seen = {}
    for pop in taken:
        item = pop["name"]
        push = pushed.get(item)
        checks.that(PUSHED, push is not None and push["outcome"] != REFUSED and push["begins"] < pop["ends"],
                    f"{item} by {push}")
        checks.that(TAKEN_ONCE, item not in seen, f"{item} by {pop} and {seen.get(item)}")
        seen[item] = pop
    lost = [it["name"] for it in pushes if it["outcome"] == DONE and it["name"] not in seen]
    unknown = sum(it["outcome"] == UNKNOWN for it in pops)
    checks.that(KEPT, len(lost) <= unknown, f"{len(lost)} items were not taken, {unknown} outcomes of takes are "
                f"unknown: {lost[:5]}")
    by_end = sorted((it for it in taken if it["name"] in pushed and pushed[it["name"]]["outcome"] == DONE),
                    key=lambda it: it["ends"])
    ends = [it["ends"] for it in by_end]
    for pop in by_end:
        push = pushed[pop["name"]]
        at = bisect.bisect_left(ends, pop["begins"]) - 1
        # Takes that ended before this one began, and began when its item was there.
        while at >= 0 and by_end[at]["ends"] > push["ends"]:
            other = by_end[at]
            if other["begins"] > push["ends"]:
                checks.that(IN_TURN, pushed[other["name"]]["version"] < push["version"], f"{other} before {pop}")
            at -= 1
    return len(lost), unknown


def watches(checks, watched, writes):
    acknowledged = defaultdict(list)
    for write in writes:
        if write["outcome"] == DONE:
            acknowledged[write["name"]].append(write["version"])
    for reports in watched:
        since, last = 0, {}
        history = defaultdict(list)
        for report in reports:
            if report["kind"] != "changed":
                since = 0
                continue
            version = report["version"]
            changes = [it["version"] for it in report["changes"]]
            checks.that(WATCH_ORDER, version >= since and changes == sorted(changes)
                        and all(since < it <= version for it in changes), f"{changes} up to {version} after {since}")
            for change in report["changes"]:
                last[change["key"]] = change["version"]
            for key in acknowledged:
                history[key].append((version, last.get(key, 0)))
            since = version
        for key, versions in acknowledged.items():
            reported = sorted(history[key])
            for version in versions:
                at = bisect.bisect_left(reported, (version, -1))
                if at < len(reported):
                    checks.that(WATCH_ALL, reported[at][1] >= version,
                                f"{key}: version {version} is not in the report up to {reported[at][0]}")


def outcomes(records):
    """The number of records of each kind by outcome."""
    counts = defaultdict(lambda: {DONE: 0, REFUSED: 0, UNKNOWN: 0})
    for record in records:
        counts[record["kind"]][record["outcome"]] += 1
    return counts
