"""Tables of the groups: flows that one link holds down have one rate, and one clock that counts what each was served.

A resource is a link, the reduction unit of a node, or a rate cap. Its *members* are the flows for which it is the
bottleneck; all that use it are its *users*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.engine.flow_plan import FlowPlan

Numbers = NDArray[np.int32]
Wholes = NDArray[np.int64]
Floats = NDArray[np.float64]

# Bits of the largest sum of rates; and bits that a rate of one flow keeps.
SUM_BITS, RATE_BITS = 62, 38
# Resources up to which the two tables of pairs are kept: 64 MB.
MAX_RESOURCES = 4096
# Largest number of users of one resource.
MAX_USERS = 2**15 - 1
# Rate of a resource without members; and a capacity, in bytes per second, that no link has.
FREE, ENDLESS = 2**62, 1e299

COUNTS = np.dtype(
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
    capacity: Wholes  # [n_resources]
    rate: Wholes  # [n_resources], of each member; FREE without members
    rest: Wholes  # [n_resources], capacity less what users that are no members take
    n_members: Wholes  # [n_resources]
    n_users: Wholes  # [n_resources]
    n_in_heap: Wholes  # [n_resources], members that have not ended
    n_open: Wholes  # [n_resources], users without a rate, while all is filled
    first: Wholes  # [n_resources + 1], where its rows of users and of its heap begin
    crossing: NDArray[np.int16]  # [n_resources, n_resources], members of the first that use the second as well
    crossed: NDArray[np.int16]  # [n_resources, n_resources], the same, transposed
    clock: Floats  # [n_resources], bytes that a member was served at time `since`
    since: Floats  # [n_resources], s
    order: Numbers  # [n_resources], resources by rising rate
    position: Numbers  # [n_resources], place in `order`
    forced: NDArray[np.bool_]  # [n_resources], whether the rate is to be looked at though it fits what is left
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
    count: np.void  # COUNTS


def lay_out_groups(plan: FlowPlan) -> Groups | None:
    """Lay out the groups of a plan.

    Parameters
    ----------
    plan : FlowPlan
        Jobs without weights, priorities and curves.

    Returns
    -------
    Groups or None
        None where messages take different shares of links, where a link is endless, or where links or users are too
        many.
    """
    is_used = _may_be_used(plan)
    resources, link = np.unique(plan.flow_link["resource"][is_used], return_inverse=True)
    capacity = (plan.resource["left"] * plan.resource["unit"])[resources]
    n_flow_links = np.bincount(link, minlength=len(resources))
    most = int(n_flow_links.max(initial=1))
    if (plan.flow_link["share"][is_used] != 1).any() or len(resources) > MAX_RESOURCES or most > MAX_USERS:
        return None
    exponent = np.frexp(capacity.max(initial=1.0))[1] + most.bit_length() - SUM_BITS
    in_units = np.ldexp(capacity, -exponent)
    if capacity.max(initial=0.0) > ENDLESS or in_units.min(initial=np.inf) < most * 2.0**RATE_BITS:
        return None
    compact = np.full(len(plan.flow_link), -1, np.int32)
    compact[is_used] = link
    return _allocate(compact, np.ldexp(1.0, exponent), in_units.astype(np.int64), n_flow_links, len(plan.flow))


def _may_be_used(plan: FlowPlan) -> NDArray[np.bool_]:
    """Flow links that may ever be used: all but those of nodes that reduce in no time."""
    resource, first = plan.flow_link["resource"], plan.network.n_links
    is_used = np.ones(len(resource), np.bool_)
    units = np.flatnonzero((resource >= first) & (resource < first + plan.network.n_nodes))
    is_used[units] = plan.connection["reduces"][plan.flow_link["flow"][units] - len(plan.connection)]
    return is_used


def _allocate(link: Numbers, unit: float, capacity: Wholes, n_flow_links: Wholes, n_flows: int) -> Groups:
    r, e = len(capacity), len(link)
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(n_flow_links, dtype=np.int64)))
    clock, since, finish_key, fill_at = np.zeros((4, r))
    order, position = np.arange(r, dtype=np.int32), np.arange(r, dtype=np.int32)
    changing, finish_heap, fill_heap = np.empty((3, r), np.int32)
    place, user, user_link, member = np.empty((4, e), np.int32)
    low, high, ended = np.empty((3, n_flows), np.int32)
    return Groups(
        unit, capacity, np.full(r, FREE), capacity.copy(), *np.zeros((4, r), np.int64), first,
        np.zeros((r, r), np.int16), np.zeros((r, r), np.int16), clock, since, order, position, np.zeros(r, np.bool_),
        np.zeros(r, np.bool_), changing, np.full(r, np.inf), finish_key, np.full(r, -1, np.int32), finish_heap,
        fill_at, np.full(r, -1, np.int32), fill_heap, link, place, user, user_link, member, low, high,
        np.full(n_flows, -1, np.int32), np.empty(n_flows), np.full(n_flows, -1, np.int32), ended,
        np.zeros(n_flows, np.bool_), np.zeros(1, COUNTS)[0],
    )  # fmt: skip
