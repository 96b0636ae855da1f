"""Patterns of messages between hosts, and how a fabric carried them."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "pages",
)


def register(house: House) -> None:
    """Bring messages between hosts."""
    house.works["traffic"] = "commsim.traffic.host_traffic:TrafficWork"
    house.commands(
        "commsim.traffic.cli.traffic",
        traffic="simulate permutations and incasts over a fabric that sprays and trims packets (NSCC, RCCC, NDP)",
    )
    house.services["value Messages"] = "commsim.traffic.patterns:HostMessages"
