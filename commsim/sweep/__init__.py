"""Sweeps: many points over any parameter, on any executor, resumable.

`commsim.sweep.run_sweep` runs one, `commsim.sweep.table.read_table` reads its results.
"""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "profiles",
    "ranking",
    "training",
)


def register(house: House) -> None:
    """Bring many points."""
    house.commands(
        "commsim.sweep.cli.sweep",
        sweep="vary any parameters over many points, and resume if interrupted; find the cheapest topology",
    )
