"""The time of NCCL's calls from its own rules and the measured costs of its primitives, as the closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectives.nccl.call import ALLOWED
from commsim.core.errors import InputError
from commsim.core.result import Result

if TYPE_CHECKING:
    from commsim.run.nccl_launch import NcclLaunch


def nccl_time(launch: NcclLaunch, name: str, size: float) -> Result:
    """Predict one call alone, as nccl-tests measures it.

    Parameters
    ----------
    launch : NcclLaunch
        The collective on placed ranks.
    name : str
        Of the collective.
    size : float, bytes
        Of the operation.

    Raises
    ------
    InputError
        If the costs of the GPUs' primitives or of the network are not known; names those that are.
    """
    from commsim.nccl.prediction import EXCHANGES, predict
    from commsim.nccl.site import site_of

    if launch.setting is None:
        raise InputError(f"{name}: NCCL's choice is not known here; use --engine flow")
    if launch.operation not in (*ALLOWED, *EXCHANGES):
        raise InputError(f"{name}: what unequal messages cost is not known; use --engine flow")
    site = site_of(launch.network, launch.placement, launch.setting)
    chosen = launch.parameters(size)
    found = predict(
        site, launch.operation, int(size), str(chosen.get("algorithm", "")), str(chosen.get("protocol", ""))
    )
    n = launch.setting.n_ranks
    return Result(
        name, launch.operation, "closed-form", n, size, found.seconds, found.seconds,
        interval=(found.low, found.high) if found.low < found.high else None,
    )  # fmt: skip
