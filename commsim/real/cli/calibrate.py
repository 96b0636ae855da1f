"""``commsim calibrate`` and ``commsim validate``: point-to-point costs, and schedules run for real, under mpirun."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from commsim.cli.flags import Verb, WithJson, flag, repeated, switched
from commsim.cli.flags.costs import Sizes
from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text, microseconds
from commsim.real.connect import BACKENDS, reported_once, session
from commsim.report.answer import Answer, Part, Table, comments, remarks
from commsim.report.render import keep, tell

if TYPE_CHECKING:
    from commsim.core.curves import Curves
    from commsim.core.network import Network
    from commsim.real.calibrate import Calibration
    from commsim.real.transport import RankTransport
    from commsim.real.validate import ValidationRow

EXAMPLES = {
    "calibrate": """
        mpirun -n 2 commsim calibrate
        mpirun -n 2 commsim calibrate --passes 1 -o here.toml
        mpirun -n 2 commsim calibrate --passes 1 --json calibration.json
        mpirun -n 2 commsim calibrate --passes 1 --csv calibration.csv
        torchrun --nproc-per-node 2 --no-python commsim calibrate --passes 1 --backend gloo""",
    "validate": """
        mpirun -n 2 commsim validate mpi -b 1K -e 1M -f 32
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K
        mpirun -n 2 commsim validate mpi --collective halving_doubling_all_reduce -b 4K -e 4K
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K -n 5 -w 1
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K --json measured.json""",
}

CASES = (
    ("copy 1way", "copy", False, False), ("relayed", "copy", False, True),
    ("copy 2way", "copy", True, False), ("relayed", "copy", True, True),
    ("reduce 1way", "reduce", False, False), ("relayed", "reduce", False, True),
    ("reduce 2way", "reduce", True, False), ("relayed", "reduce", True, True),
    ("local", "local", False, False),
)  # fmt: skip
BACKEND_OF = {"mpi": "mpi", "torch": "gloo", "gloo": "gloo", "nccl": "nccl"}
VALIDATED = [
    "collective", "size(B)", "measured", "p5", "p95", "predicted", "low", "high", "error", "native", "#wrong", "note",
]  # fmt: skip
# Columns of the verbose table only; a launcher's output has no width, and is read on a terminal.
INTERVALS = ("p5", "p95", "low", "high", "note")
# Part of the first pass after which its time is estimated.
EARLY = 0.1


class CalibrateConfig(WithJson):
    """All flags of ``commsim calibrate``."""

    backend: str = flag(choices=BACKENDS, default="mpi", help="library that carries the messages")
    output: str | None = flag(
        "-o",
        metavar="FILE",
        help="network file to write: .toml, .json or .npz; goes on from FILE.passes.json",
    )
    passes: int = flag(
        metavar="N", default=10, help="number of timings of each step; more are made if other programs disturb them"
    )


def run(config: CalibrateConfig) -> Answer:
    """Measure, and write the network; only rank 0 has an answer."""
    with reported_once():
        return _calibrate(config)


def _calibrate(config: CalibrateConfig) -> Answer:
    from commsim.core.files.store import SUFFIXES

    if config.output and Path(config.output).suffix not in SUFFIXES:
        raise InputError(f"-o must end with one of {', '.join(SUFFIXES)}, got {config.output}")
    if config.passes < 1:
        raise InputError(f"--passes must be at least 1, got {config.passes}")
    with session(config.backend, min_ranks=2) as transport:
        from commsim.core.files.store import save
        from commsim.real.calibrate import Calibration
        from commsim.real.kept_passes import KeptPasses

        before = disturbances(transport)
        calibration = Calibration(transport)
        kept = KeptPasses(calibration, config.output) if config.output else None
        n_kept = kept.go_on() if kept else 0
        progress = _progress(transport, "calibrate", max(1, config.passes - n_kept), " or more")
        calibration.run(config.passes, lambda: progress(0.0), progress, kept.write if kept else lambda: None)
        network = calibration.network()
        if transport.rank:
            return Answer()
        assert network.curves is not None
        lines, written = _quality(calibration, network.curves), list[str]()
        if n_kept:
            lines.insert(0, f"{n_kept} of these passes were kept by a calibration that was cut off")
        if config.output and kept:
            save(network, config.output)
            kept.remove()
            written = [f"written to {config.output}"]
        title = f"{network.name}, time of single steps (us), each rank's memory just written"
        disturbed = [Remark("disturbed", one, needed=True) for one in before]
        parts = [
            _curves(network.curves, title),
            *comments(written),
            *remarks([*disturbed, *as_remarks(lines, "quality")]),
        ]
        more = {"machine": network.curves.machine, "mark": network.curves.mark, "busy": calibration.busy}
        return Answer(parts, _json(network.curves), config.flags() | {"n_ranks": transport.size}, more)


def _progress(transport: RankTransport, verb: str, n_passes: int, or_more: str = "") -> Callable[[float], None]:
    """Return what ranks call before each pass, and with the part of it that is done: rank 0 shows passes and time."""
    EXPECTED.is_shown = True  # a line of each rank with the time alone says less
    began, number, is_early = time.monotonic(), 0, True

    def progress(part: float) -> None:
        nonlocal number, is_early
        number += part == 0
        took, done = time.monotonic() - began, number - 1 + part
        if transport.rank == 0 and took >= 1 and (part == 0 < done or (is_early and part >= EARLY)):
            is_early = False
            whole = took / done * n_passes
            tell(f"commsim {verb}: pass {number} of {n_passes}, {took:.0f} s of about {whole:.0f} s{or_more}")

    return progress


def disturbances(transport: RankTransport) -> list[str]:
    """Return remarks on what will disturb a measurement: other processes use the cores, or ranks have to share them."""
    from commsim.real.busy import QUIET, idle_share
    from commsim.real.validate import oversubscribed

    share, shared = idle_share(transport), oversubscribed(transport)
    lines = []
    if share > QUIET:
        lines.append(f"busy: other processes use {share:.0%} of the cores; what is measured now will be disturbed")
    if shared:
        lines.append("oversubscribed: more ranks than cores share this host; the prediction is not expected to hold")
    if transport.rank == 0:  # at once, since what follows may take minutes
        for line in lines:
            tell(f"commsim: {line}")
    return lines


def _quality(calibration: Calibration, curves: Curves) -> list[str]:
    """Describe how well a calibration went."""
    from commsim.real.busy import QUIET

    disturbed = sum(share > QUIET for share in calibration.busy)
    passes = f"{len(calibration.busy)} passes"
    if disturbed:
        passes += f", {disturbed} of them disturbed by other processes ({max(calibration.busy):.0%} of the cores)"
    lines = [passes, f"middle 80% of the times of a step: {curves.width:.0%} wide in the median"]
    return [*lines, f"MARKED: {curves.mark}"] if curves.mark else lines


def _curves(curves: Curves, title: str) -> Table:
    """Return what steps of each size take, alone in memory of their own, and how far apart those of a train are."""
    sizes = next(c.size for c in curves.curves if c.step == "copy" and not c.working_set)
    rows = []
    for size in sizes:
        of = np.array([size])
        times = [curves.times(step, two_way, relayed, 0.0, of) for _, step, two_way, relayed in CASES]
        gap = curves.times("copy", True, False, 0.0, of)[1]
        rows.append([f"{size:.0f}", *(microseconds(seconds[0], 1) for seconds, _ in times), microseconds(gap[0], 1)])
    return Table(["size(B)", *(case[0] for case in CASES), "train 2way"], rows, title)


def _json(curves: Curves) -> list[dict[str, object]]:
    """One row per curve and size."""
    return [
        {
            "step": c.step,
            "ways": 2 if c.two_way else 1,
            "relayed": c.relayed,
            "working_set_B": c.working_set,
            "size_B": float(c.size[i]),
            "time_s": float(c.seconds[i]),
            "occupancy_s": float(c.occupancy[i]),
            "low_s": float(c.low[i]),
            "high_s": float(c.high[i]),
        }
        for c in curves.curves
        for i in range(len(c.size))
    ]


class ValidateConfig(Sizes, WithJson):
    """All flags of ``commsim validate``."""

    DEFAULTS: ClassVar[dict[str, str]] = {"minbytes": "4K", "maxbytes": "16M", "stepfactor": "4"}
    backend: str = flag("backend", choices=tuple(BACKEND_OF), help="mpi, or torch (gloo; nccl if each rank has a GPU)")
    collective: tuple[str, ...] = repeated(
        metavar="NAME[:key=value,...]|FILE.npz|FILE.py|all", help="algorithm (default: a selection); repeatable"
    )
    library: str | None = flag(
        metavar="NAME",
        help="library whose rules choose the algorithm for an operation and size: mpich, open-mpi or gloo",
    )
    network: str | None = flag(metavar="FILE", help="network that commsim calibrate wrote (default: calibrate now)")
    verbose: bool = switched("-v", help="also print the intervals of measured and of predicted times")


def validate(config: ValidateConfig) -> Answer:
    """Measure and predict; the exit code is 1 when a result was wrong, and only rank 0 has something to show."""
    with reported_once():
        return _validate(config)


def _validate(config: ValidateConfig) -> Answer:
    sizes = config.sizes()
    if config.library and config.collective:
        raise InputError("--library chooses the algorithms, and --collective names them: give one of them")
    with session(BACKEND_OF[config.backend]) as transport:
        from commsim.real.calibrate import Calibration
        from commsim.real.comparison.under_mpirun import (
            build_schedules,
            network_from,
            predictor,
            schedules_of_library,
        )
        from commsim.real.measure import ITERATIONS
        from commsim.real.validate import ROW_WARMUP, measure_rows, memory_of, parts_of

        if config.library:
            schedules = schedules_of_library(config.library, transport.size)
        else:
            schedules = build_schedules(config.collective, transport.size)
        known = None if config.network is None else network_from(config.network, transport)
        before = disturbances(transport)
        memory = max((memory_of(build(size), size) for build in schedules for size in sizes), default=0.0)
        calibration = Calibration(transport, memory) if known is None and transport.size > 1 else None
        iterations = config.iters or ITERATIONS
        progress = _progress(transport, "validate", len(parts_of(iterations)))

        def before_pass() -> None:
            progress(0.0)
            if calibration:
                calibration.run_pass(progress)

        @functools.cache
        def network() -> Network | None:
            return calibration.network() if calibration else known

        rows = measure_rows(
            transport,
            schedules,
            sizes,
            predictor(network, any_order=transport.wait_some is not None),
            warmup=ROW_WARMUP if config.warmup_iters is None else config.warmup_iters,
            iterations=iterations,
            before_pass=before_pass,
            keep=_keep(config, transport.size, len(parts_of(iterations))),
        )
        code = 1 if any(row.n_wrong for row in rows) else 0
        if transport.rank:
            return Answer(code=code)
        parts = [
            *remarks(Remark("disturbed", one, needed=True) for one in before),
            *_parts(rows, network(), transport, config.verbose),
        ]
        flags = config.flags("verbose") | {"n_ranks": transport.size}
        return Answer(parts, [row.json() for row in rows], flags, _network_of(network()), code=code)


def _network_of(network: Network | None) -> dict[str, object]:
    """Return the network that predicted the rows, as a network file has it: they can be predicted again."""
    from commsim.core.files.network_file import network_tree

    return {} if network is None else {"network": network_tree(network, "the network of --json")}


def _keep(config: ValidateConfig, n_ranks: int, n_passes: int) -> Callable[[int, list[ValidationRow]], None] | None:
    """Return what writes the rows so far to the file of ``--json``, so that they are there if the rest never comes."""
    if (path := config.json) is None:
        return None

    def keep_rows(number: int, rows: list[ValidationRow]) -> None:
        text = f"unfinished: {number} of {n_passes} passes were measured, and nothing is predicted yet"
        flags = config.flags("verbose") | {"n_ranks": n_ranks}
        keep(Answer(remarks([Remark("unfinished", text, needed=True)]), [row.json() for row in rows]), flags, path)

    return keep_rows


def _parts(
    rows: Sequence[ValidationRow], network: Network | None, transport: RankTransport, verbose: bool
) -> list[Part]:
    """Return the rows, a summary of their errors, and what marks them."""
    from commsim.real.calibrate import machine_name
    from commsim.real.validate import about_sums, summary_of

    if network is None:
        title = f"a single rank over {transport.name}, which sends nothing: nothing to predict; times in us"
    else:
        title = f"{count_text(transport.size, 'rank')} over {transport.name}, against {network.name}; times in us"
    lines = [*about_sums(rows), *summary_of(rows)]
    if network is not None and network.curves is not None:
        here = machine_name(transport)
        if network.curves.machine != here:
            lines.append(f"MARKED: calibrated on another machine ({network.curves.machine}) than this ({here})")
        if network.curves.mark:
            lines.append(f"MARKED: the calibration was disturbed: {network.curves.mark}")
    if rows and rows[0].oversubscribed:
        lines.append(
            "oversubscribed: more ranks than cores share this host; the errors of such rows are shown, and no median "
            "of errors and no count of intervals is made of them"
        )
    return [_table(rows, title, verbose), *comments(lines)]


def _table(rows: Sequence[ValidationRow], title: str, verbose: bool) -> Table:
    """Return the rows; intervals where they are asked for, and wrong results where there are some."""
    cells = [_text(row) for row in rows]
    kept = [
        i for i, name in enumerate(VALIDATED)
        if verbose or (name not in INTERVALS and (name != "#wrong" or any(row.n_wrong for row in rows)))
    ]  # fmt: skip
    return Table([VALIDATED[i] for i in kept], [[row[i] for i in kept] for row in cells], title)


def _text(row: ValidationRow) -> list[str]:
    ours, predicted = row.ours, row.predicted
    interval = predicted.interval if predicted else None
    return [
        ours.collective,
        f"{ours.size:.0f}",
        *(microseconds(t, 1) for t in (ours.time, *row.spread)),
        "-" if predicted is None else microseconds(predicted.time, 1),
        *(["-", "-"] if interval is None else [microseconds(t, 1) for t in interval]),
        "-" if row.error is None else f"{row.error:+.1%}",
        "-" if row.native is None else microseconds(row.native.time, 1),
        str(row.n_wrong),
        "oversubscribed" if row.oversubscribed else "" if row.is_inside is not False else "outside",
    ]


COMMANDS = {"calibrate": Verb(CalibrateConfig, run), "validate": Verb(ValidateConfig, validate)}
