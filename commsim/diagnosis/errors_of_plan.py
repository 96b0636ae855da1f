"""Which errors the predictions of a plan have: those of the kind of machines that it is on."""

from __future__ import annotations

from commsim.nccl.error_model import ErrorModel, error_model
from commsim.nccl.intervals import EVERY, RCCL, kind_of
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.plans.dense import Plan


def errors_of_plan(plan: Plan) -> ErrorModel:
    """Return the distribution of measured over predicted times on healthy machines.

    Parameters
    ----------
    plan : Plan
        Plan of a collective. One of NCCL on a known network has the errors of that kind of machines and one of RCCL
        those of RCCL; any other has those of all kinds together.
    """
    if not isinstance(plan, NcclPlan):
        return error_model(EVERY)
    if plan.launch.rccl is not None:
        return error_model(RCCL)
    site = plan.launch.known_site
    if site is None:
        return error_model(EVERY)
    return error_model(kind_of(site.setting.n_ranks, site.setting.n_nodes, site.network))
