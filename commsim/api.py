"""What ``import commsim as cs`` offers: a question of the command line is one typed function.

Names, files, numbers and text are taken as they come: a network by name, as a value or as a :class:`NetworkBuilder`, a
size as bytes or as text such as ``64MiB``, a placement as a list of nodes. Each function makes a scenario, solves it,
and returns the answer; answers print short, show themselves in a notebook, and become data frames.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Unpack

from commsim.core.errors import InputError
from commsim.prediction.inputs import CollectiveLike, NetworkLike, SizeLike, size_of, sizes_of
from commsim.prediction.network_builder import NetworkBuilder
from commsim.prediction.networkx_graphs import from_networkx, to_networkx
from commsim.prediction.options import ScenarioOptions, takes
from commsim.prediction.read import scenario_of
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import Solution
from commsim.prediction.solve import solve as solve_scenario
from commsim.report.predicted import Predicted

__all__ = ["NetworkBuilder", "Predicted", "from_networkx", "predict", "scenario_of", "solve", "to_networkx"]


@takes(ScenarioOptions)
def predict(
    collective: CollectiveLike | None, network: NetworkLike, size: SizeLike, **options: Unpack[ScenarioOptions]
) -> Predicted:
    """Predict how long a collective takes: the one result of a scenario at a size.

    Parameters
    ----------
    collective, network
        Same as in :func:`scenario_of`.
    size : float, bytes, or str
        Size of the operation as nccl-tests counts it, such as ``64MiB``.
    **options
        Keywords of :class:`commsim.prediction.options.ScenarioOptions`.

    Returns
    -------
    Predicted
        Result, with the remarks of the prediction.

    Raises
    ------
    InputError
        If something is unknown, wrong, or belongs to another engine; or if several groups or jobs are asked for, each
        of which has a result.
    TypeError
        If a keyword is no option.

    Examples
    --------
    >>> import commsim as cs
    >>> cs.predict("ring_all_reduce", "star:n_hosts=4,bandwidth=100Gbps,latency=1us", "64MiB")
    Result(ring_all_reduce, 4 ranks, 64 MiB, flow: 8.071 ms, busbw 12.47 GB/s)
    """
    n_bytes = size_of(size)
    scenario = scenario_of(collective, network, **options)
    several = scenario.work.parts
    if len(several) > 1:
        what = f"{next(iter(several[0]))}s"
        raise InputError(f"predict has one result, got {len(several)} {what}; cs.solve(cs.scenario_of(...)) has all")
    return Predicted.of(solve_scenario(scenario, [n_bytes]))


def solve(scenario: Scenario, sizes: SizeLike | Sequence[SizeLike] | None = None) -> Solution:
    """Predict a scenario at several sizes.

    Parameters
    ----------
    scenario : Scenario
        Question, as :func:`scenario_of` returns it.
    sizes : float or str, or a sequence of them
        Sizes of the operation, bytes or text such as ``64MiB``. Default: those that the work has by itself, as jobs,
        barriers and gradients of a file have.

    Raises
    ------
    InputError
        If the scenario is wrong, the engine cannot predict it, or the work has no size by itself and none is given.
    """
    if not isinstance(scenario, Scenario):
        raise InputError(
            f"solve takes what cs.scenario_of returns, got {reprlib.repr(scenario)}; cs.predict takes names"
        )
    return solve_scenario(scenario, [] if sizes is None else sizes_of(sizes))
