#!/usr/bin/env python3
"""Checks that modules do not include each other in a circle.

    scripts/check_cycles.py [ROOT]

A module is the source and header of one name in one folder.  Module A uses module B when
a file of A includes B's header.  Two modules may use each other; the script prints each
larger group of modules that all reach one another, and exits 1 when there are any.
"""

import pathlib
import re
import sys

TOPS = ("common", "server", "client")
SUFFIXES = {".c", ".h", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def read_modules(root):
    """Returns {module: the modules it uses}; a module is its path without suffix."""
    files = [path for top in TOPS for path in sorted((root / top).rglob("*"))
             if path.suffix in SUFFIXES]
    uses = {str(path.relative_to(root).with_suffix("")): set() for path in files}
    for path in files:
        module = str(path.relative_to(root).with_suffix(""))
        source = path.read_text(encoding="utf-8", errors="replace")
        for name in INCLUDE.findall(source):
            used = str(pathlib.PurePath(name).with_suffix(""))
            if used in uses and used != module:
                uses[module].add(used)
    return uses


def components(uses):
    """Yields the strongly connected components (Tarjan, without recursion)."""
    index, low, stack, stacked = {}, {}, [], set()
    for start in uses:
        if start in index:
            continue
        calls = [(start, iter(sorted(uses[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        stacked.add(start)
        while calls:
            module, rest = calls[-1]
            used = next(rest, None)
            if used is None:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[module])
                if low[module] == index[module]:
                    at = stack.index(module)
                    yield sorted(stack[at:])
                    stacked.difference_update(stack[at:])
                    del stack[at:]
            elif used not in index:
                index[used] = low[used] = len(index)
                stack.append(used)
                stacked.add(used)
                calls.append((used, iter(sorted(uses[used]))))
            elif used in stacked:
                low[module] = min(low[module], index[used])


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    uses = read_modules(root)
    if not uses:
        print(f"{root}: no sources here (give the root of the tree)", file=sys.stderr)
        return 2
    cycles = [group for group in components(uses) if len(group) > 1]
    large = sorted((group for group in cycles if len(group) > 2), key=len, reverse=True)
    for group in large:
        print(f"cycle of {len(group)} modules: {' '.join(group)}")
    print(f"cycles: {len(uses)} modules, {sum(map(len, uses.values()))} uses, {len(cycles)} cycles,"
          f" {len(large)} of more than two modules")
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
