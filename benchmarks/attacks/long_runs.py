"""What a service uses after a day's work, done in minutes: memory and descriptors must stay flat.

python -m benchmarks.attacks.long_runs [jobs] [requests] [testbeds] [--part 1] [--json FILE]

`jobs`: 10,000 jobs join a live switch, each of two workers that reduce two tensors, whose sums are checked.
`requests`: 100,000 requests to the placement service, filter and prioritize for 1,000 different jobs, and one in fifty
that is wrong. `testbeds`: 1,000 times up and down, for root. `--part 0.1` does a tenth. In the first half caches fill;
in the second, memory may grow by 1 % and descriptors not at all.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import write_results
from benchmarks.speed.place_service import request, service
from commsim.report.terminal import print_table
from switch_model.live import SwitchGroup
from switch_model.live.sums import drawn_tensor, worst_error

from .testbed_remains import Before, remains

N_JOBS, N_REQUESTS, N_TESTBEDS = 10_000, 100_000, 1_000
ELEMENTS = 1000
DIFFERENT = 1000  # jobs of all requests
LOOKS = 50
GROWTH = 1.01
NETWORK = "star:n_hosts=2,bandwidth=100Mbps"


@dataclass(frozen=True, slots=True)
class Use:
    """What a process uses at one moment.

    Parameters
    ----------
    done : int
        Jobs, requests or testbeds before.
    memory : float, MB
        Resident.
    descriptors : int
        Open.
    """

    done: int
    memory: float
    descriptors: int

    @classmethod
    def now(cls, process: int, done: int) -> Use:
        """Look."""
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return cls(done, resident / 1024, sum(1 for _ in Path(f"/proc/{process}/fd").iterdir()))


@dataclass(frozen=True, slots=True)
class Run:
    """One long run.

    Parameters
    ----------
    name : str
        What was repeated.
    uses : tuple of Use
        From the beginning to the end.
    wrong : int
        Wrong sums, answers or remains.
    seconds : float
        It took.
    """

    name: str
    uses: tuple[Use, ...]
    wrong: int
    seconds: float

    @property
    def is_flat(self) -> bool:
        """Whether the last quarter uses what the one before it used."""
        early = [u for u in self.uses if 0.5 <= u.done / self.uses[-1].done <= 0.75]
        late = [u for u in self.uses if u.done / self.uses[-1].done > 0.75]
        memory = [float(np.median([u.memory for u in some])) for some in (early, late)]
        descriptors = [max(u.descriptors for u in some) for some in (early, late)]
        return memory[1] <= GROWTH * memory[0] and descriptors[1] <= descriptors[0]


def repeated(name: str, times: int, process: int, step: Callable[[int], bool]) -> Run:
    """Repeat a step, which says whether all was well, and look at a process every now and then."""
    began, wrong, uses = time.monotonic(), 0, []
    every = max(1, times // LOOKS)
    for number in range(times):
        wrong += not step(number)
        if number % every == every - 1:
            uses.append(Use.now(process, number + 1))
    return Run(name, tuple(uses), wrong, time.monotonic() - began)


def jobs(times: int) -> Run:
    """Let jobs join a live switch, one after the other."""

    def worker(rank: int, number: int, port: int) -> bool:
        right = True
        with SwitchGroup(f"job{number}", rank, 2, port=port) as group:
            for k in range(2):
                total = group.all_reduce(drawn_tensor(2 * number + k, rank, ELEMENTS, "int32"))
                right &= worst_error(total, 2 * number + k, 2, 64) == 0
        return bool(right)

    with _switch() as (port, process), ThreadPoolExecutor(2) as workers:

        def step(number: int) -> bool:
            return all(workers.map(worker, range(2), [number] * 2, [port] * 2))

        return repeated("jobs at the live switch", times, process, step)


@contextlib.contextmanager
def _switch() -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-m", "commsim", "switch", "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split("port ")[1].split()[0]), process.pid
    finally:
        process.terminate()
        process.communicate()


def requests(times: int) -> Run:
    """Ask the placement service."""
    with service() as (port, process):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def ask(path: str, body: bytes) -> tuple[int, Any]:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
            return answer.status, json.loads(said) if said else None

        def step(number: int) -> bool:
            if number % 50 == 49:
                return 400 <= ask("/prioritize", b"{" * (number % 97 + 1))[0] < 500
            job = number * DIFFERENT // times  # one after the other, as they come to a cluster
            status, answer = ask(("/filter", "/prioritize")[number % 2], request(f"new{job}", 200.0 + job % 50))
            return status == 200 and bool(answer)

        return repeated("requests to the placement service", times, process, step)


def testbeds(times: int) -> Run:
    """Build testbeds, and take them away; the process that is looked at is this one."""
    from commsim.prediction.inputs import load_network
    from commsim.real.testbed.build import build
    from commsim.real.testbed.layout import lay_out
    from commsim.real.testbed.places import NamesOfTestbed

    place, layout, before = NamesOfTestbed(f"long{os.getpid()}"), lay_out(load_network(NETWORK)), Before.now()
    folder = Path.cwd()

    def step(_: int) -> bool:
        build(place, layout)
        complete = place.ready and len(place.namespaces()) > 0
        place.remove()
        left = [what for what in remains(place, place.name, before, str(folder)) if not what.startswith("file ")]
        return complete and not left

    return repeated("testbeds up and down", times, os.getpid(), step)


RUNS: dict[str, tuple[Callable[[int], Run], int]] = {
    "jobs": (jobs, N_JOBS), "requests": (requests, N_REQUESTS), "testbeds": (testbeds, N_TESTBEDS),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Repeat, and print a table; 1 if anything grew or was wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.attacks.long_runs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"{', '.join(RUNS)} (all)")
    parser.add_argument("--part", type=float, default=1.0, metavar="X", help="of all repetitions (1)")
    parser.add_argument("--json", metavar="FILE", help="also write what was used over time")
    args = parser.parse_args(argv)
    if unknown := [name for name in args.what if name not in RUNS]:
        parser.error(f"unknown {unknown[0]!r}; known: {', '.join(RUNS)}")
    if not 0 < args.part <= 1:
        parser.error(f"--part is in (0, 1], got {args.part}")
    done, rows = [], []
    for name in args.what or RUNS:
        repeat, times = RUNS[name]
        run = repeat(max(LOOKS, round(args.part * times)))
        done.append(run)
        first, last = (
            next(u for u in uses if u.done >= 0.5 * run.uses[-1].done) for uses in (run.uses, run.uses[::-1])
        )
        rows.append([run.name, f"{last.done}", f"{run.wrong}", f"{first.memory:.1f}", f"{last.memory:.1f}",
                     f"{first.descriptors}", f"{last.descriptors}", f"{run.seconds:.0f}",
                     "yes" if run.is_flat else "NO"])  # fmt: skip
    columns = ["what", "times", "wrong", "MB at half", "MB at end", "open at half", "open at end", "s", "flat"]
    print_table(columns, rows)
    if args.json:
        write_results(args.json, {"part": args.part}, [asdict(run) | {"flat": run.is_flat} for run in done])
    return 0 if all(run.is_flat and not run.wrong for run in done) else 1


if __name__ == "__main__":
    sys.exit(main())
