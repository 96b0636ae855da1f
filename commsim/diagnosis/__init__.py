"""What a cluster should reach: expected times with floors, and logs and running jobs held against them."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("nccl",)


def register(house: House) -> None:
    """Bring the errors of predictions."""
    house.services["errors of a plan"] = "commsim.diagnosis.errors_of_plan:errors_of_plan"
