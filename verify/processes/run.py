#!/usr/bin/env python3
"""Kills nodes of a building, which are real processes on loopback, and checks that k-groups keep their
promises.

    cargo build -p selvedge-udp --example building_node
    verify/processes/run.py             the short run
    verify/processes/run.py --long      more rounds, and epochs of ten seconds
    verify/processes/run.py --forget    deletes all folders in a power cut: ends with success if the
                                        checks find the lost changes
    ..  --seed N --program PATH

The 11 nodes hold maps and a routine in groups of five, of which two may fail (`building.py`). Clients
change entries, ring the doorbell and add a light to the site while nodes are killed by SIGKILL and start again from their folders:
one after another, all at once, more than a group survives, and one whose disk is full.

The exit status is 0 if all checks held. Otherwise the folders, with the output of each node, are kept."""

import argparse
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from building import Building
from clients import Bell, Checks, Lights, Maps

ROOT = Path(__file__).resolve().parents[2]
NODES, FAILURES = 11, 2
MAPS = ["doors", "windows", "lights", "heating"]
# The longest wait for progress where a quorum is up, in seconds. Elections of a busy machine get in each
# other's way for a while.
PATIENCE = 240


class Run:
    """A building, its clients, and the chance by which nodes are killed."""

    def __init__(self, options, folder):
        self.rng = random.Random(options.seed)
        self.checks = Checks()
        self.building = Building(options.program, folder, NODES, FAILURES, 10 if options.long else 60)
        self.maps = Maps(self.building, self.checks, PATIENCE, options.seed)
        self.bell = Bell(self.building, self.checks, PATIENCE, self.rng)
        self.lights = Lights(self.building, self.checks, PATIENCE, self.rng)
        self.forgets = options.forget
        self.unused = 0

    def start(self, nodes):
        """Starts these nodes, in any order, and waits until they have joined."""
        nodes = list(nodes)
        self.rng.shuffle(nodes)
        for node in nodes:
            node.start()
            time.sleep(self.rng.choice([0, 0, 0.1, 0.3]))
        for node in nodes:
            self.checks.that("a node joins, with the folder that it has", node.joins(PATIENCE), f"node {node.id}")

    def verify(self):
        """All confirmed changes are there, also those of the site, and maps and the routine can be used."""
        self.maps.read_all()
        self.unused += 1
        self.maps.use(f"unused-{self.unused}")
        self.bell.settle()
        self.bell.ask_again()
        self.lights.compare()

    def writes(self, seconds):
        """Lets clients change entries for this time."""
        before = self.maps.confirmed
        self.maps.begin(MAPS)
        time.sleep(seconds)
        # A slow machine may need longer for the first changes.
        end = time.monotonic() + PATIENCE
        while self.maps.confirmed == before and time.monotonic() < end:
            time.sleep(0.05)

    def one_by_one(self, count):
        """Kills one node after another, or as many as may fail; they start again before the next ones are
        killed. A node in four leaves instead. A light is added meanwhile."""
        self.writes(0.5)
        self.lights.add()
        for _ in range(count):
            nodes = self.rng.sample(self.building.nodes, self.rng.randint(1, FAILURES))
            self.bell.ring()
            self.lights.ask()
            time.sleep(self.rng.uniform(0, 1))
            if self.rng.randrange(4) == 0:
                status = nodes[0].leave(PATIENCE)
                self.checks.that("a node that leaves ends with success", status == 0, f"node {nodes[0].id}: {status}")
            for node in nodes:
                node.kill()
            time.sleep(self.rng.uniform(0, 1))
            self.start(nodes)
        self.maps.end()
        self.lights.settle()
        self.verify()

    def power_cut(self, seconds):
        """Kills all nodes while clients change entries and the routine runs."""
        self.writes(seconds)
        self.bell.ring()
        time.sleep(self.rng.uniform(0, 0.6))
        self.building.kill_all()
        self.maps.end()
        if self.forgets:
            for node in self.building.nodes:
                shutil.rmtree(node.state)
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
        for node in victims:
            node.kill()
        # Some groups have a quorum, and others have none.
        self.maps.look(MAPS, 3)
        left = self.rng.sample(self.building.up(), FAILURES)
        more = [it for it in self.building.up() if it not in left]
        for node in more:
            node.kill()
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
        self.phase("nodes are killed one after another", self.one_by_one, NODES if is_long else 3)
        for _ in range(20 if is_long else 2):
            self.phase("all nodes are killed at once", self.power_cut, self.rng.uniform(0, 2))
        for _ in range(3 if is_long else 1):
            self.phase("more nodes are killed than a group survives", self.no_quorum)
        if hasattr(resource, "prlimit"):
            self.phase("a disk is full", self.full_disk)
        else:
            print("skipped, for this system has no prlimit: a disk is full", flush=True)
        if is_long:
            self.phase("nodes are killed one after another", self.one_by_one, NODES)

    def phase(self, name, work, *arguments):
        begins, before = time.monotonic(), self.maps.confirmed
        work(*arguments)
        took = time.monotonic() - begins
        print(f"{name}: {took:.0f} s, {self.maps.confirmed - before} changes confirmed, "
              f"{self.bell.ids} runs in all", flush=True)


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
        run.maps.compare_versions()
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
