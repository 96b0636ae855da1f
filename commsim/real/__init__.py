"""For real: the same schedules executed by MPI and torch.distributed, beside the library's native collective."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "formats",
    "live",
    "nccl",
    "packets",
    "pages",
    "ranking",
    "sparse",
    "training",
)


def register(house: House) -> None:
    """Bring runs on this machine, and measurements."""
    house.services["plan of a library's choices"] = "commsim.real.plan_of_choices:plan_of_choices"
    house.doctor["real"] = "commsim.real.cli.this_machine:doctor_rows"
    house.commands(
        "commsim.real.cli.calibrate",
        calibrate="measure this machine under mpirun, and write the results as a network file",
    )
    house.commands(
        "commsim.real.cli.validate",
        validate="run schedules for real under mpirun, and compare with the prediction",
    )
    house.commands(
        "commsim.real.cli.testbed", testbed="build a network of namespaces on this machine, and run collectives in it"
    )
    house.commands(
        "commsim.real.cli.compare",
        compare="compare predicted with measured times, or two logs, by size; rank the causes of slow ones",
    )
    house.commands(
        "commsim.real.cli.fit", fit="fit latency, bandwidth and efficiency to measurements, with confidence intervals"
    )
