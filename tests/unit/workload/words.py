#!/usr/bin/env python3
"""Writes words.txt: texts cut into words by the regular expressions of families of models.

    tests/unit/workload/words.py > tests/unit/workload/words.txt

Needs the package regex of PyPI.  The expressions are those that the families publish with their
tokenizers (tokenizer.json).  A line has the family, the bytes of a text in hexadecimal digits,
and the sizes of its words in bytes.
"""

import random

import regex

END = r"|\s+(?!\S)|\s+"
MODERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+" + END)
HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
FAMILIES = {
    "gpt-2": [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+" + END],
    "llama-bpe": [MODERN % "{1,3}"],
    "qwen2": [MODERN % ""],
    "deepseek-llm": [r"[\r\n]", r"\s?\p{LC}+",
                     r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$",
                     HAN, r"\p{N}+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?"""
                    r"[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+" + END],
}
PIECES = ["a", "Bc", "hello", "été", "Ж", "слово", "中文", "カタ", "한국", "ß", "ñ", "अ", "ा", "e\u0301", "1",
          "23", "4567", "٣", "Ⅷ", "½", " ", " ", "  ", "     ", "\t", "\n", "\r\n", "\n\n", "\u00a0",
          "\u3000", "\u0085", "\u2028", "'s", "'T", "'re", "'LL", "'d", "'", "’s", "!", "...", "?!", "(",
          "_", "#", "$", "€", "+", "😀", "👩‍💻", "\u200d", "\u0000", "<|x|>", "/", ".com"]


def cut(expressions, text):
    words = [text]
    for expression in expressions:
        cut_words = []
        for word in words:
            at = 0
            for match in regex.finditer(expression, word):
                cut_words += [word[at:match.start()], match.group()]
                at = match.end()
            cut_words.append(word[at:])
        words = [word for word in cut_words if word]
    return words


def main():
    chance = random.Random(1)
    texts = ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(60)]
    texts += ["The year is 2026, isn't it?  I'VE seen 12345 of them.\n\n  def f(x):\n\treturn x\n"]
    for name, expressions in FAMILIES.items():
        for text in texts:
            words = cut(expressions, text)
            assert "".join(words) == text
            print(name, text.encode().hex(), *(len(word.encode()) for word in words))


if __name__ == "__main__":
    main()
