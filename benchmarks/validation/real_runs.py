"""Build testbeds, run everything in `real_cells`, and make rows; a run that others disturbed is repeated."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from collectives import COLLECTIVES
from commsim.auto.case import PredictionCase, case_of
from commsim.core.errors import BackendError
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.real.testbed.measure import TestbedCell
from commsim.real.testbed.own_testbed import temporary_testbed
from commsim.real.testbed.places import lacking
from commsim.real.testbed.runs import run_cells
from commsim.real.testbed.share import ShiftedRun, share

from .real_cells import FASTER, GROUPS, KIB, LEAF_SPINE, MIB, SLOWED, Group
from .row import Row

# Bytes from which on times are held to 5 %; below, a bucket of two frames decides too much.
SMALLEST = 256 * KIB
SHARED = f"{LEAF_SPINE},hosts_per_leaf=2,bandwidth=200Mbps,uplink_bandwidth=100Mbps"
SHIFTS = (0.0, 0.1, 0.47)

Found = dict[tuple[str, str, int], TestbedCell]


def rows(quick: bool, names: Collection[str] = ()) -> Iterator[Row]:
    """Run everything, or the quick subset, or some groups, and return its rows.

    Parameters
    ----------
    quick : bool
        Whether only the quick subset is wanted.
    names : collection of str
        Groups; all unless given.

    Raises
    ------
    BackendError
        If no testbed can be built here.
    """
    why = lacking()
    if why:
        raise BackendError(f"no real runs: {why}")
    found: Found = {}
    for group in (group for group in GROUPS if (group.name in names if names else group.quick == quick)):
        began = time.monotonic()
        try:
            for spec, cell in _run(group):
                found[group.name, spec, round(cell.result.size)] = cell
                yield from _rows_of(group, spec, cell)
        except BackendError as error:
            print(f"# real: {group.name}: {error}; its rows are missing", file=sys.stderr, flush=True)
        print(f"# real: {group.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if not quick:
        yield from _ratios(found)
    if not quick and not names:
        yield from _shared_rows()


def _run(group: Group) -> list[tuple[str, TestbedCell]]:
    with temporary_testbed(group.build()) as (place, layout):
        return run_cells(place, layout, group.collectives, group.sizes, native=group.native, backend=group.backend,
                         n_ranks=group.ranks, placement=group.placement, calibrated=group.calibrated)[0]  # fmt: skip


def _rows_of(group: Group, spec: str, cell: TestbedCell) -> Iterator[Row]:
    result = cell.result
    size, name = round(result.size), spec.partition(":")[0]
    low, high = cell.spread
    about: dict[str, Any] = {
        "kind": "real",
        "model": result.collective,
        "engine": "flow",
        "operation": result.operation,
        "ranks": result.n_ranks,
        "network": cell.network.name,
        "size": float(size),
    }
    where = f"testbed {group.name}, {group.backend}, {group.placement}, median of {len(result.samples)}"
    small = size < SMALLEST
    yield Row(id=f"real/{group.name}/{spec}/{size}", against="testbed below 256 KiB" if small else "testbed",
              reference=result.time, ours=cell.predicted.time, unit="s", source=where,
              spread=(high - low) / result.time, valid=not cell.invalid,
              note=cell.invalid or _note(group, name, size, cell), case=_case(group, spec, size),
              **about)  # fmt: skip
    if size >= MIB and name in COLLECTIVES and not cell.invalid:
        busiest = int(cell.predicted.link_bytes.argmax())
        yield Row(id=f"real/{group.name}/{spec}/{size}/bytes", against="testbed, bytes",
                  reference=float(result.link_bytes[busiest]), ours=float(cell.predicted.link_bytes[busiest]),
                  unit="bytes", source=f"{where}: the busiest link's counter", **about)  # fmt: skip


def _case(group: Group, spec: str, size: int) -> PredictionCase | None:
    """Conditions of a cell: those of the network that was built, since what software costs there was measured there.

    None for what a library did by an algorithm of its own, for what `switchml` does on a live switch, and for sparse
    data, whose blocks are a condition that auto does not look at.
    """
    name = spec.partition(":")[0]
    if name not in COLLECTIVES or COLLECTIVES[name].metadata["systems"]:
        return None
    ready = prepare(spec, group.build(), n_ranks=group.ranks, placement=group.placement)
    return case_of(ready, size) if ready.data is None else None


def _note(group: Group, name: str, size: int, cell: TestbedCell) -> str:
    """Say why a cell is off, where it is known: what is short on small messages has a reason of its own."""
    few = size <= SMALLEST and cell.error > 0
    other = NOTES["one-slow"] if group.slower != 1 and cell.error < 0 else ""
    return NOTES.get(name, NOTES["small"] if few else other)


# Why rows are off where they are, as docs/testbed.md explains.
NOTES = {
    "one-slow": "a message is sent before its receiver has finished the previous one, and takes bandwidth of its"
    " slow port",
    "small": "a token bucket that was idle lets two frames pass at once; the model has no buckets",
    "omnireduce": "the processor time of writing, reading and adding lists of blocks is not modelled",
    "double_tree_all_reduce": "see docs/testbed.md, Accuracy",
    "parameter_server": "one process handles 32 small messages at a time; its processor time is not modelled",
}


def _ratios(found: Found) -> Iterator[Row]:
    """Make rows of the ratios that matter more than times: packed to spread, ring to switch."""
    pairs = [((slow, spec, size), (fast, spec, size), f"{slow} over {fast}: {spec}")
             for slow, fast in SLOWED for group, spec, size in found if group == slow]  # fmt: skip
    pairs += [((group, slow, size), (group, fast, size), f"{group}: {slow} over {fast}")
              for group, slow, fast in FASTER for at, spec, size in found if (at, spec) == (group, slow)]  # fmt: skip
    for above, below, what in pairs:
        if above in found and below in found:
            a, b = found[above], found[below]
            yield Row(id=f"real/ratio/{what}/{above[2]}", kind="real", against="testbed, ratios", model=what,
                      engine="flow", operation=a.result.operation, reference=a.result.time / b.result.time,
                      ours=a.predicted.time / b.predicted.time, unit="times", source="two cells of this table",
                      ranks=a.result.n_ranks, size=float(above[2]), valid=not (a.invalid or b.invalid),
                      note=a.invalid or b.invalid)  # fmt: skip


def _shared_rows() -> Iterable[Row]:
    with temporary_testbed(load_network(SHARED)) as (place, layout):
        h = {layout.network.nodes[seat]: seat for seat in layout.seats}
        seats = [[h["h0"], h["h2"]], [h["h1"], h["h3"]]]
        ring = COLLECTIVES["ring_all_reduce"].build(2)
        for one in share(place, layout, [ring, ring], seats, 4 * MIB, SHIFTS, compute=0.55, iterations=7):
            yield from _rows_of_shared(one)


def _rows_of_shared(one: ShiftedRun) -> Iterator[Row]:
    for j in range(len(one.alone)):
        spread = float(one.times[j].max() - one.times[j].min()) / float(one.measured[j])
        about: dict[str, Any] = {
            "kind": "real",
            "model": "two jobs on one link",
            "engine": "flow",
            "operation": "all_reduce",
            "ranks": 2,
            "network": SHARED,
            "size": 4.0 * MIB,
            "spread": spread,
        }
        yield Row(id=f"real/shared/shift {one.shift * 1e3:g} ms/job {j}", against="testbed, two jobs",
                  reference=float(one.measured[j]), ours=float(one.predicted[j]), unit="s",
                  source=f"testbed, rings of two over one 100 Mbit/s link, median of {one.times.shape[1]}",
                  **about)  # fmt: skip
