"""A user's program on a network that is not there: real data, and a clock that the flow engine moves.

Ranks run the user's program, as threads or processes. What a rank asks of the others is a :class:`~.rank_calls.Call`; a
:class:`~.coordinator.Coordinator` lets virtual time go on only while all ranks wait, to the next moment that frees one.

The interface that a library's stand-in builds on is :class:`~.rank.Rank`, the same in threads and in processes:

    rank.number, rank.n_ranks, rank.now()       world rank, world size, virtual seconds
    op = rank.post(Collective(...))             begins at the rank's time, and returns at once
    op = rank.post(Send(...) or Receive(...))
    rank.wait([op, ...])                        until all are complete; op.result has what the rank gets
    rank.wait([op, ...], every=False)           until one is
    rank.test([op, ...])                        whether all are, now
    rank.compute(seconds)                       lets the rank's own clock go on

:func:`~.emulate.emulate` starts the ranks, and returns a :class:`~.report.Emulation`.
"""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "jobs",
    "pages",
    "placement",
    "profiles",
    "real",
    "training",
)


def register(house: House) -> None:
    """Bring programs on an emulated network."""
    house.commands("commsim.emulation.cli.emulate", emulate="run an unmodified program on an emulated network")
    house.programs.add("emulate")
