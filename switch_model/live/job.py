"""A job of the live switch, its workers, and what carries their packets."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Protocol


class Plane(Protocol):
    """What carries the packets: `DataPlane`, or another that keeps the same rule."""

    pool_size: int

    @property
    def job_numbers(self) -> Collection[int]:
        """Numbers of all jobs that have slots, those that stay included."""
        ...

    def open(
        self, job_number: int, peers: list[tuple[str, int]], first_slot: int, n_slots: int, begin: int = 0,
        key: bytes = b"",
    ) -> None:  # fmt: skip
        """Let a job's workers use slots; packet `begin` is its first, tags have this key."""
        ...

    def close(self, job_number: int) -> None:
        """Take them back."""
        ...

    def busy(self, job_number: int) -> list[dict[str, Any]]:
        """Return the slots that wait for contributions."""
        ...


@dataclass(slots=True)
class Member:
    """A worker of a job.

    Parameters
    ----------
    connection : int
        Its connection to the control server.
    rank : int
        Number of the worker in its job.
    peer : (str, int)
        Address that its packets come from.
    tensors, barriers : int
        Announced, and reached, so far.
    left : bool
        It has said that it is done.
    """

    connection: int
    rank: int
    peer: tuple[str, int]
    tensors: int = 0
    barriers: int = 0
    left: bool = False


@dataclass(slots=True)
class LiveJob:
    """A job whose workers have joined, or are still joining."""

    name: str
    number: int
    n_workers: int
    first_slot: int
    n_slots: int
    members: dict[int, Member] = field(default_factory=dict)
    n_agreed: int = 0  # tensors that all workers have announced
    announced: deque[tuple[int, str, int]] = field(default_factory=deque)  # later ones: elements, type, who was first

    @property
    def missing(self) -> list[int]:
        """Ranks that have not joined."""
        return [rank for rank in range(self.n_workers) if rank not in self.members]


def clash(job: LiveJob, n_workers: int, rank: int, wanted: int | None) -> str:
    """Return why a worker cannot join a job that others have begun to join."""
    if job.n_workers != n_workers:
        return f"job {job.name!r} has {job.n_workers} workers, not {n_workers}"
    if rank in job.members:
        return f"rank {rank} of job {job.name!r} has joined already"
    return f"job {job.name!r} has {job.n_slots} slots, not {wanted}"
