#!/usr/bin/env python3
"""Checks that every file includes and calls only what its room may.

    scripts/check_layers.py [ROOT]

Prints one line a violation, "FILE:LINE: what: why", and exits 1 when there is
any.  The tables below are the rules of CONTRIBUTING.md ("Map"); tests/ is
exempt from all but the separation of tests from what is shipped, and the size of
folders.
"""

import collections
import pathlib
import re
import sys

# Source files of one folder: what one can keep in mind.
FILES_MAX = 40

# The sub-rooms of core, each of which may include those before it; delivery needs the first two.
CORE = ["common/core/" + name for name in ("base", "record", "stats", "query", "alert", "delivery")]

# A room and the rooms it may include, itself among them.  The longest match wins.
# The sub-rooms of the store; what each may include stands in ROOMS.
STORE = ["common/store/" + name
         for name in ("sqlite", "schema", "rollup", "read", "aggregate", "compare", "audit", "query",
                      "why", "retention", "transfer", "alert")] + ["common/store"]
COMMON = CORE + ["common/sys", "common/wire", "common/wire/listener"] + STORE
# libinferstat's public header is a room by itself.  Its sub-rooms, each of which may
# include those before it.
LIBRARY = "common/monitor/inferstat.h"
MONITOR = [LIBRARY, "common/monitor/runfile", "common/monitor/local", "common/monitor/spool",
           "common/monitor/delivery", "common/monitor/sampler", "common/monitor", "common/monitor/trackers"]
REPORTS = CORE + ["common/sys", "common/wire"]
# The sub-rooms of the collector, each of which may include those before it.
COLLECTOR = ["server/collector/" + name
             for name in ("threads", "access", "rollup", "maintenance", "writer", "services", "exporters",
                          "alerts")] + ["server/collector"]
# What speaks HTTP.
HTTP = ["server/http"]
# The sub-rooms of the command line: arguments and output do not know the commands.
CLI = ["client/cli/" + name for name in ("args", "output")] + ["client/cli", "client/cli/commands"]
TUI = ["client/tui", "client/tui/prompt", "client/tui/settings"]
ROOMS = {
    "common/core/base": CORE[:1],
    "common/core/record": CORE[:2],
    "common/core/stats": CORE[:3],
    "common/core/query": CORE[:4],
    "common/core/alert": CORE[:5],
    "common/core/delivery": CORE[:2] + CORE[5:],
    "common/sys": CORE + ["common/sys"],
    "common/devices": CORE + ["common/sys", "common/devices"],
    "common/wire": CORE + ["common/sys", "common/wire", "proto"],
    "common/wire/listener": CORE + ["common/sys", "common/wire", "common/wire/listener"],
    "common/store/sqlite": CORE + ["common/sys"] + STORE[:1],
    "common/store/schema": CORE + ["common/sys"] + STORE[:2],
    "common/store/rollup": CORE + ["common/sys", "common/store/sqlite", "common/store/rollup"],
    "common/store/read": CORE + ["common/sys"] + STORE[:4],
    "common/store/aggregate": CORE + ["common/sys"] + STORE[:5],
    "common/store/compare": CORE + ["common/sys"] + STORE[:6],
    "common/store/audit": CORE + ["common/sys"] + STORE[:4] + ["common/store/audit"],
    "common/store/query": CORE + ["common/sys"] + STORE[:6] + ["common/store/query"],
    "common/store/retention": CORE + ["common/sys"] + STORE[:4] + ["common/store/retention"],
    "common/store/transfer": CORE + ["common/sys"] + STORE[:7] + ["common/store/transfer"],
    "common/store/why": CORE + ["common/sys"] + STORE[:6] + STORE[7:9],
    "common/store/alert": CORE + ["common/sys"] + STORE[:6] + STORE[7:9] + ["common/store/alert"],
    "common/store": CORE + ["common/sys"] + STORE,
    LIBRARY: [],
    "common/monitor/runfile": REPORTS + MONITOR[1:2],
    "common/monitor/local": CORE + MONITOR[:1] + MONITOR[2:3],
    "common/monitor/spool": REPORTS + MONITOR[1:2] + MONITOR[3:4],
    "common/monitor/delivery": REPORTS + MONITOR[:2] + MONITOR[3:5],
    "common/monitor/sampler": REPORTS + ["common/devices"] + MONITOR[:2] + MONITOR[4:6],
    "common/monitor": REPORTS + ["common/devices"] + MONITOR[:7],
    "common/monitor/trackers": REPORTS + ["common/devices"] + MONITOR,
    "server/device": CORE + ["common/sys", "common/devices", "server/device"],
    "server/pipeline": CORE + ["common/sys", LIBRARY, "server/device",
                        "server/pipeline"],
    "server/workload": CORE + ["common/sys", LIBRARY, "server/device",
                        "server/pipeline", "server/workload"],
    "server/worker": COMMON + [LIBRARY, "server/device", "server/pipeline", "server/workload",
                               "server/worker"],
    "server/collector/threads": COMMON + COLLECTOR[:1],
    "server/collector/access": COMMON + COLLECTOR[:2],
    "server/collector/rollup": COMMON + COLLECTOR[:3],
    "server/collector/maintenance": COMMON + COLLECTOR[:4],
    "server/collector/writer": COMMON + COLLECTOR[:5],
    "server/collector/services": COMMON + COLLECTOR[:6],
    "server/collector/exporters": COMMON + HTTP + COLLECTOR[:1] + ["server/collector/exporters"],
    "server/collector/alerts": COMMON + HTTP + COLLECTOR[:1] + ["server/collector/alerts"],
    "server/collector": COMMON + HTTP + COLLECTOR,
    "server/http": CORE + ["common/sys", "server/http"],
    "client/man": CORE + ["common/store/schema", "client/man"],
    "client/remote": COMMON + ["client/remote"],
    "client/tui": CORE + ["common/sys", "client/remote"] + TUI,
    "client/tui/prompt": CORE + TUI[:2],
    "client/tui/settings": CORE + ["common/sys"] + TUI,
    "client/tui/views": CORE + TUI,
    "client/cli/args": COMMON + CLI[:3],
    "client/cli/output": COMMON + CLI[:2],
    "client/cli/commands": COMMON + MONITOR[:5] + ["client/remote", "client/tui", "client/cli/doctor"] + CLI,
    "client/cli/doctor": COMMON + MONITOR[:5] + ["common/devices", "client/cli/doctor"] + CLI[:3],
    "client/cli": COMMON + ["client/remote"] + CLI,
}

IMPURE = r"client/tui/(export|poller|screen|settings/settings_file|tui)\.[ch]"

# Files that see less than their room: those not named see only the rooms given, and of
# their own room not the headers of those named.
PURE = {
    "client/tui": (IMPURE, CORE + TUI),
    "client/tui/prompt": (IMPURE, CORE + TUI[:2]),
    "client/tui/settings": (IMPURE, CORE + TUI),
    "client/tui/views": (IMPURE, CORE + TUI),
}

# Headers of outside libraries, each with the files that own them.
OWNERS = [
    (r"zmq(_utils)?\.h", r"common/wire/socket(_[a-z]+)?\.c"),
    (r"sodium(/.*)?\.h",
     r"(common/wire/listener/curve_server|server/workload/llm/tokenizer/vocabulary)\.c"),
    (r"pcre2\.h", r"server/workload/llm/tokenizer/pre_tokenizer\.c"),
    (r"proto/.*\.pb-c\.h|protobuf-c/.*", r"common/wire/codec(\.c|_[a-z_]+\.[ch])"),
    (r"sqlite3\.h", r"common/store/.*|server/collector/(writer|rollup|maintenance)/.*|server/collector/rollup.*"),
    (r"n?curses(w/.*)?\.h|ncursesw?/.*|term\.h|panel\.h", r"client/tui/screen\.c"),
    (r"microhttpd\.h", r"server/http/http_server\.c"),
    (r"curl/.*", r"server/http/http_client\.c"),
    (r"jansson\.h", r"client/cli/commands/llama_bench\.c"),
    (r"cuda.*|cublas.*|nvml\.h|nvtx3?/.*", r"server/device/cuda/.*"),
]

# What core may use of the system: the language, no outside world.
CORE_HEADERS = set("""assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdalign.h
    stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h
    string.h time.h""".split())

# Calls and the files that may make them, beside those with a main().
CALLS = [
    (r"_?exit|_Exit|quick_exit|abort", r"(?!.*)", "only main ends the program"),
    (r"v?printf|puts|putchar|perror|psignal", r"server/work(er|load)/.*|client/(cli|man)/.*",
     "libraries do not print"),
    (r"fopen|fdopen|freopen|fread|fwrite|fputs|fputc|fgets|vfprintf|fprintf|scanf|getenv|system|popen"
     r"|time|clock|clock_gettime|gettimeofday|rand|srand|random", r"(?!common/core/).*",
     "core has no I/O, no clock and no randomness"),
    (r"sprintf|vsprintf|gets|strtok|alloca|system|popen", r"(?!.*)",
     "unsafe, and never needed"),
]

GENERATED = re.compile(r"proto/[a-z_]+\.pb-c\.h")
DIRECTIVE = re.compile(r"^\s*(?:#|%:)\s*(include\w*|import)\b\s*(.*)")
INCLUDED = re.compile(r'"([^"]*)"\s*|<([^>]*)>\s*')
MAIN = re.compile(r"^int main\(", re.M)
SOURCES = {".c", ".h", ".cu", ".cuh", ".cc", ".cpp", ".hpp"}
SCRIPTS = {".py", ".sh"}
HEADERS = (".h", ".cuh", ".hpp")
# Code under names that neither compilers nor the other checks take for code.
STRAYS = {".inc", ".inl", ".ipp", ".tpp", ".def", ".i", ".ii", ".hh", ".hxx", ".cxx", ".c++", ".h++"}


def blank(match):
    """Spaces for a comment or literal, its line breaks kept."""
    return re.sub(r"[^\n]", " ", match.group(0))


LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/", re.S)
COMMENTS = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.S)


def room_of(path):
    parts = path.split("/")
    for length in range(len(parts), 0, -1):
        if "/".join(parts[:length]) in ROOMS:
            return "/".join(parts[:length])
    return None


def check_include(root, path, room, quoted, angled):
    """Yields what is wrong with one #include of `path`."""
    name = quoted or angled
    for header, owner in OWNERS:
        if re.fullmatch(header, name):
            if not re.fullmatch(owner, path):
                yield f"{name}: only {owner} may include it"
            if quoted and not GENERATED.fullmatch(name):
                yield f'"{name}": outside headers are included with <>'
            return
    if quoted is None:
        if (root / name).is_file():
            yield f'<{name}>: our own headers are included with ""'
        if room in CORE and name not in CORE_HEADERS:
            yield f"<{name}>: core uses the language only"
        return
    if path == LIBRARY:
        yield f'"{name}": the public header includes nothing of ours'
    parts = name.split("/")
    if len(parts) < 2 or "." in parts or ".." in parts or not (root / name).is_file():
        yield f'"{name}": includes start at the root of the tree and name a file there'
        return
    if not name.endswith(HEADERS):
        yield f'"{name}": sources are compiled, not included'
        return
    target = room_of(name)
    if target is None or target not in ROOMS[room]:
        yield f'"{name}": {room} may not include {target or parts[0]}'
    elif room in PURE and not re.fullmatch(PURE[room][0], path):
        if target not in PURE[room][1] or re.fullmatch(PURE[room][0], name):
            yield f'"{name}": the pure part of {room} may not include it'


def check_directive(root, path, room, line):
    """Yields what is wrong with a line that may be a directive to include."""
    directive = DIRECTIVE.match(line)
    if not directive:
        return
    included = INCLUDED.fullmatch(directive.group(2))
    if directive.group(1) != "include":
        yield f"#{directive.group(1)}: files are included with #include"
    elif not included:
        yield f"#include {directive.group(2).strip()}: what is included is named in full"
    else:
        yield from check_include(root, path, room, included.group(1), included.group(2))


def check_calls(path, text):
    """Yields (line, what is wrong) for calls of a file without comments and literals."""
    if MAIN.search(text):
        return
    for names, allowed, why in CALLS:
        if re.fullmatch(allowed, path):
            continue
        for match in re.finditer(rf"(?<![\w.>])(?:{names})\s*\(", text):
            name = match.group(0).rstrip("( \t\n")
            yield text.count("\n", 0, match.start()) + 1, f"{name}(): {why}"


def check_file(root, path):
    source = (root / path).read_text(encoding="utf-8", errors="replace")
    room = room_of(path)
    if room is None:
        yield 1, "belongs to no room (CONTRIBUTING.md, Map)"
        return
    if pathlib.Path(path).suffix in STRAYS:
        yield 1, "code lies in .c and .h files"
    code = COMMENTS.sub(lambda m: m.group(0) if m.group(1) else blank(m), source)
    number = 1
    for line in re.split(r"(?<!\\)\n", code):  # with the lines it goes on in
        for wrong in check_directive(root, path, room, line.replace("\\\n", "")):
            yield number, wrong
        number += line.count("\n") + 1
    yield from check_calls(path, LITERALS.sub(blank, source))


def check_folders(root):
    """Yields (folder, what is wrong) for folders with too many source files."""
    count = collections.Counter(str(file.parent.relative_to(root))
                                for top in ("common", "server", "client", "proto", "tests")
                                for file in (root / top).rglob("*") if file.suffix in SOURCES | SCRIPTS)
    for folder, files in sorted(count.items()):
        if files > FILES_MAX:
            yield folder, f"{files} source files: more than {FILES_MAX}, split it"


def check_names(files):
    """Yields (header, what is wrong) for headers whose name another folder has, too."""
    seen = {}
    for path in files:
        name = pathlib.PurePath(path).name
        if name.endswith(HEADERS):
            if name in seen:
                yield path, f"has the name of {seen[name]}"
            seen[name] = path


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    files = sorted(str(file.relative_to(root)) for top in ("common", "server", "client", "proto")
                   for file in (root / top).rglob("*") if file.suffix in SOURCES | STRAYS)
    found = [(f"{path}:{line}", wrong) for path in files for line, wrong in check_file(root, path)]
    found += [*check_folders(root), *check_names(files)]
    for place, wrong in found:
        print(f"{place}: {wrong}")
    if not files:
        print(f"{root}: no sources here (give the root of the tree)", file=sys.stderr)
        return 2
    print(f"layers: {len(files)} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
