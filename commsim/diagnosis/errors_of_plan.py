"""Which errors the predictions of a plan have: those of the kind and number of machines that it is on."""

from __future__ import annotations

from collectives.nccl.launch import SIZE
from commsim.core.network_queries import units
from commsim.nccl.error_model import ErrorModel, error_model
from commsim.nccl.intervals import EVERY, RCCL, kind_of
from commsim.nccl.machine_links import has_islands
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.plans.dense import Plan


def errors_of_plan(plan: Plan) -> ErrorModel:
    """Return the distribution of measured over predicted times on healthy machines.

    Parameters
    ----------
    plan : Plan
        Plan of a collective. One of NCCL on a known network, all of whose GPUs NVLinks join, has the errors of that
        kind of machines and one of RCCL those of RCCL; any other has those of all kinds together. So have large calls
        that SHARP adds, of which there are too few tables.
    """
    n_machines = len(set(units(plan.network)[plan.placement.nodes[: plan.schedule.n_ranks]].tolist()))
    if not isinstance(plan, NcclPlan):
        return error_model(EVERY, n_machines)
    if plan.launch.rccl is not None:
        return error_model(RCCL, n_machines)
    site = plan.launch.known_site
    if site is None or has_islands(site.setting):
        return error_model(EVERY, n_machines)
    setting, largest = site.setting, plan.launch.parameters(SIZE)
    kind = kind_of(setting.n_ranks, setting.n_nodes, site.network, str(largest.get("algorithm", "")))
    return error_model(kind, setting.n_nodes)
