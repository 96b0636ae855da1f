"""``commsim warmup``: compile the kernels that commands need, so that none of them waits for the compiler."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from commsim.core.errors import InputError
from commsim.report.answer import Answer, Part, Table, remarks
from commsim.report.terminal import progress

from .flags import Verb, WithJson, flag, switched

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,oversubscription=2"
# Commands that need the kernels of each part; the groups share few kernels, so that each is a process of its own.
PARTS: dict[str, tuple[str, ...]] = {
    "flow engine": (
        f"run ring_all_reduce double_tree_all_reduce hierarchical_all_reduce --topology {LEAF_SPINE} -b 1M -e 1M",
        "run halving_doubling_all_reduce pairwise_all_to_all --topology fat_tree:k=4 -b 1M -e 1M",
        "run ring_all_reduce --topology fat_tree:k=4 -b 1M -e 1M --routing spray --start-jitter 10us",
        "run byteps:n_partitions=2 --topology fat_tree:k=8 -b 1M -e 1M",
        "run --topology dgx-h100@star:machines=2 -b 1M -e 1M",
        "bound --topology star:n_hosts=8 --operation all_reduce -b 1M -e 1M",
    ),
    "packets and switches": (
        # first what needs no routes: their kernels are on the disk when the flow engine's process has compiled them
        "switch simulate --workers 4 --size 64KiB",
        "switch simulate --workers 4 --size 64KiB --system atp --loss 1%",
        "run ring_all_reduce --topology star:n_hosts=4 --engine packet -b 64K -e 64K",
        "run ring_all_reduce --topology star:n_hosts=4 --engine packet --transport dctcp -b 64K -e 64K",
        "run ring_all_reduce --topology star:n_hosts=4 --engine packet --transport dcqcn -b 64K -e 64K",
    ),
    "sparse data and advice": (
        "advise --topology star:n_hosts=8,bandwidth=100Gbps --ranks 4 --size 1MiB --density 0.01 --programmable",
    ),
}


MAX_SHOWN = 20


class Config(WithJson):
    """All flags of ``commsim warmup``."""

    jobs: int | None = flag(metavar="N", help="processes that compile at once (default: all processors)")
    verbose: bool = switched("-v", help="print the processor time of each kernel")


def run(config: Config) -> Answer:
    """Compile each part in a process, and say how long each took."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    if config.jobs is not None and config.jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {config.jobs}")
    jobs = min(config.jobs or os.cpu_count() or 1, len(PARTS))
    begin, rows = time.perf_counter(), []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        # what takes longest begins first
        waiting = {name: pool.submit(compile_part, lines) for name, lines in PARTS.items()}
        waiting["a real switch"] = pool.submit(compile_live)
        for name in progress(list(waiting), "compiling kernels"):
            found = waiting[name].result()
            rows.append({"part": name, **found})
    took = time.perf_counter() - begin
    cells = [[r["part"], f"{r['time_s']:.1f}", f"{r['kernels']}"] for r in rows]
    n = sum(r["kernels"] for r in rows)
    said = [f"{n} kernels compiled in {took:.1f} s" if n else f"nothing to compile, looked for {took:.1f} s"]
    failed = [f"failed: {r['part']}: {r['failed']}" for r in rows if r["failed"]]
    of_kernels = _kernels(rows) if config.verbose else []
    parts = [Table(["part", "time(s)", "kernels"], cells), *of_kernels, *remarks([*said, *failed])]
    return Answer(parts, rows, more={"time_s": took}, code=1 if failed else 0)


def _kernels(rows: list[dict[str, Any]]) -> list[Part]:
    """Return the kernels that took longest, and what several parts compiled."""
    own, kinds = Counter[str](), Counter[str]()
    parts: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        for name, arguments, seconds in row["compiled"]:
            own[name] += seconds
            kinds[name] += 1
            parts[name, arguments].append(seconds)
    cells = [[name, f"{seconds:.1f}", f"{kinds[name]}"] for name, seconds in own.most_common(MAX_SHOWN)]
    title = "the kernels that took longest, without those that they call"
    again = [seconds for times in parts.values() for seconds in times[1:]]
    in_all = f"{sum(own.values()):.1f} s of CPU in all; {len(again)} compiled again by another part: {sum(again):.1f} s"
    return [Table(["kernel", "CPU(s)", "compiled"], cells, title), *remarks([in_all])]


def compile_part(lines: tuple[str, ...]) -> dict[str, Any]:
    """Run commands in this process with every kernel compiled, and say how long it took and how many were new."""
    from . import main

    with _counted() as found:
        for line in lines:
            told = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
                try:
                    code: Any = main(line.split())
                except SystemExit as refused:  # words that no parser knows
                    code = refused.code
            if code:
                found["failed"] = told.getvalue().strip().splitlines()[-1]
    return found


def compile_live() -> dict[str, Any]:
    """Compile what a switch and its workers run on real packets."""
    from switch_model.live.exchange import compile_kernels

    with _counted() as found, contextlib.redirect_stderr(io.StringIO()):
        compile_kernels()
    return found


@contextlib.contextmanager
def _counted() -> Iterator[dict[str, Any]]:
    """Measure the time, and the number of kernels that this process has written to the cache."""
    from commsim.core.compiling import kernel_cache
    from commsim.core.jit import compile_all

    compile_all()
    found: dict[str, Any] = {"time_s": 0.0, "kernels": 0, "failed": None, "compiled": []}
    save, begin = kernel_cache.KernelCache.save_overload, time.perf_counter()

    def counting(self: Any, signature: Any, compiled: Any) -> None:
        found["kernels"] += 1
        save(self, signature, compiled)

    kernel_cache.KernelCache.save_overload = counting  # type: ignore[method-assign]
    try:
        with _timed(found["compiled"]):
            yield found
    finally:
        kernel_cache.KernelCache.save_overload = save  # type: ignore[method-assign]
        found["time_s"] = time.perf_counter() - begin


@contextlib.contextmanager
def _timed(compiled: list[tuple[str, str, float]]) -> Iterator[None]:
    """Note each kernel that Numba compiles: name, kinds of arguments, seconds of processor without those within."""
    from numba.core import event

    running: list[list[float]] = []  # begin, and the time of kernels within

    class Times(event.Listener):
        def on_start(self, event: Any) -> None:  # noqa: ARG002
            running.append([time.process_time(), 0.0])

        def on_end(self, event: Any) -> None:
            begin, within = running.pop()
            took = time.process_time() - begin
            if running:
                running[-1][1] += took
            function = event.data["dispatcher"].py_func
            compiled.append((f"{function.__module__}.{function.__name__}", str(event.data["args"]), took - within))

    with event.install_listener("numba:compile", Times()):
        yield


COMMANDS = {"warmup": Verb(Config, run)}
