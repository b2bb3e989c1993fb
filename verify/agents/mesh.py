"""Agents of a mesh as processes, in a network namespace of their own."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "hosts/target")) / "release/selvedge-agent"
BUILD = "(cd hosts && cargo build --release -p selvedge-agent)"
# The settings of the allocator that selvedge-agent.service has.
ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}
# The variable that marks a process inside of the namespace.
INSIDE = "SELVEDGE_VERIFY_NAMESPACE"


def enter_namespace():
    """Runs this script again in a network namespace that has nothing but a loopback device. There the counters of
    that device and the rules of the firewall concern this run alone. All processes of the namespace end with it."""
    if INSIDE in os.environ:
        del os.environ[INSIDE]
        # The first process of a namespace ignores signals that it does not handle.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    for program in ("unshare", "ip"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing: apt-get install util-linux iproute2")
    # Root needs no user namespace; others are root in one of their own.
    flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
    flags += ["--pid", "--fork", "--kill-child", "--mount-proc"]
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", *flags, sys.executable, "-B", *sys.argv])


def loopback_bytes():
    """The bytes that were sent over the loopback device of this namespace, with the headers of IP."""
    for line in Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[8])
    raise RuntimeError("this namespace has no loopback device")


def memory(pid, field):
    """VmRSS, the resident memory now, VmHWM, the most that it was, or RssAnon, the part that is of no file, in
    bytes."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def processor_seconds(pid):
    """The processor time of a process so far."""
    numbers = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def write_key(path):
    """A file with a key of a mesh, as `selvedge key` makes it."""
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32) + "\n", encoding="ascii")


class Agent:
    """An agent with its folder. Its process may be killed and started again."""

    HTTP = 7780

    def __init__(self, mesh, identity):
        self.mesh, self.id = mesh, identity
        self.host = f"127.0.1.{identity}"
        self.state = mesh.folder / str(identity)
        self.log = mesh.folder / f"{identity}.log"
        self.process = None
        self.starts = 0

    def start(self):
        """Starts it from its folder."""
        mesh = self.mesh
        command = [mesh.program, "run", "--id", self.id, "--listen", f"{self.host}:7001",
                   "--http", f"{self.host}:{self.HTTP}", "--key", mesh.key,
                   "--founders", ",".join(str(it) for it in mesh.founders), "--failures", mesh.failures,
                   *(["--state", self.state] if mesh.is_durable else ["--forgets"])]
        if seeds := [f"127.0.1.{it}:7001" for it in mesh.founders if it != self.id]:
            command += ["--join", *seeds]
        self.starts += 1
        with open(self.log, "ab") as log:
            log.write(f"--- start {self.starts} at {time.monotonic():.3f}\n".encode())
            self.process = subprocess.Popen([str(it) for it in command], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=os.environ | ALLOCATOR | mesh.environment(self))

    def send(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self):
        self.send(signal.SIGKILL)
        self.process.wait()

    def get(self, path, seconds=2):
        """The answer to a GET, or `None` if there is none."""
        try:
            with urllib.request.urlopen(f"http://{self.host}:{self.HTTP}{path}", timeout=seconds) as answer:
                return answer.read()
        except (OSError, urllib.error.URLError):
            return None

    def counters(self):
        """The numbers of /metrics by their names with labels; empty without an answer."""
        lines = (self.get("/metrics") or b"").decode().splitlines()
        pairs = (it.rsplit(" ", 1) for it in lines if not it.startswith("#"))
        return {name: float(number) for name, number in pairs}

    def live_members(self):
        """The number of members that it takes for live."""
        members = json.loads(self.get("/v1/members") or b"[]")
        return sum(it["status"] in ("alive", "suspected") for it in members)

    def memory(self, field):
        return memory(self.process.pid, field)


class Mesh:
    """Agents 1 to `count`, of which the first ones are founders."""

    def __init__(self, program, folder, count, founders, failures, is_durable=True):
        self.program, self.folder = program, folder
        self.founders, self.failures = list(range(1, founders + 1)), failures
        self.is_durable = is_durable
        folder.mkdir(parents=True, exist_ok=True)
        self.key = folder / "mesh.key"
        write_key(self.key)
        self.agents = [Agent(self, it) for it in range(1, count + 1)]

    def environment(self, _agent):
        """Variables of the environment of an agent, beside those of this process."""
        return {}

    def meet(self, agents, seconds):
        """Waits until each of these agents lists all of them as members, and may hold maps."""
        end = time.monotonic() + seconds
        for agent in agents:
            while not (agent.live_members() >= len(agents)
                       and agent.counters().get("selvedge_nodes", 0) >= len(agents)):
                if time.monotonic() > end:
                    return False
                time.sleep(0.2)
        return True

    def kill_all(self):
        for agent in self.agents:
            if agent.process is not None:
                agent.kill()


def need_program(program):
    if not program.exists():
        sys.exit(f"{program} is missing: {BUILD}")
