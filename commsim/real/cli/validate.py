"""``commsim validate``: schedules run for real under mpirun, beside their prediction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from commsim.cli.flags import Sizes, Verb, WithJson, flag, repeated, switched
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text, microseconds
from commsim.real.connect import reported_once, session
from commsim.report.answer import Answer, Part, Table, comments, keep, remarks

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.real.transport import RankTransport
    from commsim.real.validate import ValidationRow
from .calibrate import disturbances, show_passes

EXAMPLES = {
    "validate": """
        mpirun -n 2 commsim validate mpi -b 1K -e 1M -f 32
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K
        mpirun -n 2 commsim validate mpi --collective halving_doubling_all_reduce -b 4K -e 4K
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K -n 5 -w 1
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K --json measured.json""",
}

BACKEND_OF = {"mpi": "mpi", "torch": "gloo", "gloo": "gloo", "nccl": "nccl"}
VALIDATED = [
    "collective", "size(B)", "measured", "p5", "p95", "predicted", "low", "high", "error", "native", "#wrong", "note",
]  # fmt: skip
# Columns of the verbose table only; a launcher's output has no width, and is read on a terminal.
INTERVALS = ("p5", "p95", "low", "high", "note")


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


def run(config: ValidateConfig) -> Answer:
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
        from commsim.real.steps import usual_steps
        from commsim.real.validate import ROW_WARMUP, measure_rows, memory_of, parts_of

        if config.library:
            schedules = schedules_of_library(config.library, transport.size)
        else:
            schedules = build_schedules(config.collective, transport.size)
        known = None if config.network is None else network_from(config.network, transport)
        before = disturbances(transport)
        memory = max((memory_of(build(size), size) for build in schedules for size in sizes), default=0.0)
        calibration = Calibration(transport, usual_steps(memory)) if known is None and transport.size > 1 else None
        iterations = config.iters or ITERATIONS
        progress = show_passes(transport, "validate", len(parts_of(iterations)))

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


COMMANDS = {"validate": Verb(ValidateConfig, run)}
