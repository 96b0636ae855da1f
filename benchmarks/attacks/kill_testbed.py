"""Testbeds whose process is killed at a random moment, and what `commsim testbed down` leaves of them.

python -m benchmarks.attacks.kill_testbed [--times 50] [--seed 0] [--network NETWORK] [--json FILE]

`commsim testbed up`, `run --network` and `down` are started in turn and killed with SIGKILL, at moments that are spread
over the whole of their duration. Then `commsim testbed down NAME` has to leave nothing of that name: others may have
testbeds on this machine meanwhile, so `down --all` is never used, and nothing is judged that is not ours.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.results_file import write_results
from commsim.core.errors import BackendError, CommsimError
from commsim.real.testbed.own_testbed import OWN
from commsim.real.testbed.places import NamesOfTestbed, require
from commsim.report.terminal import print_table

from .testbed_remains import MARK, Before, remains

VERBS = ("up", "run", "down")
NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=200Mbps,latency=0s"
RUN = ("--no-calibration", "--collective", "ring_all_reduce", "-b", "1M", "-e", "1M", "-n", "10")
# The kernel ends processes and takes cables away after the call that asks for it has returned.
SECONDS_TO_GO = 3.0


@dataclass(frozen=True, slots=True)
class Kill:
    """One process that was killed.

    Parameters
    ----------
    verb : str
        Of `commsim testbed`.
    moment : float, s
        After its start.
    begun : bool
        Whether there was something of the testbed then.
    left : tuple of str
        What there was after `down`; nothing, if all is well.
    """

    verb: str
    moment: float
    begun: bool
    left: tuple[str, ...]


def kill_in_turn(
    times: int, seed: int = 0, network: str = NETWORK, durations: Mapping[str, float] | None = None
) -> tuple[list[Kill], Mapping[str, float]]:
    """Kill the verbs in turn.

    Parameters
    ----------
    times : int
        Kills in all.
    seed : int
        Of their moments.
    network : str
        What is built.
    durations : mapping of str to float, s
        How long each verb takes when it is let alone; measured, unless given.

    Returns
    -------
    list of Kill, mapping of str to float
        The kills, and the durations.

    Raises
    ------
    BackendError
        If a verb that was let alone fails.
    """
    generator = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="kill-testbed-") as folder, contextlib.ExitStack() as stack:
        stack.callback(NamesOfTestbed(f"kill{os.getpid()}").remove)
        if durations is None:
            for verb in VERBS:  # kernels are compiled on first use
                _let_alone(verb, network, folder)
            durations = {verb: _let_alone(verb, network, folder) for verb in VERBS}
        kills = []
        for number in range(times):
            verb = VERBS[number % len(VERBS)]
            nth, n = number // len(VERBS), len(range(number % len(VERBS), times, len(VERBS)))
            moment = durations[verb] * (nth + generator.random()) / n  # one in every nth part of its duration
            kills.append(_killed(verb, network, moment, folder))
    return kills, durations


def _let_alone(verb: str, network: str, folder: str) -> float:
    name = f"kill{os.getpid()}"
    if verb == "down":
        _finish(_started("up", name, network, folder))
    began = time.monotonic()
    _finish(_started(verb, name, network, folder))
    duration = time.monotonic() - began
    NamesOfTestbed(name).remove()
    return duration


def _killed(verb: str, network: str, moment: float, folder: str) -> Kill:
    name = f"kill{os.getpid()}"
    if verb == "down":
        _finish(_started("up", name, network, folder))
    before = Before.now()
    process = _started(verb, name, network, folder)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    place = NamesOfTestbed(f"{OWN}{process.pid}" if verb == "run" else name)
    begun = place.directory.exists() or bool(place.namespaces())
    down = _started("down", place.name, network, folder)
    said = down.communicate()[1]
    left = [] if down.returncode == 0 or "no testbed" in said else [f"down failed: {said.strip()}"]
    deadline = time.monotonic() + SECONDS_TO_GO
    while (more := remains(place, name, before, folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return Kill(verb, moment, begun, (*left, *more))


def _started(verb: str, name: str, network: str, folder: str) -> subprocess.Popen[str]:
    options = {"up": (network, "--name", name), "run": ("--network", network, *RUN), "down": (name,)}[verb]
    return subprocess.Popen([sys.executable, "-m", "commsim", "testbed", verb, *options], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True,
                            env=os.environ | {MARK: name, "TMPDIR": folder})  # fmt: skip


def _finish(process: subprocess.Popen[str]) -> None:
    said = process.communicate()[1]
    if process.returncode:
        raise BackendError(f"commsim testbed fails without being killed: {said.strip()}")


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, and print a table; 1 if anything was left."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.attacks.kill_testbed", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--times", type=int, default=50, metavar="N", help="kills in all (50)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of their moments (0)")
    parser.add_argument("--network", default=NETWORK, metavar="NETWORK", help=f"what is built ({NETWORK})")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    try:
        require()
        kills, durations = kill_in_turn(args.times, args.seed, args.network)
    except CommsimError as error:
        print(f"benchmarks.attacks.kill_testbed: error: {error}", file=sys.stderr)
        return 2
    rows = []
    for verb in VERBS:
        mine = [kill for kill in kills if kill.verb == verb]
        rows.append([verb, f"{durations[verb]:.2f}", str(len(mine)), str(sum(kill.begun for kill in mine)),
                     str(sum(bool(kill.left) for kill in mine))])  # fmt: skip
    print_table(["verb", "takes(s)", "killed", "something was there", "left after down"], rows)
    for kill in kills:
        for what in kill.left:
            print(f"# {kill.verb} killed after {kill.moment:.3f} s: {what}")
    if args.json:
        results = [{"verb": k.verb, "moment_s": k.moment, "begun": k.begun, "left": list(k.left)} for k in kills]
        write_results(args.json, {"times": args.times, "seed": args.seed, "network": args.network}, results)
    return 1 if any(kill.left for kill in kills) else 0


if __name__ == "__main__":
    sys.exit(main())
