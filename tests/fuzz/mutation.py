"""Mutations of bytes and of text: flips, extreme numbers, parts left out, doubled, moved, taken from another seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["mutated", "mutated_text"]

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_SCRAPS = ("0", "-1", "09", "1e999", "NaN", "-Infinity", "9223372036854775808", "18446744073709551616", "null", "true",
           "[]", "{}", "''", "\x1b[2J", "\x9b0m", "\u202e", "٣", "²", "%s", "../..", "\0", '"', "[[[[[[[[", "]", "=",
           ":", ";", "0x", "1" * 50)  # fmt: skip


def mutated(seed: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return a seed with one to eight changes."""
    data = bytearray(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(data) + 1)
        size = chance.choice((1, 2, 4, 8, 16, 64, 512))
        kind = chance.randrange(9)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = chance.randrange(256)
        elif kind == 2:
            number, width = chance.choice(_NUMBERS), chance.choice((1, 2, 4, 8))
            data[at : at + width] = (number & ((1 << 8 * width) - 1)).to_bytes(width, chance.choice(("little", "big")))
        elif kind == 3:
            del data[at : at + size]
        elif kind == 4:
            data[at:at] = data[at : at + size]
        elif kind == 5:
            data[at:at] = chance.randbytes(min(size, 16))
        elif kind == 6 and others:
            other = chance.choice(others)
            start = chance.randrange(len(other) + 1)
            data[at : at + size] = other[start : start + size]
        elif kind == 7 and not chance.randrange(4):
            del data[at:]
        else:
            data[at:at] = chance.choice(_SCRAPS).encode()
    return bytes(data)


def mutated_text(seed: str, others: Sequence[str], chance: random.Random) -> str:
    """Return a text with one to six changes of words and lines."""
    lines = seed.split("\n")
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        number = chance.randrange(len(lines))
        words = lines[number].split(" ")
        place = chance.randrange(len(words))
        kind = chance.randrange(7)
        if kind == 0:
            words[place] = chance.choice(_SCRAPS)
        elif kind == 1:
            at = chance.randrange(len(words[place]) + 1)
            words[place] = words[place][:at] + chance.choice(_SCRAPS) + words[place][at + chance.randrange(3) :]
        elif kind == 2:
            del words[place]
        elif kind == 3:
            words.insert(place, chance.choice(chance.choice((seed, *others)).split() or [""]))
        elif kind == 4:
            words[place] = "".join(chance.choice("0123456789") if c.isdigit() else c for c in words[place])
        elif kind == 5:
            lines.insert(number, chance.choice(chance.choice((seed, *others)).split("\n")))
            continue
        else:
            del lines[number]
            lines = lines or [""]
            continue
        lines[number] = " ".join(words)
    return "\n".join(lines)
