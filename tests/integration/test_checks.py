"""The project's checks pass a clean tree and name every planted violation."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("INFERSTAT_SOURCE", pathlib.Path(__file__).parents[2]))
SCRIPTS = SOURCE / "scripts"

CLEAN = {
    "common/core/record/ring.h": "#include <stdint.h>\n",
    "common/core/record/ring.c": '#include "common/core/record/ring.h"\n// exit(1) in a comment\n'
                          'const char *text = "abort() in a text";\n',
    "common/sys/log.h": '#include "common/core/record/ring.h"\n',
    "common/wire/socket.c": '#include <zmq.h>\n#include "common/sys/log.h"\n',
    "common/wire/codec.c": '#include "proto/inferstat.pb-c.h"\n',
    "common/store/store.h": '#include <sqlite3.h>\n',
    "common/monitor/inferstat.h": "#include <stdint.h>\n",
    "server/collector/main.c": '#include <stdlib.h>\nint main(void)\n{\n    exit(1);\n}\n',
    "server/collector/writer/writer.c": '#include <sqlite3.h>\n#include "common/store/store.h"\n',
    "client/remote/remote.h": '#include "common/store/store.h"\n',
    "client/tui/screen.c": '#include <curses.h>\n#include "client/remote/remote.h"\n'
                           '#  include "common/sys/log.h"\n%:include <stdio.h>\n',
    "client/tui/poller.h": '#include "client/remote/remote.h"\n',
    "client/tui/model.h": '#include "common/core/record/ring.h"\n',
    "client/tui/model.c": '#include "client/tui/model.h" // what is shown\n',
    "client/cli/CMakeLists.txt": "",
    "client/cli/cli.c": '#include <stdio.h>\nvoid say(void)\n{\n    printf("x");\n}\n',
}

# What is added to one file, and what the check must say about it.
PLANTED = [
    ("common/core/record/ring.c", '#include "common/sys/log.h"', "common/core/record may not include common/sys"),
    ("common/core/record/ring.c", "#include <unistd.h>", "core uses the language only"),
    ("common/core/record/ring.c", "long a = time(0);", "core has no I/O"),
    ("common/sys/log.h", '#include "common/wire/socket.h"', "name a file there"),
    ("common/sys/log.h", '#include "common/store/store.h"',
     "common/sys may not include common/store"),
    ("common/wire/codec.c", "#include <zmq.h>", "only common/wire/socket"),
    ("common/wire/socket.c", '#include "proto/inferstat.pb-c.h"', "only common/wire/codec"),
    ("common/wire/socket.c", '#include "common/store/store.h"',
     "common/wire may not include common/store"),
    ("common/wire/socket.c", '#include "socket.h"', "start at the root"),
    ("common/wire/socket.c", '#include "../core/ring.h"', "start at the root"),
    ("common/wire/socket.c", '#include "common/wire/../core/ring.h"', "start at the root"),
    ("common/wire/socket.c", "#include <common/core/record/ring.h>", 'included with ""'),
    ("common/wire/socket.c", '#include "zmq.h"', "included with <>"),
    ("common/wire/socket.c", '#include "common/core/record/ring.c"', "compiled, not included"),
    ("common/monitor/inferstat.h", '#include "common/core/record/ring.h"', "nothing of ours"),
    ("server/collector/writer/writer.c", '#include "client/remote/remote.h"',
     "server/collector/writer may not include client/remote"),
    ("client/cli/cli.c", "#include <sqlite3.h>", "only common/store"),
    ("client/cli/cli.c", "#  include <ncurses.h>", "only client/tui/screen"),
    ("client/cli/cli.c", "#include <cuda_runtime.h>", "only server/device/cuda"),
    ("client/cli/cli.c", "void end(void) { exit(1); }", "only main ends the program"),
    ("common/store/store.h", 'void f(void) { printf("x"); }', "libraries do not print"),
    ("client/cli/cli.c", "void f(char *a) { sprintf(a, a); }", "unsafe"),
    ("client/cli/cli.c", "#define WHICH <zmq.h>\n#include WHICH", "named in full", 1),
    ("client/cli/cli.c", "#inc\\\nlude <zmq.h>", "only common/wire/socket"),
    ("client/cli/cli.c", "# \\\n include <zmq.h>", "only common/wire/socket"),
    ("client/cli/cli.c", "%: include <zmq.h>", "only common/wire/socket"),
    ("client/cli/cli.c", "#/* */include <zmq.h>", "only common/wire/socket"),
    ("client/cli/cli.c", "#import <stdio.h>", "included with #include"),
    ("client/cli/cli.c", "#include_next <stdio.h>", "included with #include"),
    ("client/cli/list.inc", "int a;", "in .c and .h files"),
    ("client/cli/list.inl", "int a;", "in .c and .h files"),
    ("client/cli/cli.c", '#include "client/cli/CMakeLists.txt"', "compiled, not included"),
    ("client/tui/model.c", "#include <curses.h>", "only client/tui/screen"),
    ("client/tui/model.c", '#include "client/remote/remote.h"', "pure part"),
    ("client/tui/model.c", '#include "common/sys/log.h"', "pure part"),
    ("client/tui/model.h", '#include "client/tui/poller.h"', "pure part"),
    ("client/tui/model.c", '#include "common/store/store.h"', "may not include common/store"),
    ("client/tui/screen.c", '#include "common/store/store.h"', "may not include common/store"),
    ("client/stray.c", "int a;", "belongs to no room"),
]

# Files that are added to the clean tree, and what the check must say about it.
CROWDS = [
    ({f"common/wire/part_{n}.c": "int a;\n" for n in range(40)}, "common/wire: 42 source files"),
    ({f"tests/support/part_{n}.h": "int a;\n" for n in range(41)}, "tests/support: 41 source files"),
    ({"client/tui/ring.h": "int a;\n"}, "common/core/record/ring.h: has the name of client/tui/ring.h"),
]


def ring_of(count):
    """Modules that include one another in a circle: by turns headers and sources."""
    return {f"common/sys/m{n}.{'hc'[n % 2]}": f'#include "common/sys/m{(n + 1) % count}.h"\n'
            for n in range(count)} | {f"common/sys/m{n}.h": "" for n in range(1, count, 2)}


HOUSE_CLEAN = {
    "CMakeLists.txt": "project(inferstat VERSION 1.2.3)\nadd_library(x common/core/record/ring.c)\n",
    "common/core/record/ring.c": "int a;\n",
    "common/core/record/ring.h": "// A ring.\n#pragma once\n",
}

# What replaces or joins one file, and what the check must say about it.
HOUSE_PLANTED = [
    ("common/core/record/ring.c", "int a; \n", ":1: trailing white space"),
    ("common/core/record/ring.c", "int a;", ": does not end with a line break"),
    ("common/core/record/ring.c", "int a;\n\n", ": ends with blank lines"),
    ("common/core/record/ring.c", "int a;\r\n", ": has carriage returns"),
    ("common/core/record/ring.c", "\tint a;\n", ":1: a tab"),
    ("common/core/record/ring.c", "// TO" "DO: later\n", ":1: a promise"),
    ("common/core/record/ring.c", 'char *v = "1.2.3";\n', ":1: says the version"),
    ("common/core/record/ring.c", "int a;\n" * 1000, ": 1001 lines"),
    ("common/core/record/ring.c", "int " + "a" * 200 + ";\n", ":1: 205 columns"),
    ("client/ring.c", "// Told\n// of rings.\n", ":1: say it plainly: Told of"),
    ("common/core/other.c", "int a;\n", ": no CMake file names it"),
    ("common/core/record/ring.h", "// A ring.\n", ": no #pragma once"),
    ("common/core/record/ring.h", "\n#pragma once\n", ":1: does not begin with a comment"),
    ("scripts/x.sh", "#!/bin/sh\n", ": has an interpreter line"),
    ("CMakeLists.txt", "add_library(x common/core/record/ring.c)\n", ": no version of the project"),
]


def run(check, files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        done = subprocess.run([sys.executable, SCRIPTS / check, root], capture_output=True,
                              text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr


def failures_of(check, files, want_code, place="", want=""):
    """Prints and counts what is wrong with the check's answer."""
    code, said = run(check, files)
    if code == want_code and any(row.startswith(place) and want in row for row in said.split("\n")):
        return 0
    print(f"{check}: exit {code}, wanted {want_code} with {place}...{want}:\n{said}")
    return 1


def failures_of_changes():
    """Counts what changed_sources.py gets wrong about a change of a header."""
    files = {"common/a.h": "int a;\n", "common/b.h": '#include "common/a.h"\n', "common/c.c": "",
             "common/b.c": '#include "common/b.h"\n', "server/d.c": '#include "common/a.h"\n',
             "client/moved.c": "int moved;\nint twice;\nint thrice;\n"}
    if not shutil.which("git"):
        return 0
    with tempfile.TemporaryDirectory() as root:
        def git(*words):
            subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b",
                            "-c", "commit.gpgsign=false", *words],
                           check=True, capture_output=True, timeout=60)

        def listed(*words):
            return subprocess.run([sys.executable, place / "changed_sources.py", *words],
                                  capture_output=True, text=True, timeout=60)

        place = pathlib.Path(root) / "scripts"
        place.mkdir()
        shutil.copy(SCRIPTS / "changed_sources.py", place)
        for name, text in files.items():
            path = pathlib.Path(root) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        git("init", "-q", "-b", "main")
        everything = sorted(name for name in files if name.endswith(".c"))
        seen = [(listed().stdout.split(), everything)]  # there is no history yet
        git("add", "-A")
        git("commit", "-q", "-m", "all")
        git("checkout", "-q", "-b", "change")
        git("mv", "client/moved.c", "client/at.c")
        (pathlib.Path(root) / "common/a.h").write_text("int b;\n")
        git("commit", "-q", "-a", "-m", "a header, and a file that moves")
        (pathlib.Path(root) / "client/new.c").write_text("")
        seen += [(listed().stdout.split(), ["client/new.c", "common/b.c", "server/d.c"]),
                 (listed("--under", "common", "server").returncode, 0),
                 (listed("--under", "server").returncode, 1),
                 (len(listed("--all").stdout.split()), 5)]
    wrong = [pair for pair in seen if pair[0] != pair[1]]
    for pair in wrong:
        print(f"changed_sources.py: {pair[0]}, wanted {pair[1]}")
    return len(wrong)


def main():
    failures = failures_of_changes()
    failures += failures_of("check_layers.py", CLEAN, 0)
    for name, line, want, *below in PLANTED:
        text = CLEAN.get(name, "")
        place = f"{name}:{text.count(chr(10)) + sum(below, 1)}: "
        failures += failures_of("check_layers.py", {**CLEAN, name: text + line + "\n"}, 1, place,
                                want)
    failures += failures_of("check_layers.py", {"README.md": ""}, 2)
    for files, want in CROWDS:
        failures += failures_of("check_layers.py", {**CLEAN, **files}, 1, want)
    failures += failures_of("check_cycles.py", {**CLEAN, **ring_of(2)}, 0, "cycles: ", " 1 cycles, 0")
    failures += failures_of("check_cycles.py", {**CLEAN, **ring_of(3)}, 1, "cycle of 3 modules: "
                            "common/sys/m0 ", " common/sys/m2")
    failures += failures_of("check_cycles.py", {"README.md": ""}, 2)
    failures += failures_of("check_house.py", HOUSE_CLEAN, 0)
    for name, text, want in HOUSE_PLANTED:
        failures += failures_of("check_house.py", {**HOUSE_CLEAN, name: text}, 1, name + want)
    print(f"{len(PLANTED) + len(CROWDS) + len(HOUSE_PLANTED) + 6} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
