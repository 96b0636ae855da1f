"""The rank on which a program's code runs: one for each thread, or one for the process."""

from __future__ import annotations

import os
import threading

from commsim.core.errors import BackendError

from .rank import Rank

NO_RANK = (
    "this thread is no rank of an emulation; a program that starts threads of its own that communicate "
    "needs commsim emulate --ranks-as processes"
)
FORKED = "this process was forked from a rank and is none itself: it cannot communicate"
_of_thread = threading.local()
_of_process: list[Rank] = []
_forked: list[Rank] = []  # rank from which this process was forked
__all__ = ["current_rank", "rank_or_none", "set_process_rank", "set_thread_rank"]


def rank_or_none() -> Rank | None:
    """Return the rank of the thread, or that of the process, or None."""
    rank: Rank | None = getattr(_of_thread, "rank", None)
    return rank if rank is not None or not _of_process else _of_process[0]


def current_rank() -> Rank:
    """Return the :class:`~commsim.emulation.rank.Rank` of the thread, or that of the process.

    Raises
    ------
    BackendError
        If this is neither, such as a thread that a rank started which is a thread itself.
    """
    if _of_process:  # first, since such a process has no rank that is a thread
        return _of_process[0]
    rank: Rank | None = getattr(_of_thread, "rank", None)
    if rank is None:
        raise BackendError(FORKED if _forked else NO_RANK)
    return rank


def set_thread_rank(rank: Rank) -> None:
    """Make this thread a rank."""
    _of_thread.rank = rank


def set_process_rank(rank: Rank) -> None:
    """Make this process a rank."""
    _of_process[:] = [rank]


def _forget_rank() -> None:
    """Make a process no rank that was forked from one."""
    rank = rank_or_none()
    if rank is not None:
        _forked.append(rank)
        _of_process.clear()
        _of_thread.rank = None


os.register_at_fork(after_in_child=_forget_rank)
