"""Sweeps: many points over any parameter, on any executor, resumable.

`commsim.sweep.run_sweep` runs one, `commsim.sweep.table.read_table` reads its results.
"""

from .run import Progress, run_sweep

__all__ = ["Progress", "run_sweep"]
