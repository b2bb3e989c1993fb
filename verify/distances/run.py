#!/usr/bin/env python3
"""Measures the traffic over long links of meshes in three sites, and the time until a failure is known.

    cargo build --release -p selvedge-cli
    verify/distances/run.py             7 minutes, with the figures of the book
    verify/distances/run.py --short     half a minute, without failures and without serf
    ..  --program PATH  --serf PATH  --nodes N  --seed N

Three meshes of real processes run side by side on loopback, behind a relay (`relay.py`): `selvedge node` with measured
distances, `selvedge node` that probes all nodes alike, and HashiCorp's serf, where it is installed (package `serf` of
Debian). A round trip takes 2 ms inside a site and 80 ms between two sites. The meshes learn their distances; then
packets are counted; then nodes are killed one after another.

The exit status is 0 if measured distances lower the packets over long links by a quarter at least, and all failures are
found. A busy machine answers late, so nodes suspect each other and ask about each other: then the figures of all three
are higher, and live nodes may be declared failed for a while. Run it on a machine without other work."""

import argparse
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from relay import HOST, Relay

ROOT = Path(__file__).resolve().parents[2]
SITES = 3
# One way, in seconds.
NEAR, FAR = 0.001, 0.040
# The longest wait until all nodes of a mesh know each other or a failure, in seconds.
PATIENCE = 120


class Node:
    """A process with what its lines report about other nodes."""

    def __init__(self, mesh, number, place):
        self.mesh, self.number, self.place = mesh, number, place
        self.here, self.round_trips = set(), {}
        # The times at which others were declared failed, by their numbers.
        self.failed = {}
        # The number of live nodes that were declared failed, and came back.
        self.wrong = 0

    def start(self, command, log):
        self.place.release()
        # A relay of TCP finds senders by their process.
        self.process = self.place.process = subprocess.Popen(
            [str(it) for it in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, bufsize=1)
        threading.Thread(target=self.read, args=(log,), daemon=True).start()

    def read(self, log):
        with open(log, "w", encoding="utf-8") as file:
            for line in self.process.stdout:
                file.write(line)
                self.mesh.take(self, line)

    def joins(self, other):
        self.here.add(other)
        self.wrong += self.failed.pop(other, None) is not None

    def fails(self, other):
        self.here.discard(other)
        self.failed.setdefault(other, time.monotonic())

    def kill(self):
        self.process.kill()
        self.process.wait()


class Selvedge:
    """A mesh of `selvedge node`."""

    def __init__(self, name, program, *options):
        self.name, self.program, self.options = name, program, options

    def command(self, node, first):
        command = [self.program, "node", "--plain", "--json", "--id", node.number, *self.options,
                   "--listen", address(node.place.private), "--advertise", address(node.place.public)]
        return command + (["--join", address(first.place.public)] if node is not first else [])

    def take(self, node, line):
        try:
            event = json.loads(line)
        except ValueError:
            return
        kind, of = event.get("event"), event.get("node")
        if kind in ("joined", "refuted"):
            node.joins(of)
        elif kind == "failed":
            node.fails(of)
        elif kind == "round-trips":
            node.round_trips = {int(of): us / 1_000 for of, us in event["round_trips_us"].items()}


class Serf:
    """A mesh of `serf agent`, with its settings for local networks, which are its default."""

    EVENT = re.compile(r"EventMember(Join|Failed): node-(\d+) ")

    def __init__(self, program):
        self.name, self.program = "serf", program

    def command(self, node, first):
        command = [self.program, "agent", f"-node=node-{node.number}", f"-bind={address(node.place.private)}",
                   f"-advertise={address(node.place.public)}", f"-rpc-addr={HOST}:{free_port()}"]
        join = [f"-retry-join={address(first.place.public)}", "-retry-interval=1s"]
        return command + (join if node is not first else [])

    def take(self, node, line):
        if found := self.EVENT.search(line):
            of = int(found[2])
            if found[1] == "Join":
                node.joins(of)
            else:
                node.fails(of)


def address(of):
    return f"{of[0]}:{of[1]}"


def free_port():
    with socket.socket() as it:
        it.bind((HOST, 0))
        return it.getsockname()[1]


def ended(nodes):
    return [it.number for it in nodes if it.process.poll() is not None]


class Run:
    """Some meshes in three sites, and the counts of the relay."""

    def __init__(self, meshes, each, folder):
        self.relay = Relay(NEAR, FAR)
        self.meshes, self.folder = meshes, folder
        self.nodes = {}
        for mesh in meshes:
            places = [self.relay.add(mesh.name, number % SITES) for number in range(SITES * each)]
            self.nodes[mesh] = [Node(mesh, number + 1, place) for number, place in enumerate(places)]

    def start(self):
        self.relay.start()
        for number in range(len(self.nodes[self.meshes[0]])):
            for mesh, nodes in self.nodes.items():
                name = f"{mesh.name}-{number + 1}.log".replace(", ", "-")
                nodes[number].start(mesh.command(nodes[number], nodes[0]), self.folder / name)
            time.sleep(0.05)
        for mesh, nodes in self.nodes.items():
            numbers = {it.number for it in nodes}
            self.until(f"{mesh.name}: all nodes know each other",
                       lambda: all(numbers <= node.here | {node.number} for node in nodes) or ended(nodes))
            if over := ended(nodes):
                sys.exit(f"FAILED: {mesh.name}: nodes {over} have ended; output of the nodes: {self.folder}")

    def until(self, what, is_so):
        end = time.monotonic() + PATIENCE
        while not is_so():
            if time.monotonic() > end:
                sys.exit(f"FAILED after {PATIENCE} s: {what}; output of the nodes: {self.folder}")
            time.sleep(0.05)

    def traffic(self, seconds):
        """The counts of this time, by mesh."""
        before, begins = self.relay.taken(), time.monotonic()
        time.sleep(seconds)
        after, took = self.relay.taken(), time.monotonic() - begins
        return took, {mesh: {far: after[mesh][far].minus(before[mesh][far]) for far in (False, True)} for mesh in after}

    def failures(self, count, rng):
        """Kills nodes, at one place in all meshes at once. The times until the first and the last other node has it
        failed, by mesh."""
        found = {mesh: [] for mesh in self.meshes}
        # The first one is the seed of all.
        for victim in rng.sample(range(1, len(self.nodes[self.meshes[0]])), count):
            killed = time.monotonic()
            for nodes in self.nodes.values():
                nodes[victim].kill()
            number = victim + 1
            for mesh, nodes in self.nodes.items():
                others = [it for it in nodes if it.process.poll() is None]
                self.until(f"{mesh.name}: the failure of node {number} is known",
                           lambda: all(number in it.failed for it in others))
                times = [it.failed[number] - killed for it in others]
                found[mesh].append((min(times), max(times)))
        return found

    def wrong(self):
        """The number of times that a node had a live node as failed, by mesh."""
        result = {}
        for mesh, nodes in self.nodes.items():
            up = {it.number for it in nodes if it.process.poll() is None}
            result[mesh] = sum(it.wrong + len(up & set(it.failed)) for it in nodes)
        return result

    def round_trips(self, mesh):
        """The medians of the round trips that nodes report, inside sites and between them, in ms, and their number."""
        both = {False: [], True: []}
        for node in self.nodes[mesh]:
            for of, it in node.round_trips.items():
                both[node.place.site != self.nodes[mesh][of - 1].place.site].append(it)
        return {far: (sorted(all_)[len(all_) // 2] if all_ else float("nan"), len(all_)) for far, all_ in both.items()}

    def stop(self):
        for nodes in self.nodes.values():
            for node in nodes:
                if hasattr(node, "process") and node.process.poll() is None:
                    node.kill()
        if self.relay.thread.is_alive():
            self.relay.stop()


def show(run, took, traffic, failures, wrong):
    print()
    print("| | packets between sites | bytes between sites | packets inside sites | first has a failure | all have it "
          "| wrong failures |")
    print("|---|---|---|---|---|---|---|")
    for mesh, nodes in run.nodes.items():
        near, far = traffic[mesh.name][False], traffic[mesh.name][True]
        each = took * len(nodes)
        times = failures.get(mesh, [])
        mean = [f"{sum(it[n] for it in times) / len(times):.1f} s" if times else "" for n in (0, 1)]
        stream = f" and {far.connections} connections of TCP" if far.connections else ""
        size = (far.packet_bytes + far.stream_bytes) / each
        print(f"| {mesh.name} | {far.packets / each:.2f}{stream} | {size:.0f} | {near.packets / each:.2f} | {mean[0]} "
              f"| {mean[1]} | {wrong[mesh]} |")
    print(f"\nPackets and bytes of contents are for each node and second, over {took:.0f} s.")


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", type=Path, default=target / "release/selvedge")
    parser.add_argument("--serf", default=shutil.which("serf"))
    parser.add_argument("--nodes", type=int, default=5, help="nodes in each of the three sites")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    if not options.program.exists():
        sys.exit(f"{options.program} is missing: cargo build --release -p selvedge-cli")
    # In the short run periods are shorter, and as many.
    period, learning, counting, killed = (400, 10, 15, 0) if options.short else (1_000, 120, 180, 4)
    paced = ("--period", period)
    meshes = [Selvedge("selvedge, measured", options.program, "--distances", "measured", *paced),
              Selvedge("selvedge, uniform", options.program, "--distances", "uniform", *paced)]
    if options.serf and not options.short:
        meshes.append(Serf(options.serf))
    elif not options.short:
        print("serf is left out: it is not installed")
    folder = Path(tempfile.mkdtemp(prefix="selvedge-distances-"))
    print(f"seed {options.seed}, {SITES} sites of {options.nodes} nodes, a period of {period} ms, "
          f"{learning} s to learn", flush=True)
    run = Run(meshes, options.nodes, folder)
    try:
        run.start()
        time.sleep(learning)
        took, traffic = run.traffic(counting)
        failures = run.failures(killed, random.Random(options.seed)) if killed else {}
        wrong, trips = run.wrong(), run.round_trips(meshes[0])
    finally:
        run.stop()
    show(run, took, traffic, failures, wrong)
    print(f"Medians of measured round trips: {trips[False][0]:.1f} ms inside sites ({trips[False][1]} pairs), "
          f"{trips[True][0]:.1f} ms between them ({trips[True][1]} pairs).")
    measured, uniform = (traffic[mesh.name][True] for mesh in meshes[:2])
    if measured.packets * 4 > uniform.packets * 3:
        sys.exit(f"FAILED: {measured.packets} packets went between sites with measured distances, and "
                 f"{uniform.packets} without; output of the nodes: {folder}")
    shutil.rmtree(folder)


main()
