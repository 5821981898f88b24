"""Two hosts and the wire between them, on one machine: network namespaces, and a bridge
in user space that loses, delays, repeats and reorders frames by a seed, or is cut.

For a process in a network and mounts of its own (faults.leave_world(network=True)): all of
it goes with the process, whatever becomes of it.
"""

import ctypes
import fcntl
import heapq
import random
import select
import socket
import struct
import subprocess
import threading
import time

SIOCETHTOOL = 0x8946
# Offloads that would put frames on the wire which no wire carries.
OFFLOADS_OFF = (0x17, 0x19, 0x1f, 0x22, 0x24, 0x2c)  # transmit sums, gather, TSO, UFO, GSO, GRO
ETH_P_ALL = 3
PACKET_OUTGOING = 4
FRAME_MAX = 1 << 16
QUEUED_MAX = 4096


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def carry_whole_frames(name):
    """Switches off what makes the kernel hand over frames that are not finished."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in OFFLOADS_OFF:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sQ16x", name.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)
            except OSError:
                pass  # this kernel does not know it


class Wire(threading.Thread):
    """Carries frames between two interfaces.  `loss`, `repeat`: shares; `delay`: seconds,
    least and most, where the spread makes frames overtake each other; `cut`: nothing passes.
    All of them may be changed at any time."""

    def __init__(self, ends, seed):
        super().__init__(daemon=True)
        self.loss, self.repeat, self.delay, self.cut = 0.0, 0.0, (0.0, 0.0), False
        self.carried = self.lost = 0
        self.random = random.Random(seed)
        self.stopping = False
        self.sockets = []
        for end in ends:
            one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            one.bind((end, 0))
            one.setblocking(False)
            self.sockets.append(one)

    def run(self):
        pending, order = [], 0  # a heap of (when, order, socket to send from, frame)
        while not self.stopping:
            now = time.monotonic()
            while pending and pending[0][0] <= now:
                _, _, to, frame = heapq.heappop(pending)
                try:
                    to.send(frame)
                except OSError:
                    pass  # that end is down: so is the frame
            wait = min(0.05, pending[0][0] - now) if pending else 0.05
            for source in select.select(self.sockets, [], [], wait)[0]:
                try:
                    frame, origin = source.recvfrom(FRAME_MAX)
                except OSError:
                    continue
                if origin[2] == PACKET_OUTGOING:
                    continue
                to = self.sockets[1 - self.sockets.index(source)]
                for when in self.copies(len(pending)):
                    order += 1
                    heapq.heappush(pending, (when, order, to, frame))
        for one in self.sockets:
            one.close()

    def copies(self, queued):
        """When this frame arrives: never, once or twice."""
        if self.cut or queued > QUEUED_MAX or self.random.random() < self.loss:
            self.lost += 1
            return
        self.carried += 1
        for _ in range(2 if self.random.random() < self.repeat else 1):
            yield time.monotonic() + self.random.uniform(*self.delay)

    def stop(self):
        self.stopping = True
        self.join()


class Hosts:
    """Hosts "near" and "far", 10.99.0.1 and 10.99.0.2, with a Wire between them."""

    NEAR, FAR = "10.99.0.1", "10.99.0.2"

    def __init__(self, seed):
        run("mount", "-t", "tmpfs", "none", "/run")  # where ip keeps the names
        for host, address in (("near", self.NEAR), ("far", self.FAR)):
            run("ip", "netns", "add", host)
            run("ip", "link", "add", host, "type", "veth", "peer", "name", "eth0")
            carry_whole_frames(host)
            carry_whole_frames("eth0")
            run("ip", "link", "set", "eth0", "netns", host)
            run("ip", "link", "set", host, "up")
            self.on(host, "ip", "link", "set", "lo", "up")
            self.on(host, "ip", "link", "set", "eth0", "up")
            self.on(host, "ip", "addr", "add", address + "/24", "dev", "eth0")
        self.wire = Wire(("near", "far"), seed)
        self.wire.start()

    @staticmethod
    def place(host):
        """What starts a program on that host."""
        return ("ip", "netns", "exec", host)

    def on(self, host, *command):
        run(*self.place(host), *command)

    def link(self, host, state):
        """"up" or "down", as a cable that is pulled."""
        run("ip", "link", "set", host, state)

    def close(self):
        self.wire.stop()
        for host in ("near", "far"):
            run("ip", "link", "del", host)
            run("ip", "netns", "del", host)
        run("umount", "--lazy", "/run")
