"""Poseidon's choice for fully connected layers: parameter servers, or factors that are broadcast among the workers.

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

from .errors import InputError


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
