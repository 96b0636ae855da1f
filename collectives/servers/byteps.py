"""BytePS: GPU machines and spare CPU machines sum together, each as much as its NIC can carry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from collectives import MAX_CHUNKS, collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .local_reduction import Groups, Memories, Roots, below_switches, read_machines
from .parameter_server import PARTITIONS, count_partitions, push_and_pull

# Server (GPU machines first, then CPU machines), first unit, units and lane of every part of a partition.
Parts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class BytePSSplit:
    """Which part of the gradients is summed where when both kinds of machines are to be busy equally long.

    A GPU machine pushes all but its own part, and answers the pulls of the n - 1 others for that part: (1 - g) + (n-1)g
    of M leave it, and as much enters. A CPU machine receives its part c from n machines, and sends it to n. With
    k c + n g = 1, both take equally long when c = 2(n-1)/Q and g = (n-k)/Q, where Q = n^2 + kn - 2k.

    Parameters
    ----------
    n, k : int
        GPU machines, and CPU machines.
    per_cpu, per_gpu : Fraction
        c and g: what one CPU machine, and one GPU machine, sums.
    """

    n: int
    k: int
    per_cpu: Fraction
    per_gpu: Fraction

    @property
    def to_cpus(self) -> Fraction:
        """Part that all CPU machines sum together: the ratio of BytePS's mixed mode."""
        return self.k * self.per_cpu

    @property
    def gpu_time(self) -> Fraction:
        """Time that the NIC of a GPU machine is busy, in each direction."""
        return 1 + (self.n - 2) * self.per_gpu if self.n > 1 else Fraction(0)

    @property
    def cpu_time(self) -> Fraction:
        """Time that the NIC of a CPU machine is busy, in each direction; 0 without CPU machines."""
        return self.n * self.per_cpu if self.k else Fraction(0)

    @property
    def time(self) -> Fraction:
        """Time of the whole exchange, 2n(n-1)/Q."""
        return max(self.gpu_time, self.cpu_time)


def byteps_split(n: int, k: int) -> BytePSSplit:
    """Split the gradients between n GPU machines and k CPU machines by BytePS's theorem 1.

    Raises
    ------
    InputError
        Without a GPU machine, or with more CPU machines than GPU machines: then the optimum is k = n, and
        the other CPU machines have nothing to do.
    """
    if n < 1:
        raise InputError(f"byteps needs at least 1 GPU machine, got {n}")
    if k < 0:
        raise InputError(f"byteps needs n_servers of at least 0, got n_servers={k}")
    if k > n:
        raise InputError(
            f"byteps can use at most as many CPU machines as GPU machines: n_servers of 0..{n} fit {n} of these, "
            f"got n_servers={k}"
        )
    if n == 1:
        return BytePSSplit(1, k, Fraction(0), Fraction(1))
    q = n * n + k * n - 2 * k
    return BytePSSplit(n, k, Fraction(2 * (n - 1), q), Fraction(n - k, q))


def byteps_bounds(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_servers: int = 0,
    n_partitions: int | None = None,
    machines: Groups | None = None,
    roots: tuple[int, ...] = (0,),
    n_switches: int = 0,
) -> tuple[float, float]:
    """Bounds with one GPU per machine: what the busiest NIC needs, and what no message can exceed.

    Below: a NIC's messages and bytes, and L. Above: N parts share a NIC, so that each gets 1/N of it at least, and one
    of v bytes takes N (o + v/B) at most. A lane sends k of them in turn; each is added within gamma R bytes
    when R arrive at a server together; then the last one is pulled: (k+1) N (o + v/B) + 2L + k gamma R. Without costs
    per message the two differ by a part in k, and by how far the messages to CPU and GPU machines are from equal.

    Raises
    ------
    InputError
        If machines have several GPUs, or the counts do not fit.
    """
    if machines is not None or n_switches or roots != (0,):
        raise InputError("byteps has bounds for one GPU per machine only")
    split = byteps_split(n_ranks, n_servers)
    if n_ranks == 1:
        return 0.0, 0.0
    server, _, count, _ = _parts(n_ranks, n_servers)
    k = _partitions(n_servers > 0, n_partitions, int(count.sum()))
    unit = size / (int(count.sum()) * k)
    to_cpus = int((server >= n_ranks).sum())
    at_gpu, at_cpu = to_cpus + (2 * (n_ranks - 1) if n_servers < n_ranks else 0), n_ranks * to_cpus // max(1, n_servers)
    n_parts = max(at_gpu, at_cpu)
    low = max(
        at_gpu * k * link.o + float(split.gpu_time) * size / link.B,
        at_cpu * k * link.o + float(split.cpu_time) * size / link.B,
        link.gamma * size * float(max(split.cpu_time, (n_ranks - 1) * split.per_gpu)),
    )
    arriving = int(count.max()) * max(at_cpu, n_ranks - 1) * unit
    high = (k + 1) * n_parts * (link.o + int(count.max()) * unit / link.B) + k * link.gamma * arriving
    return low + link.L, high + 2 * link.L


@collective("all_reduce", bounds=byteps_bounds, needs=("machines", "memories"))
def byteps(
    n_ranks: int,
    n_servers: int = 0,
    n_partitions: int | None = None,
    machines: Groups | None = None,
    roots: tuple[int, ...] = (0,),
    n_switches: int = 0,
) -> Schedule:
    """BytePS of n GPU and k CPU machines: at least 2n(n-1)/(n^2 + kn - 2k) S/B seconds, (m+1)/m of it in m partitions.

    Parameters
    ----------
    n_ranks : int
        GPUs; n of them with one GPU per machine.
    n_servers : int
        k, CPU machines, at most n: helpers on hosts of their own. With 0 it sends what a ring sends, with n no GPU
        machine sums anything.
    n_partitions : int, optional
        Pieces that follow each other, so that one is pulled while the next is pushed. By default 64; 1 without CPU
        machines and with one GPU per machine, since pushing and pulling then keep every NIC busy anyway.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. By default every rank is its own machine;
        with other roots or with switches all are in one.
    roots : tuple of int
        Places in a machine of the GPUs that go to the network, each for an equal part, for all GPUs of the machine.
    n_switches : int
        PCIe switches in every machine; when given, the host's memory goes to the network in place of a GPU. The
        memories are the first helpers, one per machine.

    Returns
    -------
    Schedule
        Every partition is cut in exact proportion 2(n-1) to n-k for each CPU and each GPU machine. What goes to a CPU
        machine travels in several messages at once, so that it gets its share of a link on which messages are equal.

    Raises
    ------
    InputError
        If there are more CPU machines than GPU machines, machines are no partition of the ranks, or a root or a switch
        is one too many.

    References
    ----------
    Jiang et al., "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters",
    OSDI 2020, section 4 and theorem 1.
    """
    machines = _machines(n_ranks, roots, n_switches) if machines is None else read_machines("byteps", n_ranks, machines)
    byteps_split(len(machines), n_servers)  # raises where the counts do not fit
    local = _locally(n_ranks, machines, roots, n_switches)
    if n_ranks == 1:
        return Program(1, 1).build()
    server, first, count, lane = _parts(len(machines), n_servers)
    finer = math.lcm(*(way.least_chunks for way in local if isinstance(way, Memories)))
    n_units = int(count.sum()) * finer
    n_memories = len(machines) if n_switches else 0
    pipelined = n_servers > 0 or len(machines) < n_ranks
    k = _partitions(pipelined, n_partitions, n_units * len(local))
    p = Program(n_ranks, n_chunks=n_units * len(local) * k, n_helpers=n_memories + n_servers)
    cpus = n_ranks + n_memories + np.arange(n_servers)
    with p.repeat(k, chunk=n_units * len(local)):
        for part, way in enumerate(local):
            way.gather(p, part * n_units, n_units)
        for part, way in enumerate(local):
            at = np.concatenate((way.agents, cpus))[server]
            push_and_pull(p, way.agents, at, part * n_units + first * finer, count * finer, lane)
        for part, way in enumerate(local):
            way.spread(p, part * n_units, n_units)
    return p.build()


def _parts(n: int, k: int) -> Parts:
    """Cut a partition into parts: one for each GPU machine, and equal ones, none larger, for each CPU machine."""
    split = byteps_split(n, k)
    lanes = math.ceil(split.per_cpu / split.per_gpu) if split.per_gpu else 1
    each = split.per_cpu / max(1, lanes)
    whole = math.lcm(each.denominator if k else 1, split.per_gpu.denominator)
    at_cpus, at_gpus = k * lanes, n if split.per_gpu else 0
    server = np.concatenate((n + np.arange(at_cpus) // max(1, lanes), np.arange(at_gpus)))
    count = np.concatenate((np.full(at_cpus, int(each * whole)), np.full(at_gpus, int(split.per_gpu * whole))))
    lane = np.concatenate((np.arange(at_cpus) % max(1, lanes), np.zeros(at_gpus, np.int64)))
    return server, np.cumsum(count) - count, count, lane


def _partitions(pipelined: bool, n_partitions: int | None, chunks_each: int) -> int:
    """Check the number of partitions; choose it where it was not given, fewer when there would be too many chunks."""
    if n_partitions is None:
        n_partitions = max(1, min(PARTITIONS, MAX_CHUNKS // chunks_each)) if pipelined else 1
    return count_partitions("byteps", n_partitions, chunks_each)


def _machines(n_ranks: int, roots: tuple[int, ...], n_switches: int) -> Groups:
    """Every rank by itself; or all in one machine, where only a machine with several ranks has what was asked for."""
    if n_switches or roots != (0,):
        return (tuple(range(n_ranks)),)
    return tuple((rank,) for rank in range(n_ranks))


def _locally(n_ranks: int, machines: Groups, roots: tuple[int, ...], n_switches: int) -> list[Roots | Memories]:
    """Ways into and out of the machines: one for each root, or through the memories."""
    if n_switches < 0:
        raise InputError(f"byteps needs n_switches of at least 0, got n_switches={n_switches}")
    if n_switches:
        memories = n_ranks + np.arange(len(machines))
        return [Memories(memories, below_switches("byteps", machines, n_switches))]
    least = min(len(machine) for machine in machines)
    if not roots or len(set(roots)) != len(roots) or min(roots) < 0 or max(roots) >= least:
        raise InputError(f"byteps: roots must be different places 0..{least - 1} of a machine, got {roots}")
    return [Roots(machines, place) for place in roots]
