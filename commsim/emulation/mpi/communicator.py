"""What every communicator has: its ranks, its contexts, and messages between two of them."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from commsim.emulation.current import current_rank
from commsim.emulation.rank_calls import ANY, Collective, PendingCall, Receive, Send
from commsim.emulation.settings import SETTINGS

from .constants import ANY_SOURCE, ANY_TAG, PROC_NULL, TAG_UB, MPIError
from .datatypes import memory_of, plain_bytes
from .requests import Prequest, Request, Status

_HERE = str(Path(__file__).parent)
__all__ = ["MessageCalls", "site_of_caller"]


def site_of_caller() -> str:
    """Return file and line of the user's call."""
    frame = sys._getframe(1)
    file = frame.f_code.co_filename
    while file.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
        file = frame.f_code.co_filename
    return _site(file, frame.f_lineno)


@functools.cache
def _site(file: str, line: int) -> str:
    return f"{file.rpartition('/')[2]}:{line}"


class MessageCalls:
    """A communicator as far as messages go.

    Parameters
    ----------
    members : tuple of int
        World ranks.
    key : hashable
        What tells it from other communicators, the same in all its ranks.
    """

    def __init__(self, members: tuple[int, ...], key: Hashable) -> None:
        self.members, self.key = members, key
        self._place = {world: rank for rank, world in enumerate(members)}
        self._messages = key, ""  # context of messages
        self.name = ""

    def Get_rank(self) -> int:  # noqa: N802
        """Return the number of this rank."""
        return self._place[current_rank().number]

    def Get_size(self) -> int:  # noqa: N802
        """Return the number of ranks."""
        return len(self.members)

    rank, size = property(Get_rank), property(Get_size)

    def _known(self) -> tuple[tuple[int, ...], dict[int, int]]:
        """Return the world ranks, and the place of each."""
        return self.members, self._place

    def _post(self, call: Collective | Send | Receive) -> PendingCall:
        call.site = site_of_caller()
        return current_rank().post(call)

    def _world(self, rank: int, what: str) -> int:
        members = self._known()[0]
        if not 0 <= rank < len(members):
            raise MPIError(7 if what == "root" else 6, f"{what} must be a rank 0..{len(members) - 1}, got {rank}")
        return members[rank]

    def _send(
        self, to: int, tag: int, data: Any, n_bytes: int, *, waits: bool = False, kind: str = ""
    ) -> PendingCall | None:
        """Begin a message; None to no rank."""
        if to == PROC_NULL:
            return None
        context = (self.key, kind) if kind else self._messages
        world = self._world(to, "dest")
        if not 0 <= tag <= TAG_UB:
            raise _wrong_tag(tag)
        return current_rank().post(Send(world, int(tag), context, float(n_bytes), data, waits, site_of_caller()))

    def _receive(self, source: int, tag: int, *, keep: bool = False, kind: str = "") -> PendingCall | None:
        """Begin a receive; None from no rank."""
        if source == PROC_NULL:
            return None
        context = (self.key, kind) if kind else self._messages
        world = ANY if source == ANY_SOURCE else self._world(source, "source")
        if not 0 <= tag <= TAG_UB and tag != ANY_TAG:
            raise _wrong_tag(tag)
        return current_rank().post(Receive(world, ANY if tag == ANY_TAG else int(tag), context, keep, site_of_caller()))

    def _filled(self, operation: PendingCall, status: Status) -> None:
        """Say of a message who sent it and how long it is."""
        sent: Send = operation.result
        status.source, status.tag = self._known()[1][operation.source], sent.tag
        status.n_bytes = int(sent.n_bytes)

    def _begin_send(self, spec: Any, to: int, tag: int, waits: bool = False) -> PendingCall | None:
        """Begin a message of memory; None to no rank, whatever the memory is."""
        if to == PROC_NULL:
            return None
        plain = plain_bytes(spec)
        memory = memory_of(spec).whole if plain is None else plain
        data = memory.tobytes() if SETTINGS.moves_data else None
        return self._send(to, tag, data, memory.nbytes, waits=waits)

    def _begin_receive(self, spec: Any, source: int, tag: int) -> Request:
        if source == PROC_NULL:
            return self._received(None, self._filled)
        room = ReceiveBuffer(spec)

        def finish(operation: PendingCall, status: Status) -> None:
            self._filled(operation, status)
            room.fill(operation.result)

        return self._received(self._receive(source, tag), finish)

    def _received(self, operation: PendingCall | None, finish: Callable[[PendingCall, Status], Any]) -> Request:
        request = Request(operation, finish, self._filled)
        if operation is None:
            request._status.set_nothing()
        return request

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:  # noqa: N802
        """Send memory."""
        operation = self._begin_send(buf, dest, tag)
        if operation is not None:
            current_rank().wait((operation,))

    def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:  # noqa: N802
        """Send memory, and wait for its receive."""
        Request(self._begin_send(buf, dest, tag, True)).wait()

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:  # noqa: N802
        """Begin to send memory."""
        return Request(self._begin_send(buf, dest, tag))

    def Issend(self, buf: Any, dest: int, tag: int = 0) -> Request:  # noqa: N802
        """Begin to send memory; complete when it is received."""
        return Request(self._begin_send(buf, dest, tag, True))

    Rsend, Irsend = Send, Isend

    def Bsend(self, buf: Any, dest: int, tag: int = 0) -> None:  # noqa: N802
        """Send memory from a buffer of its own: the program goes on at once."""
        self._begin_send(buf, dest, tag)

    def Ibsend(self, buf: Any, dest: int, tag: int = 0) -> Request:  # noqa: N802
        """Send memory from a buffer of its own: complete at once."""
        self._begin_send(buf, dest, tag)
        return Request()

    def Recv(  # noqa: N802
        self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> None:
        """Receive into memory."""
        if source == PROC_NULL:
            self._begin_receive(buf, source, tag).wait(status)
            return
        room = ReceiveBuffer(buf)
        operation = self._receive(source, tag)
        assert operation is not None
        current_rank().wait((operation,))
        room.fill(operation.result)
        if status is not None:
            self._filled(operation, status)

    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:  # noqa: N802
        """Begin to receive into memory."""
        return self._begin_receive(buf, source, tag)

    def Sendrecv(  # noqa: N802
        self, sendbuf: Any, dest: int, sendtag: int = 0, recvbuf: Any = None, source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG, status: Status | None = None,
    ) -> None:  # fmt: skip
        """Send and receive memory at once."""
        received = self._begin_receive(recvbuf, source, recvtag)
        sent = self.Isend(sendbuf, dest, sendtag)
        Request.waitall([received, sent], None if status is None else [status])

    def Sendrecv_replace(  # noqa: N802
        self, buf: Any, dest: int, sendtag: int = 0, source: int = ANY_SOURCE, recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:  # fmt: skip
        """Send memory, and receive into it."""
        self.Sendrecv(buf, dest, sendtag, buf, source, recvtag, status)

    def Send_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:  # noqa: N802
        """Make a send that can be begun again and again."""
        return Prequest(functools.partial(self.Isend, buf, dest, tag))

    def Ssend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:  # noqa: N802
        """Make a send that waits for its receive, and can be begun again and again."""
        return Prequest(functools.partial(self.Issend, buf, dest, tag))

    def Recv_init(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Prequest:  # noqa: N802
        """Make a receive that can be begun again and again."""
        return Prequest(functools.partial(self._begin_receive, buf, source, tag))

    def Probe(  # noqa: N802
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Wait for a message, and leave it there."""
        self._probed(source, tag).wait(status)
        return True

    def Iprobe(  # noqa: N802
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Whether a message is there."""
        request = self._probed(source, tag)
        if request.Test(status):
            return True
        request.Cancel()
        return False

    probe, iprobe = Probe, Iprobe

    def _probed(self, source: int, tag: int) -> Request:
        return self._received(self._receive(source, tag, keep=True), self._filled)

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object."""
        self.isend(obj, dest, tag).wait()

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object, and wait for its receive."""
        self.issend(obj, dest, tag).wait()

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object from a buffer of its own: the program goes on at once."""
        self.isend(obj, dest, tag)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send an object."""
        data = packed(obj)
        return Request(self._send(dest, tag, data, len(data)))

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send an object; complete when it is received."""
        data = packed(obj)
        return Request(self._send(dest, tag, data, len(data), waits=True))

    def recv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Any:
        """Receive an object."""
        return self.irecv(buf, source, tag).wait(status)

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:  # noqa: ARG002
        """Begin to receive an object."""

        def finish(operation: PendingCall, status: Status) -> Any:
            self._filled(operation, status)
            return unpacked(operation.result.data)

        return self._received(self._receive(source, tag), finish)

    def sendrecv(
        self, sendobj: Any, dest: int, sendtag: int = 0, recvbuf: Any = None, source: int = ANY_SOURCE,  # noqa: ARG002
        recvtag: int = ANY_TAG, status: Status | None = None,
    ) -> Any:  # fmt: skip
        """Send and receive an object at once."""
        received = self.irecv(None, source, recvtag)
        sent = self.isend(sendobj, dest, sendtag)
        return Request.waitall([received, sent], None if status is None else [status])[0]


class ReceiveBuffer:
    """Memory that a message is received into.

    Parameters
    ----------
    spec : object
        As mpi4py takes it.

    Raises
    ------
    MPIError
        If it is none.
    """

    __slots__ = ("_memory", "_n_bytes", "_plain")

    def __init__(self, spec: Any) -> None:
        plain = plain_bytes(spec)
        if plain is not None and not plain.readonly:
            self._memory, self._plain, self._n_bytes = None, plain, plain.nbytes
        else:
            self._memory = memory_of(spec)
            self._n_bytes = self._memory.n_bytes

    def fill(self, sent: Send) -> None:
        """Write what has come; without data nothing is written.

        Raises
        ------
        MPIError
            If the message is longer, or the memory read-only.
        """
        if sent.n_bytes > self._n_bytes:
            raise MPIError(14, f"message truncated: {int(sent.n_bytes)} bytes for a buffer of {self._n_bytes}")
        data = sent.data
        if self._memory is not None:
            self._memory.put(0, data)
        elif data is not None:
            self._plain[: len(data)] = data


def _wrong_tag(tag: int) -> MPIError:
    return MPIError(4, f"a tag must be 0..{TAG_UB}, got {tag}")


def packed(obj: Any) -> bytes:
    """Return an object as mpi4py sends it."""
    return pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> Any:
    """Return the object."""
    return pickle.loads(data)
