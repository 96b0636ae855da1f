"""What machines should reach: the time and bus bandwidth of each operation and size, its interval, and a floor.

The floor is the bus bandwidth that a stated share of healthy machines does not reach at one size: its rate of false
alarms. A log of several sizes is judged as a whole (:mod:`commsim.diagnosis.check_log`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.operations import operation
from commsim.core.remark import Remark, distinct
from commsim.core.units import count_text
from commsim.core.value import Shown
from commsim.nccl.error_model import ErrorModel
from commsim.nccl.intervals import EVERY, TOLD
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.bounds.limited_by import limit_of
from commsim.prediction.checks import checked, texts
from commsim.prediction.collective_names import collective_entry, spelled_out, usual_collective
from commsim.prediction.inputs import NetworkLike, PlacementLike, SizeLike, network_of, size_of
from commsim.prediction.inputs import sizes_of as bytes_of
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import Solution, plan_of, solve

from .errors_of_plan import errors_of_plan
from .machines_asked import check_rate, on_machines

# What health checks measure, and the sizes in bytes that they take, unless others are asked for.
USUAL_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
USUAL_SIZES = tuple(float(2**power) for power in range(20, 35, 2))
FALSE_ALARMS = 0.01
# Codes of what predictions say of their intervals; an expectation has those of its errors.
OF_INTERVALS = ("interval", "no-interval")
__all__ = ["FALSE_ALARMS", "USUAL_OPERATIONS", "USUAL_SIZES", "Expectation", "ExpectedSize", "expect"]


class ExpectedSize(NamedTuple):
    """What one operation should reach at one size.

    Parameters
    ----------
    operation : str
        Name of the operation.
    size : float, bytes
        Size as nccl-tests counts it.
    time, busbw : float, s and bytes/s
        Predicted time and its bus bandwidth.
    low, high : float, bytes/s
        Bus bandwidths between which 80 % of the rows of public tables of healthy machines lie.
    floor : float, bytes/s
        Bus bandwidth that only the stated share of healthy machines does not reach.
    how : str
        Algorithm and protocol, where the library chooses.
    limited_by : str
        Kind of link that limits the time, or what it waits for; empty where that is not known.
    healthy : float or None, bytes/s
        Bus bandwidth without the faults that were asked for; None without any.
    """

    operation: str
    size: float
    time: float
    busbw: float
    low: float
    high: float
    floor: float
    how: str = ""
    limited_by: str = ""
    healthy: float | None = None

    def row(self) -> dict[str, Any]:
        """Return the row of the JSON and the CSV: SI units, times in s."""
        whole = {} if self.healthy is None else {"healthy_busbw_Bps": self.healthy}
        return {
            "operation": self.operation, "size_B": self.size, "time_s": self.time, "busbw_Bps": self.busbw,
            "low_busbw_Bps": self.low, "high_busbw_Bps": self.high, "floor_busbw_Bps": self.floor, "how": self.how,
            "limited_by": self.limited_by,
        } | whole  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Expectation(Shown):
    """What machines should reach.

    Parameters
    ----------
    network : str
        Name of the network.
    n_ranks, n_machines : int
        Ranks, and machines that they are on.
    false_alarms : float
        Share of healthy machines that are below the floor of a size.
    sizes : tuple of ExpectedSize
        One for each operation and size.
    errors : ErrorModel
        Errors of the predictions, which the intervals and floors are made of.
    notes : tuple of Remark
        What the predictions assume and leave out.
    """

    network: str
    n_ranks: int
    n_machines: int
    false_alarms: float
    sizes: tuple[ExpectedSize, ...]
    errors: ErrorModel
    notes: tuple[Remark, ...] = ()

    @property
    def operations(self) -> tuple[str, ...]:
        """Names of the operations, each once."""
        return tuple(dict.fromkeys(one.operation for one in self.sizes))

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What the floors mean, whose errors they are made of, and what the predictions assume."""
        return (*_about_errors(self.errors), *self.notes)

    def of(self, name: str) -> tuple[ExpectedSize, ...]:
        """Return the sizes of an operation."""
        return tuple(one for one in self.sizes if one.operation == name)

    def floor(self, name: str, size: SizeLike) -> float:
        """Return the floor of an operation at a size, in bytes/s of bus bandwidth.

        Raises
        ------
        InputError
            If there is none.
        """
        wanted = size_of(size)
        found = [one.floor for one in self.of(name) if one.size == wanted]
        if not found:
            raise InputError(f"nothing is expected of {name} at {wanted:.0f} B here; name it when you call expect")
        return found[0]

    def joined(self, others: Sequence[Expectation]) -> Expectation:
        """Return this and the expectations of other operations of the same machines as one."""
        every = (self, *others)
        return replace(
            self, sizes=tuple(one for each in every for one in each.sizes),
            notes=distinct(note for each in every for note in each.notes),
        )  # fmt: skip

    @property
    def limited_by(self) -> str:
        """What limits the largest size: of all operations alike, or of each; empty where that is not known."""
        largest = {name: max(self.of(name), key=lambda one: one.size).limited_by for name in self.operations}
        kinds = dict.fromkeys(what for what in largest.values() if what)
        if len(kinds) < 2:
            return "".join(kinds)
        of = {kind: [name for name, what in largest.items() if what == kind] for kind in kinds}
        return ", ".join(f"{kind} ({', '.join(names)})" for kind, names in of.items())

    def __repr__(self) -> str:
        return f"Expectation({self.network}, {count_text(len(self.sizes), 'size')}, {self.false_alarms:.3g} below)"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each operation and size, as a data frame of pandas or polars."""
        return frame_of((one.row() for one in self.sizes), library)


def expect(
    network: NetworkLike,
    operations: Sequence[str] = (),
    sizes: SizeLike | Sequence[SizeLike] = (),
    *,
    machines: int | None = None,
    n_ranks: int | None = None,
    collective: str | None = None,
    placement: PlacementLike | None = None,
    hashes: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    seed: int = 0,
    false_alarms: float = FALSE_ALARMS,
) -> Expectation:
    """Say what machines should reach, and which bus bandwidth is too low.

    Parameters
    ----------
    network : str, Network or NetworkBuilder
        Machines on a fabric, such as ``dgx-h100@rail_optimized:...``, or a machine such as ``dgx-h100``.
    operations : sequence of str, optional
        Operations. Default: all-reduce, all-gather, reduce-scatter and all-to-all.
    sizes : float or str, or a sequence of them, optional
        Sizes in bytes. Default: 1 MiB to 16 GiB by fours.
    machines : int, optional
        Number of machines, where `network` is one machine: they are then joined by a fabric that is not oversubscribed.
    n_ranks : int, optional
        Number of ranks. Default: all GPUs.
    collective : str, optional
        Library with its release, such as ``nccl:version=2.27``, or one algorithm. Default: what runs on the machines.
    placement, hashes, fail, scale, seed
        Same as in :func:`scenario_of`; with faults, what is left should reach this, and what the machines would reach
        without them stands beside it.
    false_alarms : float
        Share of healthy machines that are below the floor of a size.

    Returns
    -------
    Expectation
        Times, bus bandwidths, intervals and floors.

    Raises
    ------
    InputError
        If a name is unknown, or a number out of its range.

    Examples
    --------
    >>> import commsim as cs
    >>> [found] = cs.expect("dgx-h100", ["all_reduce"], ["16GiB"]).sizes
    >>> found.floor < found.low < found.busbw < found.high
    True
    """
    check_rate(false_alarms)
    where = network_of(on_machines(network, machines))
    wanted = bytes_of(USUAL_SIZES if isinstance(sizes, Sequence) and not sizes else sizes)
    found, notes, plan = list[ExpectedSize](), list[Remark](), None
    for name in texts("all_reduce")("operations", operations) or operations_of(collective, where):
        known = operation(checked("operation", name))
        spec = spelled_out(collective, known.name) if collective else usual_collective(where, known.name)[0]
        scenario = scenario_of(
            spec, where, operation=known.name, n_ranks=n_ranks, placement=placement, hashes=hashes, fail=fail,
            scale=scale, seed=seed or None,
        )  # fmt: skip
        plan = plan_of(scenario)
        assert isinstance(plan, Plan)
        solution = solve(scenario, wanted, plan=plan)
        own = sizes_of(solution, known.busbw_factor(plan.schedule.n_ranks), false_alarms)
        if fail or scale:
            ranks_of_whole = None if scenario.is_left else plan.schedule.n_ranks
            whole = expect(
                where, (known.name,), wanted, n_ranks=ranks_of_whole, collective=spec, placement=placement,
                hashes=hashes, seed=seed, false_alarms=false_alarms,
            ).sizes  # fmt: skip
            own = [one._replace(healthy=beside.busbw) for one, beside in zip(own, whole, strict=True)]
        found += own
        notes += [note for note in solution.said if note.code not in OF_INTERVALS]
    assert isinstance(plan, Plan)  # the operations are at least one
    ranks = plan.placement.nodes[: plan.schedule.n_ranks]
    n_machines = len(set(where.machine[ranks].tolist()) - {-1}) or len(set(ranks.tolist()))
    return Expectation(
        plan.network.name, plan.schedule.n_ranks, n_machines, false_alarms, tuple(found), errors_of_plan(plan),
        distinct(notes),
    )  # fmt: skip


def sizes_of(solution: Solution, factor: float, false_alarms: float) -> list[ExpectedSize]:
    """Return what is expected of each result of a collective.

    Parameters
    ----------
    solution : Solution
        Predictions of one collective.
    factor : float
        Bus bandwidth over the size by the time.
    false_alarms : float
        Share of healthy machines that are below the floor.
    """
    plan = solution.plan
    assert isinstance(plan, Plan)
    errors, found = errors_of_plan(plan), []
    for result in solution.results:
        busbw = factor * result.size / result.time if result.time else 0.0
        limit = busbw * math.exp(-errors.of(result.size).exceeded(false_alarms))
        fast, slow = (busbw * math.exp(-log) for log in errors.ends(result.size))
        how, limited = _chosen(plan, result.size), limit_of(plan, result)
        found.append(ExpectedSize(
            plan.schedule.operation, result.size, result.time, busbw, slow, fast, limit, how,
            "" if limited is None else limited.what,
        ))  # fmt: skip
    return found


def operations_of(collective: str | None, network: Network) -> tuple[str, ...]:
    """Return what is asked for where no operation is named: that of a collective, else those of the machines' library.

    Parameters
    ----------
    collective : str or None
        Collective, or a library.
    network : Network
        Network that it runs on.
    """
    if collective and not _is_library(collective):
        return (str(collective_entry(collective)[0].metadata["operation"]),)
    library = usual_collective(network)[0].partition("_")[0]
    names = [name for name in USUAL_OPERATIONS if usual_collective(network, name)[0].startswith(library)]
    return tuple(names) if library in ("nccl", "rccl") else USUAL_OPERATIONS


def _is_library(collective: str) -> bool:
    return collective.partition(":")[0].strip() in ("nccl", "rccl")


def _chosen(plan: Plan, size: float) -> str:
    """Return the algorithm and protocol that a library takes."""
    if not isinstance(plan, NcclPlan):
        return ""
    parameters = plan.at(size).parameters
    return "/".join(str(parameters[key]) for key in ("algorithm", "protocol") if key in parameters)


def _about_errors(errors: ErrorModel) -> list[Remark]:
    if errors.kind == EVERY:
        text = "low, high, floor: of NCCL on all kinds of machines; none are known of this collective"
        return [Remark("errors-of-all", text, needed=True)]
    if not errors.is_of_kind:
        kind = TOLD.get(errors.kind, errors.kind)
        text = f"low, high, floor: of all kinds of machines; few public tables are of {kind}"
        return [Remark("errors-of-all", text, needed=True)]
    return []
