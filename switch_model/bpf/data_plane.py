"""The kernel's switch as a `Plane` of the control server: opens and closes jobs, and reads slots and counters."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError, InputError
from switch_model.live.data_plane import MAX_WORKERS
from switch_model.live.frame_fields_kernel import COUNTERS
from switch_model.live.frames import PORT

from .commands import records_of
from .program import ALL_CHANCES, CONFIG, JOB, MAPS, MAX_JOBS, MEMBER, SOURCE, value_types
from .system_call import WITH_LOCK, BpfProgram, Map


class KernelPlane:
    """A loaded program and its maps.

    Parameters
    ----------
    program : int
        Its number in the kernel.
    pool_size, elements : int
        Pool and elements of a packet that the program was written for.
    address : str
        Address of the switch: packets to it, and to `port`, are the program's.
    port : int
        UDP.
    drop_in, drop_out : float
        Probabilities with which a packet that came, and one that is about to leave, is lost on purpose.

    Attributes
    ----------
    pool_size : int
        Slots for jobs that come and go.
    program : BpfProgram
        Program to run on packets of ours.

    Raises
    ------
    InputError
        If a probability or the address is none.
    BackendError
        If the program is not one of ours.
    """

    def __init__(
        self, program: int, pool_size: int, elements: int, address: str, port: int = PORT, drop_in: float = 0.0,
        drop_out: float = 0.0,
    ) -> None:  # fmt: skip
        for name, chance in (("in", drop_in), ("out", drop_out)):
            if not 0 <= chance < 1:
                raise InputError(f"a probability of loss ({name}) is at least 0 and less than 1, got {chance}")
        self.pool_size, self.elements, self._n_slots = pool_size, elements, pool_size
        self._jobs: dict[int, NDArray[Any]] = {}
        self._types = value_types(elements)
        self._maps = _open_maps(program, self._types)
        self.program = BpfProgram(program)
        chances = int(drop_in * ALL_CHANCES), int(drop_out * ALL_CHANCES)
        self._write("config", 0, np.array([(_number(address), port, 0, *chances)], CONFIG))

    def __enter__(self) -> KernelPlane:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.program.close()
        for one in self._maps.values():
            one.close()

    def open(
        self, job_number: int, peers: Sequence[tuple[str, int]], first_slot: int, n_slots: int, begin: int = 0,
        key: bytes = b"", interfaces: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Let a job's workers use slots.

        Parameters
        ----------
        job_number : int
            0..255.
        peers : sequence of (str, int)
            Address and UDP port of each rank.
        first_slot, n_slots : int
            Range.
        begin : int
            Number of the job's first packet, a multiple of 2 n_slots.
        key : bytes
            Nothing: the program in the kernel knows no tags.
        interfaces : sequence of int, optional
            Interface at which each rank's packets must come in; by default where its first one does.

        Raises
        ------
        InputError
            If the job exists, an address is another worker's already, or the range or the workers are too many.
        """
        members = self._members(job_number, peers, interfaces)
        if first_slot < 0 or n_slots < 1 or first_slot + n_slots > self._n_slots:
            raise InputError(f"slots are 0 to {self._n_slots - 1}, got {n_slots} from {first_slot}")
        if key:
            raise InputError("a switch in the kernel has no secrets")
        self._clear(first_slot, n_slots, begin)
        self._write("jobs", job_number, np.array([(len(peers), first_slot, n_slots)], JOB))
        for rank in range(len(members)):
            self._write("members", MAX_WORKERS * job_number + rank, members[rank : rank + 1])
        for rank, key in enumerate(_keys(members)):  # last: from now on packets are taken
            self._maps["sources"].write(key, np.uint32(MAX_WORKERS * job_number + rank).tobytes())
        self._jobs[job_number] = members

    def reserve(
        self, peers: Sequence[tuple[str, int]], n_slots: int, interfaces: Sequence[int] = ()
    ) -> tuple[int, int]:  # fmt: skip
        """Open a job that stays, on the last slots of the pool; return its number, from 255 down, and its first slot.

        Raises
        ------
        InputError
            If the pool has not as many slots left, or see `open`.
        """
        if n_slots > self.pool_size:
            raise InputError(f"{n_slots} slots do not fit in the {self.pool_size} that are left of {self._n_slots}")
        number = next(n for n in reversed(range(MAX_JOBS)) if n not in self._jobs)
        self.open(number, peers, self.pool_size - n_slots, n_slots, interfaces=interfaces)
        self.pool_size -= n_slots
        return number, self.pool_size

    @property
    def job_numbers(self) -> Collection[int]:
        """Numbers of the jobs that have slots."""
        return self._jobs.keys()

    def close(self, job_number: int) -> None:
        """Take a job's slots back; whatever its workers still send is dropped."""
        members = self._jobs.pop(job_number, None)
        for key in [] if members is None else _keys(members):
            self._maps["sources"].remove(key)

    def counts(self) -> dict[str, int]:
        """Return all counters by name, summed over the processors."""
        rows = np.frombuffer(self._maps["counters"].read(_key(0)), np.uint64).reshape(-1, len(COUNTERS))
        return dict(zip(COUNTERS, rows.sum(0).tolist(), strict=True))

    def slot(self, number: int) -> NDArray[Any]:
        """Return a slot as a record of `program.slot_type`, consistent though packets come."""
        return np.frombuffer(self._maps["slots"].read(_key(number), WITH_LOCK), self._types["slots"])[0]  # type: ignore[no-any-return]

    def busy(self, job_number: int) -> list[dict[str, Any]]:
        """Return the slots of a job that wait for contributions, and the ranks that they wait for."""
        if job_number not in self._jobs:
            return []
        _, first, n_slots = np.frombuffer(self._maps["jobs"].read(_key(job_number)), JOB)[0].tolist()
        busy = []
        for number in range(first, first + n_slots):
            row = self.slot(number)
            for version in np.flatnonzero(row["left"]).tolist():
                seen, ranks = int(row["seen"][version]), range(len(self._jobs[job_number]))
                busy.append({"slot": number, "version": version, "waits_for": [r for r in ranks if not seen >> r & 1]})
        return busy

    def _members(self, job_number: int, peers: Sequence[tuple[str, int]], interfaces: Sequence[int]) -> NDArray[Any]:
        if not 0 <= job_number < MAX_JOBS or job_number in self._jobs:
            raise InputError(f"a job's number is 0 to {MAX_JOBS - 1} and not in use, got {job_number}")
        if not 1 <= len(peers) <= MAX_WORKERS or len(interfaces) not in (0, len(peers)):
            raise InputError(f"a job has 1 to {MAX_WORKERS} workers, got {len(peers)}")
        members = np.zeros(len(peers), MEMBER)
        members["address"], members["port"] = [_number(host) for host, _ in peers], [port for _, port in peers]
        members["interface"] = interfaces or 0
        keys = [key for job in (*self._jobs.values(), members) for key in _keys(job)]
        if len(set(keys)) < len(keys):
            raise InputError("two workers have the same address and port")
        return members

    def _clear(self, first_slot: int, n_slots: int, begin: int) -> None:
        """Forget what slots hold; each version expects the first packet of the sequence that belongs there."""
        rows = np.zeros(n_slots, self._types["slots"])
        place = np.arange(n_slots)[:, np.newaxis] + n_slots * np.arange(2)
        rows["tsi"] = (begin + place - 2 * n_slots) % 2**32
        for i in range(n_slots):
            self._maps["slots"].write(_key(first_slot + i), rows[i].tobytes(), WITH_LOCK)

    def _write(self, name: str, key: int, value: NDArray[Any]) -> None:
        self._maps[name].write(_key(key), value.tobytes())


def _open_maps(program: int, types: dict[str, np.dtype[Any]]) -> dict[str, Map]:
    loaded = records_of(["bpftool", "--json", "prog", "show", "id", str(program)])[0]
    rows = [records_of(["bpftool", "--json", "map", "show", "id", str(n)])[0] for n in loaded.get("map_ids", [])]
    by_name = {row.get("name"): row for row in rows}
    if any(name not in by_name or by_name[name]["bytes_value"] != types[name].itemsize for name in MAPS):
        raise BackendError(f"program {program} of the kernel is not a switch of ours with packets of this size")
    return {name: Map(by_name[name]["id"], types[name].itemsize, name == "counters") for name in MAPS}


def _keys(members: NDArray[Any]) -> list[bytes]:
    keys = np.zeros(len(members), SOURCE)
    keys["address"], keys["port"] = members["address"], members["port"]
    return [key.tobytes() for key in keys]


def _key(number: int) -> bytes:
    return np.uint32(number).tobytes()


def _number(address: str) -> int:
    try:
        return int(ipaddress.IPv4Address(address))
    except ValueError:
        raise InputError(f"an address is IPv4, such as 10.0.0.254, got {address!r}") from None
