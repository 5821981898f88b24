"""ZMTP 3 (ZeroMQ RFC 23) and CURVE (RFC 26) spoken byte by byte, for peers that no library
would let one be."""

import contextlib
import ctypes
import ctypes.util
import os
import socket
import struct
import time

from programs import check, skip

PATIENCE_S = 20


# ---- ZMTP by hand ----------------------------------------------------------------


def greeting(mechanism=b"NULL", version=(3, 1), server=0, signature=b"\xff" + bytes(8) + b"\x7f"):
    return signature + bytes(version) + mechanism.ljust(20, b"\0") + bytes([server]) + bytes(31)


def frame(body, flags=0, size=None):
    """A frame; `size` announces another size than it has."""
    size = len(body) if size is None else size
    if size > 255 or flags & 2:
        return bytes([flags | 2]) + struct.pack(">Q", size) + body
    return bytes([flags]) + bytes([size]) + body


def command(name, data=b"", **options):
    return frame(bytes([len(name)]) + name + data, flags=4, **options)


def metadata(*properties):
    return b"".join(bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
                    for name, value in properties)


def ready(*properties):
    return command(b"READY", metadata((b"Socket-Type", b"DEALER"), *properties))


class Wire:
    """A connection that speaks byte by byte.  `source`: the address that it comes from, for TCP."""

    def __init__(self, place, source=None):
        family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE_S)
        if source:
            self.socket.bind((source, 0))
        for _ in range(1000):
            with contextlib.suppress(BlockingIOError):  # ipc: as many wait as may
                self.socket.connect(place)
                return
            time.sleep(0.01)
        raise AssertionError(f"{place} takes no connection")

    def send(self, data):
        """False where the collector has hung up, or takes no more for a while."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def read(self, size):
        """Up to so many bytes; fewer where the collector hung up."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while len(data) < size:
                more = self.socket.recv(size - len(data))
                if not more:
                    break
                data += more
        return data

    def read_frame(self):
        flags = self.read(1)
        if not flags:
            return None
        size = self.read(8) if flags[0] & 2 else self.read(1)
        return flags[0], self.read(int.from_bytes(size, "big"))

    def is_ended(self, patience_s=PATIENCE_S):
        """Whether the collector hangs up in time."""
        self.socket.settimeout(patience_s)
        try:
            while self.socket.recv(65536):
                pass
            return True
        except ConnectionError:
            return True
        except OSError:
            return False

    def close(self):
        self.socket.close()


# ---- CURVE by hand ---------------------------------------------------------------


class Sodium:
    """Boxes of libsodium, which libzmq uses as well."""

    def __init__(self):
        name = ctypes.util.find_library("sodium")
        if not name:
            skip("no libsodium to make broken CURVE with")
        self.library = ctypes.CDLL(name)

    def keypair(self):
        public, secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
        check(self.library.crypto_box_keypair(public, secret) == 0, "libsodium makes keys")
        return public.raw, secret.raw

    def box(self, text, nonce, public, secret):
        out = ctypes.create_string_buffer(len(text) + 16)
        check(len(nonce) == 24, "a nonce has 24 bytes")
        check(self.library.crypto_box_easy(out, text, ctypes.c_ulonglong(len(text)), nonce, public,
                                           secret) == 0, "libsodium boxes")
        return out.raw

    def open(self, box, nonce, public, secret):
        out = ctypes.create_string_buffer(len(box) - 16)
        if self.library.crypto_box_open_easy(out, box, ctypes.c_ulonglong(len(box)), nonce, public,
                                             secret) != 0:
            return None
        return out.raw


def short_nonce(number):
    return struct.pack(">Q", number)


class CurveHands:
    """The client's half of a CURVE handshake, to be spoiled at any step."""

    def __init__(self, sodium, place, server_public, own=None, source=None):
        self.sodium = sodium
        self.server_public = server_public
        self.own_public, self.own_secret = own or sodium.keypair()
        self.public, self.secret = sodium.keypair()  # of this connection
        self.wire = Wire(place, source)
        self.nonce = 1

    def greet(self):
        self.wire.send(greeting(b"CURVE"))
        check(len(self.wire.read(64)) == 64, "the collector greets")

    def hello(self, version=b"\1\0", signature=None, public=None, nonce=None):
        nonce = nonce if nonce is not None else self.nonce
        box = signature or self.sodium.box(bytes(64), b"CurveZMQHELLO---" + short_nonce(nonce),
                                           self.server_public, self.secret)
        self.nonce += 1
        return command(b"HELLO", version + bytes(72) + (public or self.public) +
                       short_nonce(nonce) + box)

    def welcome(self):
        """Reads WELCOME; False where the collector hung up."""
        got = self.wire.read_frame()
        if not got or not got[1].startswith(b"\7WELCOME"):
            return False
        nonce, box = got[1][8:24], got[1][24:]
        text = self.sodium.open(box, b"WELCOME-" + nonce, self.server_public, self.secret)
        check(text is not None and len(text) == 128, "WELCOME is boxed for us")
        self.session_public, self.cookie = text[:32], text[32:]
        return True

    def initiate(self, cookie=None, vouch=None, properties=None, nonce=None, size=None):
        if vouch is None:
            vouch_nonce = os.urandom(16)
            vouch = vouch_nonce + self.sodium.box(self.public + self.server_public,
                                                  b"VOUCH---" + vouch_nonce, self.session_public,
                                                  self.own_secret)
        if properties is None:
            properties = metadata((b"Socket-Type", b"DEALER"), (b"Identity", b""))
        nonce = nonce if nonce is not None else self.nonce
        self.nonce += 1
        box = self.sodium.box(self.own_public + vouch + properties,
                              b"CurveZMQINITIATE" + short_nonce(nonce), self.session_public,
                              self.secret)
        return command(b"INITIATE", (cookie or self.cookie) + short_nonce(nonce) + box, size=size)

    def message(self, payload, flags=0, nonce=None):
        """`flags`: 1 where more frames follow, 2 for a command."""
        nonce = nonce if nonce is not None else self.nonce
        self.nonce += 1
        box = self.sodium.box(bytes([flags]) + payload, b"CurveZMQMESSAGEC" + short_nonce(nonce),
                              self.session_public, self.secret)
        return frame(b"\7MESSAGE" + short_nonce(nonce) + box)

    def join(self):
        """A whole handshake; the name of what the collector answers."""
        self.greet()
        self.wire.send(self.hello())
        check(self.welcome(), "WELCOME comes")
        self.wire.send(self.initiate())
        got = self.wire.read_frame()
        return got[1][1:1 + got[1][0]] if got else None
