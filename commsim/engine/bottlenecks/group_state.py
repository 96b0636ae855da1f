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
# Resources with a row, and in all where flows enter as well: the table of pairs of rows takes 32 MB.
MAX_ROWS = MAX_RESOURCES = 4096
# Largest number of users of one resource.
MAX_USERS = 2**15 - 1
# Rows whose earliest end is kept together, as a shift.
BLOCK_BITS = 5
# Rate of a resource without members; and a capacity, in bytes per second, that no link has.
FREE, ENDLESS = 2**62, 1e299
# Where a rate that fits what is left need not, or must in any case, be looked at.
UNFORCED, SEVERAL = -1, -2

COUNTERS = np.dtype(
    [
        ("n_rows", np.int64),  # rows in use are below this
        ("n_free", np.int64),  # rows below it that are free again
        ("n_order", np.int64),  # groups with members, and the cap
        ("n_ended", np.int64),  # flows whose phase has ended in this batch
        ("n_changed", np.int64),  # groups whose next end must be found again
        ("n_active", np.int64),  # flows with a group
        ("n_settled", np.int64),  # how often rates were changed where they must be
        ("n_levels", np.int64),  # rates that were found
        ("n_moves", np.int64),  # flows that went from one group to another
        ("n_fills", np.int64),  # how often all rates were found from the beginning
        ("is_full", np.bool_),  # whether more rows were needed than there are
        ("growth", np.float64),  # factor by which rates have risen at most, where nothing else says so
    ]
)


class Groups(NamedTuple):
    """All state of the groups beside that of the event engine; changed in place. Rates are in whole units.

    A resource that is full, or nearly, has a *row*, in which all is exact. Of any other a bound is enough: its users
    take at most `bound * growth`, which is made exact where it is more than the resource has.
    """

    unit: float  # B/s
    cap: int  # the resource that gives each of its users at most its capacity; -1 without
    capacity: Wholes  # [n_resources]
    n_users: Wholes  # [n_resources]
    first: Wholes  # [n_resources + 1], where its rows of users and of its heap begin
    row: Numbers  # [n_resources], -1 without
    bound: Floats  # [n_resources]
    left: Wholes  # [n_resources], capacity without a flow, while all is filled,
    n_open: Wholes  # [n_resources], users without a rate,
    fill_at: Floats  # [n_resources], and rate at which a resource may be full
    fill_place: Numbers  # [n_resources]
    fill_heap: Numbers  # [n_resources]
    resource: Numbers  # [n_rows], -1 where the row is free
    free: Numbers  # [n_rows], free rows
    rate: Wholes  # [n_rows], of each member; FREE without members
    noted: Wholes  # [n_rows], rate when bounds were last brought up to date
    rest: Wholes  # [n_rows], capacity less what users that are no members take
    n_members: Wholes  # [n_rows]
    n_in_heap: Wholes  # [n_rows], members that have not ended
    crossing: NDArray[np.uint16]  # [n_rows, n_rows], members of the first that use the second as well,
    crossed: NDArray[np.uint16]  # [n_rows, n_rows], list of the rows where there are any,
    n_crossed: Wholes  # [n_rows], and its length
    clock: Floats  # [n_rows], bytes that a member was served at time `since`
    since: Floats  # [n_rows], s
    finish: Floats  # [n_rows], s, when the first member ends
    earliest: Floats  # [n_blocks], s, the least of a block of rows, when it was last looked for
    order: Numbers  # [n_rows], groups by rising rate
    position: Numbers  # [n_rows], place in `order`
    forced: Numbers  # [n_rows], group that has risen above this one and crosses it; UNFORCED, or SEVERAL
    changed: NDArray[np.bool_]  # [n_rows], whether it is in `changing`
    changing: Numbers  # [n_rows]
    link: Numbers  # [n_flow_links], resource
    place: Numbers  # [n_flow_links], among the users
    user: Numbers  # [n_flow_links], flow
    user_link: Numbers  # [n_flow_links], flow link
    user_group: Numbers  # [n_flow_links], and its group, -1 without
    member: Numbers  # [n_flow_links], heaps of members by `end`
    low: Numbers  # [n_flows], flow links in use,
    high: Numbers  # [n_flows], and their end
    group: Numbers  # [n_flows], row of the bottleneck, -1 without
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
        q, e, n = len(self.capacity), len(self.link), self.n_flows
        r = min(q, MAX_ROWS)
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.n_flow_links, dtype=np.int64)))
        n_users, left, n_open = np.zeros((3, q), np.int64)
        rate, noted, rest, n_members, n_in_heap, n_crossed = np.zeros((6, r), np.int64)
        bound, fill_at = np.zeros((2, q))
        fill_place, row = np.full((2, q), -1, np.int32)
        resource, free, order, position, forced, changing = np.full((6, r), -1, np.int32)
        clock, since, finish = np.zeros((3, r))
        place, user, user_link, user_group, member = np.empty((5, e), np.int32)
        low, high, ended = np.empty((3, n), np.int32)
        counter = np.zeros(1, COUNTERS)[0]
        counter["growth"] = 1.0
        return Groups(
            self.unit, self.cap, self.capacity, n_users, first, row, bound, left, n_open, fill_at, fill_place,
            np.empty(q, np.int32), resource, free, rate, noted, rest, n_members, n_in_heap, np.zeros((r, r), np.uint16),
            np.empty((r, r), np.uint16), n_crossed, clock, since, finish,
            np.empty((r >> BLOCK_BITS) + 1), order, position, forced, np.zeros(r, np.bool_), changing, self.link, place,
            user, user_link, user_group, member, low, high, np.full(n, -1, np.int32), np.empty(n),
            np.full(n, -1, np.int32), ended, np.zeros(n, np.bool_), counter,
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
    number = np.full(first_cap + 1, -1, np.int32)
    number[resources] = np.arange(len(resources))
    capacity = (plan.resource["left"] * plan.resource["unit"])[resources]
    return group_tables(capacity, number[resource], len(plan.flow), n_flow_links, cap)


def group_tables(
    capacity: Floats, link: Numbers, n_flows: int, n_flow_links: Wholes | None = None, cap: int = -1
) -> GroupTables | None:
    """Choose a unit in which sums of rates are exact, and no rate is rounded much.

    Parameters
    ----------
    capacity : float64[n_resources], bytes/s
        Capacity of each resource.
    link, n_flows, n_flow_links, cap
        Same as in :class:`GroupTables`; without `n_flow_links`, all flow links may be used.

    Returns
    -------
    GroupTables or None
        None where there is no such unit, or one resource has too many users.
    """
    if n_flow_links is None:
        n_flow_links = np.bincount(link, minlength=len(capacity))
    n_sharing = np.where(np.arange(len(capacity)) == cap, 1, n_flow_links)
    most = int(n_sharing.max())
    exponent = int(np.frexp(capacity.max())[1]) + most.bit_length() - SUM_BITS
    in_units = np.ldexp(capacity, -exponent)
    if most > MAX_USERS or capacity.max() > ENDLESS or (in_units < n_sharing * 2.0**RATE_BITS).any():
        return None
    unit = float(np.ldexp(1.0, exponent))
    return GroupTables(unit, cap, in_units.astype(np.int64), link, n_flow_links, n_flows)


def _may_be_used(plan: FlowPlan) -> NDArray[np.bool_]:
    """Flow links that may ever be used: all but those of nodes that reduce in no time."""
    resource, first = plan.flow_link.resource, plan.network.n_links
    is_used = np.ones(len(resource), np.bool_)
    units = np.flatnonzero((resource >= first) & (resource < first + plan.network.n_nodes))
    is_used[units] = plan.connection["reduces"][owners(plan.flow)[units] - len(plan.connection)]
    return is_used
