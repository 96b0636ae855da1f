"""The step of a profiled program as a point of a sweep: on a network, with more ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.profiles.graph_of_ranks import TracedGraph
    from commsim.training.task_graph import Task


def files_of(pattern: str) -> list[Path]:
    """Return the files that a pattern such as ``traces/rank*.json`` names, in order."""
    path = Path(pattern)
    try:
        return sorted(path.parent.glob(path.name)) if path.name else []
    except (OSError, ValueError):
        return []


class ProfiledStep:
    """Reads a profile once, as long as it and the ranks stay the same."""

    def __init__(self) -> None:
        self._read: tuple[Any, Any] | None = None
        self._whole: tuple[Any, tuple[TracedGraph, list[str]]] | None = None

    def whole(self, own: Mapping[str, Any]) -> tuple[TracedGraph, list[str]]:
        """Return the step of all ranks, and what was assumed.

        Parameters
        ----------
        own : mapping of str to value
            Keys of ``[workload]``: profile (a file, or a pattern of several), ranks, grow, kernels.

        Raises
        ------
        InputError
            If no file has the name, or the profile cannot be read.
        """
        from commsim.profiles.read_ranks import traced_graph
        from commsim.profiles.retime import more_ranks

        key = (own["profile"], own.get("kernels"))
        if self._read is None or self._read[0] != key:
            files = files_of(own["profile"])
            if not files:
                raise InputError(f"workload.profile: no file has the name {own['profile']!r}")
            notes: list[str] = []
            self._read = key, (*traced_graph(files, own.get("kernels"), (), None, notes), notes)
        grown = (key, own.get("ranks"), own.get("grow"))
        if self._whole is None or self._whole[0] != grown:
            traced, steps, notes = self._read[1]
            whole, remarks = more_ranks(
                traced, steps, own.get("ranks"), own["grow"].split(",") if "grow" in own else ()
            )
            self._whole = grown, (whole, [*notes, *remarks])
        return self._whole[1]

    def row(self, whole: TracedGraph, costs: Callable[[Task], float], notes: Sequence[str]) -> dict[str, Any]:
        """Compute one point; its columns are those of ``commsim workload calls --network``."""
        from commsim.profiles.retime import retime

        retimed = retime(whole, costs, notes)
        time, waits = retimed.timeline.iteration_time, retimed.waits
        return {
            "n_ranks": whole.world,
            "iteration_s": time,
            "exposed_comm_s": waits.exposed,
            "compute_s": waits.compute,
            "scaling": (time - waits.exposed) / time if time else 1.0,
            "remarks": [note.tree() for note in retimed.notes],
        }
