"""``commsim calibrate``: measure this machine under mpirun, point to point only, and write it down as a network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.backends.connect import BACKENDS, reported_once, session
from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, format_time
from commsim.report.table import print_facts, print_table, write_results

if TYPE_CHECKING:
    from commsim.backends.calibrate import Costs
    from commsim.backends.point_to_point import Samples

COLUMNS = ["size(B)", "alone(us)", "over_sent(us)", "fit", "together(us)", "over_sent(us)", "fit", "add(us)", "fit"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("--backend", choices=BACKENDS, default="mpi", help="what carries the messages (mpi)")
    parser.add_argument("-o", "--output", metavar="FILE", help="network file to write: .toml, .json or .npz")
    parser.add_argument("--json", metavar="FILE", help="also write the measurements as JSON")


def main(args: argparse.Namespace) -> int:
    """Measure, print on rank 0, and write the network."""
    with reported_once():
        _calibrate(args)
    return 0


def _calibrate(args: argparse.Namespace) -> None:
    from commsim.files.store import SUFFIXES

    if args.output and Path(args.output).suffix not in SUFFIXES:
        raise InputError(f"-o must end with one of {', '.join(SUFFIXES)}, got {args.output}")
    with session(args.backend, min_ranks=2) as transport:
        from commsim.backends.calibrate import calibrate
        from commsim.files.store import save

        network, costs, samples = calibrate(transport)
        if transport.rank == 0:
            print_samples(samples, costs, f"{network.name}, point to point, seconds per message")
            print_costs(costs)
            if args.output:
                save(network, args.output)
                print(f"# written to {args.output}")
            if args.json:
                config = {k: v for k, v in vars(args).items() if k != "json"} | {"n_ranks": transport.size}
                write_results(args.json, config, _json(samples, costs))


def print_costs(costs: Costs) -> None:
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


def print_samples(samples: Samples, costs: Costs, title: str) -> None:
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
