"""Which algorithm and protocol RCCL takes over several machines, by its own estimate: ``rccl_choice.toml``.

As NCCL it expects of each algorithm with each protocol a latency and a rate, and takes the fastest; unlike NCCL it then
sets the protocol by the size alone. Trees have far less latency between machines with Simple than rings (25 for 320
us), so that they are taken up to large sizes; LL128 follows LL at about 1 MiB.

References
----------
RCCL 2.24, ``src/graph/tuning.cc`` (ncclTopoTuneModel) and ``src/rccl_wrap.cc`` (rcclUpdateCollectiveProtocol).
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commsim.nccl.expected_costs import NET_OVERHEAD_US
from commsim.nccl.nccl_setting import PROTOCOLS

PATH = Path(__file__).parent / "rccl_choice.toml"
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")
# Size of the first correction, bytes.
SMALLEST = 64
# Posts of a message of Simple by those of the others.
SIMPLE_POSTS = 3
# Times that LL128 is taken to larger arrays of an all-reduce on more than two machines.
LL128_ON_MORE = 3.8


@dataclass(frozen=True, slots=True)
class RcclTuning:
    """What RCCL expects of trees or of rings, by protocol in the order of ``PROTOCOLS``.

    Parameters
    ----------
    xgmi, net : sequence of float, s
        Latency of a hop inside a machine, and from one to another.
    two, more : sequence of float
        Share of the links' rate on two machines, and on more.
    corrections : sequence of sequence of float
        Factors of it from 64 B on, by powers of two; the last counts for all larger sizes.
    """

    xgmi: Sequence[float]
    net: Sequence[float]
    two: Sequence[float]
    more: Sequence[float]
    corrections: Sequence[Sequence[float]]

    def rate(self, p: int, size: float, rate: float, n_machines: int) -> float:
        """Return the bus bandwidth in bytes/s of a protocol at a size, where links have a rate."""
        row = self.corrections[p]
        step = max(0, (int(size) // SMALLEST).bit_length() - 1)
        share = (self.two if n_machines <= 2 else self.more)[p]
        return rate * share * row[min(step, len(row) - 1)]


@dataclass(frozen=True, slots=True)
class RcclChoice:
    """RCCL's estimates and limits of sizes for one generation.

    Parameters
    ----------
    start : sequence of float, s
        Latency of the smallest call besides its hops.
    tree, ring : RcclTuning
        What is expected of either.
    protocols : mapping of str to (int, int, int), bytes
        By operation: the most with LL, and above what and up to what LL128 is taken; the fastest where nothing is said.
    base : float, bytes/s
        Rate that RCCL takes a machine's links to have; 0 for that of the links.
    """

    start: Sequence[float]
    tree: RcclTuning
    ring: RcclTuning
    protocols: Mapping[str, tuple[int, int, int]]
    base: float = 0.0

    def cell(
        self, operation: str, size: float, n_ranks: int, n_machines: int, rate: float, cpu: str
    ) -> tuple[str, str]:  # fmt: skip
        """Return what an operation over several machines takes: ``tree`` or ``ring``, and the protocol.

        Parameters
        ----------
        operation : str
            One of ``OPERATIONS``; only an all-reduce has trees.
        size : float, bytes
            Size of the array.
        n_ranks, n_machines : int
            Ranks and their machines.
        rate : float, bytes/s
            Rate of a GPU's links to the others of its machine.
        cpu : str
            Vendor of the CPUs, whose posts RCCL takes to be longer on AMD's.
        """
        post, turns = NET_OVERHEAD_US[cpu] * 1e-6, 2 if operation == "all_reduce" else 1
        steps, crossing, rate = turns * (n_ranks - 1), turns * (n_machines - 1), self.base or rate
        per_machine, levels = n_ranks // n_machines, n_machines.bit_length() - 1
        times = []
        for p, protocol in enumerate(PROTOCOLS):
            bus = self.tree.rate(p, size, rate, n_machines)
            if not bus:
                continue
            if operation == "all_reduce":
                hops = 2 * ((per_machine - 1) * self.tree.xgmi[p] + levels * self.tree.net[p])
                times.append((self.start[p] + hops + size / (bus / 2), "tree", protocol))
            bus = self.ring.rate(p, size, rate, n_machines)
            inside = max(self.ring.xgmi[p], post * (SIMPLE_POSTS if protocol == "simple" else 1))
            hops = (steps - crossing) * inside + crossing * self.ring.net[p]
            times.append((self.start[p] + hops + size / (bus * n_ranks / steps), "ring", protocol))
        _, algorithm, protocol = min(times)
        return algorithm, self._limited(operation, size, n_ranks, n_machines) or protocol

    def _limited(self, operation: str, size: float, n_ranks: int, n_machines: int) -> str:
        """Protocol by the size alone; empty where there are no limits."""
        if operation not in self.protocols:
            return ""
        ll, above, up_to = self.protocols[operation]
        each = size if operation == "all_reduce" else size / n_ranks
        most = up_to * (LL128_ON_MORE if operation == "all_reduce" and n_machines > 2 else 1.0)
        if above < each <= most:
            return "ll128"
        return "ll" if each <= ll else "simple"


def _expected(table: Mapping[str, Any], corrections: Sequence[Sequence[float]]) -> RcclTuning:
    xgmi, net = (tuple(time * 1e-6 for time in table[name]) for name in ("xgmi_us", "net_us"))
    return RcclTuning(xgmi, net, tuple(table["two"]), tuple(table["more"]), tuple(map(tuple, corrections)))


def choice_of(gpu: str, per_machine: int = 0) -> RcclChoice | None:
    """Return the choice of a generation with so many GPUs in each machine; None where its estimates are not known."""
    return rccl_choices().get(f"{gpu}-{per_machine}") or rccl_choices().get(gpu)


@functools.cache
def rccl_choices() -> dict[str, RcclChoice]:
    """Return the choices by the names of ``rccl_choice.toml``."""
    tree = tomllib.loads(PATH.read_text(encoding="utf-8"))
    return {
        name: RcclChoice(
            tuple(time * 1e-6 for time in table["start_us"]),
            _expected(table["tree"], table["tree_corrections"]),
            _expected(table["ring"], table["ring_corrections"]),
            {operation: (row[0], row[1], row[2]) for operation, row in table.get("protocols", {}).items()},
            table.get("base_GBps", 0.0) * 1e9,
        )
        for name, table in tree.items()
    }
