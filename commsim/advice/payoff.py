"""Crossovers: the density above which dense collectives are faster, and the gain of further servers.

How many CPU servers BytePS can use: by its theorem on equal links, and by simulation on this network.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from collectives import COLLECTIVES
from collectives.servers.byteps import byteps_split
from commsim.core.network import Network
from commsim.run import Prepared, prepare
from commsim.run.ranking import TIE
from commsim.run.sparse_data import FLOAT, SparseData

from .candidates import coarser, count_machines, fitting, most_servers, spec_of
from .question import Question

# Relative width of the interval of densities in which sparse stops paying.
TOLERANCE = 0.03
# Blocks of all ranks that are drawn for each density that is tried.
MAX_BLOCKS = 2**28


@dataclass(frozen=True, slots=True)
class SparsePays:
    """Up to which density the best sparse way is faster than the best dense one.

    Parameters
    ----------
    low, high : float
        At `low` it still is, from `high` on it is not. 0 and the lowest density that can be drawn where it never is;
        the highest one, and infinity, where it always is.
    sparse, dense : str
        The sparse way that is faster longest (empty if none ever is), and the dense one.
    """

    low: float
    high: float
    sparse: str
    dense: str


def density_crossover(
    question: Question, ready: Mapping[str, Prepared], sparse: Iterable[str], dense: str, dense_time: float
) -> SparsePays:
    """Find by bisection of the density's logarithm up to where some sparse way is faster.

    Parameters
    ----------
    question : Question
        Whose data is drawn.
    ready : mapping of str to Prepared
        By spec.
    sparse : iterable of str
        Specs to try, the most promising first: the others are tried only where it is no longer faster.
    dense, dense_time : str, float (s)
        The best dense way, and its time.

    Notes
    -----
    A way that is slower at some density is taken to be slower at every higher one, since it sends no fewer bytes.
    """
    highest = 1 / question.n_workers if question.pattern == "disjoint" else 1.0

    def faster(spec: str, density: float) -> bool:
        return at_density(ready[spec], density).predict(question.size).time < dense_time * (1 - TIE)

    crossover = SparsePays(0.0, _lowest(question), "", dense)
    for spec in sparse:
        low, high = crossover.high, highest
        if not faster(spec, low):
            continue
        if faster(spec, highest):
            return SparsePays(highest, math.inf, spec, dense)
        while high > low * (1 + TOLERANCE):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if faster(spec, middle) else (low, middle)
        crossover = SparsePays(low, high, spec, dense)
    return crossover


def can_search(prepared: Prepared, question: Question) -> bool:
    """Whether data can be drawn again and again in little time for a sparse way that sums all values."""
    data = prepared.data
    if data is None or data.form.lossy or data.size is not None:
        return False
    return question.n_workers * question.size / FLOAT / min(data.block, question.run) <= MAX_BLOCKS


def at_density(prepared: Prepared, density: float) -> Prepared:
    """Return the same with data of another density; routes and dependencies do not change."""
    if prepared.data is None:
        return prepared
    data = SparseData(
        prepared.data.form, prepared.schedule, prepared.parameters, {**prepared.data.given, "density": density}
    )
    return dataclasses.replace(prepared, paths=prepared.paths.with_messages(data.messages), data=data)


def _lowest(question: Question) -> float:
    """Lowest density that leaves a run non-zero."""
    return 1 / math.ceil(question.size / FLOAT / question.run)


# A server more has to make it so much faster to count as a gain.
GAIN = 0.01
# With fewer, what BytePS's pipeline loses would hide what a server gains.
FEWEST_PARTITIONS = 32


@dataclass(frozen=True, slots=True)
class Servers:
    """BytePS with more and more CPU machines.

    Parameters
    ----------
    simulated : mapping of int to float, s
        By number of CPU machines, the time on this network.
    enough : int
        The fewest with which it is within ``GAIN`` of the fastest of these.
    n_machines : int
        GPU machines.
    theory : mapping of int to float
        For the same numbers, the time of theorem 1 in units of S/B: the whole tensor through one NIC.
    enough_in_theory : int
        The fewest that reach the shortest time of the theorem, however many hosts there are.
    """

    simulated: Mapping[int, float]
    enough: int
    n_machines: int
    theory: Mapping[int, float]
    enough_in_theory: int


def server_gains(question: Question, network: Network) -> Servers:
    """Simulate BytePS with every number of CPU machines that there are hosts for, or with powers of two of many.

    Parameters
    ----------
    question : Question
        As :meth:`.question.Question.on` returns it.
    network : Network
        Where.
    """
    entry = COLLECTIVES["byteps"]
    most = most_servers(entry, question, network)
    n = count_machines(entry, question, network)
    some = range(most + 1) if most <= 16 else sorted({0, *(2**i for i in range(most.bit_length())), most})
    simulated: dict[int, float] = {}
    for k in some:
        own = fitting(entry, {"n_servers": k}, question, network)
        if own is not None and own.get("n_partitions", FEWEST_PARTITIONS) >= FEWEST_PARTITIONS:
            simulated[k] = min(
                _time(spec_of("byteps", each), question, network)
                for each in coarser(entry, own, network, question.size)
            )
    best = min(simulated.values())
    enough = min(k for k, time in simulated.items() if time <= best * (1 + GAIN))
    theory = {k: float(byteps_split(n, k).time) for k in simulated}
    shortest = byteps_split(n, n).time
    return Servers(simulated, enough, n, theory, min(k for k in range(n + 1) if byteps_split(n, k).time == shortest))


def _time(spec: str, question: Question, network: Network) -> float:
    placement, routing = question.placement, question.routing
    prepared = prepare(
        spec, network, n_ranks=question.n_workers, placement=placement, routing=routing, seed=question.seed
    )
    return prepared.predict(question.size).time
