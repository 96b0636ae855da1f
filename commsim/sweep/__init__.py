"""Sweeps: many points over any parameter, on any executor, resumable.

`commsim.sweep.run_sweep` runs one, `commsim.sweep.table.read_table` reads its results.
"""

from .run import SweepProgress, run_sweep

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "profiles",
    "ranking",
    "training",
)

__all__ = ["SweepProgress", "run_sweep"]
