"""``commsim cluster models``: what is assumed of models."""

from __future__ import annotations

import argparse

from commsim.core.units import format_time
from commsim.report.table import print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("--assume", metavar="FILE.toml", help="with the changes of this file")


def main(args: argparse.Namespace) -> int:
    """List the table of models."""
    from commsim.cluster.models import EFFICIENCY, MODELS, read_assumptions

    models = read_assumptions(args.assume).models if args.assume else MODELS
    print(
        "# sizes: CASSINI, table 3, the smallest of a range; vgg16's computation: CASSINI, section 2; all else assumed"
    )
    print(
        f"# traffic: ring all-reduce of the size in every iteration, at {EFFICIENCY:.0%} of the host's port (assumed)"
    )
    rows = [
        [
            model.name,
            f"{model.size / 1e6:g}",
            format_time(model.compute),
            f"{model.busy:g}",
            "yes" if model.skewed else "no",
            f"{model.cpu:g}",
            f"{model.noise:g}",
            " ".join(f"{kind}={speed:g}" for kind, speed in model.speeds.items()) or "-",
        ]
        for model in models.values()
    ]
    columns = ["model", "size(MB)", "compute", "gpu_busy", "skewed", "cpus_per_gpu", "noise(gpus)", "speed_by_gpu"]
    print_table(columns, rows)
    return 0
