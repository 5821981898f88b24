"""What tests in Python that drive the real programs share."""

import os
import random
import re
import socket
import sys

# The rounds of random tests are multiplied by it.
VOLUME = max(1, int(os.environ.get("INFERSTAT_TEST_VOLUME", "1")))
REPORT = re.compile(r"Sanitizer|runtime error:")

SKIPPED = 77  # exit code of a test that cannot run


def skip(why):
    """Ends the test: it cannot run here."""
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def has_report(text):
    """Whether a program's words hold a sanitizer's report."""
    return REPORT.search(text) is not None


def free_ports(count):
    """The first of `count` ports in a row of 127.0.0.1, all free now.

    Away from those that the system gives outgoing connections: one that asks for
    a port where nobody listens at the moment might be given that very port."""
    while True:
        first = random.randrange(10000, 32000)
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            continue
        finally:
            for one in held:
                one.close()
