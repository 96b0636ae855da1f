"""Parameter servers on paper: how long n workers and k servers need, with every NIC alike, in exact fractions.

Volumes are fractions of the M bytes of gradients, and times are in units of M/B: seconds for M bytes through one NIC.
A NIC sends and receives at once; messages cost nothing but their bytes.

References
----------
Jiang et al., "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters"
(BytePS), OSDI 2020, section 4.1 and theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .errors import InputError


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
