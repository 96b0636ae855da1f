"""The lower bound of an operation on a network: the largest of all that can be proved."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.layouts import Layout
from commsim.core.network import SWITCH, Network
from commsim.core.remark import Remark
from commsim.core.units import count_text, first_of, format_size, format_time
from commsim.core.value import Shown
from commsim.prediction.bounds.crossings import Cut
from commsim.prediction.bounds.cuts import partition_cuts, uses_more_than_ranks
from commsim.prediction.bounds.demand import Demand, UsableLinks, demand_of, usable
from commsim.prediction.inputs import SizeLike, size_of
from commsim.prediction.plans.dense import Plan

from .latency import latency_bounds, nearest_ranks
from .min_cut import MAX_LINKS, min_cuts
from .program_bounds import MAX_VARIABLES, n_variables, program_bound
from .volume import volume_bounds

# Sizes at which a bound is shown where none is asked for.
SIZES = (2**10, 2**20, 2**30)
# Bounds that differ by less are one; of these the first says why.
TIE = 1e-6
# Relative difference of a time and its bound that is rounding only.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, repr=False)
class LowerBound(Shown):
    """A lower bound on the time of all schedules of a kind, at any size.

    Parameters
    ----------
    operation : str
        Name of the operation.
    n_ranks : int
        How many.
    anywhere : bool
        Whether nodes without ranks may store, add up and send on.
    parts : tuple of Cut
        All bounds; the time is that of the largest.
    notes : tuple of Remark
        What was not tried, and might have made the bound larger.
    network : Network, optional
        Network of the bound; None for bounds that nothing else is to be computed from.
    ranks : tuple of int
        Node of each rank.
    root : int
        Root of a rooted operation.
    """

    operation: str
    n_ranks: int
    anywhere: bool
    parts: tuple[Cut, ...]
    notes: tuple[Remark, ...]
    network: Network | None = field(default=None, compare=False)
    ranks: tuple[int, ...] = ()
    root: int = 0

    def __repr__(self) -> str:
        least = [f"{format_size(size)} {format_time(self.time(size))}" for size in SIZES]
        return f"LowerBound({self.operation}, {count_text(self.n_ranks, 'rank')}, at least: {first_of(least)})"

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What was not tried, and might have made the bound larger."""
        return self.notes

    def to_frame(self, library: str | None = None, *, sizes: Sequence[float] = SIZES) -> Any:
        """Return the least time at some sizes, and what limits it, as a data frame of pandas or polars."""
        rows = ({"size_B": size, "bound_s": self.time(size), "limited_by": self.why(size)} for size in sizes)
        return frame_of(rows, library)

    @property
    def rate(self) -> float:
        """Most algorithm bandwidth that any size reaches, in bytes/s; infinite where no bytes must be sent."""
        per_byte = max((part.per_byte for part in self.parts), default=0.0)
        return 1 / per_byte if per_byte else float("inf")

    def time(self, size: SizeLike) -> float:
        """Least time for an operation of so many bytes, in seconds."""
        n_bytes = size_of(size)
        return max((part.per_byte * n_bytes + part.fixed for part in self.parts), default=0.0)

    def why(self, size: SizeLike) -> str:
        """Describe what limits it at that size."""
        size = size_of(size)
        least = self.time(size) * (1 - TIE)
        return next(
            (p.why for p in self.parts if p.per_byte * size + p.fixed >= least and least > 0), "nothing to send"
        )


def lower_bound(
    operation: str,
    network: Network,
    ranks: ArrayLike | None = None,
    *,
    root: int = 0,
    layout: Layout = (),
    anywhere: bool = False,
    helpers: ArrayLike = (),
) -> LowerBound:
    """Bound the time of an operation from below, for every schedule, routing and number of chunks.

    Parameters
    ----------
    operation : str
        Such as ``all_reduce``.
    network : Network
        Network that the operation runs on.
    ranks : int[n_ranks], optional
        Node of each rank; by default the endpoints.
    root : int
        Root of an operation that has one.
    layout : tuple of int
        Layout of an operation whose blocks differ, as schedules carry it.
    anywhere : bool
        Whether parameter servers on spare hosts and switches that aggregate or copy are allowed too.
    helpers : int[n_helpers], optional
        Nodes without ranks that may store, add and send on, where not any node may.

    Raises
    ------
    InputError
        If the operation is unknown, a rank's node is none of the network, or some rank cannot reach another one.
    """
    nodes = np.asarray(network.endpoints if ranks is None else ranks, np.int32)
    if not nodes.size or nodes.min() < 0 or nodes.max() >= network.n_nodes:
        raise InputError(f"ranks must be on nodes 0..{network.n_nodes - 1} of {network.name}, got {nodes.tolist()[:4]}")
    if not 0 <= root < len(nodes):
        raise InputError(f"root must be a rank 0..{len(nodes) - 1}, got {root}")
    demand = demand_of(operation, len(nodes), root, layout)
    graph = usable(network, nodes, anywhere, np.unique(np.asarray(helpers, np.int32)))
    if demand.n_ranks < 2:
        return LowerBound(operation, 1, anywhere, (), ())
    parts, notes = _parts(graph, demand)
    return LowerBound(
        operation, demand.n_ranks, anywhere, tuple(parts), tuple(notes), network, tuple(nodes.tolist()), root
    )


def bound_for(prepared: Plan, network: Network | None = None, *, as_placed: bool = False) -> LowerBound:
    """Bound what a prepared collective does: for schedules that use the kinds of nodes that it uses.

    Parameters
    ----------
    prepared : Plan
        The collective.
    network : Network, optional
        Network whose costs of messages the bound has. Default: that of the plan.
    as_placed : bool
        Whether, where all of its helpers are hosts, only these may store, add and send on beside the ranks.

    Raises
    ------
    InputError
        If its data is sparse: then bytes depend on the data, and these bounds are of dense data.
    """
    if prepared.data is not None:
        raise InputError(f"{prepared.schedule.name}: bounds are of dense data, and its data is sparse")
    schedule, nodes = prepared.schedule, prepared.placement.nodes
    ranks, helpers = nodes[: schedule.n_ranks], np.setdiff1d(nodes[schedule.n_ranks :], nodes[: schedule.n_ranks])
    as_placed = as_placed and not (prepared.network.kind[helpers] == SWITCH).any()
    return lower_bound(
        schedule.operation,
        prepared.network if network is None else network,
        ranks,
        root=schedule.root,
        layout=schedule.layout,
        anywhere=uses_more_than_ranks(prepared) and not as_placed,
        helpers=helpers if as_placed else (),
    )


def _parts(graph: UsableLinks, demand: Demand) -> tuple[list[Cut], list[Remark]]:
    """All bounds, and what was not tried."""
    always = [*latency_bounds(graph, demand), *_adding(graph, demand)]
    by_bytes: list[Cut] = [one.cut() for one in partition_cuts(graph, demand)] if demand.kind != "signals" else []
    if any(not np.isfinite(part.per_byte + part.fixed) for part in (*always, *by_bytes)):
        raise InputError(f"{graph.network.name}: a rank cannot reach another one, so no bound exists")
    after = nearest_ranks(graph)  # the last message still takes this, once its bytes have left
    notes: list[Remark] = []
    if importlib.util.find_spec("scipy") is None:
        text = "cuts by locality only: minimum cuts and linear programs need SciPy (pip install 'commsim[opt]')"
        notes.append(Remark("bound-loose", text, needed=True))
    else:
        by_bytes += [*min_cuts(graph, demand), *volume_bounds(graph, demand)]
        program = program_bound(graph, demand)
        by_bytes += [program] if program is not None else []
        if demand.kind != "signals" and len(graph.link) > MAX_LINKS:
            text = f"cuts by locality only: minimum cuts are for at most {MAX_LINKS} links, got {len(graph.link)}"
            notes.append(Remark("bound-loose", text, needed=True))
        elif n_variables(graph, demand) > MAX_VARIABLES:
            size = n_variables(graph, demand)
            limit = f"it would have {size} variables, the limit is {MAX_VARIABLES}"
            notes.append(
                Remark("bound-loose", "bounds are of cuts and distances only, no linear program", details=limit)
            )
    late = [Cut(part.per_byte, part.why, part.fixed + after) for part in by_bytes if part.per_byte]
    return [*always, *_tightest(late)], notes


def _tightest(parts: Sequence[Cut]) -> list[Cut]:
    """Of bounds by bytes those that no other one beats at every size, the largest by bytes first."""
    unbeaten: list[Cut] = []
    for part in sorted(parts, key=lambda part: (-part.per_byte, -part.fixed)):
        if all(part.fixed > other.fixed for other in unbeaten):
            unbeaten.append(part)
    return unbeaten


def _adding(graph: UsableLinks, demand: Demand) -> list[Cut]:
    """Bound by additions: every byte of a sum takes p-1 of them, by all nodes that may add, each at its own rate."""
    gamma = graph.network.gamma[graph.computes]
    if not demand.sums or not gamma.all():
        return []
    work = demand.sums * (demand.n_ranks - 1)
    return [Cut(work / float((1 / gamma).sum()), "adding up, by all nodes that may add together")]


def times_of(time: float, least: float) -> float:
    """Return how many times the least a time is; 1 where both are nothing, or differ by rounding only."""
    return time / least if least and abs(time - least) > ROUNDING * least else 1.0
