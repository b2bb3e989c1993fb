"""Nodes of a building as processes: `hosts/udp/examples/building_node`."""

import os
import re
import resource
import shutil
import subprocess
import threading
import time


class Question:
    """A command that a node may answer. Its `answer` is `None` until then, and if the node is killed."""

    def __init__(self):
        self.ended = threading.Event()
        self.answer = None

    def end(self, answer):
        self.answer = answer
        self.ended.set()

    def wait(self, seconds):
        self.ended.wait(seconds)
        return self.answer


class Node:
    """A node with its folder. Its process may be killed and started again."""

    def __init__(self, building, identity, *options):
        self.building = building
        self.id, self.options = identity, options
        self.state = building.folder / str(identity)
        self.log = building.folder / f"{identity}.log"
        self.process = None
        self.lines = []
        self.has_joined = threading.Event()
        self.lock = threading.Lock()
        self.questions = {}
        # The reports of each light that sleeps to this process, less its commands to it.
        self.reports = {}

    def start(self, *options):
        """Starts it from its folder, with these options beside its own."""
        building = self.building
        command = [building.program, "--id", self.id, "--nodes", building.count, "--failures", building.failures,
                   "--listen", building.address(self.id), "--state", self.state, "--epoch", building.epoch,
                   "--batteries", ",".join(str(it) for it in building.batteries),
                   *self.options, *options, "--join", *(building.address(it.id) for it in building.nodes)]
        self.lines = []
        self.reports = {}
        self.has_joined.clear()
        # Python ignores SIGXFSZ, and so does the node then: a write beyond the limit is an error.
        self.process = subprocess.Popen([str(it) for it in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, bufsize=1, restore_signals=False)
        self.reader = threading.Thread(target=self.read, args=(self.process,), daemon=True)
        self.reader.start()

    def read(self, process):
        with open(self.log, "a", encoding="utf-8") as log:
            log.write("--- start\n")
            for line in process.stdout:
                log.write(f"{time.monotonic():.3f} {line}")
                log.flush()
                self.take(line.rstrip("\n"))
        process.wait()
        self.has_joined.clear()
        with self.lock:
            ended, self.questions = self.questions, {}
        for question in ended.values():
            question.end(None)

    def take(self, line):
        self.lines.append(line)
        command, _, answer = line.partition(": ")
        if line == "joined":
            self.has_joined.set()
        elif answer == "begun anew":
            self.building.begun.add(command.removeprefix("group "))
        elif command in ("lamp", "bell", "chime", "doorbell", "timer") or command.startswith("light "):
            self.building.acted(command, answer)
            if command in self.building.asleep and (answer.startswith("asked") or self.report(command, -1) < 0):
                self.building.unasked.append(f"node {self.id}: {line}")
        else:
            with self.lock:
                question = self.questions.pop(command, None)
            if question:
                question.end(answer)

    def ask(self, command):
        """Asks the node. The same command is not asked again before its answer."""
        question = Question()
        with self.lock:
            self.questions[command] = question
            try:
                self.process.stdin.write(command + "\n")
            except (OSError, ValueError):
                question.end(None)
        if self.process.poll() is not None:
            question.end(None)
        return question

    def report(self, light, more):
        with self.lock:
            self.reports[light] = self.reports.get(light, 0) + more
            return self.reports[light]

    def joins(self, seconds):
        return self.has_joined.wait(seconds)

    def is_up(self):
        return self.has_joined.is_set() and self.process.poll() is None

    def groups(self, seconds):
        """The ids of the groups in which it is, `None` without an answer."""
        return listed(self.ask("holds").wait(seconds))

    def has_battery(self):
        return self.id in self.building.batteries

    def kill(self):
        """Kills its process. Returns when all of its output is read, and its port is free."""
        self.signal()
        self.await_end()

    def leave(self, seconds):
        """Has the node leave, and returns the exit status of its process; `None` if it does not end."""
        self.ask("leave")
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def forget(self):
        """Deletes its folder."""
        shutil.rmtree(self.state)

    def signal(self):
        self.has_joined.clear()
        if self.process:
            self.process.kill()

    def await_end(self):
        if self.process:
            self.reader.join()
            try:
                self.process.stdin.close()
            except OSError:
                pass

    def fill_disk(self):
        """Lets no write of its process succeed that is beyond the first block of a file."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))

    def ends_reporting(self, words, seconds):
        """Returns true if the process ends with a failure, and with these words."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self.await_end()
        return status == 1 and any(words in line for line in self.lines)


def listed(answer):
    return None if answer is None else set(answer.removeprefix("no group").split())


class Building:
    """All nodes, and the devices that they control together."""

    def __init__(self, program, folder, count, failures, epoch):
        self.program, self.folder = program, folder
        self.count, self.failures, self.epoch = count, failures, epoch
        # A subnet of loopback for each run, so that runs beside each other do not meet.
        self.subnet = f"127.{os.getpid() // 250 % 250 + 1}.{os.getpid() % 250 + 1}"
        self.batteries = [count - 1, count]
        self.nodes = []
        self.nodes.extend(Node(self, it + 1) for it in range(count))
        self.latest = count
        self.lock = threading.Lock()
        # The value and the times of each command that was carried out, by its device and number.
        self.commands = {}
        # The lights that sleep, and lines of nodes to which one had not reported.
        self.asleep, self.unasked = set(), []
        # The reports of the doorbell's runs, and the times at which the timer's began.
        self.reports, self.timed = {}, {}
        # The ids of groups that began anew.
        self.begun = set()

    def address(self, identity):
        return f"{self.subnet}.{identity}:{7_000 + identity}"

    def another(self, *options):
        """A node that is not one of the building yet, and starts with these options."""
        self.latest += 1
        return Node(self, self.latest, *options)

    def up(self):
        return [it for it in self.nodes if it.is_up()]

    def kill_all(self):
        self.kill(self.nodes)

    def kill(self, nodes):
        """Kills these nodes at one moment."""
        for node in nodes:
            node.signal()
        for node in nodes:
            node.await_end()

    def holdings(self, seconds):
        """The ids of the groups in which each node is, as far as it knows."""
        asked = [(it, it.ask("holds")) for it in self.up()]
        return {it: listed(question.wait(seconds)) or set() for it, question in asked}

    def await_quiet(self):
        """Waits for a time in which no group changes over: from 60% of an epoch on."""
        share = time.time() / self.epoch % 1
        if not 0.6 < share < 0.7:
            time.sleep((0.62 - share) % 1 * self.epoch)

    def acted(self, device, text):
        """Takes the line in which a node carries out a command, or reports a run."""
        with self.lock:
            if device == "doorbell":
                run, report = re.match(r"run (\d+): (.*)", text).groups()
                self.reports[int(run)] = report
            elif device == "timer":
                run, moment = re.match(r"run (\d+) at (.*)", text).groups()
                # Another leader may report it later.
                self.timed.setdefault(int(run), float(moment))
            elif command := re.match(r"(.*) \(command (\d+)\)", text):
                value, number = command.groups()
                _, times = self.of(device).get(int(number), (value, 0))
                self.of(device)[int(number)] = value, times + 1

    def of(self, device):
        return self.commands.setdefault(device, {})

    def values(self, device):
        """The values of the commands to a device, in their order."""
        with self.lock:
            return [value for _, (value, _) in sorted(self.of(device).items())]
