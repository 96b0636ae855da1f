"""Floors in the form that other programs take: nccl-tests' own check, and lines of node health checks.

References
----------
nccl-tests, ``src/common.cu``: a run fails whose average bus bandwidth is below 0.9 of ``NCCL_TESTS_MIN_BW``, in GB/s;
the average is one over all sizes. Node Health Check for Azure, ``conf/*.conf``: ``check_nccl_allreduce FLOOR
ITERATIONS SIZE``, an all-reduce inside of one machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from statistics import fmean

from commsim.core.errors import InputError
from commsim.formats.benchmark_output import TESTS

from .expectation import Expectation

# Part of NCCL_TESTS_MIN_BW from which on nccl-tests accepts a run.
ACCEPTED = 0.9
ALL_REDUCE, BYTES_OF_GIB, BYTES_OF_MIB = "all_reduce", 2**30, 2**20
__all__ = ["FORMS", "nccl_tests_lines", "node_health_lines"]


def nccl_tests_lines(expected: Expectation) -> list[str]:
    """Return a command of nccl-tests for each operation, with its floor in the environment.

    The floor is that of the average over all sizes. Their errors being correlated, healthy machines are below the
    average of the floors at most as often as below one of them.

    Parameters
    ----------
    expected : Expectation
        What the machines should reach.

    Raises
    ------
    InputError
        If nccl-tests has no program for an operation, or its steps do not give the sizes.
    """
    lines = []
    for name in expected.operations:
        if name not in TESTS:
            raise InputError(f"nccl-tests has no program for {name}")
        sizes = expected.of(name)
        least = fmean(one.floor for one in sizes) / ACCEPTED / 1e9
        first, last = (_as_flag(sizes[i].size) for i in (0, -1))
        step = f" -f {_factor([one.size for one in sizes])}" if len(sizes) > 1 else ""
        lines.append(f"NCCL_TESTS_MIN_BW={least:.1f} {TESTS[name]} -b {first} -e {last}{step} -g 1")
    return lines


def node_health_lines(expected: Expectation) -> list[str]:
    """Return lines of a configuration of Azure's node health checks, one for each size of the all-reduce.

    Parameters
    ----------
    expected : Expectation
        What one machine should reach.

    Raises
    ------
    InputError
        If there is no all-reduce, or it is on several machines.
    """
    found = expected.of(ALL_REDUCE)
    if not found or expected.n_machines > 1:
        raise InputError("check_nccl_allreduce is an all-reduce inside of one machine: ask for that")
    return [f" * || check_nccl_allreduce {one.floor / 1e9:.1f} 1 {_as_flag(one.size)}" for one in found]


# By the name that the command line has for each form.
FORMS: dict[str, Callable[[Expectation], list[str]]] = {
    "nccl-tests": nccl_tests_lines,
    "azure-nhc": node_health_lines,
}


def _as_flag(size: float) -> str:
    """Write a size as flags of nccl-tests take it."""
    for unit, n_bytes in (("G", BYTES_OF_GIB), ("M", BYTES_OF_MIB), ("K", 2**10)):
        if size >= n_bytes and not size % n_bytes:
            return f"{size / n_bytes:.0f}{unit}"
    return f"{size:.0f}"


def _factor(sizes: list[float]) -> int:
    """Return the factor between sizes, which nccl-tests takes as a whole number."""
    factor = round(sizes[1] / sizes[0])
    if factor < 2 or any(round(b / a, 9) != factor for a, b in itertools.pairwise(sizes)):
        raise InputError("nccl-tests takes sizes by one whole factor, such as -b 1M -e 16G -f 4")
    return factor
