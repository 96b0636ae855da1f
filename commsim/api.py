"""What ``import commsim as cs`` offers: a question of the command line is one typed function.

Names, files, numbers and text are taken as they come: a network by name, as a value or as a :class:`NetworkBuilder`, a
size as bytes or as text such as ``64MiB``, a placement as a list of nodes. Each function makes a scenario, solves it,
and returns the answer; answers print short, show themselves in a notebook, and become data frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commsim.core.cost import Framing
from commsim.report.predicted import Predicted
from commsim.scenario.given import (
    CollectiveLike,
    NetworkLike,
    PlacementLike,
    SizeLike,
    collective_of,
    network_of,
    placement_of,
    size_of,
    sizes_of,
)
from commsim.scenario.network_builder import NetworkBuilder
from commsim.scenario.networkx_graphs import from_networkx, to_networkx
from commsim.scenario.ranking import Ranking
from commsim.scenario.ranking import rank as rank_scenario
from commsim.scenario.read import scenario_of as read_scenario
from commsim.scenario.scenario import Scenario
from commsim.scenario.solve import Solution
from commsim.scenario.solve import solve as solve_scenario

__all__ = ["NetworkBuilder", "Predicted", "from_networkx", "predict", "rank", "scenario_of", "solve", "to_networkx"]


def scenario_of(
    collective: CollectiveLike | None,
    network: NetworkLike,
    *,
    operation: str | None = None,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    flap: Sequence[str] = (),
    detection: float | str | None = None,
    rto: float | str | None = None,
    overhead: float | str | None = None,
    recv_overhead: float | str | None = None,
    reduce_rate: float | str | None = None,
    software: str | None = None,
    compressor: str | None = None,
    groups: Sequence[Sequence[int]] = (),
    engine: str = "",
    tolerance: float | None = None,
    method: str = "auto",
    start_jitter: float | str | None = None,
    iterations: int | None = None,
    payload: float | str | None = None,
    header: float | str | None = None,
    framing: Framing | None = None,
    transport: Any = None,
    fabric: Any = None,
    packets: Mapping[str, Any] | None = None,
    trace: bool = False,
) -> Scenario:
    """Make a scenario: a network with its faults, the work on it, and the engine.

    Parameters
    ----------
    collective : str, Schedule, callable or None
        ``name:key=value,...``, a file, a schedule, or a function from a number of ranks to a schedule, to be proved.
        Default: what runs on the network's machines.
    network : str, Network or NetworkBuilder
        ``name:key=value,...`` of a topology, a preset, a file, or a network.
    placement : str, Placement, or sequence of int or str, optional
        Strategy, file, or node of each rank, by number or by name. Default: ``packed``.
    operation, n_ranks, routing, seed, compressor, groups
        Same as in :func:`commsim.scenario.read.scenario_of`.
    fail, scale, flap, detection, rto
        Faults, as the flags of ``commsim run``: ``fail=["links:5%"]``, ``flap=["link:leaf0->spine0@1ms+1ms"]``.
    overhead, recv_overhead, reduce_rate, software
        Costs of messages, as the flags of ``commsim run``.
    engine, tolerance, method, start_jitter, iterations, payload, header, framing, transport, fabric, packets, trace
        Engine and its options, as in :func:`commsim.scenario.read.scenario_of`.

    Examples
    --------
    >>> import commsim as cs
    >>> asked = cs.scenario_of("ring_all_reduce", "star:n_hosts=4", overhead="1us")
    >>> [round(r.time * 1e6, 2) for r in cs.solve(asked, ["1MiB", "2MiB"]).results]
    [137.83, 263.66]
    """
    asked = dict(locals())
    where = network_of(network)
    given, n = placement_of(placement, where, n_ranks)
    what = None if collective is None else collective_of(collective, n or len(where.endpoints))
    return read_scenario(what, where, **{k: v for k, v in asked.items() if k not in ("collective", "network")}
                       | {"placement": given, "n_ranks": n})  # fmt: skip


def predict(
    collective: CollectiveLike | None,
    network: NetworkLike,
    size: SizeLike,
    *,
    operation: str | None = None,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    flap: Sequence[str] = (),
    detection: float | str | None = None,
    rto: float | str | None = None,
    overhead: float | str | None = None,
    recv_overhead: float | str | None = None,
    reduce_rate: float | str | None = None,
    software: str | None = None,
    compressor: str | None = None,
    engine: str = "",
    tolerance: float | None = None,
    method: str = "auto",
    start_jitter: float | str | None = None,
    iterations: int | None = None,
    payload: float | str | None = None,
    header: float | str | None = None,
    framing: Framing | None = None,
    transport: Any = None,
    fabric: Any = None,
    packets: Mapping[str, Any] | None = None,
    trace: bool = False,
) -> Predicted:
    """Predict how long a collective takes: the one result of a scenario at a size.

    Parameters
    ----------
    collective, network
        Same as in :func:`scenario_of`.
    size : float, bytes, or str
        Size of the operation as nccl-tests counts it, such as ``64MiB``.
    operation, n_ranks, placement, routing, seed, fail, scale, flap, detection, rto, overhead, recv_overhead
        Same as in :func:`scenario_of`.
    reduce_rate, software, compressor, engine, tolerance, method, start_jitter, iterations, payload, header, framing
        Same as in :func:`scenario_of`.
    transport, fabric, packets, trace
        Same as in :func:`scenario_of`.

    Returns
    -------
    Predicted
        Result, with the remarks of the prediction.

    Raises
    ------
    InputError
        If something is unknown, wrong, or belongs to another engine.

    Examples
    --------
    >>> import commsim as cs
    >>> cs.predict("ring_all_reduce", "star:n_hosts=4,bandwidth=100Gbps,latency=1us", "64MiB")
    Result(ring_all_reduce, 4 ranks, 64 MiB, flow: 8.065 ms, busbw 12.48 GB/s)
    """
    asked = dict(locals())
    n_bytes = size_of(asked.pop("size"))
    return Predicted.of(solve_scenario(scenario_of(**asked), [n_bytes]))


def solve(scenario: Scenario, sizes: SizeLike | Sequence[SizeLike]) -> Solution:
    """Predict a scenario at several sizes.

    Parameters
    ----------
    scenario : Scenario
        Question, as :func:`scenario_of` returns it.
    sizes : float or str, or a sequence of them
        Sizes of the operation, bytes or text such as ``64MiB``.
    """
    return solve_scenario(scenario, sizes_of(sizes))


def rank(
    operation: str,
    network: NetworkLike,
    sizes: SizeLike | Sequence[SizeLike],
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    engine: str = "flow",
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    flap: Sequence[str] = (),
    detection: float | str | None = None,
    rto: float | str | None = None,
    overhead: float | str | None = None,
    recv_overhead: float | str | None = None,
    reduce_rate: float | str | None = None,
    software: str | None = None,
    transport: Any = None,
    fabric: Any = None,
    packets: Mapping[str, Any] | None = None,
    algorithms: Sequence[str] = (),
    named: Sequence[str] = (),
    synthesized: bool = False,
    assume_overhead: bool = True,
) -> Ranking:
    """Rank all algorithms of an operation on a network, by size.

    Parameters
    ----------
    operation : str
        Name of the operation, such as ``all_reduce``.
    network, n_ranks, placement, routing, seed, fail, scale, flap, detection, rto, overhead, recv_overhead
        Same as in :func:`scenario_of`.
    reduce_rate, software, transport, fabric, packets
        Same as in :func:`scenario_of`.
    sizes : float or str, or a sequence of them
        Sizes, bytes or text such as ``64MiB``.
    engine : str
        Engine of all predictions.
    algorithms : sequence of str
        Algorithms to rank. Default: all that implement the operation.
    named : sequence of str
        Further algorithms, such as ``nccl``, which have to run; switches are assumed to be programmable for these
        alone.
    synthesized : bool
        Whether the schedules that :func:`commsim.synthesize` makes are ranked too.
    assume_overhead : bool
        Whether a message takes 1 us of its sender where neither the network, `overhead`, `recv_overhead` nor `software`
        gives any, as in ``commsim run --operation``.

    Raises
    ------
    InputError
        If the operation is unknown, or no algorithm can run.

    Examples
    --------
    >>> import commsim as cs
    >>> ranking = cs.rank("broadcast", "star:n_hosts=8,latency=1us", ["1KiB", "64MiB"])
    >>> [found[0][0] for found in ranking.by_size.values()]
    ['binomial_broadcast', 'chain_broadcast']
    """
    given = dict(locals())
    own = ("sizes", "algorithms", "named", "synthesized", "assume_overhead")
    asked = scenario_of("", **{name: value for name, value in given.items() if name not in own})
    assume = assume_overhead and (overhead, recv_overhead, software) == (None, None, None)
    return rank_scenario(
        asked, operation, [int(s) for s in sizes_of(sizes)], algorithms=algorithms, named=named,
        synthesized=synthesized, assume_overhead=assume,
    )  # fmt: skip
