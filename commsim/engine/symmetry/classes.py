"""Classes of wires: told apart by what they are, by what their transfers wait for, and by what went wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .pattern import Pattern
from .quotient import Full, Quotient, quotient

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
