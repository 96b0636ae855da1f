"""How an emulated program fails: ranks that are deadlocked, call what does not fit together, or raise."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.errors import CommsimError
from commsim.core.operations import OPERATIONS

from .rank_calls import Collective, PendingCall
from .rank_clock import RankClock

__all__ = ["ProgramError", "RankError", "RankStopped", "deadlock", "interrupted", "require_alike"]


class ProgramError(CommsimError, RuntimeError):
    """The emulated program cannot go on: it is deadlocked, or ranks call what does not fit together."""


class RankStopped(BaseException):
    """Raised in a rank whose program is to end, because another one failed."""


class RankError(Exception):
    """A rank's program raised.

    Parameters
    ----------
    rank : int
        Which rank.
    error : BaseException
        What it raised.
    """

    def __init__(self, rank: int, error: BaseException) -> None:
        super().__init__(f"rank {rank}: {type(error).__name__}: {error}")
        self.rank, self.error = rank, error


def deadlock(clocks: Sequence[RankClock]) -> ProgramError:
    """Return the error that says what each rank waits for, ranks that wait for the same together."""
    return ProgramError(f"deadlock: nothing is under way, and all wait; {_doing(clocks)}")


def interrupted(clocks: Sequence[RankClock]) -> KeyboardInterrupt:
    """Return what Ctrl-C becomes: with what each rank waited for, or that it ran."""
    return KeyboardInterrupt(f"interrupted; {_doing(clocks)}")


def _doing(clocks: Sequence[RankClock]) -> str:
    """Say what each rank does, ranks that do the same together."""
    ranks_by_text: dict[str, list[int]] = {}
    for rank, clock in enumerate(clocks):
        open_ones = [str(op) for op in clock.waits or () if op.end is None]
        text = open_ones[0] if open_ones else "runs"
        text += f" and {len(open_ones) - 1} more" if len(open_ones) > 1 else ""
        ranks_by_text.setdefault("ended" if clock.has_ended else text, []).append(rank)
    last = ranks_by_text.pop("ended", None)
    lines = [f"{_ranks(ranks)}: {text}" for text, ranks in ranks_by_text.items()]
    return "; ".join([*lines, *([f"{_ranks(last)}: ended"] if last else [])])


def require_alike(first: Collective, call: Collective, rank: int, operations: Sequence[PendingCall | None]) -> None:
    """Raise if ranks of a group call different things."""
    if call is first or (call.operation, call.n_bytes, call.root) == (first.operation, first.n_bytes, first.root):
        return
    other = next((op.rank for op in operations if op is not None), rank)
    for name in ("operation", "n_bytes", "root"):
        ours, theirs = getattr(call, name), getattr(first, name)
        if ours != theirs and not (name == "root" and not OPERATIONS[call.operation].has_root) and not call.counts:
            raise ProgramError(
                f"rank {rank} calls {call.operation} with {name} {ours!r} where rank {other} calls {first.operation} "
                f"with {name} {theirs!r}{f' ({call.site})' if call.site else ''}"
            )


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"
