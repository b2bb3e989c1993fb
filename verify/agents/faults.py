"""Faults of agents and of the network between them."""

import os
import signal
import subprocess
import time
from pathlib import Path

from mesh import Mesh

LIBRARIES = [Path("/usr/lib") / it / "faketime/libfaketime.so.1"
             for it in ("x86_64-linux-gnu", "aarch64-linux-gnu", "")]
NO_END = "no agent ends by itself"
# Steps of the wall clock, in seconds: up to the next epoch of the groups, and years.
STEPS = [1, 30, 600, 3_700, 86_400, 40_000_000]


class FaultyMesh(Mesh):
    """A mesh whose agents see wall clocks of their own, if libfaketime is there."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.library = next((it for it in LIBRARIES if it.exists()), None)
        for agent in self.agents:
            self.set_clock(agent, 0)
        if self.library is not None:
            shown = subprocess.run(["date", "+%s"], env=os.environ | self.environment(self.agents[0]) |
                                   {"FAKETIME": "+5000s", "FAKETIME_TIMESTAMP_FILE": ""}, capture_output=True,
                                   check=True, text=True).stdout
            if abs(int(shown) - time.time() - 5000) > 60:
                raise RuntimeError("libfaketime has no effect: install the package faketime again")

    def clock(self, agent):
        return self.folder / f"{agent.id}.clock"

    def set_clock(self, agent, offset):
        """Shifts the wall clock of this agent by this number of seconds from the true time, from the next second on."""
        later = self.clock(agent).with_suffix(".new")
        later.write_text(f"{offset:+}s\n", encoding="ascii")
        later.rename(self.clock(agent))

    def environment(self, agent):
        if self.library is None:
            return {}
        return {"LD_PRELOAD": str(self.library), "FAKETIME_TIMESTAMP_FILE": str(self.clock(agent)),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_CACHE_DURATION": "1"}


class Network:
    """Drops datagrams between agents, by the firewall of the namespace. Clients are not concerned."""

    def __init__(self):
        # Pairs of a source and a destination, by the fault that cuts them.
        self.cuts = {}
        self.losses = {}

    def set(self, fault, cuts=(), loss=0):
        self.cuts[fault], self.losses[fault] = set(cuts), loss
        self.apply()

    def end(self, fault):
        self.cuts.pop(fault, None)
        self.losses.pop(fault, None)
        self.apply()

    def apply(self):
        targets = {}
        for source, target in set().union(*self.cuts.values()):
            targets.setdefault(source.host, []).append(target.host)
        rules = ["*filter", ":INPUT ACCEPT [0:0]"]
        rules += [f":FROM-{source} - [0:0]" for source in targets]
        rules += [f"-A INPUT -p udp -s {source}/32 -j FROM-{source}" for source in targets]
        rules += [f"-A FROM-{source} -d {it}/32 -j DROP" for source, all_of in targets.items() for it in all_of]
        if loss := max(self.losses.values(), default=0):
            rules.append(f"-A INPUT -p udp -m statistic --mode random --probability {loss} -j DROP")
        text = "\n".join([*rules, "COMMIT", ""])
        subprocess.run(["iptables-restore"], input=text, text=True, check=True)


class Faults:
    """Begins faults at random, and ends each after a while."""

    # Each kind, and how often it is drawn.
    KINDS = {"kill": 6, "stop": 6, "isolate": 3, "one way": 3, "split": 2, "loss": 2, "clock": 3, "leave": 2,
             "kill all": 1}

    def __init__(self, mesh, rng, checks, without):
        self.kinds = {kind: often for kind, often in self.KINDS.items() if kind not in without}
        if mesh.library is None and self.kinds.pop("clock", None):
            print("skipped, for libfaketime is missing (apt-get install faketime): steps of wall clocks", flush=True)
        self.mesh, self.rng, self.checks = mesh, rng, checks
        self.network = Network()
        self.counts = dict.fromkeys(self.kinds, 0)
        # The time of the end, and the end, of each fault that goes on.
        self.ends = []
        # Agents that a fault holds.
        self.held = set()
        self.memory = 0

    def run(self, seconds):
        """Has faults for this time, and then ends all."""
        over = time.monotonic() + seconds
        following = time.monotonic()
        while time.monotonic() < over:
            if time.monotonic() >= following:
                self.begin()
                following = time.monotonic() + self.rng.uniform(0.2, 4)
            self.end_those_due(time.monotonic())
            self.look()
            time.sleep(0.05)
        self.end_those_due(None)
        self.look()
        self.checks.that(NO_END, True, "")

    def look(self):
        """No agent ends by itself. Notes the memory of all."""
        for agent in self.mesh.agents:
            self.memory = max(self.memory, agent.memory("VmHWM"))
            if agent not in self.held and agent.process.poll() is not None:
                self.checks.that(NO_END, False, f"agent {agent.id}: {agent.process.returncode}")
                agent.start()

    def free(self, most):
        """Some agents that no other fault holds."""
        free = [it for it in self.mesh.agents if it not in self.held]
        return self.rng.sample(free, min(self.rng.randint(1, most), len(free)))

    def begin(self):
        kind = self.rng.choices(list(self.kinds), list(self.kinds.values()))[0]
        self.counts[kind] += 1
        getattr(self, "begin_" + kind.replace(" ", "_"))()

    def later(self, least, most, end):
        self.ends.append((time.monotonic() + self.rng.uniform(least, most), end))

    def end_those_due(self, now):
        due = [it for it in self.ends if now is None or it[0] <= now]
        self.ends = [it for it in self.ends if it not in due]
        for _, end in due:
            end()

    def hold(self, agents):
        self.held |= set(agents)

    def start(self, agents):
        self.held -= set(agents)
        for agent in agents:
            # Sealed datagrams have the time of the start: one that is before the former start is refused for as long
            # as its clock is behind (the book's chapter on sealed datagrams). So clocks are right at a start.
            self.mesh.set_clock(agent, 0)
            agent.start()

    def begin_kill(self, agents=None):
        agents = self.free(self.mesh.failures) if agents is None else agents
        self.look()
        for agent in agents:
            agent.kill()
        self.hold(agents)
        self.later(0, 4, lambda: self.start(agents))

    def begin_kill_all(self):
        self.begin_kill([it for it in self.mesh.agents if it not in self.held])

    def begin_stop(self):
        agents = self.free(self.mesh.failures)
        for agent in agents:
            agent.send(signal.SIGSTOP)

        def end():
            for agent in agents:
                agent.send(signal.SIGCONT)
        # Longer than some times to live.
        self.later(0.2, 8, end)

    def begin_leave(self):
        agents = self.free(1)
        self.hold(agents)
        for agent in agents:
            agent.send(signal.SIGTERM)

        def end():
            for agent in agents:
                if agent.process.poll() is None:
                    agent.send(signal.SIGCONT)
                    agent.kill()
            self.start(agents)
        self.later(4, 15, end)

    def cut(self, pairs, least, most):
        fault = object()
        self.network.set(fault, pairs)
        self.later(least, most, lambda: self.network.end(fault))

    def begin_isolate(self):
        some = self.rng.sample(self.mesh.agents, self.rng.randint(1, self.mesh.failures))
        others = [it for it in self.mesh.agents if it not in some]
        self.cut(both_ways(some, others), 1, 12)

    def begin_one_way(self):
        some = self.rng.sample(self.mesh.agents, self.rng.randint(1, self.mesh.failures))
        others = [it for it in self.mesh.agents if it not in some]
        senders, receivers = (some, others) if self.rng.randrange(2) else (others, some)
        self.cut([(a, b) for a in senders for b in receivers], 1, 8)

    def begin_split(self):
        agents = self.rng.sample(self.mesh.agents, len(self.mesh.agents))
        at = self.rng.randint(1, len(agents) - 1)
        self.cut(both_ways(agents[:at], agents[at:]), 1, 10)

    def begin_loss(self):
        fault = object()
        self.network.set(fault, loss=self.rng.choice([0.1, 0.2, 0.4]))
        self.later(1, 8, lambda: self.network.end(fault))

    def begin_clock(self):
        for agent in self.rng.sample(self.mesh.agents, self.rng.randint(1, len(self.mesh.agents))):
            self.mesh.set_clock(agent, self.rng.choice([-1, 1]) * self.rng.choice(STEPS))


def both_ways(some, others):
    return [pair for a in some for b in others for pair in ((a, b), (b, a))]
