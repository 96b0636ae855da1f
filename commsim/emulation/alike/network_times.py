"""Times of collectives of ranks that are alike, alone and while they overlap.

Alone, a collective takes what ``commsim run`` predicts for all groups that do the same at that time. Collectives of
different groups that overlap share links as fluids: each moves at a pace of at most 1, the pace that it has alone, and
the busiest links divide their capacity max-min. In the flow engine the messages of two collectives meet one by one;
there the time of two that overlap differs by what their messages leave idle.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.core.remark import Remark
from commsim.core.result import OverHashes, Result
from commsim.core.schedule import SCRATCH
from commsim.engine.flow import play
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.flow_times import link_bytes

Group = tuple[int, ...]
# Number that ECMP hashes for messages, that of :mod:`commsim.emulation.network_traffic`.
MESSAGES = 30


@dataclass(frozen=True, slots=True, eq=False)
class ExchangeCosts:
    """What one collective, on all groups that are alike, costs without others.

    Parameters
    ----------
    time : float, s
        Time until all groups have ended.
    link_bytes : float64[n_links], bytes
        What it sends over each link.
    use : float64[n_links]
        Share of each link's capacity that it takes while it runs.
    collective : str
        Schedule that runs.
    delay : float, s
        Time from when a message has left until it has arrived.
    hashes : OverHashes, optional
        Hashes of routes of which the time is the median, where their times differ.
    seed : int
        Seed of the routes' hash to which the bytes on links belong.
    """

    time: float
    link_bytes: NDArray[np.float64]
    use: NDArray[np.float64]
    collective: str
    delay: float = 0.0
    hashes: OverHashes | None = None
    seed: int = 0


class NetworkTimes:
    """Collectives on a network, each simulated once.

    Parameters
    ----------
    network : Network
        Network, with its faults.
    placement : Placement
        Node of each rank.
    algorithms : mapping of str to str
        Collectives for operations. Default: what runs on the network's machines, as in ``commsim run``.
    seed : int
        Seed of hashes.
    routing : str, optional
        Routing, in place of the network's own.
    framing : Framing, optional
        How messages are cut into packets.
    hashes : int, optional
        Number of hashes of routes that are drawn for a collective where their times differ. Default: 8.
    """

    def __init__(
        self,
        network: Network,
        placement: Placement,
        algorithms: dict[str, str],
        seed: int = 0,
        routing: str | None = None,
        framing: Framing | None = None,
        hashes: int | None = None,
    ) -> None:
        self.network, self._nodes, self._named, self._seed = network, placement.nodes, algorithms, seed
        self._routing, self._framing, self._hashes = routing, framing, hashes
        self._known: dict[tuple[str, float, tuple[tuple[int, ...], ...]], ExchangeCosts] = {}
        self._plans: dict[tuple[str, tuple[Group, ...]], tuple[Any, Any]] = {}
        self._paces: dict[frozenset[tuple[ExchangeCosts, int]], dict[ExchangeCosts, float]] = {}
        self.notes: list[Remark] = []

    @property
    def n_simulated(self) -> int:
        """Collectives that were simulated."""
        return len(self._known)

    def of(self, operation: str, size: float, groups: tuple[Group, ...]) -> ExchangeCosts:
        """Return the costs of a collective that all these groups run at the same time.

        Parameters
        ----------
        operation : str
            Name of the operation, such as ``all_gather``.
        size : float, bytes
            Size as nccl-tests counts it.
        groups : tuple of tuple of int
            Ranks of each group; all have the same number of ranks.

        Raises
        ------
        InputError
            If no algorithm runs.
        """
        key = (operation, size, groups)
        if key not in self._known:
            self._known[key] = self._simulated(operation, size, groups)
        return self._known[key]

    def message(self, size: float, pairs: tuple[tuple[int, int], ...]) -> ExchangeCosts:
        """Return the costs of messages between pairs of ranks that begin at the same time.

        Parameters
        ----------
        size : float, bytes
            Payload of each message.
        pairs : tuple of (int, int)
            Sender and receiver of each.
        """
        key = ("message", size, pairs)
        if key not in self._known:
            program = Program(len(self._nodes), 1, n_scratch=1)
            src, dst = np.array(pairs).T
            program.copy(src=src, dst=dst, src_chunk=0, dst_chunk=0, dst_buffer=SCRATCH)
            job = FlowJob(program.build(), Placement(self._nodes), number=MESSAGES)
            plan = plan_flows(self.network, [job], routing=self._routing, seed=self._seed)
            on_wire = np.full(len(pairs), self._framing.on_wire(np.array([size]))[0] if self._framing else size)
            times = play(plan, on_wire).times
            sent, done = float(times.sent.max()), float(times.done.max())
            self._known[key] = self._exchanged(sent, link_bytes(plan, times), "message", done - sent)
        return self._known[key]

    def paces(self, active: Sequence[ExchangeCosts]) -> list[float]:
        """Paces of collectives that overlap, in collectives per second: max-min fair by the share of their links."""
        if len(active) < 2:
            return [1 / one.time if one.time else np.inf for one in active]
        counts = Counter(active)
        key = frozenset(counts.items())
        if key not in self._paces:
            shares = max_min([count.use for count in counts], list(counts.values()))
            self._paces[key] = {
                count: share / count.time if count.time else np.inf for share, count in zip(shares, counts, strict=True)
            }
        return [self._paces[key][one] for one in active]

    def _simulated(self, operation: str, size: float, groups: tuple[Group, ...]) -> ExchangeCosts:
        from commsim.prediction.plans.dense import Plan
        from commsim.prediction.read import scenario_of
        from commsim.prediction.solve import plan_of, solve

        if len(groups[0]) == 1:
            nothing = np.zeros(self.network.n_links)
            return ExchangeCosts(0.0, nothing, nothing, "none")
        if (operation, groups) not in self._plans:
            name = self._collective(operation)
            shared: dict[str, Any] = {"operation": operation, "seed": self._seed, "routing": self._routing}
            shared["hashes"] = self._hashes
            if self._framing is not None:
                shared["framing"] = self._framing
            if len(groups) == 1:
                where = Placement(self._nodes[list(groups[0])])
                scenario = scenario_of(name, self.network, n_ranks=len(groups[0]), placement=where, **shared)
            else:
                where = Placement(self._nodes)
                scenario = scenario_of(
                    name, self.network, groups=groups, n_ranks=len(self._nodes), placement=where, **shared
                )
            self._plans[operation, groups] = scenario, plan_of(scenario)
        scenario, plan = self._plans[operation, groups]
        if isinstance(plan, Plan):  # what is laid out for a size takes memory, and results are kept
            plan = dataclasses.replace(plan, _at={})
        results = solve(scenario, [0.0 if operation == "barrier" else max(size, 1.0)], plan=plan).results
        time = max(result.time for result in results)
        # one simulation of several groups has the bytes of each
        sent = np.sum([result.link_bytes for result in results], axis=0)
        # groups of NCCL's own plans may share a link for less time than all of their bytes need on it
        time = max(time, float((sent / self.network.bandwidth).max()))
        found = self._exchanged(time, sent, results[0].collective)
        seed = next((one.hashes.seed for one in results if one.hashes and one.hashes.seed is not None), self._seed)
        return dataclasses.replace(found, hashes=_slowest_group(results), seed=seed)

    def _exchanged(self, time: float, sent: NDArray[np.float64], collective: str, delay: float = 0.0) -> ExchangeCosts:
        capacity = self.network.bandwidth * time
        use = np.divide(sent, capacity, out=np.zeros_like(capacity), where=capacity > 0)
        return ExchangeCosts(time, sent, use, collective, delay, seed=self._seed)

    def _collective(self, operation: str) -> str:
        from commsim.prediction.collective_names import USUAL, usual_collective

        if operation in self._named:
            return self._named[operation]
        if operation not in USUAL:
            raise InputError(
                f"no algorithm for {operation}; known: {', '.join(sorted(USUAL))}; name one with --algorithm"
            )
        name, name_text = usual_collective(self.network, operation)
        if name_text and name_text not in self.notes:
            self.notes.append(name_text)
        return name


def _slowest_group(results: Sequence[Result]) -> OverHashes | None:
    """Return the ends of the time until all groups have ended, over hashes of routes."""
    drawn = [one.hashes for one in results if one.hashes is not None]
    if not drawn:
        return None
    return OverHashes(drawn[0].n, max(one.fastest for one in drawn), max(one.slowest for one in drawn))


def max_min(uses: Sequence[NDArray[np.float64]], counts: Sequence[int] | None = None) -> list[float]:
    """Max-min fair paces of flows that use shares of links, each at most 1.

    Parameters
    ----------
    uses : sequence of float64[n_links]
        Share of each link's capacity that a flow takes at pace 1.
    counts : sequence of int, optional
        Number of equal flows that each stands for; 1 by default.
    """
    table = np.array(uses)
    wanted = np.ones(len(table)) if counts is None else np.array(counts, np.float64)
    # links that carry all at pace 1 hold nothing back; these are most of a large network
    table = table[:, wanted @ table > 1]
    pace = np.zeros(len(table))
    free = np.ones(len(table), bool)
    left = np.ones(table.shape[1])
    while free.any():
        shares = wanted[free] @ table[free]
        room = np.divide(left, shares, out=np.full_like(left, np.inf), where=shares > 1e-12)
        step = min(float(room.min(initial=np.inf)), float(1 - pace[free].max()))
        pace[free] += step
        left -= step * shares
        full = left <= 1e-9
        stopped = free & ((pace >= 1 - 1e-12) | (table[:, full] > 1e-12).any(axis=1))
        if not stopped.any():
            break
        free &= ~stopped
    return [float(one) for one in pace]
