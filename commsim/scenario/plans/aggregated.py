"""The plan of a collective that switches aggregate: packets of its switch system, or their flow view at a size."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import SWITCH
from commsim.core.result import Result
from commsim.scenario.plans.aggregation import Aggregation, FlowView
from commsim.scenario.plans.dense import Plan
from commsim.scenario.scenario import Wish

__all__ = ["AggregatedPlan", "as_messages"]


@dataclass(frozen=True, slots=True)
class AggregatedPlan(Plan):
    """A collective whose aggregators sit on switches.

    Parameters
    ----------
    aggregation : Aggregation
        Switch system, and places of its aggregators.
    """

    aggregation: Aggregation | None = None

    @property
    def system(self) -> Aggregation:
        """Switch system, and places of its aggregators."""
        assert self.aggregation is not None
        return self.aggregation

    def view(self, size: float) -> FlowView | None:
        """Return what all engines but the packet engine take from the switch system at a size; None for none."""
        if not 0 < size < float("inf"):
            return None
        return self.system.flow_view(self.network, self.ranks, size)

    def at(self, size: float) -> AggregatedPlan:
        """Return the plan of one size: chunks are of whole packets, and have the rate that windows allow."""
        if (view := self.view(size)) is None:
            return self
        key = (view.rate_cap, *(view.parameters.get(name) for name in ("n_chunks", "pool")))
        if key not in self._at:
            schedule = self.system.build(self.schedule.n_ranks, **view.parameters)
            packets_pass = np.where(self.network.kind == SWITCH, 0.0, self.network.overhead)  # switches at line rate
            network = dataclasses.replace(self.network, overhead=packets_pass)
            self._at[key] = self.with_schedule(schedule, view.parameters, network, rate_cap=view.rate_cap)
        plan: AggregatedPlan = self._at[key]
        return dataclasses.replace(plan, framing=view.framing, sent=view.size, before=view.latency)

    def run(self, size: float, wish: Wish) -> Result:
        """Predict one size; in the packet engine slot by slot, as ``commsim switch simulate`` does."""
        plan = self if wish.engine == "packet" else self.at(size)
        return self.checked(plan.play(size, wish))

    def play(self, size: float, wish: Wish) -> Result:
        """Predict the size that this plan was made for."""
        if wish.engine != "packet":
            return Plan.play(self, size, wish)
        if wish.framing is not None or wish.trace:
            raise InputError(
                f"{self.schedule.name}: packets are those of {self.system.spec.entry.name}, and no transfers "
                f"have times; {self.schedule.name}:system=none sends transfers in packets of any framing"
            )
        if wish.flaps is not None:
            raise InputError(f"{self.schedule.name}: flaps are not modelled for packets of switch systems")
        runs = [self._slots(size, wish, starts) for starts in self._starts(wish)]
        found = runs[int(np.argsort([r.time for r in runs], kind="stable")[(len(runs) - 1) // 2])]
        return found if len(runs) == 1 else dataclasses.replace(found, samples=np.array([r.time for r in runs]))

    def _slots(self, size: float, wish: Wish, starts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Result:
        from commsim.scenario.aggregation_jobs import simulate_job

        late = starts[: len(self.ranks)] if starts.any() else ()
        job = self.system.job(self.network, self.ranks, size, late)
        result = simulate_job(self.network, job, wish.fabric, wish.seed)
        return dataclasses.replace(result, collective=self.schedule.name, engine="packet", size=size)


def as_messages(plan: AggregatedPlan) -> Plan:
    """Return the plan of the same schedule without its switch system: helpers exchange messages, and no packets."""
    return Plan(**{one.name: getattr(plan, one.name) for one in dataclasses.fields(Plan)})
