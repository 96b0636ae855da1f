"""Rows of ``commsim validate --json`` predicted again from the calibration beside them, and their errors by collective.

python -m benchmarks.mpi.replay mpi1.json mpi2.json
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.network_file import read_own
from commsim.core.files.whole_files import read_tree
from commsim.core.network import Network
from commsim.real.comparison.under_mpirun import build_schedules, predictor
from commsim.real.validate import LARGE
from commsim.report.terminal import print_table


def errors_of(tree: dict[str, Any], network: Network) -> dict[tuple[str, int], float]:
    """Return the relative error of each row, by collective and size, with `network` in place of what was predicted.

    Parameters
    ----------
    tree : dict
        What ``commsim validate --json`` wrote.
    network : Network
        What predicts.
    """
    errors, predict = {}, predictor(lambda: network, any_order=tree["config"]["backend"] == "mpi")
    builders: dict[str, Any] = {}
    for row in tree["results"]:
        name, size = row["collective"], row["size_B"]
        if name not in builders:
            (builders[name],) = build_schedules([name], row["n_ranks"])
        predicted = predict(builders[name](size), size)
        if predicted is not None and not row["oversubscribed"]:
            errors[name, int(size)] = predicted.time / row["time_s"] - 1
    return errors


def main(argv: Sequence[str] | None = None) -> int:
    """Print the errors of each file, and of each collective and size over all of them."""
    parser = argparse.ArgumentParser(prog="benchmarks.mpi.replay", description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="what commsim validate --json wrote")
    args = parser.parse_args(argv)
    of_rows = defaultdict[tuple[str, int], list[float]](list)
    summary = []
    for path in args.files:
        tree = read_tree(path)
        if "network" not in tree:
            print(f"benchmarks.mpi.replay: error: {path} has no network that it was predicted with", file=sys.stderr)
            return 2
        errors = errors_of(tree, read_own(tree["network"], path))
        for row, error in errors.items():
            of_rows[row].append(error)
        large, small = ([abs(e) for (_, size), e in errors.items() if (size >= LARGE) == big] for big in (True, False))
        summary.append([path, *(f"{np.percentile(part, q):.1%}" for part in (large, small) if part for q in (50, 90))])
    rows = [[name, str(size), *(f"{error:+.1%}" for error in errors)] for (name, size), errors in of_rows.items()]
    print_table(["collective", "size(B)", *(f"run {i + 1}" for i in range(len(args.files)))], rows)
    print_table(["file", "from 64 KiB: median", "p90", "below: median", "p90"], summary)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"benchmarks.mpi.replay: error: {error}", file=sys.stderr)
        sys.exit(2)
