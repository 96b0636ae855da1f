"""Rankings of placements by a function, each a file here, or one of the user's that ``--rank-by FILE.py`` names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real

from commsim.core.errors import InputError, shorten, unknown_name
from commsim.core.files.own_files import resolve
from commsim.core.registry import Registry
from commsim.core.spec import is_own_file
from commsim.placement.candidate import PlacementCandidate
from commsim.placement.cluster import Cluster

RankingFunction = Callable[[PlacementCandidate, Cluster], float]

_RANKINGS: Registry[float] = Registry("placement ranking", "commsim.placement.rankings")


def placement_ranking(build: RankingFunction) -> RankingFunction:
    """Register a ranking under its function's name.

    Parameters
    ----------
    build : callable
        Given a candidate and the cluster, it returns a number: the candidate with the least one comes first.
    """
    _RANKINGS.add(build)
    return build


def load_ranking(text: str, known: Sequence[str]) -> RankingFunction | None:
    """Return the ranking of this name, or of a ``FILE.py`` or ``FILE.py:function``; None for one of the names known.

    Raises
    ------
    InputError
        If the text is neither, or the file cannot be read or registers no ranking; the function, if it raises or
        returns no finite number.
    """
    if text in known:
        return None
    if not is_own_file(text) and text not in _RANKINGS:
        raise unknown_name("ranking", text, (*known, *_RANKINGS), more="or a FILE.py")
    entry, arguments = resolve(_RANKINGS, text)
    if arguments:
        raise InputError(f"{text}: a placement ranking takes no arguments")

    def value(candidate: PlacementCandidate, cluster: Cluster) -> float:
        found: object = entry.build(candidate, cluster)
        try:
            number = math.nan if isinstance(found, bool) or not isinstance(found, Real) else float(found)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InputError(f"{text}: {entry.name} returns a finite number, got {shorten(repr(found))}")
        return number

    return value
