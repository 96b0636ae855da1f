"""What ``commsim run`` would say of the points of a sweep: what was derived, assumed, or is not counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from commsim.core.errors import CommsimError
from commsim.files.sweep_store import read_description

from .compute import Bench
from .config import Config, read_config
from .points import Point, points

# Points that are asked, one of each collective, and the ranks of the largest of them.
MAX_POINTS = 16
MAX_RANKS = 512
# Points that are looked at for them; those of a grid change the collective first or last.
MAX_LOOKED_AT = 20_000


def remarks_of(directory: str | Path) -> tuple[str, ...]:
    """Return the remarks of one point of each collective of a sweep, each once, with the number of the point.

    Parameters
    ----------
    directory : path
        Directory of its results.

    Raises
    ------
    InputError
        If it is no directory of a sweep.
    """
    try:
        config = read_config(read_description(directory)["config"])
        chosen = list(_one_of_each(config))
    except CommsimError:  # its files have gone, or its filters do not fit any more
        return ()
    bench, remarks = Bench(config.kinds), dict[str, int]()
    for point in chosen:
        try:
            for one in bench.remarks(point.seed, point.parameters):
                remarks.setdefault(one, point.order)
        except CommsimError:  # its row says why
            continue
    return tuple(f"point {order}: {one}" for one, order in remarks.items())


def _one_of_each(config: Config) -> Iterator[Point]:
    """Return the first small point of each collective."""
    known = set[object]()
    for looked_at, point in enumerate(points(config)):
        name = point.parameters.get("collective.name")
        if looked_at >= MAX_LOOKED_AT or len(known) >= MAX_POINTS:
            return
        if name is not None and name not in known and point.parameters.get("collective.ranks", 0) <= MAX_RANKS:
            known.add(name)
            yield point
