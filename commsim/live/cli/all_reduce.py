"""``commsim switch all-reduce`` and ``status``: a worker of a switch that serves, and the switch's status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, WithJson, flag, switched
from commsim.core.errors import InputError
from commsim.core.files.opening import check_regular
from commsim.core.files.whole_files import check_writable, replacing
from commsim.core.units import parse_nccl_size, parse_time, write_time
from commsim.report.answer import Answer, Table, comments

from .secret import WithSecret
from .serve import port_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMNS = ["tensor", "time(ms)", "M elem/s", "packets/s", "resent", "sums"]


class Server(WithSecret):
    """Where the switch is."""

    host: str = flag(
        default=DefaultOf("switch_model.live.frames:LOOPBACK"), metavar="ADDRESS", help="address of the switch"
    )
    port: int = flag(default=DefaultOf("switch_model.live.frames:PORT"), metavar="N", help="port of the switch")


class SwitchAllReduceConfig(WithJson, Server):
    """All flags of ``commsim switch all-reduce``."""

    rank: int = flag(required=True, metavar="R", help="number of this worker, from 0")
    workers: int = flag(required=True, metavar="N", help="number of workers")
    job: str = flag(
        default=DefaultOf("switch_model.live.session:ask_status.job"),
        metavar="NAME",
        help="name of the job, the same on all workers",
    )
    size: str = flag("-b", default="1MiB", metavar="SIZE", help="size of the tensor")
    dtype: str = flag(choices=("int32", "float32"), default="int32", help="type of its elements")
    seed: int = flag(default=0, metavar="N", help="seed of the tensors; the same on all workers")
    iterations: int = flag(default=1, metavar="N", help="number of all-reduces, one after the other")
    input: str | None = flag(metavar="FILE.npy", help="this worker's tensor, in place of a random one")
    output: str | None = flag(metavar="FILE.npy", help="write the last sum")
    check: bool = switched(help="compare every sum with the sum of the random tensors of all ranks")
    slots: int | None = flag(metavar="N", help="number of slots and outstanding packets (default: set by the switch)")
    rto: str = flag(
        default=DefaultOf("switch_model.live.backoff:RTO_S", write_time),
        metavar="TIME",
        help="time after which a packet without a result is retransmitted",
    )
    join_timeout: str = flag(
        default=DefaultOf("switch_model.live.worker:JOIN_TIMEOUT_S", write_time),
        metavar="TIME",
        help="time to wait for the other workers",
    )
    stall_timeout: str = flag(
        default=DefaultOf("switch_model.live.worker:STALL_TIMEOUT_S", write_time),
        metavar="TIME",
        help="time to wait for a result before giving up",
    )
    datagrams: str | None = flag(
        metavar="segments|messages|single", help="how to receive and send datagrams (default: the fastest that works)"
    )


def run(config: SwitchAllReduceConfig) -> Answer:
    """Take part; the exit code is 1 if a sum is wrong."""
    if config.check and config.input:
        raise InputError("--check needs drawn tensors, since this worker does not know the others' --input")
    if config.iterations < 1:
        raise InputError(f"--iterations must be at least 1, got {config.iterations}")
    if not 0 <= config.rank < config.workers:
        raise InputError(f"--rank is 0 to --workers less 1, got {config.rank} of {config.workers}")
    if config.output:
        check_writable(Path(config.output))
    tensor = _tensor(config)
    times = {name: parse_time(getattr(config, name), f"--{name.replace('_', '-')}")
             for name in ("rto", "join_timeout", "stall_timeout")}  # fmt: skip
    from switch_model.live.sums import timed_sums
    from switch_model.live.worker import SwitchGroup

    with SwitchGroup(
        config.job, config.rank, config.workers, host=config.host, port=port_number(config.port), slots=config.slots,
        mode=config.datagrams, secret=config.secret_of(config.job), **times,
    ) as group:  # fmt: skip
        rows, last = timed_sums(group, tensor, config.iterations, config.seed if config.check else None)
        lease = group.lease
    title = (
        f"rank {config.rank} of {config.workers}, {len(tensor)} {tensor.dtype}, {lease.n_slots} slots of "
        f"{lease.elements} elements"
    )
    if config.output:
        _write(config.output, last)
    n_wrong = sum(row["right"] is False for row in rows)
    said = comments([f"{n_wrong} sums are wrong"] if n_wrong else [])
    return Answer([Table(COLUMNS, [_status_cells(row) for row in rows], title), *said], rows, code=1 if n_wrong else 0)


def _tensor(config: SwitchAllReduceConfig) -> NDArray[np.int32] | NDArray[np.float32]:
    from switch_model.live.sums import drawn_tensor

    if config.input:
        return _read(config.input)
    n_bytes = parse_nccl_size(config.size, "--size")
    if n_bytes < 4 or n_bytes % 4:
        raise InputError(f"--size must be a multiple of 4B, at least 4B, got {config.size}")
    return drawn_tensor(config.seed, config.rank, int(n_bytes) // 4, config.dtype)


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


def _status_cells(row: dict[str, Any]) -> list[str]:
    sums = {None: "not checked", True: "right", False: "WRONG"}[row["right"]]
    return [f"{row['tensor']}", f"{row['time_s'] * 1e3:.2f}", f"{row['elements_per_s'] / 1e6:.2f}",
            f"{row['packets_per_s']:.0f}", f"{row['retransmissions']}", sums]  # fmt: skip
