#!/usr/bin/env python3
"""Writes the chapters of the book that are modules of `selvedge::guide`.

    verify/ci/guide.py            writes selvedge/guide/*.md
    verify/ci/guide.py --check    fails where one of them differs from its chapter

A package has only files of its own folder, the tutorial includes code from outside of it, and links
have another form in rustdoc. So the chapters are copied, with their code, and with links that lead to
modules, to docs.rs, or, where neither has the chapter, nowhere. The list of chapters is guide.rs.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOOK, GUIDE = ROOT / "docs/src", ROOT / "selvedge/guide"
CHAPTERS = re.findall(r'"\.\./guide/(.*)\.md"', (ROOT / "selvedge/src/guide.rs").read_text())
PACKAGES = {"sealed": "seal", "safehome-files": "routine"} | {
    name: name for name in "membership camera celect replica groups kgroup pcm safehome".split()
}


def included(chapter, path, anchor):
    """The lines of a file, or of the part of it between two comments, as mdBook includes them."""
    text = (chapter.parent / path).read_text()
    if anchor:
        text = re.search(rf"ANCHOR: {anchor}\n(.*?)^[^\n]*ANCHOR_END: {anchor}\n", text, re.S | re.M)[1]
    return "\n".join(row for row in text.splitlines() if "// ANCHOR" not in row)


def link(text, name, part):
    if name in CHAPTERS:
        return f"[{text}](self::{name.replace('-', '_')}{part})"
    if name in PACKAGES:
        return f"[{text}](https://docs.rs/selvedge-{PACKAGES[name]})"
    return text


def copy(name):
    chapter = BOOK / f"{name}.md"
    text = chapter.read_text()
    text = re.sub(
        r"\{\{#include ([^}:]+):?(\w*)\}\}", lambda it: included(chapter, it[1], it[2]), text
    )
    text = re.sub(r"\[([^]]+)\]\(([\w-]+)\.md(#[\w-]+)?\)", lambda it: link(*it.groups("")), text)
    # A picture stays in the book: its file is outside of the package.
    text = re.sub(r":\n\n!\[([^]]+)\]\([\w.-]+\)", r". (The book has a picture.)", text)
    return f"{text}\n<!-- A copy of docs/src/{name}.md by verify/ci/guide.py. -->\n"


def main():
    check = sys.argv[1:] == ["--check"]
    copies = {f"{name}.md": copy(name) for name in CHAPTERS}
    found = {path.name: path.read_text() for path in GUIDE.glob("*.md")}
    if check and found != copies:
        names = sorted(name for name in found | copies if found.get(name) != copies.get(name))
        sys.exit(f"selvedge/guide is not up to date ({', '.join(names)}): run verify/ci/guide.py")
    GUIDE.mkdir(exist_ok=True)
    for name in found.keys() - copies.keys():
        (GUIDE / name).unlink()
    for name, text in copies.items():
        if found.get(name) != text:
            (GUIDE / name).write_text(text)


main()
