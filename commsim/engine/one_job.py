"""The result of one job that was alone on its network, in whichever way its times were found."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.result import Result, Trace
from commsim.core.schedule import Schedule

from .physics import SLACK, check_links


def one_job_result(
    network: Network,
    schedule: Schedule,
    size: float,
    *,
    entered: NDArray[np.float64],
    last: float,
    begin: float = 0.0,
    carried: tuple[NDArray[np.float64], float],
    counters: Mapping[str, float],
    trace: Trace | None = None,
) -> Result:
    """Check the links, and put the result together.

    Parameters
    ----------
    network : Network
        Where the job ran.
    schedule, size
        What ran, and on how many bytes.
    entered : float64[n_participants], s
        When each began.
    last, begin : float, s
        When the last transfer was complete, and before which none used a link.
    carried : (float64[n_links], float), bytes
        What each link carried, headers included, and the sum of all messages that used one.
    counters : mapping of str to float
        Beside the number of transfers.
    trace : Trace, optional
        Times of every transfer.

    Raises
    ------
    PhysicsError
        If a link carried more than it can: our bug.
    """
    per_link, on_wire = carried
    ranks = entered[: schedule.n_ranks]
    end = max(last, float(ranks.max()))
    check_links(network, per_link, end - begin, SLACK * (end - begin))
    return Result(
        schedule.name,
        schedule.operation,
        "flow",
        schedule.n_ranks,
        size,
        end - float(ranks.min()),
        end - float(ranks.max()),
        per_link,
        on_wire,
        counters={**counters, "transfers": float(schedule.n_transfers)},
        trace=trace,
    )
