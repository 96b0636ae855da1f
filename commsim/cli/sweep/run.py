"""``commsim sweep run``: compute the points of a sweep that have no result yet."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
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
    add("--retry-failed", action="store_true", help="also compute the points again that failed before")


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
    options = {"jobs": args.jobs, "max_points": args.max_points or MAX_POINTS, "host": args.with_host,
               "retry_failed": args.retry_failed}  # fmt: skip
    try:
        with _one_interruption(), shown() as say:
            done = run_sweep(args.config, directory, args.executor, limit=args.limit, say=say, **options)
    except KeyboardInterrupt:
        print(f"commsim sweep: stopped; the same command goes on with {directory}", file=sys.stderr)
        return 130
    print(_summary(done, directory))
    return 1 if done.n_failed == done.n_done else 0


@contextlib.contextmanager
def _one_interruption() -> Iterator[None]:
    """Let the first Ctrl-C end what runs, and others not disturb the end: rows are kept and workers ended then."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # whoever started us said what an interruption does
        yield
        return

    def interrupted(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupted:
            signal.signal(signal.SIGINT, before)


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
        failed = "all" if done.n_failed == done.n_done else done.n_failed
        text += f", {failed} failed: `commsim sweep status {directory}` says why, --retry-failed computes them again"
    return text
