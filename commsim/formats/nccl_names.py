"""What the programs of the field call our operations.

How many ranks a table was measured on, from the two rates that it prints: busbw over algbw is a function of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from commsim.core.errors import InputError
from commsim.core.operations import operation

from .measured import Asked

NCCL_TESTS = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all_v", "broadcast": "broadcast", "reduce": "reduce",
    "gather": "gather", "scatter": "scatter", "sendrecv": "send_recv",
}  # fmt: skip
"""Programs of nccl-tests, without ``_perf``. hypercube_perf is none of our operations."""

NCCL_FUNCTIONS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast", "Reduce": "reduce", "AlltoAll": "all_to_all", "AllToAll": "all_to_all",
    "Gather": "gather", "Scatter": "scatter", "SendRecv": "send_recv", "Send": "send_recv", "Recv": "send_recv",
}  # fmt: skip
"""As NCCL writes them in its logs, names of kernels, and the inspector's lines."""


def program_operation(text: str) -> str:
    """Operation of a program such as ``./build/all_reduce_perf``; empty if it is none that is known."""
    name = Path(text).name.removesuffix("_mpi").removesuffix("_perf")
    return NCCL_TESTS.get(name, "") if "_perf" in text else ""


def require_operation(path: Path, asked: Asked) -> str:
    """Return the operation that the name of the file, or the user, says.

    Raises
    ------
    InputError
        If neither does.
    """
    name = path.name.partition("_perf")[0].partition(".")[0]
    return asked.operation or program_operation(f"{name}_perf") or _unknown(path)


def _unknown(path: Path) -> NoReturn:
    raise InputError(
        f"{path}: does not say which operation was measured; say it, as in --operation all_reduce, or in the file's "
        "name, as in all_reduce.txt"
    )


_PRINTED = re.compile(r"\d{1,16}(?:\.\d{1,16})?", re.ASCII)

MAX_RANKS = 4096
"""Above this the printed digits cannot tell two numbers of ranks apart."""


def ranks_of_rates(name: str, rates: Sequence[tuple[str, str]]) -> int | None:
    """Find the one number of ranks for which all rates are right as they are rounded; None if there is not just one.

    Parameters
    ----------
    name : str
        The operation.
    rates : sequence of (str, str)
        Algbw and busbw of each row, as printed.
    """
    low, high = 0.0, math.inf
    for algbw, busbw in rates:
        (a_low, a_high), (b_low, b_high) = _interval(algbw), _interval(busbw)
        if a_low > 0:
            low, high = max(low, float(b_low / a_high)), min(high, float(b_high / a_low))
    factor = operation(name).busbw_factor
    if not low or factor(2) == factor(3):
        return None
    fitting = [n for n in range(2, MAX_RANKS + 1) if low <= factor(n) <= high]
    return fitting[0] if len(fitting) == 1 else None


def _interval(text: str) -> tuple[Fraction, Fraction]:
    """Between what a printed number was before it was rounded."""
    if not _PRINTED.fullmatch(text):
        return Fraction(0), Fraction(0)
    value = Fraction(text)
    half = Fraction(1, 2 * 10 ** len(text.partition(".")[2]))
    return max(Fraction(0), value - half), value + half
