"""Kinds of questions that ``commsim run`` answers, the answers, and the flags that have no meaning for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .run_flags import RunConfig

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.prediction.solve import Solution
    from commsim.report.answer import Part

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


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What was asked for, predicted.

    Parameters
    ----------
    parts : sequence of Part
        Tables and remarks.
    rows : sequence of mapping
        LazyRows of the JSON.
    results : sequence of Result
        All results.
    network : Network
        Network with its faults and costs.
    more : mapping
        Further keys of the JSON.
    solutions : sequence of Solution
        Solutions of single collectives.
    chosen : dict
        Flags with the values that were chosen where they were not given.
    """

    parts: Sequence[Part]
    rows: Sequence[Mapping[str, Any]]
    results: Sequence[Result]
    network: Network
    more: dict[str, Any] = field(default_factory=dict)
    solutions: Sequence[Solution] = ()
    chosen: dict[str, Any] = field(default_factory=dict)


class Rendering(NamedTuple):
    """What a flag of ``commsim run`` makes of an answer beside its table.

    Parameters
    ----------
    check : callable
        Function that refuses the value of the flag, such as a file that cannot be written, before the prediction.
    render : callable
        Function from the flags and the answer to further parts.
    """

    check: Callable[[Any], None]
    render: Callable[[RunConfig, Answered], list[Part]]


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
