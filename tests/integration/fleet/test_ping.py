#!/usr/bin/env python3
"""Small messages, heartbeats and a sudden end, again and again, at one kind of socket: a peer that
does it does not end whoever it speaks to.

  test_ping.py ipc|tcp|curve    against a collector, beside an honest producer whose
                                acknowledgements come within 100 ms (p99)
  test_ping.py dealer           by a false collector, against an engine and a client

It takes 15 seconds times INFERSTAT_TEST_VOLUME; under a sanitizer 5, and then times do not count.
Without python3-zmq, python3-protobuf, protoc or libsodium it says so and exits with 77.
"""

import os
import random
import subprocess
import sys
import tempfile
import time

from scene import CLIENT, SANITIZED, Child, Scene, check, p99_ms
from programs import VOLUME, has_report

SECONDS = (5 if SANITIZED else 15) * VOLUME
ACK_P99_MS = 100
AS_FAST_AS_IT_CAN = 100


def against_collector(transport, seed):
    curve = transport == "curve"
    scene = Scene(names=("honest-producer", "hostile") if curve else (), tcp=transport == "tcp")
    try:
        producer = scene.start_honest("producer", transport)
        producer.wait_for_line(30)
        settings = scene.how_to_reach(transport, "hostile", "127.0.1.1")
        attacker = scene.start_child("hostile.py", settings | {
            "role": "ping", "seed": seed, "pace": AS_FAST_AS_IT_CAN})
        began = time.monotonic()
        while time.monotonic() < began + SECONDS:
            scene.watch()
            time.sleep(0.1)
        check(attacker.lines(), f"the attack never began: {attacker.words()}")
        attacker.kill()
        result = producer.finish()
        p99 = p99_ms(result["waits_s"])
        print(f"{transport}: {SECONDS} s, {len(result['waits_s'])} acknowledgements, p99 {p99:.0f} ms, "
              f"at most {ACK_P99_MS} ms", flush=True)
        scene.check_healthy_end()
        scene.check_run(result["run"], result["produced"])
        check(SANITIZED or p99 <= ACK_P99_MS, "acknowledgements took too long")
    finally:
        scene.close()


def against_connecting(seed):
    """An engine and, one after the other, commands."""
    with tempfile.TemporaryDirectory(prefix="inferstat-ping-", dir="/tmp") as folder:
        address = os.path.join(folder, "sockets")
        os.mkdir(address, 0o700)
        environment = dict(os.environ, HOME=folder, INFERSTAT_COLLECTOR="ipc://" + address,
                           INFERSTAT_RUN_DIR=folder, INFERSTAT_SPOOL=os.path.join(folder, "spool"))
        impostor = Child("impostor.py", {"folder": address, "roles": ["ping"], "seed": seed})
        engine = subprocess.Popen([os.environ["FAULT_ENGINE"], "--shared", folder + "/counts",
                                   "--close-ms", "0"], env=environment)
        try:
            impostor.wait_for_line(10)
            asked, end = 0, time.monotonic() + SECONDS
            while time.monotonic() < end:
                check(engine.poll() is None, f"THE ENGINE ENDED with {engine.poll()}")
                ask_impostor(environment, random.Random(seed + asked))
                asked += 1
            met = impostor.lines().count("met ping")
            print(f"dealer: {SECONDS} s, {asked} commands, {met} bursts", flush=True)
            check(met > 2 * SECONDS, f"only {met} bursts")
            engine.terminate()
            check(engine.wait(30) == 0, "the engine ends well")
        finally:
            impostor.kill()
            if engine.poll() is None:
                engine.kill()
                engine.wait()


def ask_impostor(environment, chance):
    command = subprocess.Popen([CLIENT, chance.choice(("summary", "ping", "audit"))], env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    try:
        words = command.communicate(timeout=0.5)[0]
    except subprocess.TimeoutExpired:  # it waits for an answer
        command.terminate()
        words = command.communicate()[0]
    check(command.returncode in (0, 3, 4, -15) and not has_report(words),
          f"A COMMAND ENDED with {command.returncode}: {words}")


def main(arguments):
    seed = int(os.environ.get("INFERSTAT_TEST_SEED", random.randrange(1 << 32)))
    print(f"INFERSTAT_TEST_SEED={seed}, {SECONDS} s", flush=True)
    if arguments[0] == "dealer":
        against_connecting(seed)
    else:
        against_collector(arguments[0], seed)


if __name__ == "__main__":
    main(sys.argv[1:])
