"""A collective on several groups of ranks at once, on one network: each group is a job of one simulation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.cost import Framing
from ..core.errors import InputError
from ..core.network import Network
from ..core.placement import Placement
from ..core.result import Result
from ..engine.alpha_beta import simulate_alpha_beta
from ..engine.flow import simulate_flows
from ..engine.flow_plan import FlowPlan, plan_flows
from ..routing.flaps import Flaps
from . import Prepared, prepare
from .inputs import PACKED, load_network, load_placement
from .prepared import finished

if TYPE_CHECKING:
    from ..engine.packet.transport import Fabric, Transport

SIMULATORS = {"flow": simulate_flows, "alpha-beta": simulate_alpha_beta}


@dataclass(frozen=True, slots=True)
class PreparedGroups:
    """Groups placed on a network, prepared to be predicted together.

    Parameters
    ----------
    groups : tuple of Prepared
        The collective of each group, as if it were alone.
    plan : FlowPlan
        All of them at once.
    """

    groups: tuple[Prepared, ...]
    plan: FlowPlan

    def predict(
        self,
        size: float,
        *,
        engine: str = "flow",
        framing: Framing | None = None,
        trace: bool = False,
        transport: Transport | None = None,
        fabric: Fabric | None = None,
        flaps: Flaps | None = None,
    ) -> tuple[Result, ...]:
        """Predict one size, the same in every group.

        Parameters
        ----------
        size : float, bytes
            Of each group's operation.
        engine, framing, trace, transport, fabric, flaps
            As in :meth:`commsim.run.Prepared.predict`.

        Returns
        -------
        tuple of Result
            One per group, in order.

        Raises
        ------
        InputError
            If the engine knows no contention between groups, or the size is not positive.
        """
        if engine not in (*SIMULATORS, "packet"):
            raise InputError(
                f"groups are simulated together by {', '.join(SIMULATORS)} or packet, got engine {engine!r}"
            )
        views = [group.view(size) for group in self.groups]
        first, plan = views[0], self.plan
        sized = [group.at(size) for group in self.groups]
        if any(at_size is not group for at_size, group in zip(sized, self.groups, strict=True)):
            jobs = [group.paths.job for group in sized]
            plan = plan_flows(plan.network, jobs, routing=plan.routing, seed=plan.seed)
        if flaps is not None and engine not in ("flow", "packet"):
            raise InputError(f"links flap in the engines flow and packet, got --engine {engine}")
        if engine != "packet" and (transport is not None or fabric is not None):
            raise InputError(f"transports and queues are the packet engine's, got --engine {engine}")
        if first is not None:
            framing = framing or first.framing
        sent = size if first is None else first.size
        if engine == "packet":
            from ..engine.packet.messages import simulate_messages

            results = simulate_messages(
                plan, sent, transport=transport, fabric=fabric, framing=framing, trace=trace, flaps=flaps
            )
        elif flaps is None:
            results = SIMULATORS[engine](plan, sent, framing=framing, trace=trace)
        else:
            results = simulate_flows(plan, sent, framing=framing, trace=trace, flaps=flaps)
            whole = simulate_flows(plan, sent, framing=framing)
            results = tuple(
                dataclasses.replace(r, counters={**r.counters, "flap_lost_s": r.time - w.time})
                for r, w in zip(results, whole, strict=True)
            )
        return tuple(finished(result, size, view) for result, view in zip(results, views, strict=True))


def prepare_groups(
    collective: str,
    network: str | Network,
    groups: Sequence[Sequence[int]],
    *,
    n_ranks: int | None = None,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int = 0,
) -> PreparedGroups:
    """Place all ranks, and let every group of them run the collective.

    Parameters
    ----------
    collective, network, placement, routing, seed
        As in :func:`commsim.run.prepare`; the placement is that of all ranks.
    groups : sequence of sequence of int
        Ranks of each group, in the order in which they are the collective's ranks. A rank may be in several.
    n_ranks : int, optional
        Ranks in all, by default as many as the placement has, or all seats of the network.

    Raises
    ------
    InputError
        If a group is empty, or names a rank twice or one that does not exist.
    """
    network = load_network(network) if isinstance(network, str) else network
    placement = PACKED if placement is None else placement
    if isinstance(placement, str):
        placement = load_placement(placement, network, n_ranks or len(network.endpoints), seed)
    n_ranks = len(placement.nodes)
    if not groups:
        raise InputError("at least one group is needed, got none")
    for group in groups:
        if not group or len(set(group)) != len(group) or not all(0 <= rank < n_ranks for rank in group):
            raise InputError(f"a group must be different ranks 0..{n_ranks - 1}, got {list(group)}")
    prepared = [_prepare(collective, network, placement, group, routing, seed) for group in groups]
    jobs = [group.paths.job for group in prepared]
    can = np.logical_or.reduce(
        [group.network.aggregates for group in prepared]
    )  # switches that some group put helpers on
    network = dataclasses.replace(network, aggregates=can)
    return PreparedGroups(tuple(prepared), plan_flows(network, jobs, routing=routing, seed=seed))


def _prepare(collective: str, network: Network, placement: Placement, group: Any, routing: Any, seed: int) -> Prepared:
    where = Placement(placement.nodes[list(group)])
    prepared = prepare(collective, network, placement=where, routing=routing, seed=seed)
    title = f"group {','.join(map(str, group))}: "
    return dataclasses.replace(prepared, notes=tuple(title + note for note in prepared.notes))
