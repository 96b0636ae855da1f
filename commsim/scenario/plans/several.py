"""The results of work that is several collectives at once: groups, or jobs that share a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from commsim.core.result import Result

__all__ = ["Several"]


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """One result for each collective.

    Parameters
    ----------
    results : tuple of Result
        Results, in the order of the groups or jobs.
    details : object
        What sharing costs, where that is known.
    """

    results: tuple[Result, ...]
    details: Any = None
