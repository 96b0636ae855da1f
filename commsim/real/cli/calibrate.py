"""``commsim calibrate``: point-to-point costs of a machine, measured under mpirun."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from commsim.cli.flags import DefaultOf, Verb, WithJson, flag
from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import microseconds
from commsim.real.connect import BACKENDS, reported_once, session
from commsim.report.answer import Answer, Table, comments, remarks
from commsim.report.terminal import tell

if TYPE_CHECKING:
    from commsim.core.curves import Curves
    from commsim.real.calibrate import Calibration
    from commsim.real.transport import RankTransport

EXAMPLES = {
    "calibrate": """
        mpirun -n 2 commsim calibrate
        mpirun -n 2 commsim calibrate --passes 1 -o here.toml
        mpirun -n 2 commsim calibrate --passes 1 --json calibration.json
        mpirun -n 2 commsim calibrate --passes 1 --csv calibration.csv
        torchrun --nproc-per-node 2 --no-python commsim calibrate --passes 1 --backend gloo""",
}

CASES = (
    ("copy 1way", "copy", False, False), ("relayed", "copy", False, True),
    ("copy 2way", "copy", True, False), ("relayed", "copy", True, True),
    ("reduce 1way", "reduce", False, False), ("relayed", "reduce", False, True),
    ("reduce 2way", "reduce", True, False), ("relayed", "reduce", True, True),
    ("local", "local", False, False),
)  # fmt: skip
# Part of the first pass after which its time is estimated.
EARLY = 0.1


class CalibrateConfig(WithJson):
    """All flags of ``commsim calibrate``."""

    backend: str = flag(choices=BACKENDS, default="mpi", help="library that carries the messages")
    output: str | None = flag(
        "-o",
        metavar="FILE",
        help="network file to write: .toml, .json or .npz; an interrupted run continues from FILE.passes.json",
    )
    passes: int = flag(
        metavar="N",
        default=DefaultOf("commsim.real.calibrate:PASSES"),
        help="number of timings of each step; more are made if other programs disturb them",
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
        progress = show_passes(transport, "calibrate", max(1, config.passes - n_kept), " or more")
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


def show_passes(transport: RankTransport, verb: str, n_passes: int, or_more: str = "") -> Callable[[float], None]:
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


COMMANDS = {"calibrate": Verb(CalibrateConfig, run)}
