"""Commands that are ended by a signal at a random moment, and what they leave.

python -m benchmarks.attacks.kill_commands [--times 60] [--seed 0] [--json FILE]

SIGINT, SIGTERM and SIGKILL in turn, at moments that are spread over the whole of a command's duration. Then no process
of the command may be left, a file that it was told to write is there whole or not at all, and but for SIGKILL, which
nobody can answer, nothing else is left in its folder. Sweeps and testbeds have their own: benchmarks.attacks.kill_sweep
and benchmarks.attacks.kill_testbed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.results_file import write_results
from commsim.core.errors import BackendError
from commsim.report.terminal import print_table

from .testbed_remains import MARK, marked

INPUTS = Path(__file__).parents[2] / "tests" / "answers" / "inputs"
STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
# What each writes stands after -o, --json or --store; services end only when they are told to.
COMMANDS = {
    "run": f"run ring_all_reduce --topology {STAR} -b 1K -e 64M --json out.json",
    "packet run": f"run ring_all_reduce --topology {STAR} -b 4M -e 4M --engine packet --json out.json",
    "trace": f"trace --topology {STAR} ring_all_reduce -b 1M -o out.json",
    "schedule": "schedule save ring_all_reduce --ranks 128 -o out.npz",
    "synthesize": f"synthesize --operation all_reduce --topology {STAR} -b 1M -e 1M -o out.npz",
    "advise": f"sweep cheapest {INPUTS}/cost.toml --jobs 2 --json out.json",
    "sweep": f"sweep run {INPUTS}/sweep.toml --jobs 2 -o out.sweep",
    "workload": f"workload run --topology {STAR} --workers 16 --trace {INPUTS}/gradients.csv --json out.json",
    "cluster": f"cluster run --policy fifo --trace philly:jobs=60,load=0.8 {INPUTS}/cluster.toml --json out.json",
    "reproduce": "reproduce cassini --json out.json",
    "switch serve": "switch serve --port 0",
    "place serve": f"place serve --cluster {INPUTS}/cluster.toml --port 0 --store out.sqlite",
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
SERVICES = ("switch serve", "place serve")
SECONDS_OF_SERVICES = 2.0
# In which a command has to be gone, also on a busy machine: a kernel that runs is not interrupted.
SECONDS_TO_GO = 100.0


@dataclass(frozen=True, slots=True)
class Ended:
    """One command that was ended.

    Parameters
    ----------
    command, signal : str
        Its name, and the signal's.
    moment : float, s
        After its start.
    status : int
        Of its process; negative if a signal ended it.
    wrong : tuple of str
        What was left, or said; nothing, if all is well.
    """

    command: str
    signal: str
    moment: float
    status: int
    wrong: tuple[str, ...]


def end_in_turn(times: int, seed: int, names: Sequence[str] = tuple(COMMANDS), answering: bool = False) -> list[Ended]:
    """End commands in turn, each with all three signals.

    Parameters
    ----------
    times : int
        Ended commands in all.
    seed : int
        Of the moments.
    names : sequence of str
        Keys of ``COMMANDS``.
    answering : bool
        Whether moments are in the first half of a command, and count from when it handles SIGTERM: before, and as it
        exits, what is said is for Python, and which of them a moment falls into depends on how busy the machine is.

    Raises
    ------
    BackendError
        If a command that was let alone fails.
    """
    draw, durations, ended = random.Random(seed), dict[str, float](), []
    for number in range(times):
        name, which = names[number % len(names)], SIGNALS[number // len(names) % len(SIGNALS)]
        if name not in durations:
            durations[name] = SECONDS_OF_SERVICES if name in SERVICES else _let_alone(name)
        moment = draw.random() * durations[name] * (0.5 if answering else 1.0)
        ended.append(_ended(name, which, moment, answering))
    return ended


def _let_alone(name: str) -> float:
    with tempfile.TemporaryDirectory(prefix="kill-") as folder:
        for _ in range(2):  # kernels are compiled on first use
            began = time.monotonic()
            process = _started(name, Path(folder))
            said = process.communicate()[1]
            if process.returncode:
                raise BackendError(f"commsim {COMMANDS[name]} fails without being ended: {said.strip()}")
        return time.monotonic() - began


def _ended(name: str, which: signal.Signals, moment: float, answering: bool) -> Ended:
    with tempfile.TemporaryDirectory(prefix="kill-") as name_of_folder:
        folder = Path(name_of_folder)
        process = _started(name, folder)
        while answering and process.poll() is None and not _handles_sigterm(process.pid):
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(which)
        wrong = []
        try:
            said = process.communicate(timeout=SECONDS_TO_GO)[1]
        except subprocess.TimeoutExpired:
            wrong.append(f"it is still there {SECONDS_TO_GO:g} s later")
            process.kill()
            said = process.communicate()[1]
        ours = "Traceback" in said and re.search(r"commsim/(?!__init__|__main__)", said)
        many = len(said.splitlines()) > 2 and which is not signal.SIGKILL and not python_starts(said)
        if ours or many:
            wrong.append(f"it says: {said.strip()[-200:]}")
        wrong += [f"process {pid} is left" for pid in _left(folder.name)]
        wrong += [f"file {path.name} is left" for path in _files(folder) if _is_wrong(path, which)]
        return Ended(name, which.name, moment, process.returncode, tuple(wrong))


def python_starts(said: str) -> bool:
    """Whether Ctrl-C met Python's own start, before ``__main__`` runs: nothing of ours can answer there."""
    frames = re.findall(r'^  File "(.*?)", line', said, re.MULTILINE)
    return said.rstrip().endswith("KeyboardInterrupt") and all(name.startswith("<frozen ") for name in frames)


def _handles_sigterm(pid: int) -> bool:
    """Whether a process has a handler: its caught signals are a bit mask in /proc, where signal 1 is bit 0."""
    found = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _is_wrong(path: Path, which: signal.Signals) -> bool:
    """Whether a file is none that was asked for, or a part of one."""
    if path.name == "out.json":
        try:
            json.loads(path.read_text())
        except ValueError:
            return True
        return False
    if "out.sweep" in path.parts:  # rows that are there stay, and the same command goes on
        return False
    # npz and SQLite have their end and their checksums, which their own tests read
    return not path.name.startswith("out.") and which is not signal.SIGKILL


def _left(mark: str) -> list[int]:
    deadline = time.monotonic() + SECONDS_TO_GO
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _started(name: str, folder: Path) -> subprocess.Popen[str]:
    (folder / "tmp").mkdir(exist_ok=True)
    # A shell has what runs in the background ignore SIGINT, and children inherit that.
    return subprocess.Popen([sys.executable, "-m", "commsim", *COMMANDS[name].split()], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, cwd=folder, preexec_fn=_heed_ctrl_c,
                            env=os.environ | {MARK: folder.name, "TMPDIR": str(folder / "tmp")})  # fmt: skip


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main(argv: Sequence[str] | None = None) -> int:
    """End commands, and print a table; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.attacks.kill_commands", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--times", type=int, default=66, metavar="N", help="ended commands in all (66)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the moments (0)")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    try:
        ended = end_in_turn(args.times, args.seed)
    except BackendError as error:
        print(f"benchmarks.attacks.kill_commands: error: {error}", file=sys.stderr)
        return 2
    rows = []
    for name in COMMANDS:
        of = [one for one in ended if one.command == name]
        rows.append([name, str(len(of)), str(sum(bool(one.wrong) for one in of))])
    print_table(["command", "ended", "wrong"], rows)
    for one in ended:
        for what in one.wrong:
            print(f"# {one.command}, {one.signal} after {one.moment:.3f} s: {what}")
    if args.json:
        write_results(args.json, {"times": args.times, "seed": args.seed}, map(asdict, ended))
    return 1 if any(one.wrong for one in ended) else 0


if __name__ == "__main__":
    sys.exit(main())
