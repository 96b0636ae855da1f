"""A worker of the live switch: joins a job, and adds up tensors with the others."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import BackendError, InputError

from .authentication import job_key
from .backoff import RTO_S, Backoff
from .exchange import DTYPES, Lease, compile_kernels
from .frames import LOOPBACK, MAX_SLOTS, PORT, SIZE_CODES
from .link import Link, PacketCounts
from .session import Session, fact

# Seconds for which a worker waits for a switch that is not up yet; never longer than for the other workers.
PATIENCE = 10.0
# Seconds for which a worker waits for the others, and for a result.
JOIN_TIMEOUT_S, STALL_TIMEOUT_S = 60.0, 300.0


class SwitchGroup:
    """The workers of a job, as one of them; between `with` and its end.

    Every worker reduces the same tensors, in the same order. When a worker or the switch fails, the others get an
    error, and the group is of no more use; a new one may have the same name.

    Parameters
    ----------
    job : str
        Name that the workers have agreed on.
    rank, n_workers : int
        Number of this worker, and number of workers; at most 32.
    host, port
        Address of the switch.
    slots : int, optional
        Slots of the switch, which is also how many packets may be out; by default the switch chooses.
    rto : float, s
        Initial time after which a packet without a result is sent again; see `Backoff`.
    join_timeout : float, s
        How long to wait for the others to join.
    stall_timeout : float, s
        How long an all-reduce may go on without anything coming.
    mode : {"segments", "messages", "single"}, optional
        How datagrams are received and sent, see `datagrams`; by default the fastest that works. A switch in the
        kernel would see joined datagrams joined, so it gets them one by one.
    secret : str
        Secret of the job, where the switch has secrets; every datagram then has a tag.

    Attributes
    ----------
    lease : Lease
        What the job has been given.

    Raises
    ------
    InputError
        If an argument is wrong.
    BackendError
        Without a switch, if it refuses, or if the others do not join in time.
    """

    def __init__(
        self, job: str, rank: int, n_workers: int, *, host: str = LOOPBACK, port: int = PORT,
        slots: int | None = None, rto: float = RTO_S, join_timeout: float = JOIN_TIMEOUT_S,
        stall_timeout: float = STALL_TIMEOUT_S, mode: str | None = None, secret: str = "",
    ) -> None:  # fmt: skip
        if not 0 <= rank < n_workers:
            raise InputError(f"a rank is 0 to {n_workers - 1} of {n_workers} workers, got {rank}")
        self._unusable, backoff = "", Backoff(rto)
        compile_kernels()
        self._session = Session(host, port, patience=min(join_timeout, PATIENCE), secret=secret,
                                job=job)  # fmt: skip
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((self._session.socket.getsockname()[0], 0))
            self._session.say({"do": "join", "job": job, "n_workers": n_workers, "rank": rank, "slots": slots,
                               "udp_port": self._socket.getsockname()[1]})  # fmt: skip
            self.lease = _lease(self._session, rank, n_workers, join_timeout, secret)
            self._sequence = self.lease.begin
            mode = mode or ("messages" if self._session.hello.get("datagrams") == "bpf" else None)
            self._link = Link(self._session, self._socket, self.lease, backoff, stall_timeout, mode)
        except BaseException:
            self._end("the group did not come about")
            raise

    @property
    def traffic(self) -> PacketCounts:
        """Packets so far."""
        return self._link.traffic

    def __enter__(self) -> SwitchGroup:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self._give_up(error)
        self.close()

    def close(self) -> None:
        """Leave the job; its slots are free when all have left."""
        if not self._unusable:
            self._session.say({"do": "leave"})
            self._end("the group is closed")

    def all_reduce(self, array: ArrayLike, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the sum over all workers.

        Parameters
        ----------
        array : int32 or float32, any shape
            This worker's. Integers wrap around, as the switch's do. Floats are rounded to integers in blocks of one
            packet; the sum is within :func:`switch_model.quantize.error_bound` of the exact one, and the same on all.
        out : array of the same type and shape, contiguous, optional
            Array for the sum, which may be `array`.

        Raises
        ------
        InputError
            If the type is another, elements are missing, or a float is NaN, infinite, or 2**127 or more.
        BackendError
            If a worker or the switch has failed, or the workers' tensors do not match.
        """
        self._require_usable()
        values = _sum_place(np.asarray(array), out)
        with _Ending(self):
            self._sequence += self._link.run(values.reshape(-1), self._sequence)
        return values

    def barrier(self, timeout: float = 60.0) -> None:
        """Wait until all workers have come here.

        Raises
        ------
        BackendError
            If one has failed or left, or does not come in time.
        """
        self._require_usable()
        with _Ending(self):
            self._session.say({"do": "barrier"})
            self._session.answer("barrier", timeout)

    def _require_usable(self) -> None:
        if self._unusable:
            raise BackendError(self._unusable)

    def _give_up(self, error: BaseException) -> None:
        """Let the others know why this worker takes no more part."""
        if not self._unusable:
            why = "".join(c if c.isprintable() else " " for c in f"{type(error).__name__}: {error}")
            self._session.say({"do": "fail", "why": why[:1000]})
            self._end(f"the group is of no more use: {error}")

    def _end(self, why: str) -> None:
        self._unusable = why
        self._socket.close()
        self._session.close()


class _Ending:
    """What goes wrong inside ends the group, since the workers are no longer at the same place."""

    def __init__(self, group: SwitchGroup) -> None:
        self._group = group

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self._group._give_up(error)


def _lease(session: Session, rank: int, n_workers: int, timeout: float, secret: str) -> Lease:
    session.stay_alive()
    answer = session.answer("joined", timeout)
    key = job_key(secret, str(answer.get("salt"))) if secret else b""
    return Lease(rank, n_workers, fact(answer, "job_number", 0, 255), fact(answer, "first_slot", 0, MAX_SLOTS - 1),
                 fact(answer, "slots", 1, MAX_SLOTS),
                 fact(session.hello, "elements_per_packet", min(SIZE_CODES), max(SIZE_CODES)),
                 fact(answer, "begin", 0, 2**32 - 1), key)  # fmt: skip


def _sum_place(array: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Return a copy of the array, in `out` if that is given."""
    if str(array.dtype) not in DTYPES or not array.size:
        raise InputError(f"the switch adds {' and '.join(DTYPES)}, at least 1 element, "
                         f"got {array.dtype}{list(array.shape)}")  # fmt: skip
    if out is None:
        return np.array(array, order="C")
    if out.dtype != array.dtype or out.shape != array.shape or not (out.flags.c_contiguous and out.flags.writeable):
        raise InputError(f"out must be contiguous {array.dtype}{list(array.shape)}, got {out.dtype}{list(out.shape)}")
    if out is not array:
        out[...] = array
    return out
