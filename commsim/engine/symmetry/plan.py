"""What playing by classes needs that does not depend on the size: wires, their routes and their first classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.routing.merge_switches import Fold, fold
from commsim.routing.routing import Routes, find_routes

from ..flow_plan import Job
from ..flow_tables import slot_tables, wire_table
from .classes import are_few, colour_participants, colour_wires, refined, told_apart
from .pattern import find_pattern
from .quotient import Full, Quotient

LEAST_WIRES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Wires:
    """All wires of a job on a network.

    Parameters
    ----------
    full : Full
        On the network or on its fold.
    routes : Routes
        Of each wire.
    folded : Fold or None
        How links were put together, if packets are sprayed over them.
    """

    full: Full
    routes: Routes
    folded: Fold | None


@dataclass(slots=True, eq=False)
class SymmetricPlan:
    """What does not depend on the size; laid out when ranks are first known to start together.

    Parameters
    ----------
    network, job, routing, seed
        As :func:`plan_symmetric` takes them.
    wires : Wires or None
        None before, and where there is nothing to win.
    classes : list of Quotient
        The first is what every run starts from, so that a result does not depend on what was asked before.
    finer : dict
        From a number of classes, and which of their parts could have more, to the number of finer ones; None where
        these would be too many.
    """

    network: Network
    job: Job
    routing: str
    seed: int
    wires: Wires | None = None
    tried: bool = False
    classes: list[Quotient] = field(default_factory=list)
    finer: dict[tuple[int, bytes], int | None] = field(default_factory=dict)

    def lay_out(self) -> None:
        """Find the wires and their first classes; nothing if the schedule is too long, or most wires differ."""
        self.tried = True
        pattern = find_pattern(self.job.schedule)
        if pattern is None or len(pattern.lead) < LEAST_WIRES or not are_few(colour_participants(pattern)):
            return
        transfers = pattern.transfers[pattern.lead]
        nodes = self.job.placement.nodes[np.stack((transfers["src"], transfers["dst"]), axis=1)]
        on, nodes, routes, folded = _routes(self, nodes, transfers["channel"].astype(np.int64))
        tables = slot_tables(on, [self.job], routes, nodes, np.zeros(len(nodes), np.intp))
        full = Full(pattern, wire_table(on, pattern.n_on_wire, nodes, routes, tables), *tables)
        colour = colour_wires(full)
        if are_few(colour):
            pattern.find_waits(self.job.schedule)
            self.wires = None if self._add(refined(full, colour)) is None else Wires(full, routes, folded)

    def tell_apart(self, now: int, broken: NDArray[np.int64]) -> int | None:
        """Find the classes that tell apart what could have more from what could not.

        Parameters
        ----------
        now : int
            Number of the classes that were played.
        broken : int64[n_variants]
            As :class:`commsim.engine.flow_state.Tables` has it.
        """
        from .symmetry_kernel import number_colours

        # times differ from size to size; who is alike differs less
        alike = number_colours(np.append(broken, 0).astype(np.uint64))[0]
        key = (now, alike.tobytes())
        if key not in self.finer:
            self.finer[key] = self._add(told_apart(self.classes[now], alike))
        return self.finer[key]

    def _add(self, classes: Quotient | None) -> int | None:
        """Keep classes; return their number, if there are any."""
        if classes is None:
            return None
        self.classes.append(classes)
        return len(self.classes) - 1


def plan_symmetric(network: Network, job: Job, *, routing: str | None = None, seed: int = 0) -> SymmetricPlan | None:
    """Plan to play a job by classes.

    Parameters
    ----------
    network : Network
        Where.
    job : Job
        What runs.
    routing, seed : str, int
        As in :func:`commsim.routing.routing.find_routes`.

    Returns
    -------
    SymmetricPlan or None
        None if messages have sizes of their own.
    """
    job.placement.check(network, job.schedule.n_ranks, job.schedule.n_helpers)
    return None if job.messages is not None else SymmetricPlan(network, job, routing or network.routing, seed)


def _routes(
    plan: SymmetricPlan, nodes: NDArray[np.int32], channel: NDArray[np.int64]
) -> tuple[Network, NDArray[np.int32], Routes, Fold | None]:
    """Find the routes on the network, or on its fold where packets are sprayed over all of it alike."""
    if plan.routing == "spray":
        folded = fold(plan.network)
        at = folded.node[nodes]
        routes = find_routes(folded.network, at[:, 0], at[:, 1], channel, routing="spray")
        if (routes.share == 1).all():
            return folded.network, at, routes, folded
    routes = find_routes(plan.network, nodes[:, 0], nodes[:, 1], channel, routing=plan.routing, seed=plan.seed)
    return plan.network, nodes, routes, None
