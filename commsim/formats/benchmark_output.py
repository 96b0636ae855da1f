"""Predictions in the output format of other tools' benchmarks: nccl-tests and the OSU micro-benchmarks.

The tables have the form of the originals, so scripts for these work on ours. Both are read back by
:func:`commsim.formats.measured.read_measured`.

References
----------
nccl-tests 2.14, ``src/common.cu``; OSU micro-benchmarks 7.4, ``c/util/osu_util_mpi.c``.
"""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.result import Result

# By operation: OSU's name, and whether its size is one block of as many as there are ranks.
OSU_NAMES = {
    "all_reduce": ("Allreduce", False), "reduce": ("Reduce", False), "broadcast": ("Broadcast", False),
    "reduce_scatter": ("Reduce_scatter", False), "all_gather": ("Allgather", True), "all_to_all": ("All-to-All", True),
    "gather": ("Gather", True), "scatter": ("Scatter", True),
}  # fmt: skip
TESTS = {
    "all_reduce": "all_reduce_perf", "all_gather": "all_gather_perf", "reduce_scatter": "reduce_scatter_perf",
    "broadcast": "broadcast_perf", "reduce": "reduce_perf", "all_to_all": "alltoall_perf", "gather": "gather_perf",
    "scatter": "scatter_perf", "send_recv": "sendrecv_perf",
}  # fmt: skip


def osu_text(results: Sequence[Result]) -> str:
    """Return the table of OSU's latency test of one operation; times in microseconds.

    Parameters
    ----------
    results : sequence of Result
        Results of one operation, by size.

    Raises
    ------
    InputError
        If none is given, they are of several operations, or OSU has no test of theirs.
    """
    operation = _one_operation(results, OSU_NAMES, "OSU's micro-benchmarks")
    name, is_block = OSU_NAMES[operation]
    lines = [f"# OSU MPI {name} Latency Test v7.4", "# Datatype: MPI_FLOAT.", f"{'# Size':<10}{'Avg Latency(us)':>18}"]
    for result in results:
        size = result.size / result.n_ranks if is_block else result.size
        lines.append(f"{size:<10.0f}{result.time * 1e6:>18.2f}")
    return "\n".join(lines) + "\n"


def nccl_tests_text(results: Sequence[Result], in_place: Sequence[Result] | None = None) -> str:
    """Return the table of nccl-tests of one operation; times in microseconds, rates in GB/s.

    Parameters
    ----------
    results : sequence of Result
        Results of one operation and one number of ranks, by size.
    in_place : sequence of Result, optional
        The same in place; by default the results themselves.

    Raises
    ------
    InputError
        If none is given, they are of several operations or numbers of ranks, or nccl-tests has no test of theirs.
    """
    operation = _one_operation(results, TESTS, "nccl-tests")
    ranks = {result.n_ranks for result in results}
    if len(ranks) > 1:
        raise InputError(f"a table of nccl-tests is of one number of ranks, got {sorted(ranks)}")
    sizes = [result.size for result in results]
    lines = [f"# Collective test starting: {TESTS[operation]}"]
    lines += [f"# nThread 1 nGpus 1 minBytes {min(sizes):.0f} maxBytes {max(sizes):.0f}", "# Using devices"]
    device = "#  Rank {0:>2} Group  0 Pid {0} on predicted device {0} commsim"
    lines += [device.format(rank) for rank in range(ranks.pop())]
    head = "{:>12}{:>14}{:>10}{:>8}{:>8}" + 2 * " {:>8}{:>8}{:>8}{:>7}"
    columns = ["size", "count", "type", "redop", "root", *2 * ["time", "algbw", "busbw", "#wrong"]]
    lines += ["#" + head.format(*columns)[1:]]
    redop = "sum" if OPERATIONS[operation].reduces else "none"
    parts = OPERATIONS[operation].least_chunks(results[0].n_ranks)
    for out, within in zip(results, in_place or results, strict=True):
        cells = [cell for one in (out, within) for cell in (*_times(one), "0")]
        lines.append(head.format(f"{out.size:.0f}", f"{out.size / 4 / parts:.0f}", "float", redop, "-1", *cells))
    mean = sum(result.busbw for result in results) / len(results) / 1e9
    return "\n".join([*lines, "# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {mean:.6g}", "#", ""])


def _times(result: Result) -> tuple[str, str, str]:
    rate = f"{result.algbw / 1e9:.2f}" if result.time else "0.00"
    return f"{result.time * 1e6:.2f}", rate, f"{result.busbw / 1e9:.2f}" if result.time else "0.00"


def _one_operation(results: Sequence[Result], known: dict[str, tuple[str, bool]] | dict[str, str], tool: str) -> str:
    operations = {result.operation for result in results}
    if len(operations) != 1:
        raise InputError(f"a table is of one operation, got {', '.join(sorted(operations)) or 'no result'}")
    operation = operations.pop()
    if operation not in known:
        raise InputError(f"{tool} have no test of {operation}; they have {', '.join(known)}")
    return operation
