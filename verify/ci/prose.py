#!/usr/bin/env python3
"""Measures the distance of the project's prose from plain technical English.

    verify/ci/prose.py            figures for the tree; fails above the bounds
    verify/ci/prose.py --list N   the N lines with the most findings, with places
    verify/ci/prose.py PATH..     only files below these paths

Two parts have bounds of their own: text for users (documentation of public items and of modules,
Markdown, error messages, help of the command) and the rest (private items, comments, tests).
A finding is a construction that the project avoids, with a plain one in its place:

    what was sent           -> the message
    the node is told        -> the node is notified, learns
    one that / those that   -> a noun
    so many, comes to       -> n, results in
    nobody, who             -> no node, a client
    anew, of old, is gone   -> again, older, has left or failed

and a summary (the first line of an item's documentation) that is neither a noun phrase nor a verb.
"""

import re
import subprocess
import sys

AVOIDED = re.compile(
    r"\bwhat(?:ever)?\b(?![^.]*\?)"
    r"|\b(?:says?|said|tells?|told|hears?|heard)\b"
    r"|\b(?:those|ones?) that\b|\bthat of\b"
    r"|\bso (?:many|long|far|often)\b(?! as)"
    r"|\b(?:comes?|came) to\b(?! \w+ing)"
    r"|\b(?:no|some|any)body\b|\bwho(?:m|se|ever)?\b"
    r"|\banew\b|\bof (?:old|ours|theirs|others|before)\b"
    r"|\b(?:is|are|was|were) (?:gone|none)\b",
    re.IGNORECASE,
)
NO_SUMMARY = re.compile(
    r"(?:what|whether|how|which|who|where|when|since|of|those|ones?|so|as)\b", re.IGNORECASE
)
QUOTED = re.compile(r"`[^`]*`|\]\([^)]*\)")
ERROR = re.compile(r'#\[error\(\s*"((?:[^"\\]|\\.)*)"')
ITEM = re.compile(r"pub(?!\()|\w+(?:\(|\s*\{|,|:|$)")
# Findings in 1,000 words, and summaries in 100.
BOUNDS = {"users": (3.0, 5.0), "rest": (6.0, 10.0)}


def lines(name):
    """Yields (line number, text, part, whether it is a summary)."""
    rows = open(name, encoding="utf-8", errors="replace").read().splitlines()
    in_tests = "/tests/" in name or name.startswith("examples/") or name.endswith("tests.rs")
    fenced = after_doc = False
    for number, row in enumerate(rows, 1):
        text = row.strip()
        if name.endswith(".md"):
            fenced ^= text.startswith("```")
            if text and not fenced and not text.startswith("```"):
                yield number, text, "users", False
            continue
        in_tests |= text == "#[cfg(test)]"
        doc = re.match(r"//([/!]) ?(.*)", text)
        if doc:
            kind, body = doc.groups()
            fenced ^= body.startswith("```")
            if body and not fenced and not body.startswith("```"):
                public = kind == "!" or is_public(rows, number)
                part = "users" if public and not in_tests else "rest"
                yield number, body, part, kind == "/" and not after_doc
            after_doc = True
            continue
        after_doc = fenced = False
        if text.startswith("// "):
            yield number, text[3:], "rest", False
        for error in ERROR.findall(text):
            yield number, error, "users", False


def is_public(rows, number):
    """The documented item is public, or a variant or a field of a type (which may be public)."""
    for row in rows[number : number + 80]:
        text = row.strip()
        if not text.startswith(("//", "#", ")", "]")) and text:
            return ITEM.match(text) is not None and not text.startswith(
                ("fn ", "struct ", "enum ", "const ", "type ", "mod ", "impl", "trait ", "static ")
            )
    return False


def main():
    arguments = sys.argv[1:]
    most = 0
    if arguments[:1] == ["--list"]:
        most, arguments = int(arguments[1]), arguments[2:]
    listed = subprocess.run(["git", "ls-files", "*.rs", "*.md"], capture_output=True, text=True, check=True)
    totals = {part: [0, 0, 0, 0] for part in BOUNDS}
    found = []
    for name in listed.stdout.split():
        if name.startswith(("CHANGELOG", "selvedge/guide/")) or (arguments and not name.startswith(tuple(arguments))):
            continue
        for number, text, part, is_summary in lines(name):
            text = QUOTED.sub("", text)
            total = totals[part]
            count = len(AVOIDED.findall(text))
            is_bad = is_summary and NO_SUMMARY.match(text) is not None
            total[0] += len(text.split())
            total[1] += count
            total[2] += is_summary
            total[3] += is_bad
            if count or is_bad:
                found.append((count + is_bad, f"{name}:{number}: {text[:120]}"))
    found.sort(key=lambda it: -it[0])
    for _, place in found[:most]:
        print(place)
    failed = False
    for part, (words, count, summaries, bad) in totals.items():
        rate, share = 1000 * count / max(words, 1), 100 * bad / max(summaries, 1)
        most_rate, most_share = BOUNDS[part]
        failed |= rate > most_rate or share > most_share
        print(
            f"{part}: {rate:.1f} findings in 1,000 of {words} words (at most {most_rate:.0f}), "
            f"{share:.1f}% of {summaries} summaries (at most {most_share:.0f}%)"
        )
    sys.exit(failed)


main()
