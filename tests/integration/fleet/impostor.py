"""Pretends to be a collector: answers engines and clients with what ends, floods or starves them.

    impostor.py SETTINGS    as JSON: "folder" (of sockets, made where it is missing) or "port";
                            "roles", one of which is chosen for each connection; "seed"; "uid"

Says "playing ROLE TIME SERVICE" (CLOCK_MONOTONIC) for each connection, and "met ROLE" at its end.
"""

import json
import os
import pathlib
import random
import socket
import struct
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "support")]

from zmtp_hands import command, frame, greeting, metadata  # noqa: E402

PING = command(b"PING", struct.pack(">H", 10) + b"ctx")
READY = command(b"READY", metadata((b"Socket-Type", b"ROUTER"), (b"Identity", b"")))
ACK, REPLY = frame(b"\x22\x02\x08\x02"), frame(b"\x32\x02\x08\x09")  # as small as can be decoded
SMALL = {"ingest": ACK, "query": REPLY, "live": REPLY}
PATIENCE_S = 5


def read(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def read_frame(connection):
    flags = read(connection, 1)[0]
    return read(connection, int.from_bytes(read(connection, 8 if flags & 2 else 1), "big"))


def shake_hands(connection):
    connection.sendall(greeting())
    read(connection, 64)
    connection.sendall(READY)
    read_frame(connection)


def ping(connection, service, chance):
    """Small messages, heartbeats, gone."""
    shake_hands(connection)
    read_frame(connection)
    connection.sendall(SMALL[service] * chance.choice((70, 100, 200, 400)) + PING * chance.choice((1, 3)))


def garbage(connection, _, chance):
    shake_hands(connection)
    read_frame(connection)
    for _ in range(200):
        connection.sendall(frame(chance.randbytes(chance.choice((0, 1, 10, 1000, 60000)))))
        time.sleep(0.005)


def flood(connection, service, _):
    """Answers to what was never asked, some 20 MB a second."""
    shake_hands(connection)
    read_frame(connection)
    for _ in range(500):
        connection.sendall(SMALL[service] * 35000)
        time.sleep(0.01)


def endless_frames(connection, _, __):
    """Some 8 MB a second: what libzmq holds of one message has no other bound than its time."""
    shake_hands(connection)
    for _ in range(500):
        connection.sendall(frame(bytes(20000), flags=1) * 4)
        time.sleep(0.01)


def huge_frame(connection, _, chance):
    shake_hands(connection)
    read_frame(connection)
    connection.sendall(frame(b"begin", size=chance.choice((1 << 40, 1 << 31, 15 << 20))) + bytes(1 << 20))
    time.sleep(PATIENCE_S)


def half_greeting(connection, _, __):
    connection.sendall(greeting()[:12])
    time.sleep(PATIENCE_S)


def deaf(connection, _, __):
    shake_hands(connection)
    time.sleep(PATIENCE_S)


ROLES = {role.__name__: role for role in
         (ping, garbage, flood, endless_frames, huge_frame, half_greeting, deaf)}


def play(connection, service, role, seed):
    with connection:
        try:
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            print("playing", role, time.monotonic(), service, flush=True)
            ROLES[role](connection, service, random.Random(seed))
            print("met", role, flush=True)
        except OSError:
            pass


def serve(listener, service, settings):
    chance = random.Random(f"{settings['seed']} {service}")
    listener.listen(50)
    while True:
        connection = listener.accept()[0]
        threading.Thread(target=play, daemon=True, args=(
            connection, service, chance.choice(settings["roles"]), chance.random())).start()


def listen(settings, number, service):
    if "port" in settings:
        return socket.create_server(("127.0.0.1", settings["port"] + number))
    listener = socket.socket(socket.AF_UNIX)
    place = os.path.join(settings["folder"], service)
    listener.bind(place)
    os.chmod(place, 0o777)
    return listener


def main():
    settings = json.loads(sys.argv[1])
    os.nice(10)
    if settings.get("uid"):
        os.setgroups([])
        os.setgid(settings["uid"])  # of the same number
        os.setuid(settings["uid"])
    if "folder" in settings:
        os.makedirs(settings["folder"], exist_ok=True)
    for number, service in enumerate(("ingest", "query", "live")):
        threading.Thread(target=serve, daemon=True, args=(listen(settings, number, service), service,
                                                          settings)).start()
    print("begun", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
