"""``mpiexec -n N python -m commsim.profile_mpi [-o PREFIX] SCRIPT [ARGUMENTS]``: record what an mpi4py program sends.

The program runs unchanged, with a communicator that keeps operation, bytes and time of each call. Each rank writes
``PREFIX.rankN.json``, a record as PyTorch's flight recorder makes them, which ``commsim workload calls`` reads: as a
job for ``place`` and as a graph of tasks for ``workload run``.
"""

from __future__ import annotations

import functools
import pickle
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.files.whole_files import check_writable, write_json

USAGE = "usage: mpiexec -n N python -m commsim.profile_mpi [-o PREFIX] SCRIPT [ARGUMENTS]"
# Name in a record, and the number of buffers, by MPI's name in small letters without I- and -v.
OPERATIONS = {
    "allreduce": "all_reduce", "reduce": "reduce", "bcast": "broadcast", "allgather": "all_gather",
    "alltoall": "all_to_all", "reduce_scatter": "reduce_scatter", "reduce_scatter_block": "reduce_scatter",
    "gather": "gather", "scatter": "scatter", "barrier": "barrier", "send": "send", "sendrecv": "send",
}  # fmt: skip
# Methods that make a smaller communicator.
MAKERS = {"Split", "Split_type", "Create", "Create_group", "Create_from_group"}
# One buffer that is sent by the root and received by the others.
ONE_BUFFER = ("bcast", "send")


def n_bytes(message: Any) -> int:
    """Return the bytes of a buffer as mpi4py takes it: an object with a buffer, or a list with counts and a type.

    Parameters
    ----------
    message : object
        None and ``MPI.IN_PLACE`` have none.
    """
    if message is None or isinstance(message, int):
        return 0
    if isinstance(message, (list, tuple)):
        if len(message) > 1 and isinstance(message[1], int) and hasattr(message[-1], "Get_size"):
            return int(message[1]) * int(message[-1].Get_size())
        return n_bytes(message[0])
    try:
        return memoryview(message).nbytes
    except TypeError:
        return 0


class Recorder:
    """Keeps the calls of one rank.

    Parameters
    ----------
    rank : int
        Rank that makes the calls.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.entries: list[dict[str, Any]] = []
        self.groups: dict[str, int] = {}

    def wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method of a communicator that also records its call."""
        bare = name.lower().removeprefix("i") if name[0] == "I" else name.lower()
        operation = OPERATIONS.get(bare) or OPERATIONS[bare.removesuffix("v").removesuffix("w")]
        has_buffers = name[0].isupper()

        @functools.wraps(call)
        def recorded(comm: Any, *args: Any, **options: Any) -> Any:
            begin = time.time_ns()
            answer = call(comm, *args, **options)
            took = time.time_ns() - begin
            n_buffers = 2 if has_buffers and bare not in (*ONE_BUFFER, "sendrecv") else 1
            buffers = [*args, *options.values()][:n_buffers]
            sizes = [n_bytes(one) if has_buffers else _pickled(one) for one in buffers]
            self._keep(operation, comm, sizes, begin, None if name[0] == "I" else took)
            return answer

        return recorded

    def _keep(self, operation: str, comm: Any, sizes: Sequence[int], begin: int, took: int | None) -> None:
        group, n_ranks = str(comm.py2f()), comm.Get_size()
        self.groups[group] = n_ranks
        sent, received = (*sizes, 0, 0)[:2] if len(sizes) > 1 else (*sizes, *sizes, 0, 0)[:2]
        if operation in ("all_reduce", "reduce"):  # in place, or on a rank that receives nothing
            sent = received = max(sent, received)
        if operation == "all_gather" and received <= sent:  # of an object: only what is sent is known
            received = sent * n_ranks
        self.entries.append({
            "profiling_name": f"mpi:{operation}", "process_group": [group, "mpi4py"],
            "input_sizes": [[sent]], "input_dtypes": ["Byte"],
            "output_sizes": [[received]], "output_dtypes": ["Byte"],
            "time_created_ns": begin, "time_discovered_started_ns": begin,
            "duration_ms": None if took is None else took * 1e-6,
        })  # fmt: skip

    def tree(self) -> dict[str, Any]:
        """Return the record of the flight recorder's form."""
        config = {name: {"ranks": list(range(n))} for name, n in self.groups.items()}
        return {"version": "2.10", "rank": self.rank, "pg_config": config, "entries": self.entries}


def recording(kind: type[Any], recorder: Recorder) -> type[Any]:
    """Return a kind of communicator whose collectives and sends are recorded; what it splits into is of that kind too.

    Parameters
    ----------
    kind : type
        ``MPI.Intracomm``.
    recorder : Recorder
        Recorder that keeps the calls.
    """
    methods = {}
    for name in dir(kind):
        bare = name.lower().removeprefix("i") if name[0] == "I" else name.lower()
        known = bare in OPERATIONS or bare.removesuffix("v").removesuffix("w") in OPERATIONS
        if (known and bare not in ("send", "sendrecv")) or name in ("Send", "Isend", "Sendrecv", "send", "sendrecv"):
            methods[name] = recorder.wrapped(name, getattr(kind, name))
    recorded = type("Recorded", (kind,), methods)
    for name in MAKERS & set(dir(kind)):
        setattr(recorded, name, _of_kind(recorded, kind, getattr(kind, name)))
    return recorded


def _of_kind(recorded: type[Any], kind: type[Any], make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose communicator is of the recorded kind; that of no rank and other topologies stay."""

    @functools.wraps(make)
    def made(*args: Any, **options: Any) -> Any:
        answer = make(*args, **options)
        return recorded(answer) if type(answer) is kind and answer else answer

    return made


def main(argv: Sequence[str]) -> int:
    """Run a program, and write what it sent, also where it ends with an error."""
    words, prefix = list(argv), "mpi_calls"
    if words[:1] == ["-o"] and len(words) > 1:
        prefix, words = words[1], words[2:]
    if not words or words[0].startswith("-") or not Path(words[0]).is_file():
        what = f"{words[0]}: no such script; " if words and not words[0].startswith("-") else ""
        print(f"commsim.profile_mpi: error: {what}{USAGE}", file=sys.stderr)
        return 2
    try:
        from mpi4py import MPI
    except ImportError:
        print(needs("commsim.profile_mpi: error: it needs mpi4py", "mpi"), file=sys.stderr)
        return 2
    recorder = Recorder(MPI.COMM_WORLD.Get_rank())
    path = Path(f"{prefix}.rank{recorder.rank}.json")
    try:
        check_writable(path)
    except InputError as error:
        print(f"commsim.profile_mpi: error: {error}", file=sys.stderr)
        return 2
    vars(MPI)["COMM_WORLD"] = recording(MPI.Intracomm, recorder)(MPI.COMM_WORLD)
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    try:
        runpy.run_path(words[0], run_name="__main__")
    finally:
        write_json(path, recorder.tree())
        if recorder.rank == 0:
            print(f"# {path}: {len(recorder.entries)} calls; commsim workload calls {prefix}.rank*.json reads them")
    return 0


def _pickled(value: Any) -> int:
    try:
        return len(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    except (TypeError, AttributeError, pickle.PicklingError):
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
