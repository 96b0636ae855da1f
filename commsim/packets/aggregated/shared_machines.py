"""What aggregation in switches costs where several ranks are in one machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.remark import Remark


def of_shared_machines(name: str, network: Network, ranks: NDArray[np.integer]) -> list[Remark]:
    """Say that ranks of one machine send their arrays to switches one by one, without a sum in the machine first.

    Parameters
    ----------
    name : str
        Name of the collective.
    network : Network
        Network of the ranks.
    ranks : int[n_ranks]
        Nodes of the ranks.
    """
    machine = network.machine[ranks]
    counts = np.unique(machine[machine >= 0], return_counts=True)[1]
    if len(counts) < 2 or counts.max() < 2:
        return []
    text = "each rank sends its whole array over its NIC, with no sum inside the machine first"
    nccl = "NCCL sums inside a machine first: `nccl` with MACHINE:sharp=on" if name.startswith("sharp") else ""
    return [Remark("ranks-of-machine", text, needed=True, details=nccl)]
