"""The gain of further CPU servers of BytePS: by its theorem on equal links, and by simulation on this network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from collectives import COLLECTIVES
from collectives.servers.byteps import byteps_split
from commsim.core.network import Network
from commsim.prediction.build import prepare

from .candidates import coarser, count_machines, fitting, most_servers, spec_of
from .question import Question

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
        Time on this network by number of CPU machines.
    enough : int
        The fewest with which it is within ``GAIN`` of the fastest of these.
    n_machines : int
        GPU machines.
    theory : mapping of int to float
        Time of theorem 1 in units of S/B, the whole tensor through one NIC, for the same numbers.
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
        Question, as :meth:`.question.Question.on` returns it.
    network : Network
        Network that the workers are on.
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
                _time(spec_of("byteps", each), question, network) for each in coarser(entry, own, network)
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
    return prepared.run(question.size, question.wish).time
