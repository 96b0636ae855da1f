"""Which algorithm is best for an operation on a network, and from which size on another one is."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives import COLLECTIVES

from ..core.errors import InputError
from ..core.frames import frame_of
from ..core.network import SWITCH, Network
from ..core.operations import operation as known_operation
from ..core.result import Result
from ..core.units import format_size
from . import Prepared, prepare
from .inputs import collective_entry, load_schedule
from .usual import runs_here

# Relative width of the interval of sizes in which a crossover is found.
TOLERANCE = 0.01
# Bytes below which the overhead of messages decides which algorithm is best.
SMALL = 65536
# Overhead of a message in rankings where neither the network nor the user gives one, in s. NCCL takes 1 us for the
# host's part of a message between machines (`netOverhead` of src/graph/tuning.cc, 2.30.7), 2 us on AMD's CPUs;
# LogGOPSim has 1.5 us, ATLAHS 0.2 us for GPUs. Without any, ways that send all messages at once are best at all sizes.
ASSUMED_OVERHEAD = 1e-6
# Times that differ by less are equal, and the name decides: they differ by rounding.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Crossover:
    """Up to size `low` one algorithm is best, and from `high` on another.

    Parameters
    ----------
    low, high : int, bytes
        Within ``TOLERANCE`` of each other, or neighbours.
    before, after : str
        The two algorithms.
    """

    low: int
    high: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """What :func:`rank_algorithms` found.

    Parameters
    ----------
    by_size : mapping of int to tuple of (str, Result)
        By size in bytes, the algorithms and their results, the fastest first.
    crossovers : tuple of Crossover
        In ascending order of sizes, between the smallest and the largest size.
    """

    by_size: Mapping[int, tuple[tuple[str, Result], ...]]
    crossovers: tuple[Crossover, ...]

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each algorithm and size, with its place, as a data frame of pandas or polars."""
        return frame_of(
            (
                {"size_B": size, "rank": place, "algorithm": name, "times_best": result.time / found[0][1].time}
                | {key: value for key, value in result.row().items() if key not in ("size_B", "counters")}
                for size, found in self.by_size.items()
                for place, (name, result) in enumerate(found, 1)
            ),
            library,
        )


def with_assumed_overhead(network: Network) -> Network:
    """Return the network with ``ASSUMED_OVERHEAD`` at its hosts; the same where it has overheads or measured curves."""
    if network.overhead.any() or network.recv_overhead.any() or network.curves is not None:
        return network
    return dataclasses.replace(network, overhead=np.where(network.kind == SWITCH, 0.0, ASSUMED_OVERHEAD))


def about_assumed(runnable: Mapping[str, Prepared]) -> list[str]:
    """Say in a ranking that the overhead of messages is assumed, and for what it is not."""
    packets = [name for name, prepared in runnable.items() if prepared.aggregation is not None]
    return [
        f"{ASSUMED_OVERHEAD * 1e6:.0f} us of overhead per message is assumed, since the network gives none: --overhead "
        "0us for none, commsim calibrate measures it"
        + (f"; not for packets of {', '.join(packets)}" if packets else "")
    ]


def without_overhead(network: Network, sizes: Sequence[float]) -> list[str]:
    """Say that small sizes are ranked without the overhead of messages, where they are and the network has none."""
    if network.overhead.any() or network.recv_overhead.any() or min(sizes, default=SMALL) >= SMALL:
        return []
    return [
        f"below {format_size(SMALL)} the overhead per message decides, and here it is zero: the ranking favours ways "
        "with many messages; --overhead 1us is usual, commsim calibrate measures it"
    ]


def priced_apart(runnable: Mapping[str, Prepared], size: float) -> list[str]:
    """Say which algorithms have the costs of a library's primitives beside others that have those of links alone."""
    priced = [name for name, prepared in runnable.items() if prepared.launch is not None and prepared.at(size).before]
    if not priced or len(priced) == len(runnable):
        return []
    return [
        f"{', '.join(priced)}: with the launch and the costs of GPU primitives; the others have those of links only"
    ]


def algorithms_for(operation: str, network: Network | None = None) -> list[str]:
    """Names of the registered collectives that implement an operation on dense data.

    Parameters
    ----------
    operation : str
        By name.
    network : Network, optional
        Where: then without those of a library for other GPUs than it has.

    Raises
    ------
    InputError
        If there is no such operation, or nothing implements it.
    """
    known_operation(operation)
    facts = {name: COLLECTIVES[name].metadata for name in COLLECTIVES}
    names = [name for name in facts if facts[name]["operation"] == operation and facts[name]["sparse"] is None]
    names = [name for name in names if network is None or runs_here(facts[name], name, network)]
    if not names:
        raise InputError(f"no collective implements {operation}")
    return names


def require_operation(spec: str, operation: str) -> None:
    """Refuse a collective of another operation.

    Raises
    ------
    InputError
        Naming what it implements, and what would have been right.
    """
    if spec.endswith(".npz"):
        implements = load_schedule(spec).operation
    else:
        implements = collective_entry(spec)[0].metadata["operation"]
    if implements != operation:
        raise InputError(f"{spec} implements {implements}, not {operation}")


def prepare_all(
    specs: Sequence[str],
    network: Network,
    *,
    n_ranks: int | None = None,
    probe: Callable[[Prepared], object] = lambda _: None,
    named: Collection[str] | None = None,
    assume_overhead: bool = False,
    **options: Any,
) -> tuple[dict[str, Prepared], dict[str, str]]:
    """Prepare every algorithm that can run on the network, all with the same number of ranks.

    Parameters
    ----------
    specs : sequence of str
        ``name:key=value,...`` or own files.
    network : Network
        Where.
    n_ranks : int, optional
        Default: one on every endpoint. Algorithms that need helpers on endpoints beside these are left out.
    probe : callable
        Called with each algorithm; one for which it raises ``InputError`` is left out too.
    named : collection of str, optional
        Those that were asked for by name, all unless given. For the others no switch is assumed to be programmable.
    assume_overhead : bool
        Whether messages cost ``ASSUMED_OVERHEAD`` where the network says nothing. Switches that aggregate get packets,
        whose costs are those of their system, so that nothing is assumed for these.
    **options
        The other parameters of :func:`commsim.run.prepare`.

    Returns
    -------
    dict of str to Prepared, dict of str to str
        What can run, and why the others cannot.

    Raises
    ------
    InputError
        If none can run.
    """
    n_ranks = len(network.endpoints) if n_ranks is None else n_ranks
    costly = with_assumed_overhead(network) if assume_overhead else network
    runnable: dict[str, Prepared] = {}
    left_out: dict[str, str] = {}
    for spec in specs:
        try:
            assume = named is None or spec in named
            prepared = prepare(spec, costly, n_ranks=n_ranks, assume_programmable=assume, **options)
            if costly is not network and prepared.aggregation is not None:
                prepared = prepare(spec, network, n_ranks=n_ranks, assume_programmable=assume, **options)
            probe(prepared)
            runnable[spec] = prepared
        except InputError as error:
            left_out[spec] = str(error)
    if not runnable:
        raise InputError("; ".join(dict.fromkeys(left_out.values())))
    return runnable, left_out


def rank_algorithms(names: Sequence[str], sizes: Sequence[int], predict: Callable[[str, int], Result]) -> Ranking:
    """Rank algorithms at every size, and find by bisection where the best one changes.

    Parameters
    ----------
    names : sequence of str
        The algorithms.
    sizes : sequence of int, bytes
        In ascending order.
    predict : callable
        From a name and a size to the result.

    Notes
    -----
    Between two sizes with the same best algorithm no crossover is looked for, so that one which is best in between
    only is missed.
    """
    known: dict[int, tuple[tuple[str, Result], ...]] = {}

    def ranked(size: int) -> tuple[tuple[str, Result], ...]:
        if size not in known:
            known[size] = _sorted([(name, predict(name, size)) for name in names])
        return known[size]

    crossovers: list[Crossover] = []
    for low, high in itertools.pairwise(sizes):
        crossovers += _between(low, high, lambda size: ranked(size)[0][0])
    return Ranking({size: ranked(size) for size in sizes}, tuple(crossovers))


def _sorted(results: list[tuple[str, Result]]) -> tuple[tuple[str, Result], ...]:
    """Sort by time; those within ``TIE`` of the fastest of them by name."""
    left = sorted(results, key=lambda item: (item[1].time, item[0]))
    out: list[tuple[str, Result]] = []
    while left:
        limit = left[0][1].time * (1 + TIE)
        equal = [item for item in left if item[1].time <= limit]
        out += sorted(equal, key=lambda item: item[0])
        left = left[len(equal) :]
    return tuple(out)


def _between(low: int, high: int, best: Callable[[int], str]) -> list[Crossover]:
    """Crossovers between two sizes, by halving the interval of their logarithms."""
    if best(low) == best(high):
        return []
    if high <= max(low * (1 + TOLERANCE), low + 1):
        return [Crossover(low, high, best(low), best(high))]
    middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
    return _between(low, middle, best) + _between(middle, high, best)
