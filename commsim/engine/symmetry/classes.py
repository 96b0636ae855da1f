"""Classes of connections that behave alike, and the quotient: one connection represents all of its class.

Connections are distinguished by what they are, by what their transfers wait for, and by what went wrong. A class is
simulated with the weight of its members: where n connections of a class use a resource, the class uses it n times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records
from commsim.engine.flow_state import FLOW_ROW, FlowLinks, FlowState, allocate_state, owners, share_table

from .pattern import Pattern

# Classes per connection, above which it takes the event engine no longer to simulate all connections.
MAX_SHARE = 0.1
# Transfers from which on more classes are accepted, since the event engine would take gigabytes for all.
MANY, MAX_SHARE_OF_MANY = 2**22, 0.5

ODD, OTHER_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
Table = Records
Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]


def are_few(pattern: Pattern, n_classes: int, n: int) -> bool:
    """Whether so few of `n` things of a pattern are different that simulating these is less work than all."""
    many = len(pattern.transfers) * pattern.times > MANY
    return n_classes <= n * (max(MAX_SHARE, MAX_SHARE_OF_MANY) if many else MAX_SHARE)


def colours_are_few(pattern: Pattern, colour: NDArray[np.uint64]) -> bool:
    """Whether things of these colours fall into classes that are few enough."""
    from commsim.routing.classes_kernel import number_colours

    return are_few(pattern, len(number_colours(colour)[1]), len(colour))


def colour_participants(pattern: Pattern) -> NDArray[np.uint64]:
    """Colour participants by what they send and receive, whatever the order.

    Where most have colours of their own, so will most connections once it is known what waits for what.
    """
    transfers, carried = pattern.transfers, _carried(pattern)
    spread = np.random.default_rng(1).integers(1, 2**63, (2, int(carried.max()) + 1), np.uint64)
    colour = np.zeros(int(max(transfers["src"].max(), transfers["dst"].max())) + 1, np.uint64)
    np.add.at(colour, transfers["src"], spread[0, carried])
    np.add.at(colour, transfers["dst"], spread[1, carried])
    return colour[colour > 0]


def _carried(pattern: Pattern) -> NDArray[np.int32]:
    """Give a number to what each transfer does, to how many chunks."""
    from commsim.routing.classes_kernel import number_colours

    kind = pattern.transfers["op"].astype(np.int64) << 32 | pattern.transfers["count"]
    return number_colours(kind.astype(np.uint64))[0]


def colour_connections(full: Full) -> NDArray[np.uint64]:
    """Colour connections by what they are, and by what they carry."""
    from commsim.routing.classes_kernel import number_colours

    pattern, connection, n = full.pattern, full.connection, len(full.connection)
    port = (full.flow["port"] - full.flow["begin"]).reshape(2, n)
    length = (full.flow["end"] - full.flow["begin"]).reshape(2, n)
    alone = np.append(full.capacity[full.flow_link.resource] / full.flow_link.shares, np.inf)
    rate = np.minimum.reduceat(alone, np.stack((full.flow["begin"][:n], full.flow["end"][:n]), axis=1).ravel())[::2]
    rows = np.stack(
        [connection[name].astype(np.float64) for name in ("latency", "overhead_work", "receive_work", "reduces")]
        + [np.where(length[0] > 0, rate, 0.0), port[0], pattern.n_on_connection]
    )
    colour = np.zeros(n, np.uint64)
    for row in rows:
        colour = colour * np.uint64(n + 1) + number_colours(row.view(np.uint64))[0].astype(np.uint64)
        colour = number_colours(colour)[0].astype(np.uint64)
    carried = _carried(pattern).astype(np.uint64)
    spread = np.random.default_rng(0).integers(1, 2**63, int(pattern.place.max()) + 1, np.uint64)
    around = np.zeros(n, np.uint64)
    np.add.at(around, pattern.connection, spread[pattern.place] * (carried + np.uint64(1)))
    return around * ODD + colour


def refined(full: Full, colour: NDArray[np.uint64]) -> Quotient | None:
    """Tell connections apart until their classes say what they wait for; None where these are too many."""
    from commsim.routing.classes_kernel import number_colours

    from .symmetry_kernel import refine_connections

    pattern, n_before, n_classes = full.pattern, -1, 0
    assert pattern.waits is not None
    while n_classes != n_before:
        colour = refine_connections(colour, (pattern.connection, pattern.place), pattern.waits)
        n_before, n_classes = n_classes, len(number_colours(colour)[1])
        if not are_few(pattern, n_classes, len(colour)):
            return None
    return quotient(full, colour)


def told_apart(classes: Quotient, alike: NDArray[np.int32]) -> Quotient | None:
    """Tell members of a class apart where only some could have had more; None where these are too many classes.

    Parameters
    ----------
    classes : Quotient
        Classes found so far.
    alike : int32[n_variants + 1]
        Equal for variants that could have had more at the same times; those may well be alike, and stay together.
    """
    colour = (classes.of_connection.astype(np.uint64) + np.uint64(1)) * ODD
    mark = alike[classes.variant_of].astype(np.uint64).reshape(2, -1)
    return refined(classes.full, (colour ^ mark[0]) * OTHER_ODD ^ mark[1])


@dataclass(frozen=True, slots=True, eq=False)
class Full:
    """All connections of a pattern on a network.

    Parameters
    ----------
    pattern : Pattern
        What is sent.
    connection, flow : structured arrays
        Tables of flow_state at the beginning.
    flow_link : FlowLinks
        What flows may use.
    capacity : float64[n_resources], bytes/s
        Capacity of each resource.
    """

    pattern: Pattern
    connection: Table
    flow: Table
    flow_link: FlowLinks
    capacity: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """Classes of connections.

    Parameters
    ----------
    full : Full
        All connections.
    of_connection : int32[n_connections]
        Class of each.
    lead : int32[n_classes]
        First connection of each class.
    variant_of : int32[2 * n_connections]
        Variant of each flow of all connections, -1 where all of its class are alike.
    flow, flow_link, resource : FLOW_ROW[n], FlowLinks, RESOURCE_ROW[n]
        Tables of the classes.
    variants : (int64[n_flows + 1], int64[n + 1], int32[m])
        Rows of what members of a class's flow use, where they differ.
    base : int64[n_classes + 1]
        Transfers of a repetition before each class.
    edges : (int64[m], int64[m], bool[m])
        Transfers of one repetition, rising, what they wait for, and whether until that is complete.
    """

    full: Full
    of_connection: NDArray[np.int32]
    lead: NDArray[np.int32]
    variant_of: NDArray[np.int32]
    flow: Table
    flow_link: FlowLinks
    resource: Table
    variants: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
    base: NDArray[np.int64]
    edges: Edges

    def tables(self, n_bytes: NDArray[np.float64], ready: float, times: int) -> FlowState:
        """Allocate a run.

        Parameters
        ----------
        n_bytes : float64[n_pattern_transfers], bytes
            Size of each transfer, headers included.
        ready : float, s
            Time at which all ranks have entered the collective.
        times : int
            How many repetitions.
        """
        from commsim.core.data_order.dependencies_kernel import counting_order, successor_rows

        pattern, n = self.full.pattern, int(self.base[-1])
        mine = _transfers_of(pattern, self.lead)
        after, before, complete = self.edges
        waiting = np.tile(np.bincount(after, minlength=n), times).astype(np.int32)
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(waiting, dtype=np.int64)))
        pred = (np.tile(before, times) + np.repeat(np.arange(times) * n, len(before))).astype(np.int32)
        connection_of = np.tile(np.repeat(np.arange(len(self.lead), dtype=np.int32), np.diff(self.base)), times)
        op, on_wire = np.tile(pattern.transfers["op"][mine], times), np.tile(n_bytes[mine], times)
        connection = self.full.connection[self.lead]
        connection["next"] = connection["receive"] = connection["arrived"] = self.base[:-1] * times
        connection["end"] = self.base[1:] * times
        connection["ready"] = ready
        return allocate_state(
            (connection_of, op, on_wire, waiting),
            (connection, self.flow, self.flow_link, self.resource),
            counting_order(connection_of, len(self.lead)),
            successor_rows(first, pred, np.tile(complete, times)),
            self.variants,
        )

    def transfer_of(self) -> NDArray[np.int64]:
        """Return the number of the transfer, in a repetition, that represents each one of the pattern.

        Returns
        -------
        int64[n_pattern_transfers]
        """
        return self.base[self.of_connection[self.full.pattern.connection]] + self.full.pattern.place


def quotient(full: Full, colour: NDArray[np.uint64]) -> Quotient:
    """Put together the connections of one colour.

    Parameters
    ----------
    full : Full
        All connections.
    colour : uint64[n_connections]
        Equal only where connections and what their transfers wait for are equal.
    """
    from commsim.routing.classes_kernel import number_colours

    from .symmetry_kernel import colour_flows, colour_resources

    of_connection, lead = number_colours(colour)
    flow_class = np.concatenate((of_connection, of_connection + np.int32(len(lead))))
    kinds = colour_resources(full.flow, full.flow_link.resource, full.flow_link.share, flow_class, full.capacity)
    kind, example = number_colours(kinds)
    flow_colour = colour_flows(full.flow, full.flow_link.resource, flow_class, kind)
    flow, flow_link, key = _flows(full, flow_class, kind, example)
    resource = share_table(full.capacity[example], np.bincount(flow_link.resource, minlength=len(example)))
    base = np.concatenate((np.zeros(1, np.int64), np.cumsum(full.pattern.n_on_connection[lead])))
    edges = _edges(full.pattern, of_connection, lead, base)
    variant_of, variants = _variants(full, flow_class, kind, flow_colour, key)
    return Quotient(full, of_connection, lead, variant_of, flow, flow_link, resource, variants, base, edges)


def _keys(
    full: Full, flow_links: NDArray[np.intp], flow_class: NDArray[np.int32], kind: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return numbers of flow links in the quotient: class of flow, part of its links, kind of resource."""
    s = owners(full.flow)[flow_links]
    part = (flow_links >= full.flow["data"][s]).astype(np.int64) + (flow_links >= full.flow["port"][s])
    n_kinds = np.int64(kind.max(initial=0)) + 1
    of_flow = 3 * flow_class[s].astype(np.int64) + part
    return np.asarray(of_flow * n_kinds + kind[full.flow_link.resource[flow_links]], np.int64)


def _flows(
    full: Full, flow_class: NDArray[np.int32], kind: NDArray[np.int32], example: NDArray[np.int32]
) -> tuple[Table, FlowLinks, NDArray[np.int64]]:
    """Lay out the flows and flow links of the classes: what all users of one resource of each kind take together."""
    is_example = np.zeros(len(kind), np.bool_)
    is_example[example] = True
    flow_links = np.flatnonzero(is_example[full.flow_link.resource])
    key, which = np.unique(_keys(full, flow_links, flow_class, kind), return_inverse=True)
    n_kinds = np.int64(kind.max(initial=0)) + 1
    n_flows = 2 * (int(flow_class[: len(flow_class) // 2].max(initial=-1)) + 1)
    share = np.bincount(which, weights=full.flow_link.shares[flow_links], minlength=len(key))
    flow_link = FlowLinks((key % n_kinds).astype(np.int32), share.astype(np.float64))
    flow = np.zeros(n_flows, FLOW_ROW)
    bounds = np.searchsorted(key, np.arange(3 * n_flows + 1) * n_kinds)
    flow["begin"], flow["data"], flow["port"], flow["end"] = (bounds[k : len(bounds) - 3 + k : 3] for k in range(4))
    flow["weight"] = 1.0
    return flow, flow_link, key


def _variants(
    full: Full, flow_class: NDArray[np.int32], kind: NDArray[np.int32], flow_colour: NDArray[np.uint64],
    key: NDArray[np.int64],
) -> tuple[NDArray[np.int32], tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:  # fmt: skip
    """List what members use of each flow whose members differ: rows by flow of rows of links; and the users."""
    from commsim.routing.classes_kernel import number_colours

    number, example = number_colours(flow_colour)
    of_class = flow_class[example]
    n_flows = int(flow_class.max(initial=-1)) + 1
    differ = np.bincount(of_class, minlength=n_flows) > 1
    listed = np.flatnonzero(differ[of_class])
    listed = listed[np.argsort(of_class[listed], kind="stable")]
    variant = np.full(len(example), -1, np.int32)
    variant[listed] = np.arange(len(listed))
    example = example[listed]
    first = np.searchsorted(flow_class[example], np.arange(n_flows + 1))
    length = (full.flow["end"] - full.flow["begin"])[example].astype(np.int64)
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    flow_links = np.arange(ends[-1]) + np.repeat(full.flow["begin"][example] - ends[:-1], length)
    flow_link = np.searchsorted(key, _keys(full, flow_links, flow_class, kind)).astype(np.int32)
    return variant[number], (first, ends, flow_link)


def _transfers_of(pattern: Pattern, connections: NDArray[np.int32]) -> NDArray[np.int32]:
    """Transfers of some connections, one connection after the other."""
    n = pattern.n_on_connection
    begin = np.cumsum(n) - n
    ends = np.cumsum(n[connections])
    return np.asarray(
        pattern.queue[np.arange(ends[-1]) + np.repeat(begin[connections] - ends + n[connections], n[connections])]
    )


def _edges(
    pattern: Pattern, of_connection: NDArray[np.int32], lead: NDArray[np.int32], base: NDArray[np.int64]
) -> Edges:
    """Find what the transfers of the classes wait for, in one repetition."""
    mine = _transfers_of(pattern, lead)
    n = len(mine)
    assert pattern.waits is not None
    first_row, waited, is_complete = pattern.waits
    length = np.diff(first_row)[mine]
    rows = np.arange(length.sum()) + np.repeat(first_row[mine] - np.cumsum(length) + length, length)
    before = waited[rows]
    before = base[of_connection[pattern.connection[before]]] + pattern.place[before]
    edge = np.unique((np.repeat(np.arange(n), length) * n + before) * 2 + is_complete[rows])
    return edge // 2 // n, edge // 2 % n, edge % 2 == 1
