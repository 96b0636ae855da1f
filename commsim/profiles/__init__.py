"""Profiles of ranks as programs: computation, exchanges and waits, which other networks and more ranks change."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "pages",
    "training",
)


def register(house: House) -> None:
    """Bring profiles of programs."""
    house.commands("commsim.profiles.cli.workload_calls", workload="")
