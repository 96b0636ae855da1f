"""Faults that cost nothing, since no message crosses what is slower or failed; and those that take ranks along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.prediction.scenario import Scenario
from commsim.prediction.work_plan import WorkPlan
from commsim.routing.routing import is_hashed

__all__ = ["of_unused_faults"]


def of_unused_faults(
    scenario: Scenario,
    plans: Mapping[str, WorkPlan],
    results: Mapping[str, Sequence[Result]],
    whole: Mapping[str, WorkPlan | None],
) -> list[Remark]:
    """Name the collectives that a fault costs nothing, since none of their messages crosses what is slower or failed.

    Where hosts or GPUs fail, the numbers of ranks of both times are said.

    Parameters
    ----------
    scenario : Scenario
        Network with its faults.
    plans, results : mapping of str to WorkPlan, and to sequence of Result
        Plans and predictions, by name of the collective.
    whole : mapping of str to WorkPlan
        Plans on the network without its faults, as far as they are known.
    """
    hashed = is_hashed(scenario.routing or scenario.network.routing) and not scenario.wish.sprays
    several = any(fault.hashes is not None for some in results.values() for fault in some)
    draw = f"with the hash of {'the median draw' if several else 'this --seed'}, " if hashed else ""
    missed = {
        "crosses a slower link": [
            name for name, some in results.items() if _misses_slower(scenario, plans[name], some)
        ],
        "would cross a link that failed": [
            name for name, some in results.items() if _misses_failed(scenario, whole.get(name), some)
        ],
    }  # fmt: skip
    texts = {what: f"{draw}no message {what}: {', '.join(names)}" for what, names in missed.items() if names}
    ranks = {
        f"whole(us): of the same size on {plan.schedules[0].n_ranks} ranks, of which {some[0].n_ranks} are left"
        for plan, some in ((whole.get(name), some) for name, some in results.items())
        if scenario.is_left and plan is not None and some and some[0].whole is not None
    }
    left = [Remark("ranks-left", text, needed=True) for text in ranks]
    return [*left, *(Remark("fault-unused", text, needed=True) for text in texts.values())]


def _misses_slower(scenario: Scenario, plan: WorkPlan, results: Sequence[Result]) -> bool:
    """Whether slower links carried nothing; an engine without links is taken to use those of its schedule's routes."""
    slower = list(scenario.slower)
    if not slower:
        return False
    if all(result.link_bytes.size for result in results):
        return not any(result.link_bytes[slower].any() for result in results)
    used = plan.links_used({result.size for result in results}, None)
    return used is not None and not used[slower].any()


def _misses_failed(scenario: Scenario, whole: WorkPlan | None, results: Sequence[Result]) -> bool:
    """Whether routes on the network without its failures avoid what failed."""
    if whole is None or not scenario.failed:
        return False
    try:
        used = whole.links_used({result.size for result in results}, "spray" if scenario.wish.sprays else None)
    except InputError:  # messages that are pinned to a link may not have it there
        return False
    return used is not None and not used[list(scenario.failed)].any()
