"""One tensor on its way through the switch, as one worker sees it: what is out, what has come, what goes next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from switch_model.quantize import block_exponents
from switch_model.slot_sequence import packets_needed

from .datagrams import ARRIVED, REPLY
from .frames import SIZE_CODES, TAG_BYTES, new_rows, type_and_size
from .worker_kernel import NO_EXPONENT, OUTSTANDING, PACKET, TENSOR, expired, next_packets, take_results, write_frames

DTYPES = ("int32", "float32")
LARGEST_EXPONENT = 127  # of an int8


@dataclass(frozen=True, slots=True)
class Lease:
    """What a job has been given by its switch.

    Parameters
    ----------
    rank, n_workers : int
        This worker, and how many.
    job_number : int
        Number of the job, sent in every frame.
    first_slot, n_slots : int
        Slots that are the job's.
    elements : int
        Values of a packet.
    begin : int
        Number of the job's first packet.
    key : bytes
        Key of its datagrams; empty where the job has no secret.
    """

    rank: int
    n_workers: int
    job_number: int
    first_slot: int
    n_slots: int
    elements: int
    begin: int = 0
    key: bytes = field(default=b"", repr=False)

    @property
    def tag_bytes(self) -> int:
        """Bytes of a datagram's tag."""
        return TAG_BYTES if self.key else 0


class TensorExchange:
    """Progress of one tensor.

    Parameters
    ----------
    lease : Lease
        Lease with the slots.
    values : int32[n] or float32[n]
        The tensor, contiguous; block by block it becomes the sum.
    sequence : int
        Packets that the job has sent for the tensors before.
    words : uint32[n_slots, 4 + k or, with tags, 4 + k + 4]
        Frames, one row for each slot; they stay there until the result has come.

    Attributes
    ----------
    n_packets : int
        Number of packets that the tensor needs, if none is lost.

    Raises
    ------
    InputError
        If a float is NaN, infinite or so large that its exponent does not fit in a packet.
    """

    def __init__(self, lease: Lease, values: NDArray[Any], sequence: int, words: NDArray[np.uint32]) -> None:
        floats = values.dtype == np.float32
        self.n_packets = packets_needed(len(values), lease.elements, lease.n_slots, floats)
        n_blocks = -(-len(values) // lease.elements)
        self._words, self._integers, self._floats = words, values.view(np.uint32), values.view(np.float32)
        self._packets = np.zeros(self.n_packets, PACKET)
        if floats:
            self._packets["own"] = NO_EXPONENT
            self._packets["own"][:n_blocks] = exponents_of(values, lease.elements)
        self._window = np.zeros(lease.n_slots, OUTSTANDING)
        self._window["packet"] = -1
        self._tensor = np.zeros(1, TENSOR)
        facts = {"n_elements": len(values), "n_packets": self.n_packets, "n_blocks": n_blocks,
                 "lead": self.n_packets - n_blocks, "tsi": sequence, "shift": sequence % (2 * lease.n_slots),
                 "n_workers": lease.n_workers, "job_number": lease.job_number, "first_slot": lease.first_slot,
                 "n_slots": lease.n_slots, "type_and_size": type_and_size(lease.elements),
                 "elements": lease.elements}  # fmt: skip
        for name, value in facts.items():
            self._tensor[name] = value
        self._expired = np.empty(lease.n_slots, np.int64)

    @property
    def finished(self) -> bool:
        """Whether every result has come."""
        return self.n_done == self.n_packets

    @property
    def n_done(self) -> int:
        """Packets whose result has come."""
        return int(self._tensor[0]["n_done"])

    @property
    def outstanding(self) -> int:
        """Packets that are out."""
        return int((self._window["packet"] >= 0).sum())

    @property
    def strange(self) -> int:
        """Frames that came and were no result that was waited for: late copies, or packets of other jobs."""
        return int(self._tensor[0]["strange"])

    def begin(self, now: float, timeout: float) -> NDArray[Any]:
        """Write the first window; return REPLY[n], the frames to send."""
        lead = int(self._tensor[0]["lead"]) or len(self._window)
        return self._write(np.arange(min(lead, self.n_packets)), now, timeout)

    def take(self, words: NDArray[np.uint32], arrived: NDArray[Any], now: float, timeout: float) -> NDArray[Any]:
        """Store the results among the frames that came; return the frames to send because of them.

        Parameters
        ----------
        words, arrived
            Same as `Datagrams.receive` leaves and returns them.
        now, timeout : float, s
            And after how long the frames that go now are sent again.
        """
        taken, numbers = np.empty(len(arrived), np.int64), np.empty(2 * len(arrived), np.int64)
        t, packets = self._tensor, self._packets
        n = take_results(words, arrived, t, self._window, packets, self._integers, self._floats, taken)
        return self._write(numbers[: next_packets(t, packets, taken, n, numbers)], now, timeout)

    def overdue(self, now: float, longest: float) -> NDArray[Any]:
        """Return the frames to send again; the longer one has waited, the longer it waits the next time."""
        return _to_switch(self._expired[: expired(self._window, now, longest, self._expired)])

    def _write(self, numbers: NDArray[np.int64], now: float, timeout: float) -> NDArray[Any]:
        self._tensor["now"], self._tensor["timeout"] = now, timeout
        write_frames(self._words, self._tensor, self._window, self._packets, self._integers, self._floats, numbers)
        return _to_switch(numbers)


def exponents_of(values: NDArray[np.float32], elements: int) -> NDArray[np.int32]:
    """Return the exponent of each block, as it travels.

    Raises
    ------
    InputError
        If one does not fit in a byte.
    """
    exponents = block_exponents(values, elements)
    if len(exponents) and exponents.max() > LARGEST_EXPONENT:
        bad = int(np.abs(values).argmax())
        raise InputError(f"element {bad} is {values[bad]}; floats must be smaller than 2**{LARGEST_EXPONENT}")
    return exponents


def frames_of(lease: Lease) -> NDArray[np.uint32]:
    """Return room for the frames of all slots of a job."""
    return new_rows(lease.n_slots, lease.elements, lease.tag_bytes)


def compile_kernels() -> None:
    """Compile what an exchange needs, or read it from the disk, before there is a job that would have to wait."""
    lease = Lease(0, 1, 0, 0, 1, min(SIZE_CODES))
    exchange = TensorExchange(lease, np.zeros(1, np.int32), 0, frames_of(lease))
    exchange.begin(0.0, 1.0)
    exchange.take(frames_of(lease), np.zeros(0, ARRIVED), 0.0, 1.0)
    exchange.overdue(0.0, 1.0)


def _to_switch(rows: NDArray[np.int64]) -> NDArray[Any]:
    replies = np.zeros(len(rows), REPLY)
    replies["row"] = rows
    return replies
