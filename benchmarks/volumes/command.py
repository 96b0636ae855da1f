"""``python -m benchmarks.volumes``: as many seeded attacks of each kind as are asked for, and a table of the defects.

python -m benchmarks.volumes --seed 7 --lines 20000 --questions 5000 --files 500000 --packets 1000000 \
    --requests 20000 --kills 300

An attack is made by its number and the seed alone: ``--lines 1 --from 4711`` makes one again. Defects are tracebacks,
20 s of processor time without an end or a word of progress, numbers that cannot be, files and processes that are left,
wrong sums, and more than 500 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.attacks.kill_commands import end_in_turn
from commsim.report.terminal import print_table

from . import datagrams, http_requests, lines, metamorphic, readers
from .tallies import Tally
from .trials import LIMIT_S, Defect, in_processes, watched

# Trials with files between two that look at memory.
LOOK_EVERY = 50
# Processor time of a line in a process of many, s: one that takes more is tried again by itself.
LINE_S = 8.0
# Address space of a process that runs lines, bytes: more is a defect, and must not cost others their memory.
MAX_ADDRESS = 12 * 2**30
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

Attack = Callable[[int, range, int], Iterable[Defect]]


def attack_lines(seed: int, numbers: range, jobs: int) -> Iterable[Defect]:
    """Command lines; what took long or much in a process of many is tried again in one of its own."""
    tally = lines.load()

    def trial(number: int) -> str:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS, MAX_ADDRESS))
        return watched(lambda: lines.trial(seed, number, tally))

    try:
        for found in in_processes("lines", numbers, trial, jobs, limit_s=LINE_S):
            text, problem = lines.text_of(seed, found.number), found.problem
            if problem.startswith(("takes", "no end", "the process")):
                problem = lines.alone(text)
            if problem:
                yield Defect("lines", found.number, problem, text)
    finally:  # also where a signal ends it
        _print_tally("lines", tally)


def attack_questions(seed: int, numbers: range, jobs: int) -> Iterable[Defect]:
    """Questions that are asked in two ways, of which a relation says what the answers have in common."""
    lines.load()
    counted = metamorphic.tally()

    def trial(number: int) -> str:
        return watched(lambda: metamorphic.trial(seed, number, counted))

    try:
        yield from in_processes("questions", numbers, trial, jobs, limit_s=6 * LIMIT_S)
    finally:
        _print_tally("questions", counted)


def _print_tally(title: str, tally: Tally) -> None:
    print_table([title, *tally.outcomes], tally.rows(), f"{title} by outcome")


def attack_files(seed: int, numbers: range, jobs: int) -> Iterable[Defect]:
    """Damaged files, each read by one reader."""
    readers.right_files()
    with tempfile.TemporaryDirectory(prefix="volume-", dir=MEMORY) as name:

        def trial(number: int) -> str:
            folder = Path(name) / str(os.getpid())  # of this process
            folder.mkdir(exist_ok=True)
            measured = number % LOOK_EVERY == 0  # it would take longer than most trials
            return watched(lambda: readers.trial(seed, number, folder), measured)

        yield from in_processes("files", numbers, trial, jobs, batch=20_000)


def attack_packets(seed: int, numbers: range, jobs: int) -> Iterable[Defect]:
    """Packets to the live switch without its sockets, half of them forged."""
    trials = range(numbers.start // datagrams.PACKETS, -(-numbers.stop // datagrams.PACKETS))
    datagrams.trial(seed, 0)  # loads kernels
    yield from in_processes("packets", trials, lambda number: watched(lambda: datagrams.trial(seed, number)), jobs)


def attack_requests(seed: int, numbers: range, _: int) -> Iterable[Defect]:
    """HTTP requests to a placement service of its own."""
    return http_requests.attack(seed, numbers)


def attack_kills(seed: int, numbers: range, _: int) -> Iterable[Defect]:
    """Commands that are ended by a signal at a random moment, as benchmarks.attacks.kill_commands does."""
    for number, ended in enumerate(end_in_turn(len(numbers), seed)):
        if ended.wrong:
            yield Defect(
                "kills", number, "; ".join(ended.wrong), f"{ended.command}, {ended.signal} at {ended.moment:.2f}"
            )


AREAS: dict[str, Attack] = {
    "lines": attack_lines, "questions": attack_questions, "files": attack_files, "packets": attack_packets,
    "requests": attack_requests,
    "kills": attack_kills,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Attack, and print a table; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.volumes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of all attacks (1)")
    parser.add_argument("--from", type=int, default=0, metavar="N", dest="first", help="number of the first attack (0)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time (1)")
    parser.add_argument("--json", metavar="FILE", help="write a line of JSON for each defect as it is found")
    for area, attack in AREAS.items():
        what = (attack.__doc__ or "").splitlines()[0]
        parser.add_argument(f"--{area}", type=int, default=0, metavar="N", help=what)
    asked = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that processes of attacks end, too
    rows, n_defects = [], 0
    for area, attack in AREAS.items():
        if not (n := getattr(asked, area)):
            continue
        began, before, found = time.monotonic(), _cpu_s(), 0
        for defect in attack(asked.seed, range(asked.first, asked.first + n), asked.jobs):
            found += 1
            print(f"{area} {defect.number}: {defect.what}\n  {defect.problem}", flush=True)
            if asked.json:
                with Path(asked.json).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"seed": asked.seed, **asdict(defect)}) + "\n")
        rows.append([area, f"{n:,}", str(found), f"{_cpu_s() - before:.0f}", f"{time.monotonic() - began:.0f}"])
        n_defects += found
    print_table(["attacks", "number", "defects", "cpu s", "s"], rows, f"seed {asked.seed}, from {asked.first}")
    return 1 if n_defects else 0


def _cpu_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    sys.exit(main())
