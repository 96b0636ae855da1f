"""What the communicators of a running job should reach, from predictions at powers of two that are kept."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from commsim.core.cache import Cache
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.prediction.inputs import NetworkLike, network_of

from .communicators import Shape
from .expectation import ExpectedSize, expect
from .machines_asked import on_machines

# Networks of as many machines as communicators have that are kept.
MAX_NETWORKS = 4
__all__ = ["LiveExpectations"]


class _Question(NamedTuple):
    """A communicator's place, an operation, and the exponent of a size."""

    shape: Shape
    operation: str
    exponent: int


class LiveExpectations:
    """Expected bus bandwidths of a job's communicators.

    Parameters
    ----------
    network : str, Network or NetworkBuilder
        Machines on a fabric; or one machine, which is then joined into as many as a communicator has.
    false_alarms : float
        Share of healthy machines that are below the floor.
    collective : str, optional
        Library with its release. Default: what runs on the machines.
    """

    def __init__(self, network: NetworkLike, false_alarms: float, collective: str | None = None) -> None:
        self.network, self.false_alarms, self.collective = network, false_alarms, collective
        self._known: dict[_Question, ExpectedSize | str] = {}
        self._one = network_of(network)
        self._networks: Cache[Network] = Cache(MAX_NETWORKS)
        self.per_machine = _gpus_of_a_machine(self._one)

    def of(self, shape: Shape, operation: str, size: float) -> ExpectedSize | str:
        """Return what a communicator should reach, or why that is not known.

        Between powers of two, logarithms are interpolated.

        Parameters
        ----------
        shape : Shape
            Ranks and machines of the communicator.
        operation : str
            Name of the operation.
        size : float, bytes
            Size as nccl-tests counts it.
        """
        exponent = math.log2(size)
        below = math.floor(exponent)
        first = self._at(_Question(shape, operation, below))
        if isinstance(first, str) or exponent == below:
            return first
        second = self._at(_Question(shape, operation, below + 1))
        return second if isinstance(second, str) else _between(first, second, exponent - below, size)

    def _at(self, question: _Question) -> ExpectedSize | str:
        if question not in self._known:
            try:
                self._known[question] = self._predicted(question)
            except InputError as error:
                self._known[question] = str(error)
        return self._known[question]

    def _predicted(self, question: _Question) -> ExpectedSize:
        n_ranks, n_nodes = question.shape
        n_nodes = n_nodes or -(-n_ranks // self.per_machine)
        where = self._network(n_nodes)
        found = expect(
            where, [question.operation], [2.0**question.exponent], n_ranks=n_ranks, collective=self.collective,
            placement=_spread(where, n_ranks, n_nodes), false_alarms=self.false_alarms,
        )  # fmt: skip
        return found.sizes[0]

    def _network(self, n_nodes: int) -> Network:
        is_machine = set(self._one.machine.tolist()) == {0} and isinstance(self.network, str)
        if n_nodes == 1 or not is_machine:
            return self._one
        return self._networks.get(n_nodes, lambda: network_of(on_machines(self.network, n_nodes)))


def _gpus_of_a_machine(network: Network) -> int:
    """Return the GPUs of the first machine; 1 where the network has plain hosts."""
    machines = network.machine[network.endpoints]
    return int((machines == machines[0]).sum()) if machines[0] >= 0 else 1


def _spread(network: Network, n_ranks: int, n_nodes: int) -> list[int]:
    """Return the nodes of a communicator that has as many GPUs of each of so many machines, the first of each."""
    nodes = np.asarray(network.endpoints)
    has_machines = network.machine[nodes[0]] >= 0
    machines = network.machine[nodes] if has_machines else np.arange(len(nodes), dtype=np.int32)
    if n_ranks % n_nodes or len(np.unique(machines)) < n_nodes:
        has = len(np.unique(machines))
        raise InputError(f"{n_ranks} ranks on {n_nodes} machines: not as many on each, or the network has only {has}")
    own = [nodes[machines == one][: n_ranks // n_nodes] for one in np.unique(machines)[:n_nodes]]
    if min(map(len, own)) < n_ranks // n_nodes:
        raise InputError(f"{n_ranks} ranks on {n_nodes} machines of {min(map(len, own))} GPUs")
    return [int(node) for node in np.concatenate(own)]


def _between(first: ExpectedSize, second: ExpectedSize, part: float, size: float) -> ExpectedSize:
    """Return what is expected between two sizes: all numbers are interpolated in their logarithms."""
    time, busbw, low, high, floor = (
        a ** (1 - part) * b**part for a, b in zip(first[2:7], second[2:7], strict=True)
    )  # fmt: skip
    return ExpectedSize(first.operation, size, time, busbw, low, high, floor, first.how)
