"""Classes of wires: told apart by what they are, by what their transfers wait for, and by what went wrong.

The quotient of a pattern on a network: one wire stands for all of its class, one resource for all of its kind.

A class is played with the weight of its members: where n wires of a class use a resource, the class uses it n times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..flow_state import ENTRY_ROW, IDLE, SLOT_ROW, Tables, share_table, tables
from .pattern import Pattern

MAX_SHARE = 0.5
"""Classes per wire, above which playing all wires is as cheap."""

ODD, OTHER_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


def are_few(colour: NDArray[np.uint64]) -> bool:
    """Whether things of these colours fall into classes that are few enough."""
    from .symmetry_kernel import number_colours

    return len(number_colours(colour)[1]) <= MAX_SHARE * len(colour)


def colour_participants(pattern: Pattern) -> NDArray[np.uint64]:
    """Colour those who send or receive by what they send and receive, whatever the order.

    Where most have colours of their own, so will most wires once it is known who waits for whom.
    """
    transfers, carried = pattern.transfers, _carried(pattern)
    spread = np.random.default_rng(1).integers(1, 2**63, (2, int(carried.max()) + 1), np.uint64)
    colour = np.zeros(int(max(transfers["src"].max(), transfers["dst"].max())) + 1, np.uint64)
    np.add.at(colour, transfers["src"], spread[0, carried])
    np.add.at(colour, transfers["dst"], spread[1, carried])
    return colour[colour > 0]


def _carried(pattern: Pattern) -> NDArray[np.int32]:
    """Give a number to what each transfer does, to how many chunks."""
    from .symmetry_kernel import number_colours

    kind = pattern.transfers["op"].astype(np.int64) << 32 | pattern.transfers["count"]
    return number_colours(kind.astype(np.uint64))[0]


def colour_wires(full: Full) -> NDArray[np.uint64]:
    """Colour wires by what they are, and by what they carry."""
    from .symmetry_kernel import number_colours

    pattern, wire, n = full.pattern, full.wire, len(full.wire)
    port = (full.slot["port"] - full.slot["begin"]).reshape(2, n)
    length = (full.slot["end"] - full.slot["begin"]).reshape(2, n)
    alone = np.append(full.capacity[full.entry["resource"]] / full.entry["share"], np.inf)
    rate = np.minimum.reduceat(alone, np.stack((full.slot["begin"][:n], full.slot["end"][:n]), axis=1).ravel())[::2]
    rows = np.stack(
        [wire[name].astype(np.float64) for name in ("latency", "overhead_work", "receive_work", "reduces")]
        + [np.where(length[0] > 0, rate, 0.0), port[0], pattern.n_on_wire]
    )
    colour = np.zeros(n, np.uint64)
    for row in rows:
        colour = colour * np.uint64(n + 1) + number_colours(row.view(np.uint64))[0].astype(np.uint64)
        colour = number_colours(colour)[0].astype(np.uint64)
    carried = _carried(pattern).astype(np.uint64)
    spread = np.random.default_rng(0).integers(1, 2**63, int(pattern.place.max()) + 1, np.uint64)
    around = np.zeros(n, np.uint64)
    np.add.at(around, pattern.wire, spread[pattern.place] * (carried + np.uint64(1)))
    return around * ODD + colour


def refined(full: Full, colour: NDArray[np.uint64]) -> Quotient | None:
    """Tell wires apart until their classes say what they wait for; None where these are too many."""
    from .symmetry_kernel import number_colours, refine_wires

    pattern, n_before, n_classes = full.pattern, -1, 0
    assert pattern.waits is not None
    while n_classes != n_before:
        colour = refine_wires(colour, (pattern.wire, pattern.place), pattern.waits)
        n_before, n_classes = n_classes, len(number_colours(colour)[1])
        if n_classes > MAX_SHARE * len(colour):
            return None
    return quotient(full, colour)


def told_apart(classes: Quotient, alike: NDArray[np.int32]) -> Quotient | None:
    """Tell members of a class apart where only some could have had more; None where these are too many classes.

    Parameters
    ----------
    classes : Quotient
        So far.
    alike : int32[n_variants + 1]
        Equal for variants that could have had more at the same times; those may well be alike, and stay together.
    """
    colour = (classes.of_wire.astype(np.uint64) + np.uint64(1)) * ODD
    mark = alike[classes.variant_of].astype(np.uint64).reshape(2, -1)
    return refined(classes.full, (colour ^ mark[0]) * OTHER_ODD ^ mark[1])


Table = NDArray[Any]
Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Full:
    """All wires of a pattern on a network.

    Parameters
    ----------
    pattern : Pattern
        What is sent.
    wire, slot, entry : structured arrays
        Tables of flow_state at the beginning.
    capacity : float64[n_resources], bytes/s
        Of all resources.
    """

    pattern: Pattern
    wire: Table
    slot: Table
    entry: Table
    capacity: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """Classes of wires.

    Parameters
    ----------
    full : Full
        All wires.
    of_wire : int32[n_wires]
        Class of each.
    lead : int32[n_classes]
        First wire of each class.
    variant_of : int32[2 * n_wires]
        Which of the variants each slot of all wires is, -1 where all of its class are alike.
    slot, entry, resource : structured arrays
        Tables of the classes.
    variants : (int64[n_slots + 1], int64[n + 1], int32[m])
        Rows of what members of a class's slot use, where they differ.
    base : int64[n_classes + 1]
        Transfers of a repetition before each class.
    edges : (int64[m], int64[m], bool[m])
        Transfers of one repetition, rising, what they wait for, and whether until that is complete.
    """

    full: Full
    of_wire: NDArray[np.int32]
    lead: NDArray[np.int32]
    variant_of: NDArray[np.int32]
    slot: Table
    entry: Table
    resource: Table
    variants: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
    base: NDArray[np.int64]
    edges: Edges

    def tables(self, n_bytes: NDArray[np.float64], ready: float, times: int) -> Tables:
        """Allocate a run.

        Parameters
        ----------
        n_bytes : float64[n_pattern_transfers], bytes
            With headers.
        ready : float, s
            When all ranks have entered the collective.
        times : int
            How many repetitions.
        """
        from commsim.core.dependencies_kernel import counting_order, successor_rows

        pattern, n = self.full.pattern, int(self.base[-1])
        mine = _transfers_of(pattern, self.lead)
        after, before, complete = self.edges
        waiting = np.tile(np.bincount(after, minlength=n), times).astype(np.int32)
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(waiting, dtype=np.int64)))
        pred = (np.tile(before, times) + np.repeat(np.arange(times) * n, len(before))).astype(np.int32)
        wire_of = np.tile(np.repeat(np.arange(len(self.lead), dtype=np.int32), np.diff(self.base)), times)
        op, on_wire = np.tile(pattern.transfers["op"][mine], times), np.tile(n_bytes[mine], times)
        wire = self.full.wire[self.lead]
        wire["next"] = wire["receive"] = wire["arrived"] = self.base[:-1] * times
        wire["end"] = self.base[1:] * times
        wire["ready"] = ready
        return tables(
            (wire_of, op, on_wire, waiting),
            (wire, self.slot, self.entry, self.resource),
            counting_order(wire_of, len(self.lead)),
            successor_rows(first, pred, np.tile(complete, times)),
            self.variants,
        )

    def transfer_of(self) -> NDArray[np.int64]:
        """Return the number of the transfer, in a repetition, that stands for each one of the pattern.

        Returns
        -------
        int64[n_pattern_transfers]
        """
        return self.base[self.of_wire[self.full.pattern.wire]] + self.full.pattern.place


def quotient(full: Full, colour: NDArray[np.uint64]) -> Quotient:
    """Put together the wires of one colour.

    Parameters
    ----------
    full : Full
        All wires.
    colour : uint64[n_wires]
        Equal only where wires and what their transfers wait for are equal.
    """
    from .symmetry_kernel import colour_resources, colour_slots, number_colours

    of_wire, lead = number_colours(colour)
    slot_class = np.concatenate((of_wire, of_wire + np.int32(len(lead))))
    kinds = colour_resources(full.slot, full.entry, slot_class, full.capacity)
    kind, example = number_colours(kinds)
    slot_colour = colour_slots(full.slot, full.entry, slot_class, kind)
    slot, entry, key = _slots(full, slot_class, kind, example)
    resource = share_table(full.capacity[example], np.bincount(entry["resource"], minlength=len(example)))
    base = np.concatenate((np.zeros(1, np.int64), np.cumsum(full.pattern.n_on_wire[lead])))
    edges = _edges(full.pattern, of_wire, lead, base)
    variant_of, variants = _variants(full, slot_class, kind, slot_colour, key)
    return Quotient(full, of_wire, lead, variant_of, slot, entry, resource, variants, base, edges)


def _keys(
    full: Full, entries: NDArray[np.intp], slot_class: NDArray[np.int32], kind: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Say by a number what entries are in the quotient: class of slot, whether beyond its port, kind of resource."""
    s = full.entry["slot"][entries]
    beyond = entries >= full.slot["port"][s]
    n_kinds = np.int64(kind.max(initial=0)) + 1
    of_slot = 2 * slot_class[s].astype(np.int64) + beyond
    return np.asarray(of_slot * n_kinds + kind[full.entry["resource"][entries]], np.int64)


def _slots(
    full: Full, slot_class: NDArray[np.int32], kind: NDArray[np.int32], example: NDArray[np.int32]
) -> tuple[Table, Table, NDArray[np.int64]]:
    """Lay out the slots and entries of the classes: what all users of one resource of each kind take together."""
    is_example = np.zeros(len(kind), np.bool_)
    is_example[example] = True
    entries = np.flatnonzero(is_example[full.entry["resource"]])
    key, which = np.unique(_keys(full, entries, slot_class, kind), return_inverse=True)
    n_kinds = np.int64(kind.max(initial=0)) + 1
    n_slots = 2 * (int(slot_class[: len(slot_class) // 2].max(initial=-1)) + 1)
    entry = np.zeros(len(key), ENTRY_ROW)
    entry["resource"], entry["slot"] = key % n_kinds, key // n_kinds // 2
    entry["share"] = np.bincount(which, weights=full.entry["share"][entries], minlength=len(key))
    slot = np.zeros(n_slots, SLOT_ROW)
    bounds = np.searchsorted(key, np.arange(2 * n_slots + 1) * n_kinds)
    slot["begin"], slot["port"], slot["end"] = bounds[:-1:2], bounds[1::2], bounds[2::2]
    slot["phase"], slot["transfer"], slot["weight"] = IDLE, -1, 1.0
    return slot, entry, key


def _variants(
    full: Full, slot_class: NDArray[np.int32], kind: NDArray[np.int32], slot_colour: NDArray[np.uint64],
    key: NDArray[np.int64],
) -> tuple[NDArray[np.int32], tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:  # fmt: skip
    """List what members use of each slot whose members differ: rows by slot of rows of entries; and who uses what."""
    from .symmetry_kernel import number_colours

    number, example = number_colours(slot_colour)
    of_class = slot_class[example]
    n_slots = int(slot_class.max(initial=-1)) + 1
    differ = np.bincount(of_class, minlength=n_slots) > 1
    listed = np.flatnonzero(differ[of_class])
    listed = listed[np.argsort(of_class[listed], kind="stable")]
    variant = np.full(len(example), -1, np.int32)
    variant[listed] = np.arange(len(listed))
    example = example[listed]
    first = np.searchsorted(slot_class[example], np.arange(n_slots + 1))
    length = (full.slot["end"] - full.slot["begin"])[example].astype(np.int64)
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    entries = np.arange(ends[-1]) + np.repeat(full.slot["begin"][example] - ends[:-1], length)
    entry = np.searchsorted(key, _keys(full, entries, slot_class, kind)).astype(np.int32)
    return variant[number], (first, ends, entry)


def _transfers_of(pattern: Pattern, wires: NDArray[np.int32]) -> NDArray[np.int32]:
    """Transfers of some wires, one wire after the other."""
    n = pattern.n_on_wire
    begin = np.cumsum(n) - n
    ends = np.cumsum(n[wires])
    return np.asarray(pattern.queue[np.arange(ends[-1]) + np.repeat(begin[wires] - ends + n[wires], n[wires])])


def _edges(pattern: Pattern, of_wire: NDArray[np.int32], lead: NDArray[np.int32], base: NDArray[np.int64]) -> Edges:
    """Say what the transfers of the classes wait for, in one repetition."""
    mine = _transfers_of(pattern, lead)
    n = len(mine)
    assert pattern.waits is not None
    first_row, waited, is_complete = pattern.waits
    length = np.diff(first_row)[mine]
    rows = np.arange(length.sum()) + np.repeat(first_row[mine] - np.cumsum(length) + length, length)
    before = waited[rows]
    before = base[of_wire[pattern.wire[before]]] + pattern.place[before]
    edge = np.unique((np.repeat(np.arange(n), length) * n + before) * 2 + is_complete[rows])
    return edge // 2 // n, edge // 2 % n, edge % 2 == 1
