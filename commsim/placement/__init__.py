"""Placement of jobs on a cluster: candidates, how they are ranked, and what jobs cost each other."""

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
    house.schemas["cluster.toml"] = "commsim.placement.cluster_schema:cluster_schema"
    house.schemas["place serve"] = "commsim.placement.cli.serve:service_schemas"
    house.services["placement strategies"] = "commsim.placement.strategies"
    house.commands(
        "commsim.placement.cli",
        place="rank placements of jobs on a cluster, with start and iteration times; answer schedulers over HTTP",
    )
    house.commands(
        "commsim.placement.cli.cluster",
        cluster="replay a trace of jobs under published schedulers, with or without CASSINI's time shifts",
    )
    house.warmup(
        "jobs and placement",
        "commsim.placement.cli.warmup_files:write_files",
        "place score --capacity 50Gbps TMP/placed.json",
        "place rank TMP/cluster.toml TMP/jobs.json",
        "cluster run TMP/cluster.toml --trace poisson:jobs=16,load=4,seed=1 --policy fifo,tiresias --compare",
        "commsim.placement.cli.warmup_files:rank_beside_known_jobs",
    )
