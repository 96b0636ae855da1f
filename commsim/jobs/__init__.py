"""Several jobs and background traffic on one network, in one run of the flow or the packet engine."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("packets",)


def register(house: House) -> None:
    """Bring several jobs, and groups."""
    house.questions["jobs"] = "commsim.jobs.cli.together:JOBS"
    house.questions["beside"] = "commsim.jobs.cli.beside_traffic:BESIDE"
    house.works["jobs"] = "commsim.jobs.several_jobs:JobsWork"
    house.works["groups"] = "commsim.jobs.groups:GroupsWork"
    house.services["value Composition"] = "commsim.jobs.job_entries:Composition"
