"""The closed form of NCCL's calls by itself: refused where a link needs longer than it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.result import Result
from commsim.engine.ways.closed_form_proof import carried
from commsim.engine.ways.closed_form_way import ClosedFormPaths

if TYPE_CHECKING:
    from commsim.nccl.plans.plan_nccl import NcclPlan


def nccl_time(here: NcclPlan, size: float) -> Result:
    """Predict a single call, as nccl-tests measures it.

    Parameters
    ----------
    here : NcclPlan
        What NCCL launches for the size.
    size : float, bytes
        Size of the operation.

    Raises
    ------
    InputError
        If the costs of the GPUs' primitives or of the network are not known, or a link alone needs longer.
    """
    name, launch, paths = here.schedule.name, here.launch, here.paths
    if not isinstance(paths, ClosedFormPaths):
        raise InputError(f"{name}: {launch.why_links_only(size, here.parameters)}; use engine flow")
    network, known = paths.network, paths.known
    time = known.seconds + here.before
    on_links, on_wire = carried(network, paths.job, paths.proof, size, known.framing)
    needs = on_links / network.bandwidth
    if needs.max(initial=0.0) > time:
        worst = int(needs.argmax())
        raise InputError(
            f"{name}: the closed form does not model the fabric: it gives {time * 1e6:.1f} us, but link "
            f"{network.link_name(worst)} alone needs {needs[worst] * 1e6:.1f} us; use engine flow"
        )
    low, high = here.spread
    return Result(
        name, launch.operation, "closed-form", here.schedule.n_ranks, size, time, time, on_links, on_wire,
        interval=(time * low, time * high) if low < high else None,
    )  # fmt: skip
