"""What the interval beside a time of NCCL means, and the clusters that it is not known to hold for."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import fabric_oversubscription
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.nccl.intervals import TOLD

# Machines of 8 H100 outside clouds, by the names of their presets: no fact of a network tells whose machines they are.
_H100 = re.compile(r"\b[dh]gx-h100\b")
__all__ = ["no_interval", "of_intervals", "of_tables"]


def of_intervals(results: Sequence[Result]) -> list[Remark]:
    """Say what lies between the ends of the interval of a collective of NCCL."""
    of_tables = [r for r in results if r.interval is not None and r.collective.startswith("nccl_")]
    if not of_tables:
        return []
    wide = max(abs(end / one.time - 1) for one in of_tables for end in one.interval or () if one.time)
    told = "low to high: about 80 % of the times of operators left out of the fit lie between"
    return [Remark("interval", told, wide)]


def of_tables(network: Network, ranks: NDArray[np.integer], results: Sequence[Result]) -> list[Remark]:
    """Say which clusters the interval of the public tables of NCCL is not known to hold for.

    Parameters
    ----------
    network : Network
        Network of the ranks.
    ranks : int[n_ranks]
        Nodes of the ranks.
    results : sequence of Result
        Predictions of NCCL.
    """
    machines = np.unique(network.machine[ranks])
    if not any(one.interval is not None for one in results) or len(machines) < 2 or machines[0] < 0:
        return []
    told = []
    if _H100.search(network.name):
        missed = "low to high: two public logs of machines of 8 H100 outside clouds lie outside (docs/limits.md)"
        told.append(Remark("interval-missed", missed))
    if fabric_oversubscription(network) > 1 + 1e-9:
        told.append(Remark("interval-unknown", "low to high: no public table is of an oversubscribed fabric"))
    return told


def no_interval(kinds: Sequence[str]) -> list[Remark]:
    """Say that predictions of some kinds of machines have no interval, as :mod:`commsim.nccl.intervals` names them."""
    if not kinds:
        return []
    told = " or ".join(TOLD.get(kind, kind) for kind in kinds)
    return [Remark("no-interval", f"no interval: too few public tables are of {told}", needed=True)]
