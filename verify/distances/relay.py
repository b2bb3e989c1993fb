"""A relay between nodes on loopback that are in different sites, as far as they can measure.

Each node listens at a private port and announces a public one, which the relay has. A datagram for a public port comes
from the private port of its sender; it goes on from the public port of that sender, later by the delay between the two
sites."""

import heapq
import os
import selectors
import socket
import threading
import time

HOST = "127.0.0.1"


class Count:
    """Packets of UDP and bytes of their contents, connections of TCP and bytes in them."""

    def __init__(self):
        self.packets = self.packet_bytes = self.connections = self.stream_bytes = 0

    def minus(self, other):
        result = Count()
        for name in vars(self):
            setattr(result, name, getattr(self, name) - getattr(other, name))
        return result


class Place:
    """The ports of a node. Its process is known for meshes that use TCP."""

    def __init__(self, mesh, site):
        self.mesh, self.site = mesh, site
        self.process = None
        self.udp, self.tcp = two_sockets()
        self.public = self.udp.getsockname()
        # They keep the port free until the node starts.
        self.reserved = two_sockets()
        self.private = self.reserved[0].getsockname()

    def release(self):
        for it in self.reserved:
            it.close()

    def close(self):
        for it in (self.udp, self.tcp, *self.reserved):
            it.close()


def two_sockets():
    """A socket of UDP and a listener of TCP at one free port."""
    while True:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind((HOST, 0))
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            tcp.bind(udp.getsockname())
        except OSError:
            udp.close()
            tcp.close()
            continue
        tcp.listen(64)
        for it in (udp, tcp):
            it.setblocking(False)
        return udp, tcp


class Relay:
    """Passes on what the nodes of some meshes send. `near` and `far` are delays in seconds, one way."""

    def __init__(self, near, far):
        self.near, self.far = near, far
        self.places = []
        self.by_private = {}
        self.counts = {}
        self.lock = threading.Lock()
        self.waiting, self.sent = [], 0
        self.selector = selectors.DefaultSelector()
        self.is_over = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def add(self, mesh, site):
        """A place for a node of a mesh. All are added before the start."""
        place = Place(mesh, site)
        self.places.append(place)
        self.by_private[place.private] = place
        self.counts.setdefault(mesh, {False: Count(), True: Count()})
        self.selector.register(place.udp, selectors.EVENT_READ, (place, self.on_datagram))
        self.selector.register(place.tcp, selectors.EVENT_READ, (place, self.on_connection))
        return place

    def start(self):
        self.thread.start()

    def stop(self):
        self.is_over = True
        self.thread.join()
        for place in self.places:
            place.close()

    def taken(self):
        """The counts up to now, by mesh: inside sites (False) and between them (True)."""
        with self.lock:
            return {mesh: {far: it.minus(Count()) for far, it in both.items()} for mesh, both in self.counts.items()}

    def is_far(self, source, target):
        return source.site != target.site

    def delay(self, source, target):
        return self.far if self.is_far(source, target) else self.near

    def run(self):
        while not self.is_over:
            now = time.monotonic()
            while self.waiting and self.waiting[0][0] <= now:
                _, _, source, target, data = heapq.heappop(self.waiting)
                try:
                    source.udp.sendto(data, target.private)
                except OSError:
                    # The receiver's process has ended.
                    pass
            wait = self.waiting[0][0] - time.monotonic() if self.waiting else 0.1
            for key, _ in self.selector.select(max(0, min(wait, 0.1))):
                place, take = key.data
                take(place)

    def on_datagram(self, target):
        while True:
            try:
                data, sender = target.udp.recvfrom(65_536)
            except BlockingIOError:
                return
            except OSError:
                # An earlier datagram found no receiver.
                continue
            source = self.by_private.get(sender)
            if source is None:
                continue
            with self.lock:
                count = self.counts[source.mesh][self.is_far(source, target)]
                count.packets += 1
                count.packet_bytes += len(data)
            self.sent += 1
            due = time.monotonic() + self.delay(source, target)
            heapq.heappush(self.waiting, (due, self.sent, source, target, data))

    def on_connection(self, target):
        try:
            taken, sender = target.tcp.accept()
        except OSError:
            return
        threading.Thread(target=self.connect, args=(target, taken, sender), daemon=True).start()

    def connect(self, target, taken, sender):
        """Carries a connection of TCP, whose sender is found by its process."""
        source = self.owner(sender[1], target.mesh)
        if source is None:
            taken.close()
            return
        try:
            onward = socket.create_connection(target.private, timeout=10)
        except OSError:
            taken.close()
            return
        with self.lock:
            self.counts[source.mesh][self.is_far(source, target)].connections += 1
        for it in (taken, onward):
            it.settimeout(60)
        back = threading.Thread(target=self.pump, args=(target, source, onward, taken), daemon=True)
        back.start()
        self.pump(source, target, taken, onward)
        back.join()
        taken.close()
        onward.close()

    def pump(self, source, target, from_socket, to_socket):
        try:
            while data := from_socket.recv(65_536):
                with self.lock:
                    self.counts[source.mesh][self.is_far(source, target)].stream_bytes += len(data)
                time.sleep(self.delay(source, target))
                to_socket.sendall(data)
            to_socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def owner(self, port, mesh):
        """The place whose process has the end of a connection at this port."""
        inode = inode_of(port)
        for place in self.places:
            if inode and place.mesh == mesh and place.process is not None and has_socket(place.process.pid, inode):
                return place
        return None


def inode_of(port):
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[9] != "0":
                return fields[9]
    return None


def has_socket(pid, inode):
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            try:
                if os.readlink(f"{folder}/{name}") == f"socket:[{inode}]":
                    return True
            except OSError:
                continue
    except OSError:
        pass
    return False
