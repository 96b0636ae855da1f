"""The lower bound of an exchange of experts with a given routing, and what both ways of sending are above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.spec import split_spec
from commsim.core.units import format_size
from commsim.experts.plan_experts import ExpertPlan
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import plan_of

from .bound import lower_bound

MODES = ("normal", "low_latency")


@dataclass(frozen=True, slots=True)
class BoundOfRouting:
    """A bound, and times on links alone.

    Parameters
    ----------
    operation : str
        ``ep_dispatch`` or ``ep_combine``.
    size : float, bytes
        Bytes of the copies of the rank that sends or receives most, each token once for a rank.
    bound : float, s
        Lower bound on the time of any schedule that gets every token to the ranks of its experts, or sums back.
    why : str
        What limits it.
    times : dict of str to float, s
        Time of each mode, on links alone.
    messages : dict of str to int
        Messages of each mode.
    notes : tuple of Remark
        What was not tried, assumed or derived.
    """

    operation: str
    size: float
    bound: float
    why: str
    times: dict[str, float]
    messages: dict[str, int]
    notes: tuple[Remark, ...]

    @property
    def best(self) -> str:
        """The faster mode."""
        return min(self.times, key=lambda mode: self.times[mode])

    def row(self) -> dict[str, Any]:
        """Return the JSON row, with the keys of a synthesis."""
        time = self.times[self.best]
        return {
            "size_B": int(self.size), "operation": self.operation, "chosen": self.best, "time_s": time,
            "bound_s": self.bound, "times_bound": time / self.bound if self.bound else 1.0, "simulated": True,
            "pieces": 1, "height": None, "n_messages": self.messages[self.best], "certificate": None,
            "tried": [{"method": mode, "time_s": time, "simulated": True} for mode, time in self.times.items()],
        }  # fmt: skip


def bound_of_routing(scenario: Scenario, operation: str, exchange: str = "") -> BoundOfRouting:
    """Bound an exchange whose routing is drawn or given.

    Parameters
    ----------
    scenario : Scenario
        Network with its faults, ranks and placement.
    operation : str
        ``ep_dispatch`` or ``ep_combine``.
    exchange : str
        ``key=value,...`` of :func:`collectives.experts.exchange.ep_dispatch`, without mode and library.

    Raises
    ------
    InputError
        If a parameter is wrong, or is one of the ways that are compared.
    """
    _, parameters = split_spec(f"{operation}:{exchange}") if exchange else ("", {})
    if keys := parameters.keys() & {"mode", "library", "in_order"}:
        raise InputError(f"the bound is of any way to send: leave out {min(keys)}={parameters[min(keys)]}")

    def planned(**more: str) -> ExpertPlan:
        text = ",".join(f"{key}={value}" for key, value in {**parameters, **more}.items())
        plan = plan_of(scenario.with_collective(f"{operation}:{text}"))
        assert isinstance(plan, ExpertPlan)
        return plan

    whole = planned(in_order="true")
    ranks = whole.placement.nodes[: whole.schedule.n_ranks]
    bound = lower_bound(operation, whole.network, ranks, layout=whole.schedule.layout)
    plans = {mode: planned(mode=mode) for mode in MODES}
    size = float(whole.sent or 0.0)
    text = f"a token is sent once to each rank that needs it: copies of {format_size(int(size))} at the busiest rank"
    remark = Remark("copies", text)
    return BoundOfRouting(
        operation, size, bound.time(size), bound.why(size), {mode: plan.links() for mode, plan in plans.items()},
        {mode: plan.schedule.n_transfers for mode, plan in plans.items()},
        tuple(dict.fromkeys((remark, *bound.notes, *whole.notes))),
    )  # fmt: skip
