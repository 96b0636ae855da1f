"""Inside a machine: gather the sum of its GPUs in one place, before it goes to the network, and spread the result.

Two ways of BytePS. Over NVLink every GPU sends to a root. Through PCIe switches, the GPUs below one switch
reduce-scatter among themselves, each copies its shard to the host's memory, and the CPU adds the switches' shards: so
the link between a switch and the CPU carries M in each direction where a ring over m GPUs carries 2(m-1)/m M.

References
----------
Jiang et al. (BytePS), OSDI 2020, section 4.2.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.program import Program

Groups = tuple[tuple[int, ...], ...]
Participants = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Roots:
    """One GPU of every machine receives what the others of its machine send.

    Parameters
    ----------
    machines : tuple of tuple of int
        Ranks of each machine.
    place : int
        Index of the root among a machine's ranks.
    """

    machines: Groups
    place: int

    @property
    def agents(self) -> Participants:
        """The participant of each machine that exchanges data with the others."""
        return np.array([machine[self.place] for machine in self.machines])

    def gather(self, p: Program, chunk: int, count: int) -> None:
        """Write the hop to the roots."""
        root, other = self._pairs()
        p.reduce(chunk, src=other, dst=root, count=count)

    def spread(self, p: Program, chunk: int, count: int) -> None:
        """Write the hop from the roots."""
        root, other = self._pairs()
        p.copy(chunk, src=root, dst=other, count=count, channel=1)

    def _pairs(self) -> tuple[Participants, Participants]:
        pairs = [(m[self.place], rank) for m in self.machines for rank in m if rank != m[self.place]]
        both = np.array(pairs, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]


@dataclass(frozen=True, slots=True, eq=False)
class Memories:
    """The host's memory of every machine, a helper, receives a shard of every GPU.

    Parameters
    ----------
    agents : int[n_machines]
        The helpers.
    switches : tuple of tuple of tuple of int
        Ranks below each PCIe switch of each machine.
    """

    agents: Participants
    switches: tuple[Groups, ...]

    @property
    def least_chunks(self) -> int:
        """Chunks that a gathered part must be a multiple of, so that every switch's GPUs have equal shards."""
        return math.lcm(*(len(group) for machine in self.switches for group in machine))

    def gather(self, p: Program, chunk: int, count: int) -> None:
        """Write a ring reduce-scatter below every switch, and every GPU's push of its shard."""
        for m, rank, following, place, _ in self._rings():
            for hop in range(m - 1):
                shard = (place - 1 - hop) % m * (count // m)
                p.reduce(chunk + shard, src=rank, dst=following, count=count // m)
        for m, rank, _, place, agent in self._rings():
            p.reduce(chunk + place * (count // m), src=rank, dst=agent, count=count // m)

    def spread(self, p: Program, chunk: int, count: int) -> None:
        """Write every GPU's pull of its shard, and a ring all-gather below every switch."""
        for m, rank, _, place, agent in self._rings():
            p.copy(chunk + place * (count // m), src=agent, dst=rank, count=count // m, channel=1)
        for m, rank, following, place, _ in self._rings():
            for hop in range(m - 1):
                p.copy(chunk + (place - hop) % m * (count // m), src=rank, dst=following, count=count // m, channel=1)

    def _rings(self) -> list[tuple[int, Participants, Participants, Participants, Participants]]:
        """By size of the rings: the size; then rank, next rank, place in the ring and helper of every member."""
        rings = [(agent, group) for agent, machine in zip(self.agents, self.switches, strict=True) for group in machine]
        by_size = []
        for m in sorted({len(group) for _, group in rings}):
            members = np.array([group for _, group in rings if len(group) == m])
            agent = np.repeat([a for a, group in rings if len(group) == m], m)
            place = np.broadcast_to(np.arange(m), members.shape).ravel()
            by_size.append((m, members.ravel(), np.roll(members, -1, axis=1).ravel(), place, agent))
        return by_size


def read_machines(name: str, n_ranks: int, machines: Groups) -> Groups:
    """Check that `machines` hold each rank once.

    Parameters
    ----------
    name : str
        Name of the collective.
    n_ranks : int
        Ranks.
    machines : tuple of tuple of int
        Ranks of each machine.

    Raises
    ------
    InputError
        If they do not.
    """
    machines = tuple(tuple(machine) for machine in machines)
    if sorted(itertools.chain.from_iterable(machines)) != list(range(n_ranks)) or not all(machines):
        raise InputError(f"{name}: machines must hold each rank 0..{n_ranks - 1} exactly once, and none be empty")
    return machines


def below_switches(name: str, machines: Groups, n_switches: int) -> tuple[Groups, ...]:
    """Deal the ranks of every machine to its PCIe switches, in runs as equal as they can be.

    Parameters
    ----------
    name : str
        Name of the collective.
    machines : tuple of tuple of int
        Ranks of each machine.
    n_switches : int
        PCIe switches of each machine.

    Raises
    ------
    InputError
        If a machine has fewer ranks than switches.
    """
    least = min(len(machine) for machine in machines)
    if n_switches > least:
        raise InputError(
            f"{name}: a machine with {least} ranks has 1..{least} PCIe switches, got n_switches={n_switches}"
        )
    return tuple(
        tuple(machine[i * len(machine) // n_switches : (i + 1) * len(machine) // n_switches] for i in range(n_switches))
        for machine in machines
    )
