#!/usr/bin/env python3
"""Has clients use the agents of a mesh while agents and their network fail, and checks all answers.

    (cd hosts && cargo build --release -p selvedge-agent)
    apt-get install iptables faketime
    verify/agents/endure.py             32 agents for ten minutes
    verify/agents/endure.py --short     5 agents for 40 s
    ..  --nodes N --seconds S --seed N --program PATH
    ..  --without clock,leave   faults to leave out, by their names in faults.py
    ..  --break late        lock clients rely on holds for longer than they may: ends with success if the checks
                            find it; so do `twice` (additions), `blind` (changes), `lose` (items), `skip` (watches)

The agents are processes with folders, in a network namespace of their own. Clients take locks, permits and the place
of a leader, change counters, entries and a queue, and watch the entries (workload.py). Meanwhile (faults.py)

- agents are killed by SIGKILL, some or all at once, and start again from their folders;
- agents are stopped for longer than holds live, and go on; or leave, and come back;
- datagrams are lost: between some and all others, in one direction, between two parts, or at random;
- the wall clocks of agents are stepped, by up to a year, by libfaketime where that is installed.

Then all faults end, each agent has to serve again, and judge.py compares all answers. The seed determines the faults
and the choices of clients, not the order of events. The exit status is 0 if all checks held; otherwise the folders,
with the output of each agent, are kept."""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import judge
from faults import FaultyMesh, Faults
from mesh import PROGRAM, ROOT, enter_namespace, loopback_bytes, need_program
from workload import DONE, Caller, Load

sys.path.append(str(ROOT / "verify/processes"))
from clients import Checks  # pylint: disable=wrong-import-position

# The longest wait for progress when all agents are up, in seconds.
PATIENCE = 120
# The number of agents at which idle traffic is measured.
IDLE_NODES = 16
STARTS, SERVES, DRAINS = "agents meet", "each agent serves when faults have ended", "the queue is empty in the end"
BREAKS = {"late": judge.EXCLUSION, "twice": judge.SUMS, "blind": judge.CHAIN, "lose": judge.KEPT,
          "skip": judge.WATCH_ALL}


class Run:
    def __init__(self, options, folder):
        self.options = options
        self.rng = random.Random(options.seed)
        self.checks = Checks()
        founders, failures = (5, 2) if options.nodes >= 5 else (3, 1)
        self.mesh = FaultyMesh(options.program, folder, options.nodes, founders, failures)
        self.faults = Faults(self.mesh, self.rng, self.checks, options.without.split(","))
        self.load = Load(self.mesh, self.checks, self.rng, options.pause, options.broken)
        self.caller = Caller(self.mesh.agents[:1], self.rng)

    def ask(self, method, path, body=None, agents=None):
        """Asks until there is an answer, for a while."""
        end = time.monotonic() + PATIENCE
        self.caller.agents = agents or self.mesh.agents
        self.caller.move()
        while True:
            answer = self.caller.call(method, path, body)
            if answer.outcome == DONE or time.monotonic() > end:
                return answer
            self.caller.move()
            time.sleep(0.2)

    def start(self, agents):
        for agent in agents:
            agent.start()
        met = [it for it in self.mesh.agents if it.process is not None]
        self.checks.that(STARTS, self.mesh.meet(met, PATIENCE), f"{len(met)} agents")

    def idle(self, seconds):
        """Traffic without clients, when all maps have begun."""
        agents = [it for it in self.mesh.agents if it.process is not None]
        self.use_all(agents[:1])
        time.sleep(min(seconds, 10))

        def sent():
            return [it.counters().get('selvedge_bytes_total{way="sent"}', 0) for it in agents]
        before, device = sent(), loopback_bytes()
        time.sleep(seconds)
        device = loopback_bytes() - device
        rates = [(b - a) * 8 / seconds / 1000 for a, b in zip(before, sent())]
        print(f"idle at {len(agents)} nodes: {sum(rates) / len(rates):.2f} kbit/s sent by a node, at most "
              f"{max(rates):.2f}; with the headers of IP and UDP {device * 8 / seconds / 1000 / len(agents):.2f}",
              flush=True)

    def use_all(self, agents):
        """Uses one of each through these agents."""
        for agent in agents:
            self.use(agent)

    def use(self, agent):
        for method, path, body in [("PUT", f"/v1/maps/{self.load.map}/entries/probe-{agent.id}", b"probe"),
                                   ("POST", f"/v1/counters/probe?add={agent.id}", None),
                                   ("POST", f"/v1/queues/probe-{agent.id}", b"probe"),
                                   ("DELETE", f"/v1/queues/probe-{agent.id}", None)]:
            answer = self.ask(method, path, body, [agent])
            self.checks.that(SERVES, answer.is_done, f"agent {agent.id}: {method} {path}: {answer.body}")
            if not answer.is_done:
                return
        for kind in ("locks", "elections", "semaphores"):
            more = "&permits=2" if kind == "semaphores" else ""
            answer = self.ask("POST", f"/v1/{kind}/probe?ttl=5s{more}", b"probe", [agent])
            self.checks.that(SERVES, answer.is_done, f"agent {agent.id}: {kind}: {answer.body}")
            if not answer.is_done:
                return
            self.ask("DELETE", f"/v1/holds/{answer.json()['hold']}", None, [agent])

    def drain(self):
        """Takes what is left in the queue. The records of these takes."""
        records = []
        while True:
            begins = time.monotonic()
            answer = self.caller.call("DELETE", "/v1/queues/queue?wait=500ms")
            if answer.kind == "timeout":
                left = self.ask("GET", "/v1/maps/queues/entries?prefix=queue/queue/")
                items = left.json()["entries"] if left.is_done else None
                if items == []:
                    self.checks.that(DRAINS, True, "")
                    return records
            records.append({"kind": "pop", "name": answer.body.decode() if answer.is_done else None, "begins": begins,
                            "ends": time.monotonic(), "outcome": answer.outcome, "why": answer.kind})
            if not answer.is_done and len(records) > 100 and not any(it["outcome"] == DONE for it in records[-100:]):
                self.checks.that(DRAINS, False, f"{answer.kind}")
                return records

    def judge(self, drained):
        load, checks = self.load, self.checks
        last = {}
        for name in {it["name"] for it in load.records("add")}:
            answer = self.ask("GET", f"/v1/counters/{name}")
            checks.that(SERVES, answer.is_done, name)
            if answer.is_done:
                last[name] = answer.json()["value"]
        judge.holds(checks, load.records("hold"))
        judge.leaders(checks, load.records("hold"), load.records("leader"))
        judge.counters(checks, load.records("add"), last)
        judge.entries(checks, load.records("read", "write"))
        lost, unknown = judge.queue(checks, load.records("push"), load.records("pop") + drained)
        judge.watches(checks, load.watched(), load.records("write"))
        kinds = judge.outcomes(load.records("hold", "leader", "add", "read", "write", "push", "pop"))
        print(f"\n{'operation':10} {'done':>8} {'refused':>8} {'unknown':>8}")
        for kind, counts in kinds.items():
            print(f"{kind:10} " + " ".join(f"{it:8}" for it in counts.values()))
        reports = sum(len(it) for it in load.watched())
        compacted = sum(it["kind"] == "compacted" for records in load.watched() for it in records)
        print(f"{reports} reports of watches, {compacted} of them began again; {lost} items lost with answers, of "
              f"{unknown} takes with unknown outcomes")
        print("faults: " + ", ".join(f"{name} {count}" for name, count in self.faults.counts.items()))
        print(f"memory of an agent: {self.faults.memory / 2**20:.1f} MiB at most")

    def all_of_it(self):
        options, agents = self.options, self.mesh.agents
        self.start(agents[:IDLE_NODES])
        self.idle(options.idle)
        self.start(agents[IDLE_NODES:])
        self.load.start()
        begins = time.monotonic()
        self.faults.run(options.seconds)
        print(f"faults end after {time.monotonic() - begins:.0f} s", flush=True)
        healed = time.monotonic()
        self.use_all(agents)
        print(f"each agent serves {time.monotonic() - healed:.1f} s later", flush=True)
        self.await_watches()
        self.load.stop()
        self.caller.agents = agents
        self.caller.move()
        self.judge(self.drain())

    def await_watches(self):
        """Waits until each watch has reported a change that is made now."""
        answer = self.ask("PUT", f"/v1/maps/{self.load.map}/entries/last", b"last")
        version = answer.json()["version"] if answer.is_done else 0
        end = time.monotonic() + PATIENCE
        for records in self.load.watched():
            def has_seen(records=records):
                return any(it["kind"] == "changed" and it["version"] >= version for it in records[-1000:])
            while not has_seen() and time.monotonic() < end:
                time.sleep(0.1)
            self.checks.that("watches go on when faults have ended", has_seen(), f"version {version}")

    def read_logs(self):
        for agent in self.mesh.agents:
            text = agent.log.read_text(encoding="utf-8", errors="replace")
            self.checks.that("no agent panics", "panicked" not in text, f"agent {agent.id}: {agent.log}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--seconds", type=float, help="of faults")
    parser.add_argument("--idle", type=float, help="seconds of idle traffic")
    parser.add_argument("--pause", type=float, default=0.1, help="the longest pause of a client, in seconds")
    parser.add_argument("--without", default="")
    parser.add_argument("--break", dest="broken", choices=BREAKS)
    options = parser.parse_args()
    options.nodes = options.nodes or (5 if options.short else 32)
    options.seconds = options.seconds or (40 if options.short else 600)
    options.idle = options.idle or (5 if options.short else 30)
    if not 3 <= options.nodes <= 250:
        sys.exit(f"{options.nodes} agents: give --nodes from 3 to 250")
    need_program(options.program)
    if shutil.which("iptables-restore") is None:
        sys.exit("iptables-restore is missing: apt-get install iptables")
    print(f"seed {options.seed}, {options.nodes} agents", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="selvedge-endure-"))
    run = Run(options, folder)
    begins = time.monotonic()
    try:
        run.all_of_it()
    finally:
        run.load.is_over.set()
        run.mesh.kill_all()
    run.read_logs()
    print()
    run.checks.show()
    print(f"{time.monotonic() - begins:.0f} s")
    if options.broken:
        is_found = bool(run.checks.failures(BREAKS[options.broken]))
        print("the broken rule was found" if is_found else "the broken rule was NOT found")
        shutil.rmtree(folder)
        sys.exit(not is_found)
    if run.checks.failures():
        (folder / "records.json").write_text(json.dumps(
            [[type(it).__name__, it.nth, it.records] for it in run.load.clients]), encoding="utf-8")
        sys.exit(f"FAILED with --seed {options.seed}; records, folders and output of the agents: {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    enter_namespace()
    main()
