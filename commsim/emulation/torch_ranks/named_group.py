"""What the process groups of torch have in common here: their names, and the ranks of their members."""

from __future__ import annotations

from torch import distributed

NAME = "commsim"
__all__ = ["NAME", "NamedGroup"]


class NamedGroup(distributed.ProcessGroup):  # type: ignore[misc,unused-ignore]
    """A process group that torch knows by name.

    Parameters
    ----------
    rank, size : int
        Rank in the group, and its size.
    """

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._own, self._n = rank, size

    def getBackendName(self) -> str:  # noqa: N802 - the interface of torch
        """Name of the backend."""
        return NAME

    @property
    def pg_name(self) -> str:
        """Name under which torch knows the group."""
        return str(distributed.distributed_c10d._world.pg_names[self])

    @property
    def group_name(self) -> str:
        """Name under which functional collectives find the group."""
        return self.pg_name

    def _members(self) -> tuple[int, ...]:
        """Ranks of the members in the world; all of it, until torch has registered the group."""
        known = distributed.distributed_c10d._world.pg_group_ranks
        return tuple(known[self]) if self in known else tuple(range(self._n))
