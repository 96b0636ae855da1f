"""Passes of a calibration that are kept beside its file until it is done, so that one that was cut off goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_tree, write_json

from .calibrate import Calibration, machine_name

SUFFIX = ".passes.json"


class KeptPasses:
    """The file of the passes of one calibration, which rank 0 reads and writes.

    Parameters
    ----------
    calibration : Calibration
        Calibration; all ranks make one of this.
    path : path
        File that the calibration writes when it is done; its passes are in one of the same name and ``SUFFIX``.
    """

    def __init__(self, calibration: Calibration, path: str | Path) -> None:
        self.path = Path(f"{path}{SUFFIX}")
        self._calibration = calibration
        self._about = {"steps": calibration.mark_of_steps, "machine": machine_name(calibration.transport)}

    def go_on(self) -> int:
        """Take over the passes that are kept, on all ranks; return their number.

        It is 0 where they are of another machine or of other steps.

        Raises
        ------
        InputError
            On all ranks, if the file is there and damaged.
        """
        transport, n = self._calibration.transport, self._calibration.n_timed + 1
        mine = self._read(n) if transport.rank == 0 else np.zeros((0, n))
        about = np.array([0.0 if mine is None else len(mine), float(mine is None)])
        n_passes, is_damaged = (int(number) for number in transport.max_over_ranks(about))
        if is_damaged:
            raise InputError(
                f"{self.path}: passes must have {n - 1} times above 0 each; remove the file to measure anew"
            )
        if not n_passes:
            return 0
        rows = mine if mine is not None and len(mine) else np.zeros((n_passes, n))
        rows = transport.max_over_ranks(rows.ravel()).reshape(n_passes, n)
        self._calibration.take_passes(rows[:, 1:], rows[:, 0].tolist())
        return n_passes

    def write(self) -> None:
        """Write all passes so far."""
        if self._calibration.transport.rank == 0:
            rows = zip(self._calibration.busy, self._calibration.timed(), strict=True)
            passes = [{"busy": busy, "times_s": times.tolist()} for busy, times in rows]
            write_json(self.path, {"schema": 1, **self._about, "passes": passes})

    def remove(self) -> None:
        """Remove the file, whose passes are in the network that was written."""
        if self._calibration.transport.rank == 0:
            self.path.unlink(missing_ok=True)

    def _read(self, n: int) -> NDArray[np.float64] | None:
        """Return the part of the cores that others used, and the times, of each pass; None of a damaged file."""
        nothing = np.empty((0, n))
        if not self.path.exists():
            return nothing
        try:
            tree = read_tree(self.path)
            if {name: tree.get(name) for name in self._about} != self._about:
                return nothing
            rows = np.array([[row["busy"], *row["times_s"]] for row in tree["passes"]], np.float64)
        except (InputError, KeyError, TypeError, ValueError):
            return None
        if not len(rows):
            return nothing
        whole = rows.shape[1] == n and np.isfinite(rows).all() and (rows[:, 0] >= 0).all() and (rows[:, 1:] > 0).all()
        return rows if whole else None
