"""Training workloads: iterations of workers, queues of gradients, several jobs on one network."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "jobs",
    "packets",
    "placement",
    "ranking",
    "sparse",
)


def register(house: House) -> None:
    """Bring training iterations and steps."""
    house.commands(
        "commsim.training.cli",
        workload="predict training steps; read profiles of programs; measure the gradients of a torch module",
    )
    house.warmup("jobs and placement", "workload share TMP/cluster.toml TMP/placed.json")
