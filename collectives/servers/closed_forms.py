"""Parameter servers on paper: how long n workers and k servers need, with every NIC alike, in exact fractions.

Volumes are fractions of the M bytes of gradients, and times are in units of M/B: seconds for M bytes through one NIC.
A NIC sends and receives at once; messages cost nothing but their bytes.

References
----------
Jiang et al., "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters"
(BytePS), OSDI 2020, section 4.1 and theorem 1.

Poseidon's choice for fully connected layers: parameter servers, or factors that are broadcast among the workers.

Volumes count numbers (parameters) that one machine sends and receives together, per iteration. The layer has an M x N
matrix W; p1 machines are workers with a batch of K samples each, and p2 of the machines hold W in equal shards.

*Servers.* A worker pushes MN gradients and pulls MN parameters: 2MN. A server takes in its MN/p2 from each of p1
workers and sends as much back: 2 p1 MN/p2. On a machine that is both, what it exchanges with itself crosses no network:
as a worker it pushes and pulls the shards of the p2 - 1 others, 2MN(p2-1)/p2; as a server it serves the p1 - 1 other
workers, 2(p1-1)MN/p2. Together 2MN(p1 + p2 - 2)/p2.

*Sufficient factors.* The gradient of one sample is the outer product of the error (M numbers) and the input (N
numbers), so K samples are K(M + N) numbers, which everyone sends to the p1 - 1 others and takes from each of them:
2K(p1-1)(M + N). Every machine then has all gradients, and no server is needed.

*Adam's way* pushes factors and pulls matrices: a worker K(M+N) + MN, a server (here: of the whole layer) p1 times that.

So the rule that is handed down in notes about the paper follows from counting. It compares the busiest machines; it
counts a NIC's two directions together, as the paper does, which does not change the comparison, since both ways send as
much as they receive on such a machine. Adam's does not: its server takes in K(M+N) and sends MN.

References
----------
Zhang et al., "Poseidon: an efficient communication architecture for distributed deep learning on GPU clusters",
USENIX ATC 2017, section 3.2. Xie et al., "Distributed machine learning via sufficient factor broadcasting", UAI 2016.
Chilimbi et al., "Project Adam", OSDI 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from commsim.core.errors import InputError


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

    @property
    def gain_over_all_reduce(self) -> Fraction:
        """How much longer a ring takes: Q/n^2; 1 where nothing is sent."""
        return ring_time(self.n) / self.time if self.time else Fraction(1)

    @property
    def gain_over_dedicated(self) -> Fraction:
        """How much longer k servers alone take: Q/(2k(n-1)); 1 where nothing is sent."""
        return dedicated_time(self.n, self.k) / self.time if self.time else Fraction(1)


def byteps_split(n: int, k: int) -> BytePSSplit:
    """Split the gradients between n GPU machines and k CPU machines by BytePS's theorem 1.

    Raises
    ------
    InputError
        If there is no GPU machine, or there are more CPU machines than GPU machines: then the optimum is k = n, and
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


def ring_time(n: int) -> Fraction:
    """Time of an optimal all-reduce of n machines among themselves: 2(n-1)/n."""
    return Fraction(2 * (n - 1), n)


def dedicated_time(n: int, s: int) -> Fraction:
    """Time of n workers and s servers on hosts of their own: max(1, n/s), decided by a worker's or a server's NIC.

    Raises
    ------
    InputError
        If there is no server.
    """
    if s < 1:
        raise InputError(f"a parameter server needs n_servers of at least 1, got n_servers={s}")
    return max(Fraction(1), Fraction(n, s))


def colocated_time(n: int, s: int) -> Fraction:
    """Time of n workers, on s of which a server lives too: 1 + (n-2)/s, decided by the NIC that they share.

    Raises
    ------
    InputError
        If there is no server, or there are more than workers.
    """
    if not 1 <= s <= n:
        raise InputError(f"a colocated server lives on a worker's host: n_servers must be 1..{n}, got n_servers={s}")
    return 1 + Fraction(n - 2, s) if n > 1 else Fraction(0)


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """A fully connected layer, and the machines that train it.

    Parameters
    ----------
    m, n : int
        Rows and columns of its matrix.
    batch : int
        K, samples per worker.
    n_workers, n_servers : int
        p1 and p2.

    Raises
    ------
    InputError
        If one of them is not positive.
    """

    m: int
    n: int
    batch: int
    n_workers: int
    n_servers: int

    def __post_init__(self) -> None:
        for name in ("m", "n", "batch", "n_workers", "n_servers"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"a fully connected layer needs {name} of at least 1, got {name}={getattr(self, name)}"
                )

    @property
    def _matrix(self) -> int:
        return self.m * self.n

    @property
    def _factors(self) -> int:
        return self.batch * (self.m + self.n)

    @property
    def ps_worker(self) -> int:
        """Volume of a worker beside dedicated servers."""
        return 2 * self._matrix

    @property
    def ps_server(self) -> Fraction:
        """Volume of a dedicated server."""
        return Fraction(2 * self.n_workers * self._matrix, self.n_servers)

    @property
    def ps_colocated(self) -> Fraction:
        """Volume of a machine that is worker and server."""
        return Fraction(2 * self._matrix * (self.n_workers + self.n_servers - 2), self.n_servers)

    @property
    def broadcast(self) -> int:
        """Volume of a machine when factors are broadcast."""
        return 2 * (self.n_workers - 1) * self._factors

    @property
    def adam_worker(self) -> int:
        """Volume of a worker that pushes factors and pulls the matrix."""
        return self._factors + self._matrix

    @property
    def adam_server(self) -> int:
        """Volume of the server that holds the whole matrix then."""
        return self.n_workers * self.adam_worker

    @property
    def broadcasts(self) -> bool:
        """Whether Poseidon broadcasts factors; on a tie too."""
        return self.broadcast <= self.ps_colocated

    @property
    def largest_batch(self) -> Fraction:
        """Batch per worker up to which factors are broadcast.

        Raises
        ------
        InputError
            If there is one worker, which sends nothing either way.
        """
        if self.n_workers == 1:
            raise InputError("one worker broadcasts nothing, so no batch is too large; give n_workers of at least 2")
        return self.ps_colocated / (2 * (self.n_workers - 1) * (self.m + self.n))
