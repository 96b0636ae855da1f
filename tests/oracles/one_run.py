"""A schedule executed once on one rank: what programs and tests compare with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.schedule import Schedule
from commsim.real.execute import Execution
from commsim.real.transport import RankTransport


def run_once(transport: RankTransport, schedule: Schedule, values: NDArray[Any]) -> NDArray[Any]:
    """Execute a schedule on this rank's input and return its output buffer.

    Parameters
    ----------
    transport : RankTransport
        Way to the other ranks, which call this too.
    schedule : Schedule
        What to execute.
    values : array[n_elements]
        Input of this rank; of a helper only its length counts.
    """
    execution = Execution(transport, schedule, len(values), str(np.asarray(values).dtype))
    execution.load(values)
    execution.run()
    transport.synchronize()
    return execution.result()
