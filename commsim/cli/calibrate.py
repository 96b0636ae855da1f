"""``commsim calibrate`` and ``commsim validate``: point-to-point costs, and schedules run for real, under mpirun."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from commsim.backends.connect import BACKENDS, reported_once, session
from commsim.core.errors import InputError
from commsim.report.table import print_remarks, print_table

from .flags import Verb, WithJson, flag, repeated
from .flags.costs import Sizes

if TYPE_CHECKING:
    from commsim.backends.calibrate import Calibration
    from commsim.backends.transport import Transport
    from commsim.backends.validate import Row
    from commsim.core.curves import Curves
    from commsim.core.network import Network

CASES = (
    ("copy 1way", "copy", False, False), ("relayed", "copy", False, True),
    ("copy 2way", "copy", True, False), ("relayed", "copy", True, True),
    ("reduce 1way", "reduce", False, False), ("relayed", "reduce", False, True),
    ("reduce 2way", "reduce", True, False), ("relayed", "reduce", True, True),
    ("local", "local", False, False),
)  # fmt: skip


class Config(WithJson):
    """All flags of ``commsim calibrate``."""

    backend: str = flag(choices=BACKENDS, default="mpi", help="what carries the messages")
    output: str | None = flag("-o", metavar="FILE", help="network file to write: .toml, .json or .npz")
    passes: int = flag(metavar="N", default=10, help="times that all steps are timed; more where others disturb them")


def run(config: Config) -> None:
    """Measure, print on rank 0, and write the network."""
    with reported_once():
        _calibrate(config)


def _calibrate(config: Config) -> None:
    from commsim.files.store import SUFFIXES

    if config.output and Path(config.output).suffix not in SUFFIXES:
        raise InputError(f"-o must end with one of {', '.join(SUFFIXES)}, got {config.output}")
    if config.passes < 1:
        raise InputError(f"--passes must be at least 1, got {config.passes}")
    with session(config.backend, min_ranks=2) as transport:
        from commsim.backends.calibrate import Calibration
        from commsim.files.store import save

        say_if_busy(transport)
        calibration = Calibration(transport)
        calibration.run(config.passes)
        network = calibration.network()
        if transport.rank == 0:
            assert network.curves is not None
            _print_curves(network.curves, f"{network.name}, time of single steps (us), each rank's memory just written")
            print_remarks(_quality(calibration, network.curves))
            if config.output:
                save(network, config.output)
                print(f"# written to {config.output}")
            more = {"machine": network.curves.machine, "mark": network.curves.mark, "busy": calibration.busy}
            config.write_json(_json(network.curves), config.flags() | {"n_ranks": transport.size}, **more)


def say_if_busy(transport: Transport) -> None:
    """Say, before anything is measured, that other processes use the cores, or that ranks have to share them."""
    from commsim.backends.busy import QUIET, idle_share
    from commsim.backends.validate import oversubscribed

    share, shared = idle_share(transport), oversubscribed(transport)
    if transport.rank:
        return
    if share > QUIET:
        print(
            f"# busy: other processes use {share:.0%} of the cores; what is measured now will be disturbed", flush=True
        )
    if shared:
        print("# oversubscribed: more ranks than cores share this host; nothing is claimed", flush=True)


def _quality(calibration: Calibration, curves: Curves) -> list[str]:
    """Say how well a calibration went."""
    from commsim.backends.busy import QUIET

    disturbed = sum(share > QUIET for share in calibration.busy)
    passes = f"{len(calibration.busy)} passes"
    if disturbed:
        passes += f", {disturbed} of them disturbed by other processes ({max(calibration.busy):.0%} of the cores)"
    lines = [passes, f"middle 80% of the times of a step: {_width(curves):.0%} wide in the median"]
    return [*lines, f"MARKED: {curves.mark}"] if curves.mark else lines


def _width(curves: Curves) -> float:
    """Median relative width of the intervals of all curves."""
    of_steps = [curve for curve in curves.curves if curve.step != "start"]
    return float(np.median(np.concatenate([(curve.high - curve.low) / curve.seconds for curve in of_steps])))


def _print_curves(curves: Curves, title: str) -> None:
    """Print what steps of each size take, alone in memory of their own, and how far apart those of a train are."""
    sizes = next(c.size for c in curves.curves if c.step == "copy" and not c.working_set)
    rows = []
    for size in sizes:
        of = np.array([size])
        times = [curves.times(step, two_way, relayed, 0.0, of) for _, step, two_way, relayed in CASES]
        gap = curves.times("copy", True, False, 0.0, of)[1]
        rows.append([f"{size:.0f}", *(f"{seconds[0] * 1e6:.1f}" for seconds, _ in times), f"{gap[0] * 1e6:.1f}"])
    print_table(["size(B)", *(case[0] for case in CASES), "train 2way"], rows, title)


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


BACKEND_OF = {"mpi": "mpi", "torch": "gloo", "gloo": "gloo", "nccl": "nccl"}
VALIDATED = [
    "collective", "size(B)", "measured(us)", "p5", "p95", "predicted(us)", "low", "high", "error", "native(us)",
    "#wrong", "note",
]  # fmt: skip


class ValidateConfig(Sizes, WithJson):
    """All flags of ``commsim validate``."""

    DEFAULTS: ClassVar[dict[str, str]] = {"minbytes": "4K", "maxbytes": "16M", "stepfactor": "4"}
    backend: str = flag("backend", choices=tuple(BACKEND_OF), help="mpi, or torch (gloo; nccl if each rank has a GPU)")
    collective: tuple[str, ...] = repeated(
        metavar="NAME[:key=value,...]|FILE.npz|all", help="algorithm (default: a selection); repeatable"
    )
    network: str | None = flag(metavar="FILE", help="network that commsim calibrate wrote (default: calibrate now)")


def validate(config: ValidateConfig) -> int:
    """Measure, predict and print on rank 0; 1 when a result was wrong."""
    with reported_once():
        return _validate(config)


def _validate(config: ValidateConfig) -> int:
    sizes = config.sizes()
    with session(BACKEND_OF[config.backend]) as transport:
        from commsim.backends.calibrate import Calibration
        from commsim.backends.measure import ITERATIONS
        from commsim.backends.validate import ROW_WARMUP, measure_rows
        from commsim.comparison.under_mpirun import build_schedules, network_from, predictor

        schedules = build_schedules(config.collective, transport.size)
        known = None if config.network is None else network_from(config.network, transport)
        say_if_busy(transport)
        calibration = Calibration(transport) if known is None and transport.size > 1 else None

        @functools.cache
        def network() -> Network | None:
            return calibration.network() if calibration else known

        rows = measure_rows(
            transport,
            schedules,
            sizes,
            predictor(network),
            warmup=ROW_WARMUP if config.warmup_iters is None else config.warmup_iters,
            iterations=config.iters or ITERATIONS,
            before_pass=calibration.run_pass if calibration else lambda: None,
        )
        if transport.rank == 0:
            _print(rows, network(), transport)
            config.write_json([row.json() for row in rows], config.flags() | {"n_ranks": transport.size})
    return 1 if any(row.n_wrong for row in rows) else 0


def _print(rows: Sequence[Row], network: Network | None, transport: Transport) -> None:
    from commsim.backends.calibrate import machine_name

    name = network.name if network else "no network, one rank alone"
    print_table(
        VALIDATED, [_text(row) for row in rows], f"{transport.size} ranks over {transport.name}, against {name}"
    )
    print_remarks(_summary(rows))
    if network is not None and network.curves is not None:
        here = machine_name(transport)
        if network.curves.machine != here:
            print_remarks([f"MARKED: calibrated on another machine ({network.curves.machine}) than this ({here})"])
        if network.curves.mark:
            print_remarks([f"MARKED: the calibration was disturbed: {network.curves.mark}"])
    if rows and rows[0].oversubscribed:
        print("# oversubscribed: more ranks than cores share this host; such rows are not counted")


def _summary(rows: Sequence[Row]) -> list[str]:
    """Errors of small and large rows, and how many measured times lie in the interval of their prediction."""
    from commsim.backends.validate import LARGE, errors_of

    lines = []
    for large, which in ((True, f"{LARGE // 1024} KiB and more"), (False, "less")):
        if errors := errors_of(rows, large):
            median, p90 = np.percentile(errors, (50, 90))
            lines.append(f"error of {len(errors)} rows of {which}: median {median:.1%}, p90 {p90:.1%}")
    judged = [row.is_inside for row in rows if row.is_inside is not None]
    if judged:
        lines.append(f"{sum(judged)} of {len(judged)} measured medians lie between low and high")
    return lines


def _text(row: Row) -> list[str]:
    ours, predicted = row.ours, row.predicted
    interval = predicted.interval if predicted else None
    return [
        ours.collective,
        f"{ours.size:.0f}",
        *(f"{t * 1e6:.1f}" for t in (ours.time, *row.spread)),
        "-" if predicted is None else f"{predicted.time * 1e6:.1f}",
        *(["-", "-"] if interval is None else [f"{t * 1e6:.1f}" for t in interval]),
        "-" if row.error is None else f"{row.error:+.1%}",
        "-" if row.native is None else f"{row.native.time * 1e6:.1f}",
        str(row.n_wrong),
        "oversubscribed" if row.oversubscribed else "" if row.is_inside is not False else "outside",
    ]


COMMANDS = {"calibrate": Verb(Config, run), "validate": Verb(ValidateConfig, validate)}
