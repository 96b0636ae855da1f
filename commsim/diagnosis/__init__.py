"""What a cluster should reach: expected times with floors, and logs and running jobs held against them."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("formats", "live", "nccl", "pages", "profiles", "real")


def register(house: House) -> None:
    """Bring what is expected, the errors of predictions, and the causes of slow times."""
    house.commands(
        "commsim.diagnosis.cli.expect",
        expect="print what machines should reach at each size, and the bus bandwidth below which they are not healthy",
    )
    house.commands(
        "commsim.diagnosis.cli.watch",
        watch="compare a running job's records (NCCL's inspector, flight recorder) with what its machines should reach",
    )
    house.services["causes of slow times"] = "commsim.diagnosis.causes.answer:diagnose"
    house.services["errors of a plan"] = "commsim.diagnosis.errors_of_plan:errors_of_plan"
