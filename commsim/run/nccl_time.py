"""The time of NCCL's calls from its own rules and the measured costs of its primitives, as the closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collectives.nccl.call import ALLOWED
from commsim.core.errors import InputError
from commsim.core.result import Result
from commsim.core.units import format_size

if TYPE_CHECKING:
    from commsim.run.nccl_launch import NcclLaunch
    from commsim.run.prepared import Prepared

# Part by which an engine may differ from the closed form without a word.
AGREES = 0.1


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


def against_closed_form(prepared: Prepared, results: Sequence[Result]) -> list[str]:
    """Say where an engine that sends NCCL's messages differs from the closed form by more than ``AGREES``, and why.

    Parameters
    ----------
    prepared : Prepared
        The collective.
    results : sequence of Result
        Of one engine.
    """
    launch: NcclLaunch | None = getattr(prepared, "launch", None)  # a compressor's has none
    if launch is None or not launch.is_known or not results or results[0].engine == "closed-form":
        return []
    try:
        times = {r.size: nccl_time(launch, r.collective, r.size).time for r in results}
    except InputError:
        return []
    size, ratio = max(((r.size, r.time / times[r.size]) for r in results), key=lambda found: abs(found[1] - 1))
    if abs(ratio - 1) <= AGREES:
        return []
    cause = "channels that fill a link together do not wait for each other here"
    if results[0].engine == "packet":
        cause = "packets have the rates of links, and no channel's; " + cause
    return [
        f"{results[0].collective}: {ratio:.2g} times the closed form's {times[size] * 1e6:.1f} us at "
        f"{format_size(int(size))}: {cause}"
    ]
