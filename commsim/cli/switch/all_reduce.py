"""``commsim switch all-reduce``: a worker of a switch that serves; every worker is a process of its own."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import parse_size, parse_time
from commsim.files.whole_files import check_regular, check_writable, replacing
from commsim.report.table import print_table, write_results

from .serve import PORT, port_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from switch_model.live.worker import SwitchGroup

COLUMNS = ["tensor", "time(ms)", "M elem/s", "packets/s", "resent", "sums"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--rank", type=int, required=True, metavar="R", help="which worker this is, from 0")
    add("--workers", type=int, required=True, metavar="N", help="how many there are")
    add("--job", default="job", metavar="NAME", help="that the workers have agreed on (job)")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="of the switch (127.0.0.1)")
    add("--port", type=int, default=PORT, metavar="N", help=f"of the switch ({PORT})")
    add("--size", default="1MiB", metavar="SIZE", help="of the tensor (1MiB)")
    add("--dtype", choices=("int32", "float32"), default="int32", help="of the tensor (int32)")
    add("--seed", type=int, default=0, metavar="N", help="of the tensors; the same on all workers (0)")
    add("--iterations", type=int, default=1, metavar="N", help="all-reduces of the tensor, one after the other (1)")
    add("--input", metavar="FILE.npy", help="this worker's tensor, instead of a drawn one")
    add("--output", metavar="FILE.npy", help="write the last sum")
    add("--check", action="store_true", help="compare every sum with that of all ranks' drawn tensors")
    add("--slots", type=int, metavar="N", help="of the switch, and packets that may be out (the switch chooses)")
    add("--rto", default="10ms", metavar="TIME", help="after which a packet without a result is sent again (10ms)")
    add("--join-timeout", default="60s", metavar="TIME", help="how long to wait for the other workers (60s)")
    add("--stall-timeout", default="5min", metavar="TIME", help="how long to go on without any packet (5min)")
    add("--datagrams", metavar="segments|messages|single", help="how to receive and send (the fastest that works)")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Take part; 1 if a sum is wrong."""
    if args.check and args.input:
        raise InputError("--check needs drawn tensors, since this worker does not know the others' --input")
    if args.iterations < 1:
        raise InputError(f"--iterations must be at least 1, got {args.iterations}")
    if not 0 <= args.rank < args.workers:
        raise InputError(f"--rank is 0 to --workers less 1, got {args.rank} of {args.workers}")
    if args.output:
        check_writable(Path(args.output))
    tensor = _tensor(args)
    times = {name: parse_time(getattr(args, name), f"--{name.replace('_', '-')}")
             for name in ("rto", "join_timeout", "stall_timeout")}  # fmt: skip
    from switch_model.live.worker import SwitchGroup

    with SwitchGroup(args.job, args.rank, args.workers, host=args.host, port=port_number(args.port), slots=args.slots,
                     mode=args.datagrams, **times) as group:  # fmt: skip
        rows, last = _reduce(group, tensor, args)
        lease = group.lease
    print_table(COLUMNS, [_shown(row) for row in rows],
                f"rank {args.rank} of {args.workers}, {len(tensor)} {tensor.dtype}, {lease.n_slots} slots of "
                f"{lease.elements} elements")  # fmt: skip
    if args.output:
        _write(args.output, last)
    if args.json:
        write_results(args.json, {k: v for k, v in vars(args).items() if k != "json"}, rows)
    wrong = [row for row in rows if row["right"] is False]
    if wrong:
        print(f"commsim switch all-reduce: {len(wrong)} sums are wrong", file=sys.stderr)
    return 1 if wrong else 0


def _reduce(group: SwitchGroup, tensor: NDArray[Any], args: argparse.Namespace) -> tuple[list[dict[str, Any]], Any]:
    from switch_model.live.sums import worst_error

    rows, total = [], tensor
    for number in range(args.iterations):
        group.barrier()
        sent, resent, began = group.traffic.sent, group.traffic.retransmissions, time.perf_counter()
        total = group.all_reduce(tensor)
        took = time.perf_counter() - began
        sent, resent = group.traffic.sent - sent, group.traffic.retransmissions - resent
        error = worst_error(total, args.seed, args.workers, group.lease.elements) if args.check else None
        limit = 0 if args.dtype == "int32" else 1
        rows.append({"tensor": number, "rank": args.rank, "time_s": took, "elements": len(tensor),
                     "elements_per_s": len(tensor) / took, "packets_sent": sent, "packets_per_s": sent / took,
                     "retransmissions": resent, "error": error,
                     "right": None if error is None else error <= limit})  # fmt: skip
    return rows, total


def _tensor(args: argparse.Namespace) -> NDArray[np.int32] | NDArray[np.float32]:
    from switch_model.live.sums import drawn_tensor

    if args.input:
        return _read(args.input)
    n_bytes = parse_size(args.size, "--size")
    if n_bytes < 4 or n_bytes % 4:
        raise InputError(f"--size must be a multiple of 4B, at least 4B, got {args.size}")
    return drawn_tensor(args.seed, args.rank, int(n_bytes) // 4, args.dtype)


def _read(path: str) -> NDArray[Any]:
    import numpy as np

    check_regular(path)
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError):
        raise InputError(f"{path}: not a readable npy file of numbers") from None
    if not isinstance(array, np.ndarray) or str(array.dtype) not in ("int32", "float32") or not array.size:
        raise InputError(f"{path}: expected one array of int32 or float32 with at least 1 element")
    return array.reshape(-1)


def _write(path: str, array: NDArray[Any]) -> None:
    import numpy as np

    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def _shown(row: dict[str, Any]) -> list[str]:
    sums = {None: "not checked", True: "right", False: "WRONG"}[row["right"]]
    return [f"{row['tensor']}", f"{row['time_s'] * 1e3:.2f}", f"{row['elements_per_s'] / 1e6:.2f}",
            f"{row['packets_per_s']:.0f}", f"{row['retransmissions']}", sums]  # fmt: skip
