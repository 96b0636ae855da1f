"""Old names of verbs, which are understood until the next version, and what is typed in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# Old first words, and the words that replace them; the longest match is taken.
RENAMED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("explain",): ("nccl",),
    ("calls",): ("workload", "calls"),
    ("profile",): ("workload", "profile"),
    ("presets", "list"): ("topo", "presets"),
    ("presets", "show"): ("topo", "presets"),
    ("presets",): ("topo", "presets"),
}
# Verbs that are not listed any more, and their replacement in words, since it depends on the files.
HIDDEN = {"convert": "`commsim topo|schedule|workload import|export`; `formats` of each lists them"}


class CurrentWords(NamedTuple):
    """A command line in today's words.

    Parameters
    ----------
    words : list of str
        The words.
    note : str
        What was replaced; empty if nothing was.
    """

    words: list[str]
    note: str = ""


def in_new_words(argv: Sequence[str]) -> CurrentWords:
    """Replace old names by those of today."""
    words = list(argv)
    for old in sorted(RENAMED, key=len, reverse=True):
        if tuple(words[: len(old)]) == old:
            return _renamed([*RENAMED[old], *words[len(old) :]], " ".join(old), " ".join(RENAMED[old]))
    if words[:1] == ["advise"]:
        for i, word in enumerate(words):
            if word == "--sweep" or word.startswith("--sweep="):
                file = word.partition("=")[2:] if "=" in word else ()
                rest = [*words[1:i], *file, *words[i + 1 :]]
                return _renamed(["sweep", "cheapest", *rest], "advise --sweep", "sweep cheapest")
    if words[:1] == ["report"] and len(words) > 2 and not any(word.startswith("-") for word in words[1:3]):
        return _renamed(["diff", *words[1:]], "report A B", "diff A B")
    if words and words[0] in HIDDEN:
        return CurrentWords(words, f"{words[0]} is now {HIDDEN[words[0]]}; the next version has no {words[0]}")
    return CurrentWords(words)


def _renamed(words: list[str], old: str, new: str) -> CurrentWords:
    return CurrentWords(words, f"`commsim {old}` is now `commsim {new}`; the next version knows only this")
