"""Schedules whose channels have weights."""

import numpy as np

from commsim.core.program import Program


def side_by_side(counts, weights):
    """One message from rank 0 to rank 1 on each channel."""
    program = Program(2, sum(counts))
    first = np.cumsum([0, *counts])[:-1]
    program.copy(first, src=0, dst=1, count=counts, channel=np.arange(len(counts)))
    return program.build(weights=weights)
