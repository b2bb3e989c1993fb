#!/usr/bin/env python3
"""Kills nodes of a building, which are real processes on loopback, and checks that k-groups keep their
promises.

    cargo build -p selvedge-udp --example building_node
    verify/processes/run.py             the short run
    verify/processes/run.py --long      more rounds
    verify/processes/run.py --forget    deletes all folders in a power cut: ends with success if the
                                        checks find the lost changes
    ..  --seed N --program PATH

The 11 nodes hold maps and routines in groups of five, of which two may fail (`building.py`). Clients change
entries, ring the doorbell, and switch lights on (`clients.py`, `changes.py`), and a timer sounds a chime
(`timer.py`). Meanwhile

- nodes are killed by SIGKILL and start again from their folders: one after another, all at once, more than a
  group survives, and one whose disk is full;
- the site changes: lights are added, moved and removed, their routines change, a node is replaced, and all nodes
  start again with a later site; some lights sleep, and get their commands when they wake;
- two nodes run on batteries, and others are spared for a while (`shares.py`);
- more members of groups than may fail lose their folders: routines and devices begin anew by themselves, and
  maps by command.

The exit status is 0 if all checks held. Otherwise the folders, with the output of each node, are kept."""

import argparse
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

from building import Building
from changes import Site
from clients import Bell, Checks, Maps
from shares import REGISTRY, Shares
from timer import Timer

ROOT = Path(__file__).resolve().parents[2]
NODES, FAILURES = 11, 2
MAPS = ["doors", "windows", "lights", "heating"]
# The longest wait for progress where a quorum is up, in seconds. Elections of a busy machine get in each
# other's way for a while.
PATIENCE = 240
# In seconds: groups change over in the first 3.
EPOCH = 8


class Run:
    """A building, its clients, and the chance by which nodes are killed."""

    def __init__(self, options, folder):
        self.rng = random.Random(options.seed)
        self.checks = Checks()
        self.building = Building(options.program, folder, NODES, FAILURES, EPOCH)
        self.maps = Maps(self.building, self.checks, PATIENCE, options.seed)
        self.bell = Bell(self.building, self.checks, PATIENCE, self.rng)
        self.site = Site(self.building, self.checks, PATIENCE, self.rng)
        self.timer = Timer(self.building, self.checks, PATIENCE)
        self.shares = Shares(self.building, self.checks, PATIENCE)
        self.forgets = options.forget
        self.unused = 0
        # The ids of groups that lost their memory.
        self.lost = set()

    def start(self, nodes, *options):
        """Starts these nodes, in any order, and waits until they have joined."""
        nodes = list(nodes)
        self.rng.shuffle(nodes)
        for node in nodes:
            node.start(*options)
            time.sleep(self.rng.choice([0, 0, 0.1, 0.3]))
        for node in nodes:
            self.checks.that("a node joins, with the folder that it has", node.joins(PATIENCE), f"node {node.id}")

    def verify(self):
        """All confirmed changes are there, also those of the site, and maps and the routine can be used."""
        chimes = self.timer.chimes()
        self.maps.read_all()
        self.unused += 1
        self.maps.use(f"unused-{self.unused}")
        self.bell.settle()
        self.bell.ask_again()
        self.site.settle()
        self.shares.count()
        self.timer.settle(chimes)

    def writes(self, seconds):
        """Lets clients change entries for this time."""
        before = self.maps.confirmed
        self.maps.begin(MAPS)
        time.sleep(seconds)
        # A slow machine may need longer for the first changes.
        end = time.monotonic() + PATIENCE
        while self.maps.confirmed == before and time.monotonic() < end:
            time.sleep(0.05)

    def one_by_one(self, count, change):
        """Kills one node after another, or as many as may fail; they start again before the next ones are
        killed. A node in four leaves instead. The site changes meanwhile."""
        self.writes(0.5)
        change()
        for _ in range(count):
            nodes = self.rng.sample(self.building.nodes, self.rng.randint(1, FAILURES))
            self.bell.ring()
            self.site.ask()
            time.sleep(self.rng.uniform(0, 1))
            if self.rng.randrange(4) == 0:
                self.leave(nodes[0])
            self.building.kill(nodes)
            time.sleep(self.rng.uniform(0, 1))
            self.start(nodes)
        self.maps.end()
        self.verify()

    def leave(self, node):
        status = node.leave(PATIENCE)
        self.checks.that("a node that leaves ends with success", status == 0, f"node {node.id}: {status}")

    def roll_out(self):
        """Starts one node after another again, with a later site. All nodes have it from the first one on, and
        keep it when they start with the first site again."""
        self.writes(0.5)
        options = self.site.file()
        nodes = self.rng.sample(self.building.nodes, len(self.building.nodes))
        for node in nodes:
            self.bell.ring()
            if self.rng.randrange(4) == 0:
                self.leave(node)
            node.kill()
            self.start([node], *options)
            if node is nodes[0]:
                self.site.compare()
        self.maps.end()
        self.site.compare()
        again = nodes[:FAILURES]
        self.building.kill(again)
        self.start(again)
        self.verify()

    def replace(self):
        """Adds a node, and removes another one, which stops when it is in no group. Two more are spared meanwhile:
        one takes its share again by command, and one because it starts again."""
        self.writes(0.5)
        self.bell.ring()
        entering = self.building.another("--generation", 1)
        leaving, low, lower = self.rng.sample([it for it in self.building.nodes if not it.has_battery()], 3)
        for node in (low, lower):
            node.ask("spare yes")
        if is_early := self.rng.randrange(2) == 0:
            self.start([entering])
        self.site.enter(entering)
        self.site.settle()
        if not is_early:
            self.start([entering])
        self.building.nodes.append(entering)
        self.site.compare()
        self.building.nodes.remove(leaving)
        self.site.exit(leaving)
        self.site.settle()
        self.shares.leave_groups("a node that is removed is replaced in its groups", leaving)
        for node in (low, lower):
            # The registry is at all nodes.
            self.shares.leave_groups("a node that is spared is replaced in its groups", node, {REGISTRY})
        self.leave(leaving)
        low.ask("spare no")
        lower.kill()
        self.start([lower])
        self.maps.end()
        self.verify()
        for node in (low, lower):
            self.shares.enter_groups("a node that is spared no more enters groups", node)

    def loss(self):
        """Deletes the folders of more members of groups than may fail."""
        self.writes(0.5)
        self.maps.end()
        self.bell.settle()
        self.maps.have_entries()
        groups = self.map_groups()
        victims, lost = self.losses(set(groups.values()))
        names = {it for it, group in groups.items() if group in lost}
        kept = {it.map for it in self.maps.keys} - names
        self.begins_none()
        self.lost |= lost
        self.bell.lose(victims)
        self.building.kill(victims)
        for node in victims:
            node.forget()
        self.start(victims, "--restarted")
        self.maps.have_no_answer(names, 3)
        self.maps.read_all(kept)
        self.bell.begins_anew()
        for name in sorted(names):
            self.maps.begin_anew(name)
        self.verify()
        self.begins_none()

    def begins_none(self):
        begun = self.building.begun - self.lost
        self.checks.that("no group begins anew while its memory is there", not begun, f"groups {begun}")

    def map_groups(self):
        """The ids of the groups of all maps, by their names."""
        asked = {name: self.building.nodes[0].ask(f"group {name}") for name in {it.map for it in self.maps.keys}}
        return {name: question.wait(PATIENCE) for name, question in asked.items()}

    def losses(self, maps):
        """A few nodes without which the doorbell and some maps have no quorum, and other maps have one; and the ids of
        all groups that lose it. It is certain of each group. On a busy machine groups change over late, so they are
        asked twice."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.building.await_quiet()
            holders = self.holders()
            chosen = self.choose_losses(holders, maps)
            if chosen and self.holders() == holders:
                return chosen
            time.sleep(EPOCH / 4)
        sys.exit("the groups do not settle")

    def choose_losses(self, holders, maps):
        for count in range(FAILURES + 1, 2 * FAILURES + 2):
            choices = list(combinations(self.building.nodes, count))
            self.rng.shuffle(choices)
            for victims in choices:
                lost = lost_groups(holders, victims)
                if lost and Bell.GROUP in lost and 0 < len(lost & maps) < len(maps):
                    return list(victims), lost
        return None

    def holders(self):
        """The nodes that are in each group, as far as they know."""
        holders = {}
        for node, groups in self.building.holdings(PATIENCE).items():
            for group in groups - {REGISTRY}:
                holders.setdefault(group, set()).add(node)
        return holders

    def power_cut(self, seconds, change=lambda: None):
        """Kills all nodes while clients change entries, the site changes and the routine runs."""
        self.writes(seconds)
        change()
        self.bell.ring()
        time.sleep(self.rng.uniform(0, 0.6))
        self.building.kill_all()
        self.maps.end()
        if self.forgets:
            for node in self.building.nodes:
                node.forget()
        elif self.rng.randrange(2) == 0:
            # The power comes back for a moment.
            for node in self.building.nodes:
                node.start()
            time.sleep(self.rng.uniform(0, 2))
            self.building.kill_all()
        self.start(self.building.nodes)
        if self.forgets:
            self.maps.read_all()
        else:
            self.verify()

    def no_quorum(self):
        """Kills more nodes than a group survives, and leaves them down for a while."""
        victims = self.rng.sample(self.building.nodes, FAILURES + 2)
        self.building.kill(victims)
        # Some groups have a quorum, and others have none.
        self.maps.look(MAPS, 3)
        left = self.rng.sample(self.building.up(), FAILURES)
        more = [it for it in self.building.up() if it not in left]
        self.building.kill(more)
        self.site.edit()
        questions = [(node, name, node.ask(f"get {name} any")) for node in left for name in MAPS + ["never-used"]]
        time.sleep(5)
        for node, name, question in questions:
            answer = question.answer
            self.checks.that("a map without a quorum gives no answer", answer in (None, "no answer"),
                             f"node {node.id}, {name}: {answer}")
        self.start(victims + more)
        self.verify()

    def full_disk(self):
        """A node finds its disk full while clients change entries."""
        node = self.rng.choice(self.building.nodes)
        self.writes(0.5)
        node.fill_disk()
        self.checks.that("a node whose disk is full reports it and ends", node.ends_reporting("the disk is full", PATIENCE),
                         f"node {node.id}: {node.lines[-2:]}")
        before = self.maps.confirmed
        end = time.monotonic() + PATIENCE
        while self.maps.confirmed < before + 5 and time.monotonic() < end:
            time.sleep(0.05)
        self.checks.that("the other nodes go on", self.maps.confirmed >= before + 5, "no change is confirmed")
        self.maps.end()
        self.start([node])
        self.verify()

    def all_of_it(self, is_long):
        self.start(self.building.nodes)
        self.phase("before any failure", self.writes, 1)
        self.maps.end()
        self.verify()
        one_by_one = "nodes are killed one after another"
        self.phase(one_by_one, self.one_by_one, NODES if is_long else 2, self.site.add)
        self.phase("all nodes start again with a later site", self.roll_out)
        self.phase(one_by_one, self.one_by_one, NODES if is_long else 2, self.site.remove)
        for _ in range(3 if is_long else 1):
            self.phase("a node is replaced", self.replace)
        for number in range(20 if is_long else 2):
            change = self.site.edit if number else self.site.add_asleep
            self.phase("all nodes are killed at once", self.power_cut, self.rng.uniform(0, 2), change)
        for _ in range(3 if is_long else 1):
            self.phase("more nodes are killed than a group survives", self.no_quorum)
        if hasattr(resource, "prlimit"):
            self.phase("a disk is full", self.full_disk)
        else:
            print("skipped, for this system has no prlimit: a disk is full", flush=True)
        if is_long:
            self.phase(one_by_one, self.one_by_one, NODES, self.site.add)
        for _ in range(3 if is_long else 1):
            self.phase("more folders are lost than a group survives", self.loss)

    def phase(self, name, work, *arguments):
        begins, before = time.monotonic(), self.maps.confirmed
        work(*arguments)
        took = time.monotonic() - begins
        print(f"{name}: {took:.0f} s, {self.maps.confirmed - before} changes confirmed, "
              f"{self.bell.ids} runs in all", flush=True)


def lost_groups(holders, victims):
    """The groups that have no quorum without these nodes, or `None` if that is not certain: a node may hold a
    group for a while after another one has taken its place."""
    lost = set()
    for name, nodes in holders.items():
        former = len(nodes) - (2 * FAILURES + 1)
        without = len(nodes & set(victims))
        if former < 0 or FAILURES < without <= FAILURES + former:
            return None
        if without > FAILURES:
            lost.add(name)
    return lost


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--program", type=Path, default=target / "debug/examples/building_node")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--forget", action="store_true")
    options = parser.parse_args()
    if not options.program.exists():
        sys.exit(f"{options.program} is missing: cargo build -p selvedge-udp --example building_node")
    print(f"seed {options.seed}, {NODES} nodes, groups of {2 * FAILURES + 1}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="selvedge-processes-"))
    run = Run(options, folder)
    begins = time.monotonic()
    try:
        if options.forget:
            run.start(run.building.nodes)
            run.phase("all nodes are killed at once, and forget", run.power_cut, 1)
        else:
            run.all_of_it(options.long)
    finally:
        run.maps.end()
        run.building.kill_all()
    if not options.forget:
        run.bell.count()
        run.bell.count_rings()
        run.maps.compare_versions()
        run.timer.count()
        run.shares.compare()
    run.checks.show()
    print(f"{time.monotonic() - begins:.0f} s; the longest wait for a map while all nodes are up: "
          f"{run.maps.longest:.1f} s", flush=True)
    if options.forget:
        is_found = bool(run.checks.failures(Maps.KEPT))
        print("the lost changes were found" if is_found else "the lost changes were NOT found")
        shutil.rmtree(folder)
        sys.exit(not is_found)
    if run.checks.failures():
        sys.exit(f"FAILED with --seed {options.seed}; folders and output of the nodes: {folder}")
    shutil.rmtree(folder)


main()
