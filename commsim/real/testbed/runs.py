"""Run collectives in a testbed, one launch of ranks for all that need as many of them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence

from commsim.core.network import Network
from commsim.core.units import count_text
from commsim.packets.aggregated.plan_aggregated import AggregatedPlan, as_messages
from commsim.prediction.build import prepare
from commsim.prediction.plans.dense import Plan

from .calibration import SeatCosts, calibrate
from .launch import BACKEND, Ranks
from .layout import TestbedLayout
from .measure import TestbedCell, measure
from .pinned import pinned
from .places import NamesOfTestbed
from .switch import measure_switch

ON_A_SWITCH = "switchml"
# That all timed runs of a cell take together, unless two take longer.
SECONDS = 3.0
# Spread of a cell's times, relative to their median, from which on it is measured again.
UNSTEADY = 0.05


def run_cells(
    place: NamesOfTestbed,
    layout: TestbedLayout,
    collectives: Sequence[str],
    sizes: Sequence[int],
    *,
    native: Sequence[str] = (),
    backend: str = BACKEND,
    n_ranks: int | None = None,
    placement: str | None = None,
    seed: int = 0,
    calibrated: bool = True,
    warmup: int = 1,
    iterations: int = 9,
    tries: int = 3,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[list[tuple[str, TestbedCell]], SeatCosts | None]:
    """Measure every collective at every size.

    Parameters
    ----------
    place, layout : NamesOfTestbed, TestbedLayout
        The testbed.
    collectives : sequence of str
        ``name:key=value,...``; ``switchml`` runs on the live switch.
    sizes : sequence of int, bytes
        Sizes as nccl-tests counts them.
    native : sequence of str
        Operations whose library collective is run too, on all seats, beside the prediction of a ring.
    backend, n_ranks, placement, seed
        Same as in :func:`commsim.prediction.prepare` and :class:`Ranks`.
    calibrated : bool
        Whether to measure the costs of messages first, point to point.
    warmup, iterations : int
        Runs that are not timed, and those that are; at most as many as take SECONDS.
    tries : int
        How often a cell is measured, at most, until nothing disturbs it and its times agree.
    tell : callable
        Told what comes next.

    Returns
    -------
    list of (str, TestbedCell), SeatCosts or None
        What was asked for, at each size, and its steadiest measurement; and what messages cost.

    Raises
    ------
    InputError
        If a name or a parameter is wrong, or the placement does not fit.
    BackendError
        If ranks do not answer.
    """
    cells: list[tuple[str, TestbedCell]] = []
    known: SeatCosts | None = None
    live = [spec for spec in collectives if spec.partition(":")[0] == ON_A_SWITCH]
    ordinary = [spec for spec in collectives if spec not in live]

    def place_on(network: Network, spec: str) -> Plan:
        prepared = prepare(spec, network, n_ranks=n_ranks, placement=placement, seed=seed)
        if prepared.data is not None:  # what the switch's workers send for their pool's sake, ours over MPI do not
            prepared.data.form = dataclasses.replace(prepared.data.form, sends=None)
        # Over MPI helpers exchange messages, not packets of a switch.
        return as_messages(prepared) if isinstance(prepared, AggregatedPlan) else prepared

    def seats_of(spec: str) -> tuple[int, ...]:
        return tuple(int(node) for node in place_on(layout.network, spec).placement.nodes)

    wanted = [(spec, seats_of(spec)) for spec in ordinary]
    rings = [(operation, seats_of("ring_all_reduce")) for operation in native]
    for seats, group in itertools.groupby(sorted(wanted + rings, key=lambda w: w[1]), key=lambda w: w[1]):
        with Ranks(place, layout, seats, backend) as ranks:
            if calibrated and known is None and len(seats) > 1:
                known = calibrate(ranks)
                if known.disturbed:
                    tell(f"the calibration is not to be trusted: {known.disturbed}")
            network = layout.network if known is None else known.on(layout.network)
            for name, _ in group:
                tell(f"{name} on {count_text(len(seats), 'rank')}")
                own = name if name in native else ""
                prepared = place_on(network, "ring_all_reduce" if own else name)
                with pinned(place, layout, prepared.placement):
                    for size in sizes:
                        n = _iterations(prepared, size, iterations)
                        again = functools.partial(
                            measure, ranks, prepared, size, warmup=warmup, iterations=n, native=own
                        )
                        cells.append((name, _steadiest(again, tries)))
    for spec in live:
        tell(f"{spec} on the live switch")
        prepared = place_on(layout.network, spec)
        seats = seats_of(spec)[: prepared.schedule.n_ranks]
        for size in sizes:
            n = _iterations(prepared, size, iterations)
            again = functools.partial(measure_switch, place, layout, seats, size, warmup=warmup, iterations=n)
            cells.append((spec, _steadiest(again, tries)))
    return cells, known


def _iterations(prepared: Plan, size: int, most: int) -> int:
    return max(min(2, most), min(most, int(SECONDS / max(prepared.predict(size).time, 1e-9))))


def _steadiest(again: Callable[[], TestbedCell], tries: int) -> TestbedCell:
    """Measure until nothing disturbs and the times agree, and return the best of what was measured."""
    best = again()
    for _ in range(tries - 1):
        if best.unrest < UNSTEADY:
            break
        best = min(best, again(), key=lambda cell: cell.unrest)
    return best
