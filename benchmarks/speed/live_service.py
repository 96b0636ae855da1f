"""The placement service of a cluster that lives: latencies beside running jobs, kills during posts, a week's trace.

python -m benchmarks.speed.live_service [--json FILE] [--kills 300] [--requests 60] [--parts latency,kills]

- latency: ``POST /place`` on 1,008 nodes with 99 jobs, and on 1,008 and 10,000 nodes with 1,000 jobs: milliseconds of
  wall clock over loopback, one client; CPU milliseconds of the service for each request beside them, with quantiles.
- parallel: 200 requests at once, each answered.
- kills: SIGKILL at a drawn moment while jobs are posted; the version and the jobs after the restart are those of the
  last change that was answered, or of the one that was under way.
- week: a drawn trace of a week is posted through ``POST /place`` with ``reserve`` and ``DELETE /jobs/NAME``.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import write_results
from commsim.placement.clusters.generated_traces import philly
from commsim.placement.clusters.models import MODELS, profile
from commsim.report.terminal import print_table

GPUS, RATE = 8, "100Gbps"
PORT_BYTES_PER_S = 12.5e9
# Leaves, hosts of each, spines, running jobs.
SIZES = ((42, 24, 8, 99), (42, 24, 8, 1000), (313, 32, 16, 1000))
WANTED_MS = {1: 50.0, 10: 200.0}  # p50 of one candidate and by default; p99 twice that
Job = dict[str, Any]


def cluster_text(n_leaves: int, hosts_per_leaf: int, n_spines: int) -> str:
    """Return a cluster.toml."""
    spec = f"leaf_spine:n_leaves={n_leaves},n_spines={n_spines},hosts_per_leaf={hosts_per_leaf},bandwidth={RATE}"
    return f'[topology]\nspec = "{spec}"\n[hosts]\ngpus = {GPUS}\n'


def drawn_job(rng: np.random.Generator, name: str, gpus: int) -> Job:
    """Return a job of one phase."""
    period = float(rng.choice([100, 150, 200, 240, 300]))
    up = round(period * float(rng.uniform(0.2, 0.5)), 1)
    phases = [{"offset_ms": round(period - up, 1), "dur_ms": up, "rate_Gbps": float(rng.choice([40, 60, 80]))}]
    return {"job": name, "gpus": gpus, "iter_time_ms": period, "phases": phases}


def running_jobs(n_hosts: int, n_jobs: int, seed: int = 1) -> list[Job]:
    """Return jobs on hosts that are drawn, so that most of them cross racks, on seven tenths of the GPUs at most."""
    rng = np.random.default_rng(seed)
    room = int(0.7 * n_hosts * GPUS / n_jobs)
    sizes = [n for n in (4, 8, 16, 32, 64) if n <= 2 * room] or [4]
    seats = [f"h{host}" for host in rng.permutation(np.repeat(np.arange(n_hosts), 2))]  # four GPUs each
    rows = []
    for i in range(n_jobs):
        n = int(rng.choice(sizes))
        hosts = [seats.pop() for _ in range(min(n // 4, len(seats)))]
        if not hosts:
            break
        job = drawn_job(rng, f"r{i}", 4 * len(hosts))
        rows.append(job | {"placement": [host for host in hosts for _ in range(4)]})
    return rows


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def ask(
        self, method: str, path: str, tree: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Return the status and the answer."""
        body = None if tree is None else json.dumps(tree)
        self._connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


@contextlib.contextmanager
def service(cluster: str, store: Path | None = None) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run a service; give its port and its process."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "cluster.toml"
        path.write_text(cluster)
        command = [sys.executable, "-m", "commsim", "place", "serve", "--cluster", str(path)]
        command += ["--store", str(store)] if store else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            match = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            if match is None:
                raise SystemExit("the service did not start")
            yield int(match[1]), process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


@contextlib.contextmanager
def forked(cluster: str, store: Path) -> Iterator[tuple[int, int]]:
    """Run a service in a fork of this process, which has loaded everything; give its port and its process."""
    from commsim.placement.cluster import read_cluster
    from commsim.placement.service.http_server import Listening, serve
    from commsim.placement.service.job_store import JobStore
    from commsim.placement.service.placement_service import PlacementService, Preferences

    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        service = PlacementService(read_cluster(tomllib.loads(cluster)), Preferences(), JobStore(store))

        def started(url: str) -> None:
            os.write(write, f"{url}\n".encode())

        serve(service, Listening(), started)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        match = re.search(r":(\d+)$", told.readline().strip())
    if match is None:
        raise SystemExit("the service did not start")
    try:
        yield int(match[1]), process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def cpu_clock(process: int) -> int:
    """Return Linux's clock of the processor time of another process, for `time.clock_gettime`."""
    return ~process << 3 | 2


def latencies(n_requests: int) -> list[dict[str, Any]]:
    """Measure ``POST /place`` of new jobs, each another one."""
    rows = []
    for n_leaves, hosts, spines, n_jobs in SIZES:
        with service(cluster_text(n_leaves, hosts, spines)) as (port, process):
            client, jobs = Client(port), running_jobs(n_leaves * hosts, n_jobs)
            for at in range(0, len(jobs), 1000):
                status, answer = client.ask("POST", "/jobs", {"jobs": jobs[at : at + 1000]})
                if status != 200:
                    raise SystemExit(f"{status}: {answer}")
            for candidates in (1, 10):
                rng, took, used, size = np.random.default_rng(candidates), list[float](), list[float](), 0
                clock = cpu_clock(process.pid)
                for i in range(-3, n_requests):
                    asked = {
                        "jobs": [drawn_job(rng, "new", int(rng.choice([8, 16, 32, 64])))],
                        "candidates": candidates,
                    }
                    start, before = time.perf_counter(), time.clock_gettime(clock)
                    status, answer = client.ask("POST", "/place", asked)
                    if status != 200:
                        raise SystemExit(f"{status}: {answer}")
                    if i >= 0:
                        took.append(time.perf_counter() - start)
                        used.append(time.clock_gettime(clock) - before)
                        size = max(size, len(json.dumps(answer)))
                (p50, p99), (cpu_p50, cpu_p99) = (np.quantile(times, [0.5, 0.99]).tolist() for times in (took, used))
                rows.append({"nodes": n_leaves * hosts, "running": len(jobs), "candidates": candidates, "p50_s": p50,
                             "p99_s": p99, "cpu_p50_s": cpu_p50, "cpu_p99_s": cpu_p99, "bytes": size})  # fmt: skip
                print(f"# {rows[-1]}", flush=True)
            client.close()
    names = ["nodes", "running", "candidates", "p50(ms)", "p99(ms)", "cpu p50(ms)", "cpu p99(ms)", "bytes"]
    cells = [
        [f"{r[key]}" for key in names[:3]]
        + [f"{r[key] * 1e3:.1f}" for key in ("p50_s", "p99_s", "cpu_p50_s", "cpu_p99_s")]
        + [f"{r['bytes']}"]
        for r in rows
    ]
    print_table(names, cells, "POST /place beside running jobs, one client")
    return rows


def parallel(n: int = 200) -> dict[str, Any]:
    """Ask at once, and count the answers by status."""
    with service(cluster_text(*SIZES[0][:3])) as (port, _):
        client, statuses = Client(port), list[int]()
        client.ask("POST", "/jobs", {"jobs": running_jobs(1008, 99)})
        rng = np.random.default_rng(0)
        asked = [{"jobs": [drawn_job(rng, "new", 32)], "candidates": 1} for _ in range(n)]

        def ask(i: int) -> None:
            one = Client(port)
            statuses.append(one.ask("POST", "/place", asked[i])[0])
            one.close()

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(n)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - start
    counts = dict(Counter(statuses))
    print(f"# {n} requests at once: {counts} in {took:.1f} s")
    return {"requests": n, "statuses": {f"{k}": v for k, v in counts.items()}, "seconds": took}


def kills(n: int, seed: int = 0) -> dict[str, Any]:
    """Kill the service while jobs are posted, and compare what it knows after each restart."""
    from commsim.placement.service.beside.ranking_beside import warm_up_ranking

    warm_up_ranking()  # before the forks, which then have it
    rng, wrong, answered, under_way = np.random.default_rng(seed), 0, 0, 0
    version, known = 0, dict[str, int]()
    pending = (version, known)
    with tempfile.TemporaryDirectory() as name:
        store, cluster = Path(name) / "jobs.sqlite", cluster_text(4, 8, 2)
        for _ in range(n):
            with forked(cluster, store) as (port, process):
                client = Client(port)
                _, state = client.ask("GET", "/jobs")
                here = {job["job"]: len(job["placed"]) for job in state["jobs"]}
                allowed = [(version, known)] if under_way == 0 else [(version, known), pending]
                wrong += (state["version"], here) not in allowed
                version, known, under_way = state["version"], here, 0
                end = threading.Timer(float(rng.uniform(0.0, 0.3)), os.kill, (process, signal.SIGKILL))
                end.start()
                try:
                    while True:
                        job = drawn_job(rng, f"j{int(rng.integers(6))}", int(rng.choice([4, 8, 16])))
                        places = job["gpus"] // 4
                        first = 4 * int(job["job"][1:])
                        job |= {"placement": [f"h{first + k}" for k in range(places) for _ in range(4)]}
                        pending = (version + 1, known | {job["job"]: job["gpus"]})
                        under_way = 1
                        status, state = client.ask("POST", "/jobs", {"jobs": [job]})
                        if status != 200:
                            raise SystemExit(f"{status}: {state}")
                        version, known, under_way = pending[0], pending[1], 0
                        answered += 1
                except (OSError, http.client.HTTPException, ValueError):
                    end.join()
                client.close()
    print(f"# {n} kills during posts: {answered} changes answered, {wrong} restarts with another version or other jobs")
    return {"kills": n, "answered": answered, "wrong": wrong}


def week(jobs_of_week: int = 2000, seed: int = 3) -> dict[str, Any]:
    """Post a drawn week: each job is placed and reserved when it comes, and removed when it ends."""
    models = tuple(MODELS)
    trace = philly(1008 * GPUS, models, jobs_of_week, 0.6, seed, days=7.0)
    events = sorted([(job.submit, 1, i) for i, job in enumerate(trace)])
    ends: list[tuple[float, str]] = []
    took, refused, most, costs = list[float](), 0, 0, list[float]()
    with tempfile.TemporaryDirectory() as name, service(cluster_text(*SIZES[0][:3]), Path(name) / "jobs") as (port, _):
        client, version = Client(port), 0
        for now, _, i in events:
            job, model = trace[i], MODELS[trace[i].model]
            for end, gone in sorted(one for one in ends if one[0] <= now):
                status, answer = client.ask("DELETE", f"/jobs/{gone}", None, {"If-Match": f'"{version}"'})
                if status != 200:
                    raise SystemExit(f"{status}: {answer}")
                version = answer["version"]
                ends.remove((end, gone))
            one = profile(model, job.name, job.n_gpus, -(-job.n_gpus // GPUS), PORT_BYTES_PER_S)
            phases = [
                {"offset_ms": p.offset * 1e3, "dur_ms": p.duration * 1e3, "rate_Gbps": p.rate * 8e-9}
                for p in one.phases
            ]
            row = {"job": job.name, "gpus": job.n_gpus, "iter_time_ms": one.period * 1e3, "phases": phases}
            start = time.perf_counter()
            asked = {"jobs": [row], "candidates": 4, "reserve": True}
            status, answer = client.ask("POST", "/place", asked, {"If-Match": f'"{version}"'})
            took.append(time.perf_counter() - start)
            if status == 200:
                version = answer["reserved"]["version"]
                costs.append(answer["candidates"][0]["cost"]["total"])
                ends.append((now + (job.duration or 0.0), job.name))
                most = max(most, len(ends))
            else:
                refused += 1
        state = client.ask("GET", "/jobs")[1]
        client.close()
    same = {job["job"] for job in state["jobs"]} == {name for _, name in ends}
    p50, p99 = np.quantile(took, [0.5, 0.99]).tolist()
    n_costly, left = sum(cost > 1e-4 for cost in costs), "those that run" if same else "OTHERS"
    print(f"# a week of {len(trace)} jobs: {refused} without room, at most {most} at once, {n_costly} cost something")
    print(f"# p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms; jobs at the end are {left}, version {state['version']}")
    return {"jobs": len(trace), "refused": refused, "most": most, "p50_s": p50, "p99_s": p99, "same": same}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether what was wanted is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2000, help="of the week")
    parser.add_argument("--parts", default="latency,parallel,kills,week")
    args = parser.parse_args(argv)
    parts, rows, good = args.parts.split(","), list[dict[str, Any]](), True
    if "latency" in parts:
        rows += latencies(args.requests)
        for row in rows:
            wanted = WANTED_MS[row["candidates"]] / 1e3
            good &= row["p50_s"] <= wanted and row["p99_s"] <= 2 * wanted
    if "parallel" in parts:
        rows.append(parallel())
        good &= set(rows[-1]["statuses"]) == {"200"}
    if "kills" in parts:
        rows.append(kills(args.kills))
        good &= rows[-1]["wrong"] == 0
    if "week" in parts:
        rows.append(week(args.jobs))
        good &= rows[-1]["same"]
    print(f"# wanted: {'met' if good else 'NOT met'}")
    if args.json:
        write_results(args.json, {"benchmark": "live_service"}, rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
