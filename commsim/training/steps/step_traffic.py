"""Times of the collectives of a step: all groups of a kind at once on a network, as ``commsim run --groups`` has them.

So an uplink that several groups share, an oversubscribed leaf and a cable that is down cost a step what they cost these
collectives.
"""

from __future__ import annotations

import copy
import math
from collections import Counter

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import NIC, Network
from commsim.core.network_queries import fabric_switches
from commsim.core.placement import Placement
from commsim.core.remark import ASSUMED, Remark
from commsim.core.units import count_text
from commsim.prediction.collective_names import usual_collective
from commsim.prediction.read import scenario_of
from commsim.prediction.scenario import ENGINES, Scenario
from commsim.prediction.solve import plan_of, solve
from commsim.training.cost_by_simulation import MESSAGE, SEND
from commsim.training.hash_ends import MEDIAN, Times, seed_of_hash

from .parallel_sizes import Groups

# Groups that are simulated together at most, of those that are alike.
MAX_GROUPS = 64
# Bytes of one call: a larger exchange is equal calls one after the other. Programs exchange parameters and gradients in
# buckets that are smaller still (Megatron-LM: 40 M elements, or 1 M for each data parallel rank).
MAX_CALL = 4 * 2**30


class StepTraffic:
    """Seconds of collectives on a network, each simulated once.

    Parameters
    ----------
    network : Network
        Network, with its faults and costs of messages.
    placement : Placement
        Nodes of all ranks.
    seed : int
        Seed of ECMP's hash.
    engine : str
        Engine of :class:`commsim.prediction.scenario.Wish`.
    damaged : bool
        Whether cables failed or are slower, so that groups are not alike.
    hashes : int, optional
        Number of hashes of routes that are drawn where their times differ; a time is the median. Default: 8.
    """

    def __init__(
        self,
        network: Network,
        placement: Placement,
        seed: int = 0,
        engine: str = ENGINES[0],
        *,
        damaged: bool = False,
        hashes: int | None = None,
    ) -> None:
        self.cables = network  #: the same with the rates of its cables, where software has made its ports slower
        self.network, self._nodes, self._seed, self._engine = network, placement.nodes, seed, engine
        self._machine = network.machine[placement.nodes]
        self.nodes: tuple[int, ...] = tuple(placement.nodes.tolist())
        self._alone = int(fabric_switches(network).sum()) <= 1
        self._own_nics = int((network.kind == NIC).sum()) >= len(network.endpoints)
        self._damaged = damaged
        self._together: dict[Groups, Groups] = {}
        self._known: dict[tuple[str, Groups, float], tuple[Times, dict[int, float], int]] = {}
        self._hashes, self._which, self._drawn = hashes, MEDIAN, set[int]()
        self._notes = Counter[str]()  # number of groups for which each was assumed

    def time(self, operation: str, groups: Groups, size: float) -> float:
        """Return the time of the slowest group when all start together.

        Parameters
        ----------
        operation : str
            Collective operation, or ``send`` from the first to the second of each group.
        groups : tuple of tuple of int
            Ranks of each group.
        size : float, bytes
            Size of one group's operation, as nccl-tests counts it.

        Raises
        ------
        InputError
            If a rank has no place on the network.
        """
        return self._found(operation, groups, size)[0][self._which]

    @property
    def n_drawn(self) -> int:
        """Hashes of routes that were drawn for a collective whose times differ; 0 where none do so far."""
        return max(self._drawn, default=0)

    def at(self, which: int) -> StepTraffic:
        """Return the same times, as :meth:`commsim.training.cost_by_simulation.NetworkCosts.at`."""
        other = copy.copy(self)
        other._which = which
        return other

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What was assumed, once for all groups of which it was."""
        return tuple(
            Remark(ASSUMED, f"settings of NCCL assumed for {count_text(n, 'group')}", details=note)
            for note, n in self._notes.items()
        )

    def link_bytes(self, operation: str, groups: Groups, size: float) -> dict[int, float]:
        """Return the bytes of all groups together on each link that they use; of groups that are alike, of some.

        Parameters
        ----------
        operation, groups, size
            Same as in :meth:`time`.
        """
        return self._found(operation, groups, size)[1]

    def hash_seed(self, operation: str, groups: Groups, size: float) -> int:
        """Return the seed of the routes' hash to which the bytes on links belong.

        Parameters
        ----------
        operation, groups, size
            Same as in :meth:`time`.
        """
        return self._found(operation, groups, size)[2]

    def _found(self, operation: str, groups: Groups, size: float) -> tuple[Times, dict[int, float], int]:
        if not groups or len(groups[0]) < 2 or size <= 0:
            return (0.0, 0.0, 0.0), {}, self._seed
        highest = max(map(max, groups))
        if highest >= len(self._nodes):
            raise InputError(f"a step on {highest + 1} ranks needs as many GPUs, the network has {len(self._nodes)}")
        if groups not in self._together:
            self._together[groups] = self._at_once(groups)
        at_once, calls = self._together[groups], math.ceil(size / MAX_CALL)
        key = (operation, at_once, size / calls)
        if key not in self._known:
            self._known[key] = self._solve(*key)
        times, on_links, seed = self._known[key]
        if calls == 1:
            return times, on_links, seed
        one, fastest, slowest = times
        return (calls * one, calls * fastest, calls * slowest), {link: calls * n for link, n in on_links.items()}, seed

    def n_machines(self, group: tuple[int, ...]) -> int:
        """Machines that the ranks of a group are on; each rank is one where the network has no machines."""
        return len(np.unique(np.where(self._machine < 0, np.arange(len(self._machine)), self._machine)[list(group)]))

    def _at_once(self, groups: Groups) -> Groups:
        """Return the groups that are simulated together: all, unless others are like them and share nothing with them.

        Groups inside machines stand for those of other machines. Behind a single switch only groups on the first one's
        machines share a link with it, and not even these where every GPU has its NIC. On other networks the first so
        many are taken; all of them where cables failed, since then groups are not alike.
        """
        machine = [self._machine[list(group)] for group in groups]
        if min(map(np.min, machine)) < 0 or self._damaged:
            return groups
        if self._alone and self._own_nics:
            return groups[:1]
        near = [bool(np.isin(of, machine[0]).any()) for of in machine]
        if self._alone or all((of == of[0]).all() for of in machine):
            return tuple(group for group, of in zip(groups, near, strict=True) if of)
        order = sorted(range(len(groups)), key=lambda i: not near[i])
        return tuple(groups[i] for i in sorted(order[:MAX_GROUPS]))

    def _solve(self, operation: str, groups: Groups, size: float) -> tuple[Times, dict[int, float], int]:
        scenario = self._scenario(operation, groups)
        # A plan keeps the messages of each size, hundreds of MB of 512 ranks, and is made again in 15 ms: none is kept.
        solution = solve(scenario, [size], plan=plan_of(scenario))
        counts = Counter(note.details for note in solution.said if note.code == ASSUMED)
        self._notes |= {note: max(n, self._notes[note]) for note, n in counts.items()}
        n_bytes = np.sum([result.link_bytes for result in solution.results], axis=0)
        used = np.flatnonzero(n_bytes)
        on_links = dict(zip(used.tolist(), n_bytes[used].tolist(), strict=True))
        time = max(result.time for result in solution.results)
        drawn = [result.hashes for result in solution.results if result.hashes is not None]
        self._drawn |= {one.n for one in drawn}
        ends = (max(one.fastest for one in drawn), max(one.slowest for one in drawn)) if drawn else (time, time)
        seed = seed_of_hash(solution.results, self._seed)
        return (time, min(time, ends[0]), max(time, ends[1])), on_links, seed

    def _scenario(self, operation: str, groups: Groups) -> Scenario:
        sends = operation == SEND
        name = MESSAGE if sends else usual_collective(self.network, operation)[0]
        # a group by itself keeps its order: a message goes from its first to its second
        members = np.array(groups[0] if len(groups) == 1 else sorted({rank for group in groups for rank in group}))
        place = {int(rank): i for i, rank in enumerate(members)}
        several = [[place[rank] for rank in group] for group in groups] if len(groups) > 1 else []
        return scenario_of(
            name, self.network, operation="broadcast" if sends else operation,
            n_ranks=len(members), placement=Placement(self._nodes[members]), seed=self._seed, engine=self._engine,
            groups=several, hashes=self._hashes,
        )  # fmt: skip
