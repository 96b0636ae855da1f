"""The cheapest engine that is known to be close enough: what each costs, and what is known of its error."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("packets",)


def register(house: House) -> None:
    """Bring the choice of an engine."""
    house.engines["auto"] = "commsim.auto.auto_engine:AutoEngine"
