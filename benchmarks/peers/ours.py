"""One work on commsim, in a process of its own: ``python -m benchmarks.peers.ours WORK [--warm]``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.processes import peak_mb

# A warm work is repeated for so many seconds, or so many times, and the mean taken: some clocks are coarse.
ENOUGH, TIMES = 0.5, 50

if TYPE_CHECKING:
    from .works import Work


def predict(work: Work) -> float:
    """Build the network and the schedule, place, route and simulate; return the predicted time in seconds."""
    from commsim.prediction.build import prepare
    from commsim.prediction.inputs import load_network

    ready = prepare(work.schedule(), load_network(work.network), routing=work.routing)
    return ready.predict(work.size, engine=work.engine).time


def main(argv: Sequence[str] | None = None) -> int:
    """Print what it took as one line of JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.peers.ours", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("work")
    parser.add_argument(
        "--warm", action="store_true", help="predict again and again, and time all but the first, which loads kernels"
    )
    args = parser.parse_args(argv)
    from .works import WORKS

    work = WORKS[args.work]
    seconds: list[float] = []
    predicted = 0.0
    while not seconds or (args.warm and len(seconds) <= TIMES and sum(seconds[1:]) < ENOUGH):
        begin = time.process_time()
        predicted = predict(work)
        seconds.append(time.process_time() - begin)
    run = sum(seconds[1:]) / (len(seconds) - 1) if args.warm else seconds[0]
    print(json.dumps({"time_s": predicted, "run_cpu_s": run, "peak_MB": peak_mb()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
