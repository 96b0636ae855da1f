"""The packet engine: packets, queues, losses and retransmissions, in int64 picoseconds."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "sparse",
    "switch_model",
)


def register(house: House) -> None:
    """Bring packets, and what aggregates in switches."""
    house.planners["systems"] = "commsim.packets.aggregated.plan_aggregated:plan_aggregated"
