"""Sweeps whose driver or one of whose workers is killed at a random moment, and what they find in the end.

python -m benchmarks.attacks.kill_sweep [--times 20] [--seed 0] [--sweep FILE.toml]
    [--json FILE]

`commsim sweep` is started, and its driver or one of its workers in turn killed with SIGKILL while rows are written: a
moment after a number of rows is there, and these numbers are spread over the whole of the sweep. A kill that comes
after the last row does not count, and is tried again. A driver that was killed is started again. In the end the table
has to be that of a sweep that was let alone, byte for byte, and no process may be left.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results_file import write_results
from commsim.core.errors import BackendError, CommsimError, InputError
from commsim.core.files.whole_files import write_tree
from commsim.report.terminal import print_table
from commsim.sweep.table import read_table

WHOM = ("driver", "worker")
# In which processes that lost their driver have to be gone: a kernel that runs is not interrupted.
SECONDS_TO_GO = 30.0

# 3024 points that take some seconds.
SWEEP = {
    "topology": {"name": "leaf_spine", "n_leaves": 8, "n_spines": 2, "hosts_per_leaf": 8,
                 "bandwidth": ["100Gbps", "200Gbps", "400Gbps"], "latency": ["500ns", "1us", "2us", "5us"]},
    "collective": {"name": ["ring_all_reduce", "hierarchical_all_reduce", "halving_doubling_all_reduce"],
                   "ranks": [16, 32, 48, 64], "size": {"from": "1KiB", "to": "1GiB", "scale": "log", "steps": 21}},
}  # fmt: skip

# Seconds after the rows that were waited for: a chunk takes about half a second.
SECONDS_TO_FINISH = 300
MAX_DELAY = 0.6
TRIES = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Kill:
    """One process that was killed.

    Parameters
    ----------
    whom : str
        The driver or a worker.
    n_before : int
        Rows that were there then.
    n_rows : int
        Rows in the end.
    is_same : bool
        Whether the table was that of the sweep that was let alone, in the end.
    n_left : int
        Processes of the killed driver that were still there after some time.
    """

    whom: str
    n_before: int
    n_rows: int
    is_same: bool
    n_left: int


def kill_in_turn(times: int, seed: int, sweep: Path, folder: Path) -> list[Kill]:
    """Kill drivers and workers in turn.

    Parameters
    ----------
    times : int
        Kills in all.
    seed : int
        Of their moments.
    sweep, folder : Path
        What is computed, and an empty directory for the results.

    Returns
    -------
    list of Kill
        Each with rows before it, and rows that were still to come.

    Raises
    ------
    BackendError
        If a sweep fails that was not killed, or is over before it can be killed, time and again.
    """
    draw = random.Random(seed)
    _finish(_started(sweep, folder / "alone"))
    table = read_table(folder / "alone")
    wanted = fingerprint(folder / "alone")
    kills = []
    for number in range(times):
        share = (number // len(WHOM) + draw.random()) / -(-times // len(WHOM))  # one in every nth part of the sweep
        for attempt in range(TRIES):
            after = 1 + int(0.9 * share * table.num_rows / (attempt + 1))
            directory = folder / f"{number}-{attempt}"
            kill = _killed(WHOM[number % len(WHOM)], after, sweep, directory, wanted, draw)
            if kill.n_before < kill.n_rows:
                kills.append(kill)
                break
        else:
            raise BackendError(f"{sweep} is over before it can be killed; give one that takes longer")
    return kills


def fingerprint(directory: Path) -> str:
    """Hash of the table of a sweep, as Parquet, without where it comes from: a commit may come between two runs."""
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(read_table(directory).replace_schema_metadata(None), out)
    return hashlib.sha256(out.getvalue()).hexdigest()


def _killed(whom: str, after: int, sweep: Path, directory: Path, wanted: str, draw: random.Random) -> Kill:
    process = _started(sweep, directory)
    while n_rows(directory) < after and process.poll() is None:
        time.sleep(0.05)  # to read the table takes as long as some points
    if process.poll():
        raise BackendError(f"commsim sweep fails without being killed: {process.communicate()[1].strip()}")
    time.sleep(draw.uniform(0.0, MAX_DELAY))
    family = _descendants(process.pid)
    children = [pid for pid, parent in family.items() if parent == process.pid]
    workers = [pid for pid, parent in family.items() if parent in children]  # the pool's come from a server of theirs
    victim = process.pid if whom == "driver" or not workers else draw.choice(workers)
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)
    process.wait() if victim == process.pid else None
    n_before = _rows_after(directory)
    n_left = 0
    if victim == process.pid:
        process.communicate()
        n_left = _left(set(family))
        _finish(_started(sweep, directory))
    else:
        _finish(process)
    return Kill(whom, n_before, n_rows(directory), fingerprint(directory) == wanted, n_left)


def _rows_after(directory: Path) -> int:
    """Rows that are left by what was killed; at least one was there before."""
    deadline = time.monotonic() + SECONDS_TO_GO
    while True:
        try:
            return int(read_table(directory, ["order"]).num_rows)
        except InputError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def n_rows(directory: Path) -> int:
    """Rows that are there now, or none if the sweep has not begun."""
    try:
        return int(read_table(directory, ["order"]).num_rows)
    except InputError:
        return 0


def _descendants(pid: int) -> dict[int, int]:
    """Find the processes that come from one, and the parent of each."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {child: parents[child] for child in found - {pid}}


def _left(family: set[int]) -> int:
    deadline = time.monotonic() + SECONDS_TO_GO
    while (left := sum(_is_there(pid) for pid in family)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _is_there(pid: int) -> bool:
    return any(word in _command_of(pid) for word in ("commsim", "multiprocessing"))


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _started(sweep: Path, directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "commsim", "sweep", str(sweep), "-o", str(directory), "--jobs", "2"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _finish(process: subprocess.Popen[str]) -> None:
    try:
        said = process.communicate(timeout=SECONDS_TO_FINISH)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        raise BackendError(f"commsim sweep did not end in {SECONDS_TO_FINISH} s") from None
    if process.returncode:
        raise BackendError(f"commsim sweep fails without being killed: {said.strip()}")


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, and print a table; 1 if anything was lost, or left."""
    parser = argparse.ArgumentParser(prog="benchmarks.attacks.kill_sweep", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=20, metavar="N", help="kills in all (20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of their moments (0)")
    parser.add_argument("--sweep", metavar="FILE.toml", help="what is computed (3024 points)")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="kill-sweep-") as folder:
        sweep = Path(args.sweep or Path(folder) / "sweep.toml")
        try:
            if not args.sweep:
                write_tree(sweep, SWEEP)
            kills = kill_in_turn(args.times, args.seed, sweep, Path(folder))
        except CommsimError as error:
            print(f"benchmarks.attacks.kill_sweep: error: {error}", file=sys.stderr)
            return 2
    rows = [[k.whom, str(k.n_before), str(k.n_rows), "yes" if k.is_same else "NO", str(k.n_left)] for k in kills]
    n_good = sum(kill.is_same and not kill.n_left for kill in kills)
    print_table(["killed", "rows then", "in the end", "the same", "processes left"], rows,
                f"{n_good} of {len(kills)} lost nothing and left nothing")  # fmt: skip
    if args.json:
        write_results(args.json, {"times": args.times, "seed": args.seed, "sweep": args.sweep},
                      map(dataclasses.asdict, kills))  # fmt: skip
    return 0 if n_good == len(kills) else 1


if __name__ == "__main__":
    sys.exit(main())
