"""``commsim sweep run``: compute the points of a sweep that have no result yet."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.sweep import Progress

NAMES = "process, serial, loky, mpi, dask, dask://HOST:PORT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("config", metavar="SWEEP.toml", help="what to compute; docs/sweeps.md has every key")
    add("-o", "--output", metavar="DIR", help="directory of the results; one that has some is gone on with (SWEEP)")
    add_run_arguments(parser)
    add("--limit", type=int, metavar="N", help="at most N points, spread evenly over the sweep: a taste")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how a sweep is run."""
    add = parser.add_argument
    add("--jobs", type=int, metavar="N", help="workers (one for each processor)")
    add("--executor", metavar="NAME", help=f"where to run: {NAMES} (mpi under mpi4py.futures, else process)")
    add("--max-points", type=int, metavar="N", help="refuse more points than that, before filters (10000000)")
    add("--with-host", action="store_true", help="write the name of this machine into the results")


def main(args: argparse.Namespace) -> int:
    """Run, and say where the results are."""
    from commsim.sweep import run_sweep
    from commsim.sweep.points import MAX_POINTS
    from commsim.sweep.progress import shown

    directory = args.output or default_directory(args.config)
    options = {"jobs": args.jobs, "max_points": args.max_points or MAX_POINTS, "host": args.with_host}
    try:
        with shown() as say:
            done = run_sweep(args.config, directory, args.executor, limit=args.limit, say=say, **options)
    except KeyboardInterrupt:
        print(f"commsim sweep: stopped; the same command goes on with {directory}", file=sys.stderr)
        return 130
    print(_summary(done, directory))
    return 0


def default_directory(config: str) -> str:
    """Name of the directory for the results of a file: the file's, without its suffix.

    Raises
    ------
    InputError
        If it has none.
    """
    from pathlib import Path

    path = Path(config)
    if not path.suffix:
        raise InputError(f"{config}: a sweep is a .toml or .json file")
    return path.stem


def _summary(done: Progress, directory: str) -> str:
    text = f"{directory}: {done.n_done} points"
    if done.n_before:
        text += f", {done.n_before} of them from before"
    if done.n_failed:
        text += f", {done.n_failed} failed now; the column `error` says why"
    return text
