"""Placement of jobs and their start times: circles, link scores, time-shifts, candidates."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "live",
    "pages",
    "training",
)


def register(house: House) -> None:
    """Bring placement of jobs, and clusters."""
    house.services["placement strategies"] = "commsim.placement.strategies"
    house.commands(
        "commsim.placement.cli",
        place="rank placements of jobs on a cluster, with start and iteration times; answer schedulers over HTTP",
    )
    house.commands(
        "commsim.placement.cli.cluster",
        cluster="replay a trace of jobs under published schedulers, with or without CASSINI's time shifts",
    )
