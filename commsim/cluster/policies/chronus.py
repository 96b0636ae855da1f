"""Chronus: deadlines first, as long as they can be met; the rest as fast as possible."""

from __future__ import annotations

from ..policy import Grant, View, fill, policy
from ..state import JobState


@policy(interval=300.0, paper="Gao et al., SoCC 2021; earliest deadline first instead of its integer program")
def chronus(view: View) -> list[Grant]:
    """Jobs that can still meet their deadline, earliest first; then the shortest of the others."""
    return fill(view, sorted(view.states, key=lambda state: _rank(view, state)))[0]


def _rank(view: View, state: JobState) -> tuple[bool, float]:
    deadline, remaining = state.job.deadline, view.remaining(state)
    hopeful = deadline is not None and view.now + remaining <= deadline
    return not hopeful, deadline if hopeful and deadline is not None else remaining
