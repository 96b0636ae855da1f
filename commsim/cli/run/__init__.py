"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from commsim.core.errors import InputError
from commsim.report.answer import Answer, remarks
from commsim.report.terminal import progress

from ..flags import Verb
from .config import Config, without_effect
from .tables import Answered, answered_by, resolved_network

if TYPE_CHECKING:
    from .renderings import Render

RENDERED = ("bound", "draw", "osu", "report")
SIZES = ("minbytes", "maxbytes", "stepfactor", "stepbytes")
Refused = tuple[tuple[str, ...], str]
OF_ONE_COLLECTIVE: Refused = (("osu",), "--osu is the table of one collective")
NO_BOUND: Refused = (
    ("bound",), "--bound goes with --collective alone; commsim bound ranks the algorithms of an operation"
)  # fmt: skip
NO_GROUPS: Refused = (("group",), "--group goes with --collective, not with --operation or --algorithm")
NO_COMPRESSOR: Refused = (("compressor",), "--compressor goes with --collective alone")
OF_OPERATION: tuple[Refused, ...] = (
    (("algorithm",), "--algorithm needs --operation, such as --operation all_reduce"),
    (("synthesized",), "--synthesized goes with --operation, such as --operation all_reduce"),
)


class Kind(NamedTuple):
    """A kind of question.

    Parameters
    ----------
    is_asked : callable
        Function from the flags to whether they ask it.
    answer : callable
        Function from the flags and the sizes in bytes to the answer.
    refused : tuple of (tuple of str, str)
        Flags that have no meaning for it, and why; ``{}`` is the flag that was given.
    """

    is_asked: Callable[[Config], bool]
    answer: Callable[[Config, Sequence[int]], Answered]
    refused: tuple[Refused, ...]


def run(config: Config) -> Answer:
    """Predict what the flags ask for."""
    sizes = config.sizes()
    kind = next(kind for kind in KINDS if kind.is_asked(config))
    for flags, why in kind.refused:
        for given in config.given(*flags):
            raise InputError(why.format(given))
    renderings = _renderings(config)
    answered = kind.answer(config, sizes)
    parts = [*remarks(without_effect(config)), *answered.parts]
    for render in renderings:
        parts += render(config, answered)
    more = answered.more | {"network": resolved_network(answered.network)}
    return Answer(parts, answered.rows, config.flags("report") | answered.chosen, more)


def _renderings(config: Config) -> list[Render]:
    """Return what else is made of the answer; a file that cannot be written is refused before anything is computed."""
    if not config.given(*RENDERED):
        return []
    from .renderings import renderings_of

    return renderings_of(config)


def _jobs(config: Config, _: Sequence[int]) -> Answered:
    from .together import answer_jobs

    return answer_jobs(config)


def _ranking(config: Config, sizes: Sequence[int]) -> Answered:
    from .operation import answer_ranking

    return answer_ranking(config, sizes)


def _algorithms(config: Config, sizes: Sequence[int]) -> Answered:
    from .operation import answer_algorithms

    return answer_algorithms(config, sizes)


def _collectives(config: Config, sizes: Sequence[int]) -> Answered:
    from commsim.scenario.inputs import load_network
    from commsim.scenario.solve import solve

    network = load_network(config.topology)
    scenarios = [config.scenario(spec, network) for spec in config.collective or (None,)]
    solutions = [solve(one, sizes, over=functools.partial(progress, what=one.name)) for one in scenarios]
    answered = answered_by(config, solutions)
    names = tuple(scenario.name for scenario in scenarios)
    return dataclasses.replace(answered, chosen=answered.chosen | {"collective": names, "operation": None})


# The first kind that is asked is answered.
KINDS = (
    Kind(
        lambda config: config.jobs is not None, _jobs,
        ((("collective", "ranks", "operation", "algorithm", "synthesized", "group", "compressor",
           "datatype", *SIZES, *RENDERED), "--jobs FILE describes the whole run; {} cannot be used with it"),),
    ),
    Kind(lambda config: config.compares, _ranking, (NO_GROUPS, NO_COMPRESSOR, NO_BOUND, OF_ONE_COLLECTIVE)),
    Kind(lambda config: config.is_ranking, _algorithms, (NO_GROUPS, NO_COMPRESSOR, OF_ONE_COLLECTIVE)),
    Kind(
        lambda config: bool(config.group), _collectives, (*OF_OPERATION, NO_COMPRESSOR, NO_BOUND, OF_ONE_COLLECTIVE)
    ),
    Kind(lambda config: config.compressor is not None, _collectives, (*OF_OPERATION, NO_BOUND)),
    Kind(lambda config: len(config.collective) > 1, _collectives, (*OF_OPERATION, OF_ONE_COLLECTIVE)),
    Kind(lambda _: True, _collectives, OF_OPERATION),
)  # fmt: skip

COMMANDS = {"run": Verb(Config, run)}
