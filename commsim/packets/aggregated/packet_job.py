"""An all-reduce through aggregating switches, as the packet engine takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.core.value import Value, freeze
from commsim.packets.event_rows import PS
from commsim.packets.links.queues import Fabric
from commsim.routing.aggregation_tree import AggregationTree
from commsim.sparse.occupancy import Occupancy
from switch_model.slot_kernel import MAX_CHILDREN
from switch_model.system import System

RULES = ("seen_check", "continued_slots")
PFC_CLASSES = 8  # IEEE 802.1Qbb
MAX_ELEMENTS = 1 << 48


def priority_ranks(priorities: Sequence[int], fabric: Fabric) -> NDArray[np.int64]:
    """Return the places of jobs' priorities among all of a run: 0 goes first, and is the only one if all are equal."""
    levels, ranks = np.unique(np.array(priorities, np.int64), return_inverse=True)
    if fabric.class_weights and len(levels) != len(fabric.class_weights):
        raise InputError(
            f"one weight for each priority of the jobs, {', '.join(map(str, levels))}, got {len(fabric.class_weights)}"
        )
    if fabric.pause_at and len(levels) > PFC_CLASSES:
        raise InputError(f"pauses (PFC) know {PFC_CLASSES} priorities, and jobs have {len(levels)}; leave out --pause")
    return np.asarray(ranks.reshape(-1), np.int64)


def check_fan_in(system: System, widest: int) -> None:
    """Refuse an aggregator with more children than the system has bits for.

    Parameters
    ----------
    system : System
        System of the aggregator.
    widest : int
        Most children of any aggregator.

    Raises
    ------
    InputError
        If they are too many.
    """
    limit = min(system.max_fan_in, MAX_CHILDREN)
    if widest > limit:
        kind = "host" if system.hosts else "switch"
        more = "" if system.hosts else "; a network of several switches takes more workers"
        raise InputError(f"{system.name}: a {kind} aggregates at most {limit} children, got {widest}{more}")


@dataclass(frozen=True, slots=True, eq=False)
class BlockRounds(Value):
    """The rounds of all slots, which the occupancy determines.

    Each core has a contiguous share of the blocks and slots of its own. Block i of the share is in column
    ``i % slots``, and a slot goes down its column: first its first block, which every worker sends whatever is in it,
    then from each block to the next that some worker has. That is where the least of the workers' own next blocks, of
    which real packets carry the offsets, leads.

    Parameters
    ----------
    occupancy : Occupancy
        Non-zero blocks of each worker.
    n_slots, n_cores : int
        Slots of all cores together, and cores.

    Raises
    ------
    InputError
        If slots cannot be shared out equally.
    """

    occupancy: Occupancy
    n_slots: int
    n_cores: int = 1
    first: NDArray[np.int64] = field(init=False)
    block: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        if self.n_cores < 1 or self.n_slots < 1 or self.n_slots % self.n_cores:
            raise InputError(f"{self.n_slots} slots cannot be shared out among {self.n_cores} cores")
        column, row = self._places()
        sent = np.flatnonzero(self.occupancy.union().bitmap_of(0) | (row == 0))
        order = np.argsort(column[sent], kind="stable")
        first = np.concatenate(([0], np.cumsum(np.bincount(column[sent], minlength=self.n_slots))))
        object.__setattr__(self, "first", freeze(first, np.int64, name="first"))
        object.__setattr__(self, "block", freeze(sent[order], np.int32, name="block"))

    def __reduce__(self) -> tuple[type[BlockRounds], tuple[Occupancy, int, int]]:
        return type(self), (self.occupancy, self.n_slots, self.n_cores)

    def skipped(self) -> NDArray[np.int64]:
        """Return the blocks that no packet carries, because no worker has them."""
        is_sent = np.zeros(self.occupancy.n_blocks, np.bool_)
        is_sent[self.block] = True
        return np.flatnonzero(~is_sent)

    def sent(self, worker: int) -> tuple[int, int]:
        """Return how many packets with values, and how many without, a worker sends when none is lost."""
        _, row = self._places()
        full = int((self.occupancy.bitmap_of(worker) | (row == 0)).sum())
        return full, len(self.block) - full

    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the slot of each block, and its place in the column."""
        n_blocks, per_core = self.occupancy.n_blocks, self.n_slots // self.n_cores
        bounds = np.arange(self.n_cores + 1) * n_blocks // self.n_cores
        core = np.repeat(np.arange(self.n_cores), np.diff(bounds))
        index = np.arange(n_blocks) - bounds[core]
        return core * per_core + index % per_core, index // per_core


@dataclass(frozen=True, slots=True)
class AggregationJob:
    """One job: workers, sizes of tensors, the system and its switches.

    Parameters
    ----------
    system : System
        How packets look and slots are given out.
    workers : tuple of int
        Nodes of the network.
    n_elements : tuple of int
        Elements of each tensor; they are reduced one after the other.
    trees : tuple of AggregationTree
        Aggregation trees, as many as the system has.
    floats : bool
        Whether block exponents go one window ahead of the values.
    starts : tuple of float, s
        Time at which each worker begins; by default 0 for all.
    server_links : tuple of int
        Links from the root of the tree to the parameter server, when the system has one.
    without : frozenset of str
        Rules that are left out, to show what goes wrong then: some of `RULES`.
    rounds : BlockRounds, optional
        Only blocks that are not all zero are sent; by default all are.
    priority : int
        Priority of all its packets in queues, results too; the least goes first.
    """

    system: System
    workers: tuple[int, ...]
    n_elements: tuple[int, ...]
    trees: tuple[AggregationTree, ...]
    floats: bool = False
    starts: tuple[float, ...] = ()
    server_links: tuple[int, ...] = ()
    without: frozenset[str] = frozenset()
    rounds: BlockRounds | None = None
    priority: int = 0

    @property
    def tree_links(self) -> tuple[int, ...]:
        """Links on which workers and switches send upwards."""
        return tuple(k for tree in self.trees for path in (*tree.worker_up, *tree.up) for k in path)

    def __post_init__(self) -> None:
        system, n = self.system, len(self.workers)
        if n < 1:
            raise InputError(f"{system.name} takes at least 1 worker, got {n}")
        if not self.n_elements or min(self.n_elements) < 1:
            raise InputError(f"every tensor needs at least 1 element, got {self.n_elements}")
        if max(self.n_elements) > MAX_ELEMENTS:
            raise InputError(f"a tensor has at most 2^48 elements, got {max(self.n_elements)}")
        if len(self.trees) != system.n_trees:
            raise InputError(f"{system.name} has {system.n_trees} trees, got {len(self.trees)}")
        if self.starts and (len(self.starts) != n or not all(0 <= s < 1e6 for s in self.starts)):
            raise InputError(f"starts are one time of 0 s or more per worker, got {self.starts}")
        if system.server != bool(self.server_links):
            raise InputError(f"{system.name} {'needs' if system.server else 'has no'} parameter server")
        check_fan_in(system, max(max(tree.fan_in) for tree in self.trees))
        if not self.without <= set(RULES):
            raise InputError(f"unknown rules {sorted(self.without - set(RULES))}; known: {', '.join(RULES)}")
        if self.floats and system.quantizer != "block_exponent":
            raise InputError(f"{system.name} sends no exponents ahead")
        if self.rounds is not None:
            self._check_rounds(self.rounds)

    def _check_rounds(self, rounds: BlockRounds) -> None:
        system, data = self.system, rounds.occupancy
        if not system.hosts or system.versions != 2 or self.without & {"continued_slots"}:
            raise InputError(f"{system.name}: only omnireduce, with two versions of its slots, skips blocks of zeros")
        if (len(self.workers), self.n_elements) != (data.n_ranks, (data.n_elements,)):
            raise InputError(
                f"{len(self.workers)} workers with tensors of {self.n_elements} elements need an occupancy of them, "
                f"got one of {data.n_ranks} ranks with {data.n_elements} elements"
            )
        if (rounds.n_slots, data.block) != (system.window, system.elements):
            raise InputError(
                f"{system.name} has {system.window} slots for blocks of {system.elements} elements, got rounds of "
                f"{rounds.n_slots} slots for blocks of {data.block}"
            )

    @property
    def window(self) -> int:
        """Messages that a worker may have outstanding."""
        return self.system.window // self.system.packets_per_message

    def starts_ps(self) -> NDArray[np.int64]:
        """When each worker begins, ps."""
        return np.rint(np.asarray(self.starts or np.zeros(len(self.workers))) * PS).astype(np.int64)

    def result(
        self, engine: str, finished: NDArray[np.int64], link_bytes: NDArray[np.float64], counters: Mapping[str, float]
    ) -> Result:
        """Make the result of a run of this job.

        Parameters
        ----------
        engine : str
            Name of the engine that ran it.
        finished : int64[n_workers], ps
            Time at which each worker had its last result.
        link_bytes : float64[n_links]
            Bytes that each link carried.
        counters : mapping of str to float
            Those of the engine. Added are elements, elements per second and, where there is a server, `server_bytes`:
            what came to its host, headers and repeated packets included.
        """
        starts, end, host = self.starts_ps(), int(finished.max()), self.system.host_latency
        time_s, from_last = ((end - int(start)) / PS + host for start in (starts.min(), starts.max()))
        n_elements = sum(self.n_elements)
        numbers = {"elements": n_elements, "elements_per_s": n_elements / time_s, **counters}
        if self.server_links:
            numbers["server_bytes"] = link_bytes[self.server_links[-1]]
        return Result(
            self.system.name,
            "all_reduce",
            engine,
            len(self.workers),
            float(n_elements * self.system.element_bytes),
            time_s,
            from_last,
            link_bytes,
            float(link_bytes.sum()),
            counters={name: float(value) for name, value in numbers.items()},
        )

    def chunks(self) -> NDArray[np.int64]:
        """Packets of values of each tensor, the last ones of a message's worth may be absent."""
        return -(-np.asarray(self.n_elements) // self.system.elements)

    def messages(self) -> NDArray[np.int64]:
        """Messages of each tensor: of values, and before them one window of exponents when they go ahead."""
        values = -(-self.chunks() // self.system.packets_per_message)
        return np.asarray(values + np.minimum(values, self.window) * self.floats, np.int64)

    @property
    def n_bytes(self) -> float:
        """Bytes that all workers send when nothing is repeated, headers included."""
        return float(self.messages().sum()) * self.system.message_bytes * len(self.workers)

    def check(self, network: Network, loss: ArrayLike | None = None) -> None:
        """Raise unless every node exists and may do its part.

        Parameters
        ----------
        network : Network
            Network of the run.
        loss : float64[n_links] or float, optional
            Probability that a link loses a packet, in place of the network's own.

        Raises
        ------
        InputError
            If the system needs lossless links and these lose packets.
        """
        if self.system.lossless and np.any(network.loss if loss is None else loss):
            raise InputError(f"{self.system.name} needs links without loss, {network.name} loses packets")
