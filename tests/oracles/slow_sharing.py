"""Max-min fair sharing written to be read: weights, shares, caps and strict priorities, no speed at all.

Works in any numbers: floats, or fractions for an exact answer. Knows nothing of the kernels.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Flow:
    """Something that moves at one rate through all that it uses."""

    uses: Mapping[Hashable, Any]  # the share of its rate that each resource carries
    weight: Any = 1  # rates per weight are made equal
    priority: int = 0  # 0 is served first, the next gets what is left


def max_min_rates(flows: Sequence[Flow], capacity: Mapping[Hashable, Any]) -> list[Any]:
    """Water-filling: raise the rates per weight of all flows together, and stop those that meet a full resource."""
    rates: list[Any] = [None] * len(flows)
    left = dict(capacity)
    for priority in sorted({flow.priority for flow in flows}):
        rising = {i for i, flow in enumerate(flows) if flow.priority == priority}
        while rising:
            level, full = min(
                ((left[r] / sum(flows[i].weight * flows[i].uses[r] for i in rising if r in flows[i].uses), n, r)
                 for n, r in enumerate(capacity) if any(r in flows[i].uses for i in rising)),
            )[::2]  # fmt: skip
            for i in sorted(i for i in rising if full in flows[i].uses):
                rates[i] = level * flows[i].weight
                for r, share in flows[i].uses.items():
                    left[r] = max(left[r] - rates[i] * share, 0 * left[r])
                rising.remove(i)
    return rates


def bottleneck(
    i: int, flows: Sequence[Flow], rates: Sequence[Any], capacity: Mapping[Hashable, Any], slack: float = 1e-9
) -> Hashable | None:
    """Find a full resource on which no flow of the same class gets more per weight than flow `i`, or None.

    An allocation without overload is max-min fair if, and only if, every flow has one (Bertsekas and Gallager, 6.5.2);
    with priorities, flows of later classes must get nothing there.
    """
    mine = rates[i] / flows[i].weight
    for r, share in flows[i].uses.items():
        users = [k for k, flow in enumerate(flows) if r in flow.uses]
        full = sum(rates[k] * flows[k].uses[r] for k in users) >= capacity[r] * (1 - slack)
        same = all(
            rates[k] / flows[k].weight <= mine * (1 + slack) + slack * capacity[r]
            for k in users if flows[k].priority == flows[i].priority
        )  # fmt: skip
        later = all(
            rates[k] * flows[k].uses[r] <= slack * capacity[r]
            for k in users if flows[k].priority > flows[i].priority
        )  # fmt: skip
        if share and full and same and later:
            return r
    return None
