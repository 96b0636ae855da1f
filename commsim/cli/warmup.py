"""``commsim warmup``: compile the kernels that commands need, so that none of them waits for the compiler."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from commsim.core.errors import InputError
from commsim.core.extras import told_extra
from commsim.extensions import found_at, house
from commsim.report.answer import Answer, Part, Table, comments
from commsim.report.terminal import progress

from .flags import Verb, WithJson, flag, switched

EXAMPLES = {
    "warmup": """
        commsim warmup
        commsim warmup -v
        commsim warmup --jobs 1
        commsim warmup --json compiled.json
        NUMBA_CACHE_DIR=kernels commsim warmup""",
}

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,oversubscription=2"
FEW = "star:n_hosts=4"
# Commands that together call the kernels of all verbs, so that none is listed; those of extensions are theirs. One
# process runs the commands of a part: two that need the same kernel at the same time would both compile it.
PARTS: dict[str, tuple[str, ...]] = {
    "flow engine": (
        f"run ring_all_reduce double_tree_all_reduce hierarchical_all_reduce --topology {LEAF_SPINE} -b 1M -e 1M",
        # kernels of later lines, which two processes then do not compile at once
        "run double_tree_all_reduce:n_chunks=8 --topology fat_tree:k=16 --ranks 512 -b 1M -e 1M",
        "run halving_doubling_all_reduce pairwise_all_to_all --topology fat_tree:k=4 -b 1M -e 1M",
        "run direct_all_to_all --topology leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4 -b 1M -e 1M",
        "run halving_doubling_all_reduce --topology fat_tree:k=8 -b 1M -e 1M",
        "run halving_doubling_all_reduce --topology leaf_spine:n_leaves=16,n_spines=4,hosts_per_leaf=32 -b 1M -e 1M",
        f"run ring_all_reduce --topology {LEAF_SPINE} -b 1M -e 1M --flap link:leaf0->spine0@20us+20us",
        "run ring_all_reduce --topology dragonfly:p=2,a=4,h=2 --routing valiant -b 1M -e 1M",
        f"run ring_all_reduce --topology {FEW} --engine alpha-beta -b 1M -e 1M",
        "run ring_all_reduce --topology fat_tree:k=4 -b 1M -e 1M --routing spray --start-jitter 10us",
        "commsim.cli.warmup:compile_groups",
        "topo show fat_tree:k=4",
    ),
}
MAX_SHOWN = 20
# What a line says that needs a library of an extra: its kernels are left to whoever installs that.
OF_EXTRA = "commsim["


class WarmupConfig(WithJson):
    """All flags of ``commsim warmup``."""

    jobs: int | None = flag(metavar="N", help="processes that compile at once (default: all processors)")
    verbose: bool = switched("-v", help="print the processor time of each kernel")


def run(config: WarmupConfig) -> Answer:
    """Run the commands in processes, and say how long each part took."""
    from commsim.core.worker_pool import worker_pool

    if config.jobs is not None and config.jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {config.jobs}")
    all_parts = parts_to_compile()
    jobs = min(config.jobs or os.cpu_count() or 1, len(all_parts))
    begin = time.perf_counter()
    with worker_pool(jobs) as pool:
        waiting = [(name, pool.submit(compile_part, lines)) for name, lines in all_parts.items()]
        found = [(name, one) for name, task in progress(waiting, "compiling kernels") for one in task.result()]
    rows = _rows(found)
    took = time.perf_counter() - begin
    cells = [[r["part"], f"{r['time_s']:.1f}", f"{r['kernels']}"] for r in rows]
    n = sum(r["kernels"] for r in rows)
    lines = [f"{n} kernels compiled in {took:.1f} s" if n else f"nothing to compile, looked for {took:.1f} s"]
    failed = [f"failed: {r['part']}: {r['failed']}" for r in rows if r["failed"]]
    lines += [f"left out: {r['part']}: {r['left_out']}" for r in rows if r["left_out"]]
    of_kernels = _kernels(rows) if config.verbose else []
    parts = [Table(["part", "time(s)", "kernels"], cells), *of_kernels, *comments([*lines, *failed])]
    return Answer(parts, rows, more={"time_s": took}, code=1 if failed else 0)


def _rows(found: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Add up the commands of each part."""
    rows: dict[str, dict[str, Any]] = {
        name: {"part": name, "time_s": 0.0, "kernels": 0, "failed": None, "left_out": None, "compiled": []}
        for name, _ in found
    }
    for name, one in found:
        row = rows[name]
        row["time_s"] += one["time_s"]
        row["kernels"] += one["kernels"]
        row["failed"] = row["failed"] or one["failed"]
        row["left_out"] = row["left_out"] or one["left_out"]
        row["compiled"] += one["compiled"]
    return list(rows.values())


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
    return [Table(["kernel", "CPU(s)", "compiled"], cells, title), *comments([in_all])]


def parts_to_compile() -> dict[str, tuple[str, ...]]:
    """Return the lines of each part: commands, and functions that take a folder, as ``module:function``.

    The part with most lines comes first, then those that share no kernel with it: meanwhile it compiles what all others
    need, such as routes. Of these the one with most lines is first, so that no process has it alone in the end.
    """
    brought, own = house().warmups, house().own_kernels
    parts = {name: (*PARTS.get(name, ()), *brought.get(name, ())) for name in (*PARTS, *brought)}
    first, *others = sorted(parts, key=lambda name: -len(parts[name]))
    return {name: parts[name] for name in (first, *sorted(others, key=lambda name: name not in own))}


def compile_part(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Run the lines of a part one after the other, in a folder that stands for TMP: what came of each."""
    with tempfile.TemporaryDirectory() as folder, _without_collection():
        return [compile_line(line, folder) for line in lines]


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Look for no garbage in cycles, of which the compiler leaves little: that was a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def compile_line(line: str, folder: str = "TMP") -> dict[str, Any]:
    """Run a line in this process with every kernel compiled, and say how long it took and how many were new."""
    from . import main

    output = io.StringIO()
    with _measure_compilation() as found:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(output):
            try:
                is_command = " " in line
                code: Any = main(line.replace("TMP", folder).split()) if is_command else found_at(line)(folder)
            except SystemExit as refused:  # words that no parser knows
                code = refused.code
            except ModuleNotFoundError as error:
                code = told_extra(error.name or "")
                if not code:
                    raise
                output.write(f"{code}\n")
        lines = output.getvalue().strip().splitlines()
        if code:
            found["left_out" if OF_EXTRA in lines[-1] else "failed"] = lines[-1]
    return found


def compile_groups(_folder: str) -> None:
    """Simulate bottlenecks on a small network: commands do so only where it takes seconds."""
    from commsim.prediction.build import prepare

    prepare("byteps:n_partitions=2", "fat_tree:k=4").predict(2.0**20, method="bottlenecks")


@contextlib.contextmanager
def _measure_compilation() -> Iterator[dict[str, Any]]:
    """Measure the time, and the number of kernels that this process has written to the cache."""
    from commsim.core.compiling import kernel_cache
    from commsim.core.jit import compile_all

    compile_all()
    counts: dict[str, Any] = {
        "time_s": 0.0, "kernels": 0, "failed": None, "left_out": None, "compiled": [],
    }  # fmt: skip
    save, begin = kernel_cache.KernelCache.save_overload, time.perf_counter()

    def counting(self: Any, signature: Any, compiled: Any) -> None:
        counts["kernels"] += 1
        save(self, signature, compiled)

    kernel_cache.KernelCache.save_overload = counting  # type: ignore[method-assign]
    try:
        with _timed(counts["compiled"]):
            yield counts
    finally:
        kernel_cache.KernelCache.save_overload = save  # type: ignore[method-assign]
        counts["time_s"] = time.perf_counter() - begin


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


COMMANDS = {"warmup": Verb(WarmupConfig, run)}
