#!/usr/bin/env python3
"""Checks the project's own rules that no compiler knows.

    scripts/check_house.py [ROOT]

Prints one line a violation, "FILE[:LINE]: what", and exits 1 when there is any.
"""

import pathlib
import re
import sys

SKIPPED = {".git", "build", ".cache", "__pycache__"}
TEXT = {".c", ".h", ".cu", ".cuh", ".cpp", ".hpp", ".proto", ".py", ".sh", ".cmake", ".md", ".txt",
        ".json", ".1", ".3", ".5", ".7", ".8", ".service", ".conf", ".in", ".bash", ".zsh",
        ".fish", ".supp"}
CODE = {".c", ".h", ".cu", ".cuh", ".cpp", ".hpp"}
SHIPPED = ("common/", "server/", "client/", "proto/")
# Headers with a guard: the library's is for any compiler, LTTng reads the other several times.
GUARDED = {"common/monitor/inferstat.h", "tests/bench/tracepoint.h"}
LINES_MAX = 900
COLUMNS_MAX = 100
SPOKEN = ("common/", "server/", "client/", "scripts/", "proto/", "README.md", "CONTRIBUTING.md")
# Phrases that a reader stumbles over, in comments, messages and manual pages, as regular
# expressions; a blank in them also stands for a line break with its comment sign.
DIALECT = [
    r"for want of", r"(?:be|is|are|was|were) had", r"which there (?:is|are) not", r"told of",
    r"takes? \S+ apart", r"at work", r"(?:no|some|any|every)body", r"anew", r"for ever",
    r"one word too many", r"is no option of", r"of its(?=[.,;:])", r"without a word",
    r"is not to be", r"(?:is|are) (?:there|something) already", r"he will", r"(?://|/\*) Whose?",
    r"what becomes of", r"said aloud",
]
DIALECT = re.compile("|".join(rf"(?<![\w-]){phrase}(?!\w)" for phrase in DIALECT)
                     .replace(" ", r"\s+(?:(?://+|\*|\#)\s+)?"), re.I)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def is_text(path):
    return path.suffix in TEXT or path.parts[0] == ".ci"


def check_text(name, source):
    """Rules for every text file."""
    if "\r" in source:
        yield 0, "has carriage returns"
    if source and not source.endswith("\n"):
        yield 0, "does not end with a line break"
    if source.endswith("\n\n"):
        yield 0, "ends with blank lines"
    for number, line in enumerate(source.split("\n"), 1):
        if line != line.rstrip():
            yield number, "trailing white space"
        if "\t" in line and not name.startswith("tests/golden/"):
            yield number, "a tab"
        if UNFINISHED.search(line) and not name.endswith("check_house.py"):
            yield number, "a promise to finish later: finish it, or write down what is so"


def check_code(name, source):
    """Rules for C, C++ and CUDA."""
    lines = source.split("\n")
    if len(lines) > LINES_MAX:
        yield 0, f"{len(lines)} lines: more than {LINES_MAX}, split it"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns: more than {COLUMNS_MAX}"
    if name.endswith(".h"):
        if name not in GUARDED and "\n#pragma once\n" not in source:
            yield 0, "no #pragma once"
        if not re.match(r"//|/\*", source):
            yield 1, "does not begin with a comment that says what it is for"


def check_scripts(name, source, mode):
    """Rules for what people start."""
    if source.startswith("#!") and not mode & 0o111:
        yield 0, "has an interpreter line but cannot be executed"
    if mode & 0o111 and not source.startswith("#!"):
        yield 0, "can be executed but has no interpreter line"


def check_version(files):
    """The version is said once, in CMakeLists.txt."""
    match = re.search(r"project\(inferstat VERSION ([0-9.]+)", files.get("CMakeLists.txt", ""))
    if not match:
        yield "CMakeLists.txt", 0, "no version of the project"
        return
    version = re.compile(rf"(?<![\w.]){re.escape(match.group(1))}(?![\w.])")
    for name, source in files.items():
        if name.startswith(SHIPPED):
            for number, line in enumerate(source.split("\n"), 1):
                if version.search(line):
                    yield name, number, "says the version (CMakeLists.txt is the one place)"


def check_built(files):
    """Every source is named by a CMake file: what nobody builds is dead."""
    lists = {name: source for name, source in files.items()
             if name.endswith(("CMakeLists.txt", ".cmake"))}
    for name in files:
        if not name.endswith((".c", ".cu", ".cpp")):
            continue
        path = pathlib.Path(name)
        named = any(re.search(rf"(?<![\w.-])(?:[\w./-]*/)?{re.escape(word)}(?![\w-])", source)
                    for source in lists.values() for word in {path.name, path.stem})
        if not named:
            yield name, 0, "no CMake file names it"


def check_dialect(files):
    """Phrases that plain technical English does without."""
    for name, source in files.items():
        if name.startswith(SPOKEN) and name != "scripts/check_house.py":
            for match in DIALECT.finditer(source):
                said = re.sub(r"\s+(?:(?://+|\*|#)\s+)?", " ", match.group(0))
                yield name, source.count("\n", 0, match.start()) + 1, f"say it plainly: {said}"


def read_tree(root):
    files, modes = {}, {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and is_text(relative) and not SKIPPED & set(relative.parts) \
                and not relative.parts[0].startswith("build-"):
            files[str(relative)] = path.read_bytes().decode("utf-8", errors="replace")
            modes[str(relative)] = path.stat().st_mode
    return files, modes


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    files, modes = read_tree(root)
    found = []
    for name, source in files.items():
        found += [(name, line, what) for line, what in check_text(name, source)]
        found += [(name, line, what) for line, what in check_scripts(name, source, modes[name])]
        if pathlib.Path(name).suffix in CODE:
            found += [(name, line, what) for line, what in check_code(name, source)]
    for check in (check_version, check_built, check_dialect):
        found += list(check(files))
    for name, line, what in found:
        print(f"{name}:{line}: {what}" if line else f"{name}: {what}")
    print(f"house: {len(files)} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
