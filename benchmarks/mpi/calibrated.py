"""The machine that a program under mpiexec runs on, as a network."""

from __future__ import annotations

from commsim.core.network import Network
from commsim.real.calibrate import PASSES, Calibration
from commsim.real.transport import RankTransport


def calibrate(transport: RankTransport, passes: int = PASSES) -> Network:
    """Time single steps and describe the machine as a network; every rank calls this and gets the same.

    Parameters
    ----------
    transport : RankTransport
        Transport with at least 2 ranks.
    passes : int
        Times that all steps are timed.

    Returns
    -------
    Network
        One host per rank.
    """
    calibration = Calibration(transport)
    calibration.run(passes)
    return calibration.network()
