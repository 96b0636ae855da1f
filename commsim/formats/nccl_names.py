"""What the programs of the field call our operations."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from commsim.core.errors import InputError

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
