"""Command lines that differ from a usual one in some flags: a flag given twice is refused."""

from collections.abc import Sequence


def with_flags(usual: Sequence[object], flags: Sequence[object]) -> list[str]:
    """The usual words without the flags (and their one value) that are given anew, and then these."""
    words, anew = [str(word) for word in usual], {str(flag) for flag in flags if str(flag).startswith("--")}
    left: list[str] = []
    i = 0
    while i < len(words):
        if words[i] in anew:
            i += 2
        else:
            left.append(words[i])
            i += 1
    return left + [str(flag) for flag in flags]
