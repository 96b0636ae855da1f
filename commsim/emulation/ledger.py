"""What the ranks of an emulation called: counts, bytes and times by call site, and on request every call."""

from __future__ import annotations

from dataclasses import dataclass, field

from .clock import Ticks, seconds_of
from .rank_calls import Collective, PendingCall, Receive, Send

__all__ = ["CallRecord", "Ledger", "SiteRow"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of one rank.

    Parameters
    ----------
    rank : int
        World rank.
    operation, algorithm, site : str
        What was called, the collective that ran (empty for messages), and where in the program.
    n_ranks : int
        Ranks of the group; 2 for a message.
    n_bytes : float, bytes
        Size of the operation, or of the message.
    start, end : float, s
        When the rank called, and when it was complete.
    """

    rank: int
    operation: str
    algorithm: str
    site: str
    n_ranks: int
    n_bytes: float
    start: float
    end: float


@dataclass(slots=True)
class SiteRow:
    """All calls of one site that are alike.

    Parameters
    ----------
    operation, algorithm, site : str
        As in :class:`CallRecord`.
    n_ranks, n_calls : int
        Ranks of the group, and calls of all ranks together.
    n_bytes : float, bytes
        Size of one call.
    ticks, exposed : int
        From each call until it was complete, and the part of it in which the rank waited for it; all ranks and calls
        together.
    """

    operation: str
    algorithm: str
    site: str
    n_ranks: int
    n_bytes: float
    n_calls: int = 0
    ticks: Ticks = 0
    exposed: Ticks = 0

    @property
    def seconds(self) -> float:
        """From call to completion, all calls together, s."""
        return seconds_of(self.ticks)

    @property
    def exposed_seconds(self) -> float:
        """Time in which ranks waited for it, all calls together, s."""
        return seconds_of(self.exposed)

    def columns(self) -> dict[str, object]:
        """Return it as a row for programs, with the mean time of a call."""
        return {
            "operation": self.operation, "site": self.site, "algorithm": self.algorithm, "n_ranks": self.n_ranks,
            "size_B": self.n_bytes, "calls": self.n_calls, "time_s": self.seconds / self.n_calls,
            "exposed_s": self.exposed_seconds / self.n_calls,
        }  # fmt: skip


@dataclass(slots=True)
class Ledger:
    """What was called.

    Parameters
    ----------
    keeps : bool
        Whether every call is kept.
    """

    keeps: bool = False
    rows: dict[tuple[str, str, str, int, float], SiteRow] = field(default_factory=dict)
    records: list[CallRecord] = field(default_factory=list)

    def add(self, operation: PendingCall, algorithm: str) -> None:
        """Add a call that is complete, with the collective that it ran; counts of unequal blocks are not kept."""
        if algorithm:
            algorithm = algorithm.partition(":counts=")[0].partition(",counts=")[0]
        call = operation.call
        if type(call) is Send:
            name, n_ranks, n_bytes = "send", 2, call.n_bytes
        elif isinstance(call, Collective):
            name, n_ranks, n_bytes = call.operation, len(call.members), call.n_bytes
        else:
            assert isinstance(call, Receive)
            if call.keep:
                return
            name, n_ranks, n_bytes = "receive", 2, 0.0 if operation.result is None else operation.result.n_bytes
        key = call.site, name, algorithm, n_ranks, n_bytes
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = SiteRow(name, algorithm, call.site, n_ranks, n_bytes)
        assert operation.end is not None
        row.n_calls += 1
        row.ticks += operation.end - operation.start
        operation.entry = row
        if self.keeps:
            self.records.append(
                CallRecord(
                    operation.rank, name, algorithm, call.site, n_ranks, n_bytes, seconds_of(operation.start),
                    seconds_of(operation.end),
                )
            )  # fmt: skip
