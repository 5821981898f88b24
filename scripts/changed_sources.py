#!/usr/bin/env python3
"""Prints the product's sources that changed since the merge base, and those that include them.

    scripts/changed_sources.py               the .c files to check, one a line
    scripts/changed_sources.py --all         every .c file of the product and of the tests
    scripts/changed_sources.py --under DIR...  exits 0 when a file below a DIR changed, else 1

The merge base is that of HEAD and the main branch of origin; where there is none, or HEAD is
it, the commit 30 before HEAD.  Without so much history everything counts as changed.  A
file that was only moved did not change; one that is not committed yet did.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCT = ("common", "server", "client", "proto")
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".proto"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
COMMITS = 30
MAIN_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def git(*arguments):
    """Returns what git prints, or None where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def base_commit():
    """Returns the commit to compare with, or None."""
    head = git("rev-parse", "HEAD")
    for branch in MAIN_BRANCHES:
        base = git("merge-base", "HEAD", branch)
        if base and base != head:
            return base.strip()
    before = git("rev-parse", "--verify", "--quiet", f"HEAD~{COMMITS}")
    return before.strip() if before else None


def changed_files():
    """Returns the paths that changed, or None when that is not known."""
    base = base_commit()
    tracked = git("diff", "--name-status", "-M", "-z", base) if base else None
    untracked = git("ls-files", "--others", "--exclude-standard", "-z")
    if tracked is None or untracked is None:
        return None
    changed = set(filter(None, untracked.split("\0")))
    fields = iter(tracked.split("\0"))
    for status in fields:
        if not status:
            break
        path = next(fields)
        if status[0] in "RC":
            path = next(fields)
        if status != "R100":
            changed.add(path)
    return changed


def sources(tops):
    return [path.relative_to(ROOT) for top in tops for path in sorted((ROOT / top).rglob("*"))
            if path.suffix in SUFFIXES]


def includers(changed):
    """Returns the changed files and all that include one of them, directly or not."""
    included_by = {}
    for path in sources(PRODUCT):
        for name in INCLUDE.findall((ROOT / path).read_text(encoding="utf-8", errors="replace")):
            included_by.setdefault(name.replace(".pb-c.h", ".proto"), []).append(str(path))
    found, left = set(), list(changed)
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += included_by.get(path, [])
    return found


def main(arguments):
    if arguments[:1] == ["--all"]:
        files = map(str, sources(PRODUCT + ("tests",)))
    elif arguments[:1] == ["--under"]:
        changed = changed_files()
        return 0 if changed is None or any(
            path.startswith(folder.rstrip("/") + "/")
            for path in changed for folder in arguments[1:]) else 1
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    else:
        changed = changed_files()
        everything = {str(path) for path in sources(PRODUCT)}
        files = everything if changed is None else includers(changed) & everything
    print("".join(f"{path}\n" for path in sorted(files) if path.endswith(".c")), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
