"""Kinds of questions that ``commsim run`` answers, and the flags that have no meaning for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .run_flags import RunConfig

if TYPE_CHECKING:
    from .run import Answered

# Flags whose files and lines extensions make of an answer.
RENDERED = ("bound", "draw", "osu", "report")
SIZES = ("size", "minbytes", "maxbytes", "stepfactor", "stepbytes")
OF_ONE_COLLECTIVE = "--osu is the table of one collective"


class Refused(NamedTuple):
    """Flags that have no meaning for a question.

    Parameters
    ----------
    flags : tuple of str
        Names of the flags.
    why : str
        Reason; ``{}`` is the flag that was given.
    when : callable, optional
        Function from all flags to whether these have no meaning. Default: they never have one.
    """

    flags: tuple[str, ...]
    why: str
    when: Callable[[RunConfig], bool] | None = None


class Kind(NamedTuple):
    """A kind of question.

    Parameters
    ----------
    answer : callable
        Function from the flags and the sizes in bytes to the answer.
    refused : tuple of Refused
        Flags that have no meaning for it.
    """

    answer: Callable[[RunConfig, Sequence[int]], Answered]
    refused: tuple[Refused, ...]
