#!/usr/bin/env python3
"""Compares three agents of a mesh with three members of etcd and of ZooKeeper, on this machine in one run.

    (cd hosts && cargo build --release -p selvedge-agent)
    apt-get install etcd-server zookeeper
    verify/agents/compare.py            five rounds, about 15 minutes
    ..  --rounds N --operations N --seconds S --clients N --idle S
    ..  --systems selvedge-agent,etcd   some of them; `selvedge-agent --forgets` is one more, without a folder
    ..  --folder DIR                    the disk; by default that of the folder for temporary files

One system is up at a time, in a network namespace of its own, and the rounds alternate between the systems, so that
other work on the machine concerns all. Each round starts with empty folders, does each operation a while without
measuring it, and then measures

- latency: one client does one operation after another, in turn at each member, over a connection that stays open;
- throughput: `--clients` clients at once, spread over the members, with entries, locks and elections of their own;
  and the processor time of the three members for each operation meanwhile;
- memory of each member then, and the bytes between the members for a while without any client.

The client is the same code for all; its own time is part of each latency. etcd is used through its JSON gateway,
which turns each request into one of gRPC inside of the same process. The agents encrypt their datagrams, as they do
by default; the others do not by default. systems.py names the operations and what each system stores."""

import argparse
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from links import measure_many, measure_one
from mesh import PROGRAM, enter_namespace, loopback_bytes, memory, need_program, processor_seconds
from systems import MEMBERS, Etcd, Forgetful, Selvedge, System, ZooKeeper, fdatasync_times

ALL = {it.NAME: it for it in (Selvedge, Forgetful, Etcd, ZooKeeper)}
# The time between the last client and the measurement of idle traffic, in seconds.
SETTLES = 5


class Figures:
    """The measurements of one system, over all rounds."""

    def __init__(self):
        self.latencies = {it: [] for it in System.OPERATIONS}
        self.medians = {it: [] for it in System.OPERATIONS}
        self.rates = {it: [] for it in System.OPERATIONS}
        self.costs = {it: [] for it in System.OPERATIONS}
        self.memory, self.private, self.idle = [], [], []

    def median(self, kind):
        return statistics.median(self.latencies[kind]) * 1e3

    def p99(self, kind):
        return percentile(self.latencies[kind], 0.99) * 1e3


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def measure(system, figures, options):
    """One round of one system."""
    per_member = max(options.operations // MEMBERS, 1)
    clients = [system.connect(it % MEMBERS) for it in range(max(options.clients, MEMBERS))]
    names = [f"c{it}" for it in range(len(clients))]
    for client, name in zip(clients, names):
        system.prepare(client, name)
    numbers = [0] * len(clients)

    def make(kind, index):
        numbers[index] += 1
        return system.operation(kind, clients[index], names[index], numbers[index])

    for kind in System.OPERATIONS:
        measure_many(clients, lambda index, kind=kind: make(kind, index), options.warm)
    for kind in System.OPERATIONS:
        times = []
        for member in range(MEMBERS):
            # A session of ZooKeeper, and a silent connection to an agent, end after 30 s.
            for index, client in enumerate(clients):
                client.run(make("get", index))
            times += measure_one(clients[member], (make(kind, member) for _ in range(per_member)))
        figures.latencies[kind] += times
        figures.medians[kind].append(statistics.median(times) * 1e3)
    for kind in System.OPERATIONS:
        before = sum(processor_seconds(it) for it in system.pids)
        done, took = measure_many(clients[:options.clients], lambda index, kind=kind: make(kind, index), options.seconds)
        used = sum(processor_seconds(it) for it in system.pids) - before
        figures.rates[kind].append(done / took)
        figures.costs[kind].append(used / done * 1e6)
    figures.memory += [memory(it, "VmRSS") for it in system.pids]
    figures.private += [memory(it, "RssAnon") for it in system.pids]
    for client in clients:
        if hasattr(client, "bye"):
            client.run(client.bye())
        client.close()
    time.sleep(SETTLES)
    before = loopback_bytes()
    time.sleep(options.idle)
    figures.idle.append((loopback_bytes() - before) / options.idle)


def ratio(own, other):
    return f"{own / other:.2f}" if other else "-"


def show(figures, names):
    """The table, in Markdown; ratios below 1 are below the other system, except those of operations a second."""
    own, others = names[0], names[1:]
    print("\n| | | " + " | ".join(names) + " |" + "".join(f" to {it} |" for it in others))
    print("|---|---|" + "---|" * (len(names) + len(others)))

    def row(what, unit, value, form):
        values = [value(figures[it]) for it in names]
        cells = [form.format(it) for it in values] + [ratio(values[0], it) for it in values[1:]]
        print(f"| {what} | {unit} | " + " | ".join(cells) + " |")

    for kind in System.OPERATIONS:
        row(kind, "median, ms", lambda it, kind=kind: it.median(kind), "{:.2f}")
        row("", "p99, ms", lambda it, kind=kind: it.p99(kind), "{:.2f}")
        row("", "operations a second", lambda it, kind=kind: statistics.median(it.rates[kind]), "{:,.0f}")
        row("", "processor us an operation", lambda it, kind=kind: statistics.median(it.costs[kind]), "{:,.0f}")
    row("memory of a member", "resident, MiB", lambda it: statistics.median(it.memory) / 2**20, "{:.1f}")
    row("", "without pages of files, MiB", lambda it: statistics.median(it.private) / 2**20, "{:.1f}")
    row("idle", "bytes a second, all three", lambda it: statistics.median(it.idle), "{:,.0f}")
    print(f"\nRatios are those of {own}. The spread between rounds, of the medians in ms:")
    for kind in System.OPERATIONS:
        spread = (f"{it} {min(figures[it].medians[kind]):.2f} to {max(figures[it].medians[kind]):.2f}" for it in names)
        print(f"  {kind}: " + ", ".join(spread))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, default=600, help="of each kind, one after another, in a round")
    parser.add_argument("--seconds", type=float, default=5, help="of throughput of each kind in a round")
    parser.add_argument("--warm", type=float, default=3, help="seconds of each kind in a round before the first figure")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--idle", type=float, default=20, help="seconds of idle traffic in a round")
    parser.add_argument("--systems", default=",".join(ALL))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    names = [it.strip() for it in options.systems.split(",")]
    if unknown := [it for it in names if it not in ALL]:
        sys.exit(f"the systems {unknown} are unknown: choose from {list(ALL)}")
    need_program(options.program)
    folder = Path(tempfile.mkdtemp(prefix="selvedge-compare-", dir=options.folder))
    syncs = fdatasync_times(folder)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; fdatasync of 500 bytes: "
          f"median {statistics.median(syncs) * 1e3:.2f} ms, p99 {percentile(syncs, 0.99) * 1e3:.2f} ms", flush=True)
    print(f"{options.rounds} rounds of {options.operations} operations, then {options.clients} clients for "
          f"{options.seconds:g} s", flush=True)
    figures = {it: Figures() for it in names}
    try:
        for number in range(options.rounds):
            # No system has always the same one before it.
            for name in random.Random(number).sample(names, len(names)):
                kind = ALL[name]
                place = folder / f"{number}-{kind.__name__}"
                system = kind(place, options.program) if issubclass(kind, Selvedge) else kind(place)
                try:
                    system.start()
                    measure(system, figures[name], options)
                finally:
                    system.stop()
                medians = (f"{it} {figures[name].medians[it][-1]:.2f} ms {figures[name].rates[it][-1]:,.0f}/s"
                           for it in System.OPERATIONS)
                print(f"round {number + 1}, {name}: " + ", ".join(medians), flush=True)
                shutil.rmtree(place)
    except BaseException:
        print(f"the folders and logs are in {folder}", file=sys.stderr)
        raise
    show(figures, names)
    shutil.rmtree(folder)


if __name__ == "__main__":
    enter_namespace()
    main()
