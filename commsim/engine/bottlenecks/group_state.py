"""Tables of the groups: flows that one link holds down have one rate, and one clock that counts what each was served.

A resource is a link, the reduction unit of a node, a message engine, or a rate cap. Its *members* are the flows for
which it is the bottleneck; all that use it are its *users*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_state import owners

Numbers = NDArray[np.int32]
Wholes = NDArray[np.int64]
Floats = NDArray[np.float64]

# Bits of the largest sum of rates; and bits that a rate of one flow keeps.
SUM_BITS, RATE_BITS = 62, 34
# Resources up to which the two tables of pairs are kept: 64 MB.
MAX_RESOURCES = 4096
# Largest number of users of one resource.
MAX_USERS = 2**15 - 1
# Rate of a resource without members; and a capacity, in bytes per second, that no link has.
FREE, ENDLESS = 2**62, 1e299

COUNTERS = np.dtype(
    [
        ("n_heap", np.int64),  # groups in the heap of ends
        ("n_ended", np.int64),  # flows whose phase has ended in this batch
        ("n_changed", np.int64),  # groups whose next end must be found again
        ("n_active", np.int64),  # flows with a group
        ("n_levels", np.int64),  # rates that were found
        ("n_fills", np.int64),  # how often all rates were found from the beginning
    ]
)


class Groups(NamedTuple):
    """All state of the groups beside that of the event engine; changed in place. Rates are in whole units."""

    unit: float  # B/s
    cap: int  # the resource that gives each of its users at most its capacity; -1 without
    capacity: Wholes  # [n_resources]
    rate: Wholes  # [n_resources], of each member; FREE without members
    rest: Wholes  # [n_resources], capacity less what users that are no members take
    n_members: Wholes  # [n_resources]
    n_users: Wholes  # [n_resources]
    n_in_heap: Wholes  # [n_resources], members that have not ended
    n_open: Wholes  # [n_resources], users without a rate, while all is filled
    first: Wholes  # [n_resources + 1], where its rows of users and of its heap begin
    crossing: NDArray[np.uint16]  # [n_resources, n_resources], members of the first that use the second as well
    crossed: NDArray[np.uint16]  # [n_resources, n_resources], the same, transposed
    clock: Floats  # [n_resources], bytes that a member was served at time `since`
    since: Floats  # [n_resources], s
    order: Numbers  # [n_resources], resources by rising rate
    position: Numbers  # [n_resources], place in `order`
    forced: Wholes  # [n_resources], 1 where the rate is to be looked at though it fits what is left
    changed: NDArray[np.bool_]  # [n_resources], whether it is in `changing`
    changing: Numbers  # [n_resources]
    finish: Floats  # [n_resources], s, when the first member ends
    finish_key: Floats  # [n_resources], s; the key in the heap may be earlier
    finish_place: Numbers  # [n_resources]
    finish_heap: Numbers  # [n_resources]
    fill_at: Floats  # [n_resources], rate at which a resource may be full, while all is filled
    fill_place: Numbers  # [n_resources]
    fill_heap: Numbers  # [n_resources]
    link: Numbers  # [n_flow_links], resource
    place: Numbers  # [n_flow_links], row among the users
    user: Numbers  # [n_flow_links], flow
    user_link: Numbers  # [n_flow_links], flow link
    member: Numbers  # [n_flow_links], heaps of members by `end`
    low: Numbers  # [n_flows], flow links in use,
    high: Numbers  # [n_flows], and their end
    group: Numbers  # [n_flows], bottleneck, -1 without
    end: Floats  # [n_flows], bytes on the group's clock at which the flow ends
    member_place: Numbers  # [n_flows], -1 if it is in no heap
    ended: Numbers  # [n_flows], list
    has_ended: NDArray[np.bool_]  # [n_flows]
    counter: np.void  # COUNTERS


@dataclass(frozen=True, slots=True, eq=False)
class GroupTables:
    """What of the groups does not depend on sizes.

    Parameters
    ----------
    unit : float, bytes/s
        Unit of all rates.
    cap : int
        Resource that gives each of its users at most its capacity, -1 without.
    capacity : int64[n_resources]
        Capacities in units.
    link : int32[n_flow_links]
        Resource of each flow link, -1 where it is never used.
    n_flow_links : int64[n_resources]
        Flows that may use each resource.
    n_flows : int
        Flows.
    """

    unit: float
    cap: int
    capacity: Wholes
    link: Numbers
    n_flow_links: Wholes
    n_flows: int

    def allocate(self) -> Groups:
        """Allocate what a run needs; no flow uses anything yet."""
        r, e, n = len(self.capacity), len(self.link), self.n_flows
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.n_flow_links, dtype=np.int64)))
        clock, since, finish_key, fill_at = np.zeros((4, r))
        n_members, n_users, n_in_heap, n_open = np.zeros((4, r), np.int64)
        order, position, changing, finish_heap, fill_heap = np.empty((5, r), np.int32)
        place, user, user_link, member = np.empty((4, e), np.int32)
        low, high, ended = np.empty((3, n), np.int32)
        return Groups(
            self.unit, self.cap, self.capacity, np.full(r, FREE), self.capacity.copy(), n_members, n_users,
            n_in_heap, n_open, first, np.zeros((r, r), np.uint16), np.zeros((r, r), np.uint16), clock, since, order,
            position, np.zeros(r, np.int64), np.zeros(r, np.bool_), changing, np.full(r, np.inf), finish_key,
            np.full(r, -1, np.int32), finish_heap, fill_at, np.full(r, -1, np.int32), fill_heap, self.link, place,
            user, user_link, member, low, high, np.full(n, -1, np.int32), np.empty(n), np.full(n, -1, np.int32),
            ended, np.zeros(n, np.bool_), np.zeros(1, COUNTERS)[0],
        )  # fmt: skip


def lay_out_groups(plan: FlowPlan) -> GroupTables | None:
    """Lay out the groups of a plan.

    Parameters
    ----------
    plan : FlowPlan
        One job without weights and curves. All rate caps of its connections are one resource here.

    Returns
    -------
    GroupTables or None
        None where messages take different shares of links, where a link is endless, or where links or messages are
        too many.
    """
    is_used, resource = _may_be_used(plan), plan.flow_link.resource.copy()
    capped = np.isfinite(plan.jobs[0].rate_cap)
    first_cap = len(plan.resource) - (np.count_nonzero(np.diff(plan.routes.first)) if capped else 0)
    resource[resource > first_cap] = first_cap
    n_flow_links = np.bincount(resource[is_used], minlength=first_cap + 1)
    resources = np.flatnonzero(n_flow_links)
    n_flow_links = n_flow_links[resources]
    if (plan.flow_link.shares[is_used] != 1).any() or not 0 < len(resources) <= MAX_RESOURCES:
        return None
    cap = len(resources) - 1 if resources[-1] == first_cap else -1
    n_sharing = np.where(np.arange(len(resources)) == cap, 1, n_flow_links)
    capacity = (plan.resource["left"] * plan.resource["unit"])[resources]
    most = int(n_sharing.max())
    exponent = int(np.frexp(capacity.max())[1]) + most.bit_length() - SUM_BITS
    in_units = np.ldexp(capacity, -exponent)
    if most > MAX_USERS or capacity.max() > ENDLESS or (in_units < n_sharing * 2.0**RATE_BITS).any():
        return None
    number = np.full(first_cap + 1, -1, np.int32)
    number[resources] = np.arange(len(resources))
    unit = float(np.ldexp(1.0, exponent))
    return GroupTables(unit, cap, in_units.astype(np.int64), number[resource], n_flow_links, len(plan.flow))


def _may_be_used(plan: FlowPlan) -> NDArray[np.bool_]:
    """Flow links that may ever be used: all but those of nodes that reduce in no time."""
    resource, first = plan.flow_link.resource, plan.network.n_links
    is_used = np.ones(len(resource), np.bool_)
    units = np.flatnonzero((resource >= first) & (resource < first + plan.network.n_nodes))
    is_used[units] = plan.connection["reduces"][owners(plan.flow)[units] - len(plan.connection)]
    return is_used
