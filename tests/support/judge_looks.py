#!/usr/bin/env python3
"""Judges how the dashboard looks: a screen with its escape sequences on stdin, as `tmux capture-pane -p
-e` prints it.

    judge_looks.py THEME [BACKGROUND...]

Good, warning and bad must look different; in the theme colour-blind also to those who do not see red
or green.  The contrast of each colour that is known with each background (white, black) must be at
least 3 (WCAG 2.1, 1.4.11).  In the theme mono nothing may have a colour.
"""

import itertools
import re
import sys

SIGNS = {"good": "● file", "warning": "‖ paused", "bad": "! lost"}
BACKGROUNDS = {"white": (255, 255, 255), "black": (0, 0, 0)}
LEAST_CONTRAST, LEAST_DISTANCE = 3, 20  # of CIELAB: just noticeable is about 2
# What is left of the linear colours for those who lack a kind of cones (Machado et al., 2009).
SIGHTS = {"protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                         (-0.003882, -0.048116, 1.051998)),
          "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                           (-0.011820, 0.042940, 0.968881))}


def multiply(matrix, vector):
    return [min(max(sum(a * b for a, b in zip(row, vector)), 0), 1) for row in matrix]


def linear(rgb):
    return [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4
            for value in rgb]


def contrast(rgb, background):
    light, dark = sorted((sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear(colour)))
                          for colour in (rgb, background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(colour):
    """CIELAB of a linear colour."""
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
               for value in multiply(((0.4339, 0.3762, 0.1899), (0.2126, 0.7152, 0.0722),
                                      (0.0177, 0.1095, 0.8728)), colour))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other, sight):
    one, other = (lab(multiply(SIGHTS[sight], linear(rgb))) for rgb in (one, other))
    return sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5


def palette(number):
    """The colour of that number of the 256; none of the first 16, which each terminal has its own of."""
    if number < 16:
        return None
    if number >= 232:
        return (8 + 10 * (number - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    number -= 16
    return levels[number // 36], levels[number // 6 % 6], levels[number % 6]


def read_looks(text):
    """The characters and, of each, (colour's name, its RGB if known, attributes)."""
    shown, looks, name, rgb, attributes = "", [], None, None, frozenset()
    for codes, character in re.findall(r"\x1b\[([\d;:]*)m|(?:\x1b[()]?.|[\x0e\x0f])|([^\x1b])", text):
        words = [int(word or 0) for word in re.split("[;:]", codes)] if not character else []
        while words:
            code = words.pop(0)
            if code == 0:
                name, rgb, attributes = None, None, frozenset()
            elif code == 38 and words[0] == 5:
                name, rgb, words = str(words[1]), palette(words[1]), words[2:]
            elif code == 38:
                name, rgb, words = str(words[1:4]), tuple(words[1:4]), words[4:]
            elif code == 39 or 30 <= code <= 37 or 90 <= code <= 97:
                name, rgb = (None if code == 39 else str(code)), None
            elif code in (1, 2, 4, 7):
                attributes |= {code}
            elif code > 20:
                attributes = frozenset()
        if character:
            shown += character
            looks.append((name, rgb, attributes))
    return shown, looks


def main(theme, *backgrounds):
    shown, looks = read_looks(sys.stdin.read())
    states = {state: looks[shown.index(sign)] for state, sign in SIGNS.items()}
    faults = []
    for one, other in itertools.combinations(states, 2):
        part = 2 if theme == "mono" else 0
        if states[one][part] == states[other][part]:
            faults.append(f"{one} and {other} look the same: {states[one]}")
        known = states[one][1] and states[other][1]
        for sight in SIGHTS if theme == "colour-blind" and known else ():
            apart = distance(states[one][1], states[other][1], sight)
            if apart < LEAST_DISTANCE:
                faults.append(f"{one} and {other} are {apart:.0f} apart in {sight}")
    for name, rgb in sorted({(name, rgb) for name, rgb, _ in looks if name}):
        if theme == "mono":
            faults.append(f"colour {name}")
        for background in backgrounds if rgb else ():
            ratio = contrast(rgb, BACKGROUNDS[background])
            if ratio < LEAST_CONTRAST:
                faults.append(f"colour {name} on {background}: contrast {ratio:.2f}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
