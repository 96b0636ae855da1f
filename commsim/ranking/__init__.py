"""Which algorithm is best, by how much, and how near any is to the bound."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "experts",
    "formats",
    "nccl",
    "packets",
    "real",
    "sparse",
)


def register(house: House) -> None:
    """Bring rankings, bounds and synthesis."""
    house.services["synthesized plan"] = "commsim.ranking.synthesis.ready:plan_synthesized"
    house.commands(
        "commsim.ranking.cli.advise",
        advise="rank all ways to all-reduce a tensor on a network: dense, sparse, with servers, in switches",
    )
    house.commands(
        "commsim.ranking.cli.bound",
        bound="print a lower bound on the time of any schedule, and each algorithm's distance from it",
    )
    house.commands(
        "commsim.ranking.cli.synthesize",
        synthesize="make the fastest schedule for a network, with a proven lower bound",
    )
