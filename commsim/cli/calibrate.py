"""``commsim calibrate`` and ``commsim validate``: point-to-point costs, and schedules run for real, under mpirun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from commsim.backends.connect import BACKENDS, reported_once, session
from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, format_time
from commsim.report.table import print_facts, print_table

from .flags import Verb, WithJson, flag, repeated
from .flags.costs import Sizes

if TYPE_CHECKING:
    from commsim.backends.calibrate import Costs
    from commsim.backends.point_to_point import Samples
    from commsim.backends.transport import Transport
    from commsim.backends.validate import Row
    from commsim.core.network import Network

COLUMNS = ["size(B)", "alone(us)", "over_sent(us)", "fit", "together(us)", "over_sent(us)", "fit", "add(us)", "fit"]


class Config(WithJson):
    """All flags of ``commsim calibrate``."""

    backend: str = flag(choices=BACKENDS, default="mpi", help="what carries the messages")
    output: str | None = flag("-o", metavar="FILE", help="network file to write: .toml, .json or .npz")


def run(config: Config) -> None:
    """Measure, print on rank 0, and write the network."""
    with reported_once():
        _calibrate(config)


def _calibrate(config: Config) -> None:
    from commsim.files.store import SUFFIXES

    if config.output and Path(config.output).suffix not in SUFFIXES:
        raise InputError(f"-o must end with one of {', '.join(SUFFIXES)}, got {config.output}")
    with session(config.backend, min_ranks=2) as transport:
        from commsim.backends.calibrate import calibrate
        from commsim.files.store import save

        network, costs, samples = calibrate(transport)
        if transport.rank == 0:
            _print_samples(samples, costs, f"{network.name}, point to point, seconds per message")
            _print_costs(costs)
            if config.output:
                save(network, config.output)
                print(f"# written to {config.output}")
            config.write_json(_json(samples, costs), config.flags() | {"n_ranks": transport.size})


def _print_costs(costs: Costs) -> None:
    """Print what was fitted."""
    print_facts(
        {
            "L": format_time(costs.L),
            "o": format_time(costs.o),
            "bandwidth": format_bandwidth(costs.bandwidth),
            "shared": format_bandwidth(costs.shared_bandwidth),
            "reduction": format_bandwidth(1 / costs.gamma),
        }
    )


def _print_samples(samples: Samples, costs: Costs, title: str) -> None:
    """Print the medians beside the fit's relative errors."""
    rows = []
    for i, size in enumerate(samples.size):
        alone, together, add = samples.alone[:, i], samples.together[:, i], samples.add_together[i]
        fits = costs.alone(size), costs.together(size, samples.n_messages), costs.gamma * size
        rows.append(
            [
                f"{size:.0f}",
                *(f"{t * 1e6:.1f}" for t in alone),
                f"{fits[0] / alone.mean() - 1:+.0%}",
                *(f"{t * 1e6:.1f}" for t in together),
                f"{fits[1] / together.mean() - 1:+.0%}",
                f"{add * 1e6:.1f}",
                f"{fits[2] / add - 1:+.0%}",
            ]
        )
    print_table(COLUMNS, rows, title)


def _json(samples: Samples, costs: Costs) -> list[dict[str, float]]:
    return [
        {
            "size_B": float(size),
            "alone_s": float(samples.alone[0, i]),
            "alone_over_sent_s": float(samples.alone[1, i]),
            "alone_fit_s": costs.alone(size),
            "together_s": float(samples.together[0, i]),
            "together_over_sent_s": float(samples.together[1, i]),
            "together_fit_s": costs.together(size, samples.n_messages),
            "add_alone_s": float(samples.add_alone[i]),
            "add_together_s": float(samples.add_together[i]),
        }
        for i, size in enumerate(samples.size)
    ]


BACKEND_OF = {"mpi": "mpi", "torch": "gloo", "gloo": "gloo", "nccl": "nccl"}
VALIDATED = [
    "collective", "size(B)", "measured(us)", "p5", "p95", "predicted(us)", "error", "native(us)", "#wrong", "note",
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
        from commsim.backends.measure import ITERATIONS, WARMUP
        from commsim.backends.validate import measure_rows
        from commsim.comparison.under_mpirun import build_schedules, network_for, predictor

        schedules = build_schedules(config.collective, transport.size)
        network = network_for(transport, config.network)
        rows = measure_rows(
            transport,
            schedules,
            sizes,
            predictor(network),
            warmup=WARMUP if config.warmup_iters is None else config.warmup_iters,
            iterations=config.iters or ITERATIONS,
        )
        if transport.rank == 0:
            _print(rows, network, transport)
            config.write_json([row.json() for row in rows], config.flags() | {"n_ranks": transport.size})
    return 1 if any(row.n_wrong for row in rows) else 0


def _print(rows: Sequence[Row], network: Network | None, transport: Transport) -> None:
    from commsim.backends.validate import COUNTED_FROM, median_error

    name = network.name if network else "no network, one rank alone"
    print_table(
        VALIDATED, [_text(row) for row in rows], f"{transport.size} ranks over {transport.name}, against {name}"
    )
    error, counted = median_error(rows), sum(row.counts for row in rows)
    if error is not None:
        print(f"# median error {error:.1%} of {counted} rows of {COUNTED_FROM // 1024} KiB and more")
    if rows and rows[0].oversubscribed:
        print("# oversubscribed: more ranks than cores share this host; such rows are not counted")


def _text(row: Row) -> list[str]:
    ours = row.ours
    low, high = row.spread
    return [
        ours.collective,
        f"{ours.size:.0f}",
        f"{ours.time * 1e6:.1f}",
        f"{low * 1e6:.1f}",
        f"{high * 1e6:.1f}",
        "-" if row.predicted is None else f"{row.predicted * 1e6:.1f}",
        "-" if row.error is None else f"{row.error:+.1%}",
        "-" if row.native is None else f"{row.native.time * 1e6:.1f}",
        str(row.n_wrong),
        "oversubscribed" if row.oversubscribed else "",
    ]


COMMANDS = {"calibrate": Verb(Config, run), "validate": Verb(ValidateConfig, validate)}
