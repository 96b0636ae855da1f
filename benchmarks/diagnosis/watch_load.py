"""What watching costs: share of a processor and memory of ``commsim watch`` while a job writes 1,000 records a second.

python -m benchmarks.diagnosis.watch_load [--rate 1000] [--seconds 60] [--nodes 4] [--json FILE]

The job is made up: so many machines of 8 GPUs, each process writes its file as NCCL's inspector does. The page is
fetched every 5 s, as Prometheus would. Time and memory are the watching process's own, from /proc.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from benchmarks.diagnosis.inspector_lines import MadeJob, lines_of
from commsim.report.terminal import print_table

PER_NODE, TICK, FETCHED_EVERY = 8, 0.25, 5.0
OPERATIONS = ("all_gather", "reduce_scatter", "all_reduce")
MEGABYTE = 2.0**20
# Seconds in which the watcher starts: it imports and compiles before it serves.
STARTS_IN = 60.0


def job_of(n_nodes: int) -> tuple[MadeJob, list[tuple[str, str, float]]]:
    """Return a job, and the calls of one of its steps: layers that are gathered and reduced, and gradients by rail."""
    made = MadeJob(n_nodes, PER_NODE, lambda *call: 30e-6 + call[2] / 150e9)
    sizes = [(8 + 4 * (layer % 5)) * MEGABYTE for layer in range(20)]
    layers = [("world", OPERATIONS[layer % 2], size) for layer, size in enumerate(sizes)]
    return made, [*layers, *((f"rail {place}", "all_reduce", 64 * MEGABYTE) for place in range(PER_NODE))]


def write_records(folder: Path, n_nodes: int, rate: float, seconds: float, at: Any) -> int:
    """Write records at a rate for a time; return how many. `at` is called four times a second."""
    made, step = job_of(n_nodes)
    files: dict[str, IO[str]] = {}
    lines = (pair for number in range(10**9) for pair in lines_of(made._replace(seed=number), step))
    began, n_written = time.monotonic(), 0
    while (now := time.monotonic() - began) < seconds:
        while n_written < rate * now:
            name, line = next(lines)
            if name not in files:
                files[name] = (folder / name).open("a")
            files[name].write(line)
            n_written += 1
        for file in files.values():
            file.flush()
        at()
        time.sleep(TICK)
    for file in files.values():
        file.close()
    return n_written


def used(pid: int) -> tuple[float, float]:
    """Return the processor time in s and the largest resident memory in bytes of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return ticks / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) * 1024.0


def measure(rate: float, seconds: float, n_nodes: int) -> dict[str, float]:
    """Return what watching costs at a rate of records."""
    with tempfile.TemporaryDirectory() as folder:
        write_records(Path(folder), n_nodes, rate, 1.0, lambda: None)
        words = [sys.executable, "-m", "commsim", "watch", folder, "--topology", "hgx-h100", "--port", "0"]
        watcher = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            assert watcher.stdout is not None
            url = watcher.stdout.readline().split()[2]
            fetched = urllib.request.urlopen(url, timeout=STARTS_IN).read()
            start, next_fetch, took = used(watcher.pid), [0.0], list[float]()

            def fetch() -> None:
                if time.monotonic() >= next_fetch[0]:
                    began = time.monotonic()
                    next_fetch[0] = began + FETCHED_EVERY
                    fetched = urllib.request.urlopen(url, timeout=STARTS_IN).read()
                    took.append(time.monotonic() - began)
                    assert fetched

            began = time.monotonic()
            n_written = write_records(Path(folder), n_nodes, rate, seconds, fetch)
            elapsed, end = time.monotonic() - began, used(watcher.pid)
            fetched = urllib.request.urlopen(url, timeout=STARTS_IN).read()
        finally:
            watcher.terminate()
            watcher.wait()
    total = next(float(line.split()[1]) for line in fetched.decode().splitlines() if line.startswith("commsim_records"))
    return {
        "records_per_s": n_written / elapsed, "cpu_share": (end[0] - start[0]) / elapsed, "peak_bytes": end[1],
        "start_bytes": start[1], "records_read": total, "slowest_page_s": max(took),
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print what was measured."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.diagnosis.watch_load", description=(__doc__ or "").split("\n")[0]
    )  # fmt: skip
    parser.add_argument("--rate", type=float, default=1000.0, help="records a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for which records are written")
    parser.add_argument("--nodes", type=int, default=4, help="machines of 8 GPUs")
    parser.add_argument("--json", metavar="FILE", help="also write the values")
    flags = parser.parse_args(argv)
    found = measure(flags.rate, flags.seconds, flags.nodes)
    cells = [f"{found['records_per_s']:.0f}", f"{found['cpu_share']:.1%}", f"{found['start_bytes'] / MEGABYTE:.0f}",
             f"{found['peak_bytes'] / MEGABYTE:.0f}", f"{found['slowest_page_s'] * 1e3:.0f}"]  # fmt: skip
    print_table(["records/s", "processor", "MiB at the start", "MiB at most", "slowest page(ms)"], [cells])
    if flags.json:
        with contextlib.suppress(OSError):
            Path(flags.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
