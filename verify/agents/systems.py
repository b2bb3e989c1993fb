"""Three members of each system on loopback, and the operations of their clients.

An operation is done when the client knows its outcome. Values have 100 bytes. What each stores, as it is shipped:

| system | before it answers a change |
|---|---|
| selvedge-agent | each member of the map's group that it counts has written its promise into its database and synchronised it (fdatasync) |
| etcd | a majority has written the entry into its log and synchronised it (fdatasync) |
| ZooKeeper | a majority has written the transaction into its log and synchronised it (forceSync, FileChannel.force) |
"""

import itertools
import json
import os
import shutil
import subprocess
import time

from links import Link, Refused, ZooKeeperLink, b64, etcd_request, http, http_framing, zk_first_text, zk_texts
from mesh import Mesh

MEMBERS = 3
VALUE = b"v" * 100
KEYS = 64
PATIENCE = 120


class System:
    """Three members. `pids` are their processes."""

    OPERATIONS = ["put", "get", "lock+unlock", "elect+resign"]

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        self.processes = []

    def launch(self, command, name):
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(it) for it in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes.append(process)

    @property
    def pids(self):
        return [it.pid for it in self.processes]

    def await_answers(self):
        """Waits until a client of each member has put an entry."""
        end = time.monotonic() + PATIENCE
        attempts = itertools.count()
        for member in range(MEMBERS):
            while True:
                try:
                    client = self.connect(member)
                    client.run(self.operation("put", client, f"first{next(attempts)}", 0))
                    client.close()
                    break
                except (OSError, Refused) as problem:
                    if time.monotonic() > end:
                        raise RuntimeError(f"{self.NAME} does not start: {problem}") from problem
                    time.sleep(0.2)

    def prepare(self, client, name):
        """Puts all entries of a client."""
        for number in range(KEYS):
            client.run(self.operation("put", client, name, number))

    def operation(self, kind, client, name, number):
        return getattr(self, kind.partition("+")[0])(client, name, number)

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Selvedge(System):
    NAME = "selvedge-agent"
    IS_DURABLE = True

    def __init__(self, folder, program):
        super().__init__(folder)
        self.mesh = Mesh(program, folder, MEMBERS, MEMBERS, 1, self.IS_DURABLE)

    def start(self):
        for agent in self.mesh.agents:
            agent.start()
            self.processes.append(agent.process)
        if not self.mesh.meet(self.mesh.agents, PATIENCE):
            raise RuntimeError("the agents do not meet")
        self.await_answers()

    def connect(self, member):
        agent = self.mesh.agents[member]
        return Link((agent.host, agent.HTTP), http_framing)

    def put(self, _client, name, number):
        yield http("PUT", f"/v1/maps/compare/entries/{name}-{number % KEYS}", VALUE)

    def get(self, _client, name, number):
        yield http("GET", f"/v1/maps/compare/entries/{name}-{number % KEYS}")

    def lock(self, _client, name, _number):
        held = yield http("POST", f"/v1/locks/{name}?ttl=30s")
        yield http("DELETE", f"/v1/holds/{json.loads(held)['hold']}")

    def elect(self, _client, name, _number):
        held = yield http("POST", f"/v1/elections/{name}?ttl=30s", VALUE)
        yield http("DELETE", f"/v1/holds/{json.loads(held)['hold']}")


class Forgetful(Selvedge):
    NAME = "selvedge-agent --forgets"
    IS_DURABLE = False


class Etcd(System):
    NAME = "etcd"

    def start(self):
        if shutil.which("etcd") is None:
            raise RuntimeError("etcd is missing: apt-get install etcd-server")
        members = range(MEMBERS)
        cluster = ",".join(f"m{it}=http://127.0.2.{it + 1}:2380" for it in members)
        for it in members:
            clients, peers = (f"http://127.0.2.{it + 1}:{port}" for port in (2379, 2380))
            self.launch(["etcd", "--name", f"m{it}", "--data-dir", self.folder / f"m{it}",
                         "--listen-client-urls", clients, "--advertise-client-urls", clients,
                         "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                         "--initial-cluster", cluster, "--initial-cluster-state", "new",
                         "--logger", "zap", "--log-level", "error"], f"m{it}")
        self.await_answers()

    def connect(self, member):
        link = Link((f"127.0.2.{member + 1}", 2379), http_framing)
        link.lease = None
        return link

    def prepare(self, client, name):
        """A session of etcd's recipes, too: one lease for all that a client holds."""
        super().prepare(client, name)

        def grant():
            client.lease = json.loads((yield etcd_request("lease/grant", TTL=600)))["ID"]
        client.run(grant())

    def put(self, _client, name, number):
        yield etcd_request("kv/put", key=b64(f"{name}-{number % KEYS}".encode()), value=b64(VALUE))

    def get(self, _client, name, number):
        yield etcd_request("kv/range", key=b64(f"{name}-{number % KEYS}".encode()))

    def lock(self, client, name, _number):
        held = yield etcd_request("lock/lock", name=b64(f"lock-{name}".encode()), lease=client.lease)
        yield etcd_request("lock/unlock", key=json.loads(held)["key"])

    def elect(self, client, name, _number):
        leads = yield etcd_request("election/campaign", name=b64(f"elect-{name}".encode()),
                                    lease=client.lease, value=b64(VALUE))
        yield etcd_request("election/resign", leader=json.loads(leads)["leader"])


class ZooKeeper(System):
    NAME = "ZooKeeper"
    JAR = "/usr/share/java/zookeeper.jar"

    def start(self):
        if shutil.which("java") is None:
            raise RuntimeError("java is missing: apt-get install zookeeper")
        servers = "".join(f"server.{it + 1}=127.0.3.{it + 1}:2888:3888\n" for it in range(MEMBERS))
        for it in range(MEMBERS):
            folder = self.folder / f"m{it}"
            folder.mkdir()
            (folder / "myid").write_text(f"{it + 1}\n", encoding="ascii")
            # The settings of Debian's zoo.cfg; `forceSync` is yes by default.
            settings = (f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={folder}\nclientPort=2181\n"
                        f"clientPortAddress=127.0.3.{it + 1}\nadmin.enableServer=false\nmaxClientCnxns=0\n{servers}")
            (folder / "zoo.cfg").write_text(settings, encoding="ascii")
            self.launch(["java", "-Xmx1000m", "-Dzookeeper.root.logger=ERROR,CONSOLE",
                         "-cp", f"/etc/zookeeper/conf:{self.JAR}",
                         "org.apache.zookeeper.server.quorum.QuorumPeerMain", folder / "zoo.cfg"], f"m{it}")
        self.await_answers()

    def connect(self, member):
        return ZooKeeperLink((f"127.0.3.{member + 1}", 2181))

    def prepare(self, client, name):
        """Makes all nodes of a client."""
        def create():
            for path in [f"/lock-{name}", f"/elect-{name}", *(f"/{name}-{it}" for it in range(KEYS))]:
                yield client.create(path, b"")
        client.run(create())

    def put(self, client, name, number):
        if name.startswith("first"):
            yield client.create(f"/{name}", VALUE)
        else:
            yield client.set(f"/{name}-{number % KEYS}", VALUE)

    def get(self, client, name, number):
        path = f"/{name}-{number % KEYS}"
        # A read alone is answered from the state of one server, which may be behind.
        yield client.sync(path)
        yield client.get(path)

    def lock(self, client, name, _number):
        yield from self.take_turn(client, f"/lock-{name}", b"")

    def elect(self, client, name, _number):
        yield from self.take_turn(client, f"/elect-{name}", VALUE)

    def take_turn(self, client, path, value):
        """The recipe of its documentation: the lowest sequential node of sessions that live is the holder."""
        own = zk_first_text((yield client.create(f"{path}/n-", value, flags=3)))
        waiting = zk_texts((yield client.children(path)))
        if min(waiting) != own.rpartition("/")[2]:
            raise Refused(f"another client holds {path}")
        yield client.delete(own)


def fdatasync_times(folder, count=200):
    """The seconds that synchronising 500 bytes more takes on this disk."""
    path = folder / "sync"
    times = []
    with open(path, "wb", buffering=0) as file:
        for _ in range(count):
            file.write(bytes(500))
            begins = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begins)
    path.unlink()
    return times
