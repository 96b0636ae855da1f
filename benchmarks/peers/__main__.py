"""The same works on commsim and on other simulators, side by side.

python -m benchmarks.peers [--only WORK] [--times N] [--python FILE] [--json FILE] [--write FILE]

Processor seconds, medians over runs that take turns. "ours" is building the network and the schedule, routing, planning
and simulating, in a process whose kernels are loaded; "process" is all of a fresh process, interpreter and imports
included, with kernels in the disk cache. "theirs" is all of their process; "their run" is without reading and building.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import Run, in_turns, machine_kind, run
from commsim.core.errors import CommsimError, InputError
from commsim.core.files.whole_files import write_json
from commsim.report.terminal import print_table

from .installed import PEERS, NotInstalledError, Peer
from .page import COLUMNS, cells, write_page
from .work_file import write_work
from .works import WORKS, Work


def compare(name: str, work: Work, peer: Peer, command: Sequence[str], folder: Path, times: int) -> dict[str, Any]:
    """Put one work to both, `times` times in turns; return a row."""
    file = folder / f"{name}.work"
    if not file.exists():
        write_work(work, file)
    ours = [sys.executable, "-m", "benchmarks.peers.ours", name]
    run(ours)  # kernels may have to be compiled, once
    runs = list(in_turns([ours, [*command, str(file), *peer.last], [*ours, "--warm"]], times))
    return row(name, peer, runs) | {"what": work.what, "engine": work.engine}


def row(name: str, peer: Peer, runs: Sequence[Sequence[Run]]) -> dict[str, Any]:
    """Turn runs of (fresh process, peer, warm process) into a row.

    Raises
    ------
    CommsimError
        If the same program predicted different times.
    """
    fresh, theirs, warm = (list(column) for column in zip(*runs, strict=True))
    predicted = {done.number("time_s") for done in (*fresh, *warm)}
    if len(predicted) > 1:
        raise CommsimError(f"{name}: commsim predicts {len(predicted)} different times")
    ours, peers = predicted.pop(), theirs[0].number("time_s")
    cpu = {
        "cpu_s": statistics.median(done.number("run_cpu_s") for done in warm),
        "process_cpu_s": statistics.median(done.cpu for done in fresh),
        "peer_cpu_s": statistics.median(done.cpu for done in theirs),
        "peer_run_cpu_s": statistics.median(done.number("run_cpu_s") for done in theirs),
    }
    return {
        "work": name,
        "peer": peer.name,
        "version": theirs[0].said["version"],
        **cpu,
        "ratio": cpu["peer_cpu_s"] / cpu["cpu_s"],
        "process_ratio": cpu["peer_cpu_s"] / cpu["process_cpu_s"],
        "time_s": ours,
        "peer_time_s": peers,
        "difference": peers / ours - 1,
        "rss_MB": max(done.number("peak_MB") for done in fresh),
        "peer_rss_MB": max(done.number("peak_MB") for done in theirs),
        "samples": [[a.cpu, b.cpu, c.number("run_cpu_s")] for a, b, c in runs],
    }


def rows(names: Sequence[str], times: int, python: str, left_out: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Compare every work with every peer that is installed; adds to `left_out` which are not, and why."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            work = WORKS[name]
            messages = work.messages()
            for peer in [peer for peer in PEERS if peer.plays(work, messages)]:
                try:
                    command = ready(peer, Path(folder), python)
                except NotInstalledError as error:
                    left_out[peer.name] = str(error)
                    continue
                yield compare(name, work, peer, command, Path(folder), times)


@functools.cache
def ready(peer: Peer, folder: Path, python: str) -> list[str]:
    """Make a peer ready once."""
    return peer.ready(folder, python)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table, and what was left out."""
    text = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=text[0], epilog=" ".join(text[4:]))
    parser.add_argument(
        "--only", action="append", metavar="WORK", help=f"a work, of {', '.join(WORKS)}; may be repeated"
    )
    parser.add_argument("--times", type=int, default=5, metavar="N", help="runs of each program, in turns (5)")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="the Python that has ns.py (this one)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--write", metavar="FILE", help="also write the page")
    args = parser.parse_args(argv)
    left_out: dict[str, str] = {}
    try:
        names = args.only or list(WORKS)
        for name in names:
            if name not in WORKS:
                raise InputError(f"unknown work {name!r}; known: {', '.join(WORKS)}")
        if args.times < 1:
            raise InputError(f"--times must be at least 1, got {args.times}")
        found = []
        for one in rows(names, args.times, args.python, left_out):
            found.append(one)
            print("# " + "  ".join(cells(one)), file=sys.stderr, flush=True)  # the table comes at the end
        print_table(list(COLUMNS), [cells(one) for one in found], "processor seconds; ratio is theirs over ours")
        for name, why in left_out.items():
            print(f"# {name} is left out: {why}")
        if args.json:
            config = {"machine": machine_kind(), "times": args.times, "left_out": left_out}
            write_json(args.json, {"schema": 1, "config": config, "rows": found})
        if args.write:
            write_page(args.write, found, args.times)
    except CommsimError as error:
        print(f"benchmarks.peers: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
