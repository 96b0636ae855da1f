"""Remarks: what a number assumes, leaves out or depends on, as values with a code and an effect, not as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .errors import InputError

# Characters of a remark's text, and the least effect of one that an answer shows.
MAX_TEXT, MATTERS = 100, 0.01
CUT = " ..."
# End of the codes that say that something asked for has no effect: an answer shows these always.
UNUSED = "-unused"
# Code of what says that the sizes asked for have no effect, and of what was assumed of a library's choice.
SIZE_UNUSED, ASSUMED = "size-unused", "library-assumed"
__all__ = [
    "ASSUMED",
    "MATTERS",
    "MAX_TEXT",
    "SIZE_UNUSED",
    "Remark",
    "as_remarks",
    "distinct",
    "read_remarks",
]


@dataclass(frozen=True, slots=True)
class Remark:
    """What has to be said beside a number.

    Parameters
    ----------
    code : str
        What it is about, for programs: words joined by hyphens, such as ``pxn-off``. Its meaning does not change.
    text : str
        One sentence of at most ``MAX_TEXT`` characters. One with longer names is cut between words, and is whole in
        `details`.
    effect : float, optional
        Relative effect on the number: 0.4 where it would be 40 % more or less otherwise. None: unknown.
    needed : bool
        Whether the number means something else without it; always of what has no effect.
    details : str
        What ``-v`` and files say beside the text.
    """

    code: str
    text: str
    effect: float | None = None
    needed: bool = False
    details: str = ""

    def __post_init__(self) -> None:
        if self.code.endswith(UNUSED):
            object.__setattr__(self, "needed", True)
        if len(self.text) > MAX_TEXT:
            object.__setattr__(self, "details", f"{self.text}; {self.details}" if self.details else self.text)
            room = self.text[: MAX_TEXT - len(CUT) + 1]
            words = room.rpartition(" ")[0] or room[:-1]  # one word that is longer is cut all the same
            object.__setattr__(self, "text", words.rstrip(" ,;:(") + CUT)

    def __str__(self) -> str:
        """Return the text with its details."""
        text, details = self._whole
        return f"{text}; {details}" if details else text

    @property
    def _whole(self) -> tuple[str, str]:
        """The text as it was before it was cut, with the details that follow it; and the details of others."""
        is_cut = self.text.endswith(CUT) and self.details.startswith(self.text.removesuffix(CUT))
        return (self.details, "") if is_cut else (self.text, self.details)

    @property
    def is_shown(self) -> bool:
        """Whether a short answer shows it."""
        return self.needed or (self.effect is not None and abs(self.effect) >= MATTERS)

    @property
    def size(self) -> float:
        """Effect by which remarks are ordered: without one that is known, a needed remark comes first."""
        if self.effect is None:
            return float("inf") if self.needed else 0.0
        return abs(self.effect)

    def of(self, name: str) -> Remark:
        """Return the remark about one of several, which its text names."""
        text, details = self._whole
        return replace(self, text=f"{name}: {text}", details=details)

    def tree(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        needed = {"needed": True} if self.needed else {}
        return (
            {"code": self.code, "effect": self.effect, "text": self.text}
            | needed
            | ({"details": self.details} if self.details else {})
        )


def as_remarks(items: Iterable[str | Remark], code: str) -> list[Remark]:
    """Return sentences as remarks of one code; remarks stay as they are."""
    return [item if isinstance(item, Remark) else Remark(code, item) for item in items]


def distinct(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Return each sentence once, in the order given, with the largest of its effects: several answers may say it."""
    found: dict[tuple[str, str, str], Remark] = {}
    for one in remarks:
        key = (one.code, one.text, one.details)
        found[key] = max(found.get(key, one), one, key=lambda remark: (remark.needed, remark.size))
    return tuple(found.values())


def read_remarks(tree: object, whose: str) -> tuple[Remark, ...]:
    """Read the remarks of an answer's JSON.

    Parameters
    ----------
    tree : object
        Value of the key ``remarks``; files of before had sentences.
    whose : str
        File that is named in errors.

    Raises
    ------
    InputError
        If it is no list of remarks.
    """
    if tree is None:
        return ()
    if not isinstance(tree, list):
        raise InputError(f"{whose}: remarks must be a list, got {type(tree).__name__}")
    return tuple(_read_remark(item, whose) for item in tree)


def _read_remark(tree: object, whose: str) -> Remark:
    if isinstance(tree, str):
        return Remark("unknown", tree)
    if isinstance(tree, Mapping):
        code, text, effect = tree.get("code"), tree.get("text"), tree.get("effect")
        needed, details = tree.get("needed") or False, tree.get("details") or ""
        if (
            isinstance(code, str) and isinstance(text, str) and isinstance(details, str) and isinstance(needed, bool)
            and (effect is None or (isinstance(effect, (int, float)) and not isinstance(effect, bool)))
        ):  # fmt: skip
            return Remark(code, text, effect, needed, details)
    raise InputError(f"{whose}: a remark is an object with code, text and effect, got {tree!r:.60}")
