"""Connections of clients that stay open, with one request at a time on each, for HTTP and for ZooKeeper.

An operation is a generator: it yields requests, as bytes, gets the answer to each, and ends when it is done. So the
same code measures one client and many."""

import base64
import json
import selectors
import socket
import struct
import time


class Refused(Exception):
    """An answer that is not the expected one."""


class Link:
    """A connection. `framing` finds the first whole answer in the bytes that came, and returns it with its length."""

    def __init__(self, address, framing):
        self.socket = socket.create_connection(address, timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.framing = framing
        self.came = b""
        self.operation = None

    def begin(self, operation):
        self.operation = operation
        self.socket.sendall(next(operation))

    def receive(self):
        """Takes bytes that came. Returns true if the operation is done."""
        more = self.socket.recv(65536)
        if not more:
            raise Refused("the server has closed the connection")
        self.came += more
        while (found := self.framing(self.came)) is not None:
            answer, length = found
            self.came = self.came[length:]
            try:
                self.socket.sendall(self.operation.send(answer))
            except StopIteration:
                return True
        return False

    def run(self, operation):
        """Does one operation."""
        self.begin(operation)
        while not self.receive():
            pass

    def close(self):
        self.socket.close()


def measure_one(link, operations):
    """Does these operations one after another, and returns the seconds that each took."""
    times = []
    for operation in operations:
        begins = time.perf_counter()
        link.run(operation)
        times.append(time.perf_counter() - begins)
    return times


def measure_many(links, make, seconds):
    """Does operations on all links at once for this time. Returns how many were done, and the seconds until the last
    one was done. `make` makes the next operation of the link with that index."""
    selector = selectors.DefaultSelector()
    done, active = 0, len(links)
    begins = time.perf_counter()
    for index, link in enumerate(links):
        selector.register(link.socket, selectors.EVENT_READ, (index, link))
        link.begin(make(index))
    while active:
        ready = selector.select(60)
        if not ready:
            raise Refused("no answer in 60 s")
        for key, _ in ready:
            index, link = key.data
            if not link.receive():
                continue
            done += 1
            if time.perf_counter() - begins < seconds:
                link.begin(make(index))
            else:
                selector.unregister(link.socket)
                active -= 1
    return done, time.perf_counter() - begins


def http(method, path, body=b""):
    """A request over a connection that stays open."""
    return b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
        method.encode(), path.encode(), len(body), body)


def http_framing(came):
    """The body of the first answer; one with a refusal is an error."""
    head, end, _ = came.partition(b"\r\n\r\n")
    if not end:
        return None
    lines = head.lower().split(b"\r\n")
    length = next((int(it[15:]) for it in lines if it.startswith(b"content-length:")), None)
    if length is None:
        raise Refused(f"an answer without its length: {head!r}")
    begins = len(head) + 4
    if len(came) < begins + length:
        return None
    body = came[begins:begins + length]
    if lines[0].split()[1] != b"200":
        raise Refused(f"{lines[0].decode()}: {body!r}")
    return body, begins + length


def etcd_request(path, **fields):
    """A request to the JSON gateway of etcd."""
    return http("POST", "/v3/" + path, json.dumps(fields).encode())


def b64(data):
    return base64.b64encode(data).decode()


class ZooKeeperLink(Link):
    """A session of ZooKeeper by its own protocol."""

    def __init__(self, address):
        super().__init__(address, self.frames)
        self.greets, self.xid = True, 0
        self.run(self.hello())

    def hello(self):
        yield length_first(struct.pack(">iqiq", 0, 0, 30_000, 0) + zk_bytes(bytes(16)) + b"\0")
        self.greets = False

    def frames(self, came):
        if len(came) < 4:
            return None
        (length,) = struct.unpack_from(">i", came)
        if len(came) < 4 + length:
            return None
        frame = came[4:4 + length]
        if self.greets:
            return frame, 4 + length
        xid, _, error = struct.unpack_from(">iqi", frame)
        if error:
            raise Refused(f"ZooKeeper's error {error} to the request {xid}")
        return frame[16:], 4 + length

    def request(self, kind, body):
        self.xid += 1
        return length_first(struct.pack(">ii", self.xid, kind) + body)

    def create(self, path, data, flags=0):
        """`flags`: 1 for an ephemeral node, 2 for a sequential one."""
        anyone = struct.pack(">ii", 1, 31) + zk_bytes(b"world") + zk_bytes(b"anyone")
        return self.request(1, zk_text(path) + zk_bytes(data) + anyone + struct.pack(">i", flags))

    def delete(self, path):
        return self.request(2, zk_text(path) + struct.pack(">i", -1))

    def set(self, path, data):
        return self.request(5, zk_text(path) + zk_bytes(data) + struct.pack(">i", -1))

    def get(self, path):
        return self.request(4, zk_text(path) + b"\0")

    def children(self, path):
        return self.request(8, zk_text(path) + b"\0")

    def sync(self, path):
        return self.request(9, zk_text(path))

    def bye(self):
        yield self.request(-11, b"")


def length_first(body):
    return struct.pack(">i", len(body)) + body


def zk_bytes(data):
    return struct.pack(">i", len(data)) + data


def zk_text(text):
    return zk_bytes(text.encode())


def zk_first_text(frame):
    (length,) = struct.unpack_from(">i", frame)
    return frame[4:4 + length].decode()


def zk_texts(frame):
    (count,) = struct.unpack_from(">i", frame)
    at, texts = 4, []
    for _ in range(count):
        texts.append(zk_first_text(frame[at:]))
        at += 4 + len(texts[-1].encode())
    return texts
