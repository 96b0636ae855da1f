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
    house.questions["ranking"] = "commsim.ranking.cli.operation:RANKING"
    house.questions["algorithms"] = "commsim.ranking.cli.operation:ALGORITHMS"
    house.renderings["bound"] = "commsim.ranking.cli.bounds_of_run:BOUND"
    house.services["ranking of collectives"] = "commsim.ranking.cli.bounds_of_run:ranked"
    house.services["bounds of collectives"] = "commsim.ranking.cli.of_topology:bounds_of_collectives"
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
    house.warmup(
        "synthesis",
        "synthesize --topology ring:n_hosts=4 --operation all_gather -b 1M -e 1M -o TMP/ring.npz",
        "synthesize --topology star:n_hosts=4 --operation all_reduce -b 1M -e 1M -o TMP/star.npz",
        "bound --topology star:n_hosts=8 --operation all_reduce -b 1M -e 1M",
    )
    house.warmup(
        "sparse data and advice",
        "advise --topology star:n_hosts=8 --ranks 4 --size 1MiB --density 0.01 --programmable --lossy",
        "run ep_dispatch --topology star:n_hosts=4 -b 1M -e 1M",
    )
