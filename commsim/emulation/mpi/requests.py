"""Requests and statuses of MPI, on operations of the emulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from commsim.emulation.current import current_rank
from commsim.emulation.rank_calls import PendingCall, Receive

from .constants import ANY_SOURCE, ANY_TAG, PROC_NULL, SUCCESS, UNDEFINED
from .datatypes import DATATYPES, Datatype
from .refusals import Refusing

# Function of a complete operation and a status, that puts what has come where it belongs, and returns the object.
Finish = Callable[[PendingCall, "Status"], Any]
__all__ = ["REQUEST_NULL", "Prequest", "Request", "Status"]


class Status(metaclass=Refusing):
    """What is known of a message that was received."""

    source, tag, error, n_bytes, _cancelled = ANY_SOURCE, ANY_TAG, SUCCESS, 0, False

    def Get_source(self) -> int:  # noqa: N802
        """Return the rank of the sender."""
        return self.source

    def Get_tag(self) -> int:  # noqa: N802
        """Return the tag."""
        return self.tag

    def Get_error(self) -> int:  # noqa: N802
        """Return the error code."""
        return self.error

    def Get_count(self, datatype: Datatype = DATATYPES["BYTE"]) -> int:  # noqa: N802
        """Return the number of elements."""
        return self.n_bytes // datatype.size if self.n_bytes % datatype.size == 0 else UNDEFINED

    def Get_elements(self, datatype: Datatype) -> int:  # noqa: N802
        """Return the number of basic elements."""
        return self.n_bytes // datatype.size

    def Is_cancelled(self) -> bool:  # noqa: N802
        """Whether the receive was taken back."""
        return self._cancelled

    @property
    def count(self) -> int:
        """Bytes."""
        return self.n_bytes

    @property
    def cancelled(self) -> bool:
        """Whether the receive was taken back."""
        return self._cancelled

    def set_from(self, other: Status) -> None:
        """Take over another."""
        self.source, self.tag, self.error = other.source, other.tag, other.error
        self.n_bytes, self._cancelled = other.n_bytes, other._cancelled

    def set_nothing(self) -> None:
        """Say what MPI says of a message of no rank."""
        self.source, self.tag, self.n_bytes = PROC_NULL, ANY_TAG, 0


class Request(metaclass=Refusing):
    """A call that was begun.

    Parameters
    ----------
    operation : PendingCall, optional
        What was begun; None for a request that is over, or of no rank.
    finish : callable, optional
        What is done when it is complete.
    describe : callable, optional
        Function of a complete operation and a status, that says in it who sent the message and how long it is.
    """

    def __init__(
        self,
        operation: PendingCall | None = None,
        finish: Finish | None = None,
        describe: Callable[[PendingCall, Status], None] | None = None,
    ) -> None:
        self._operation, self._finish, self._describe = operation, finish, describe
        self._status = Status()

    def __bool__(self) -> bool:
        return self._operation is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return self is other or (self._operation is None and other._operation is None)

    __hash__ = None  # type: ignore[assignment]

    def _end(self, status: Status | None) -> Any:
        """Take what a complete operation brought; the request is null then, as MPI has it."""
        operation, known, result = self._operation, self._status, None
        self._operation, self._status = None, Status()
        if operation is not None:
            known._cancelled = operation.cancelled
            if self._finish is not None and not operation.cancelled:
                result = self._finish(operation, known)
        if status is not None:
            status.set_from(known)
        return result

    def wait(self, status: Status | None = None) -> Any:
        """Wait, and return the object that has come."""
        if self._operation is not None:
            current_rank().wait([self._operation])
        return self._end(status)

    def Wait(self, status: Status | None = None) -> bool:  # noqa: N802
        """Wait."""
        self.wait(status)
        return True

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        """Whether it is complete, and the object that has come."""
        if self._operation is not None and not current_rank().test([self._operation]):
            return False, None
        return True, self._end(status)

    def Test(self, status: Status | None = None) -> bool:  # noqa: N802
        """Whether it is complete."""
        return self.test(status)[0]

    def Get_status(self, status: Status | None = None) -> bool:  # noqa: N802
        """Whether it is complete, without ending it."""
        if self._operation is None or not current_rank().test([self._operation]):
            return self._operation is None
        if status is not None and self._describe is not None and self._operation.result is not None:
            self._describe(self._operation, status)
        return True

    def Cancel(self) -> None:  # noqa: N802
        """Take back a receive that has no message yet."""
        if self._operation is not None and isinstance(self._operation.call, Receive):
            current_rank().cancel(self._operation)

    cancel = Cancel

    def Free(self) -> None:  # noqa: N802
        """Forget it."""
        self._operation = None

    @classmethod
    def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[Any]:
        """Wait for all, and return the objects that have come."""
        operations = [request._operation for request in requests if request._operation is not None]
        if operations:
            current_rank().wait(operations)
        return [request._end(_status(statuses, k)) for k, request in enumerate(requests)]

    @classmethod
    def Waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:  # noqa: N802
        """Wait for all."""
        cls.waitall(requests, statuses)
        return True

    @classmethod
    def testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> tuple[bool, Any]:
        """Whether all are complete, and the objects that have come."""
        operations = [request._operation for request in requests if request._operation is not None]
        if operations and not current_rank().test(operations):
            return False, None
        return True, [request._end(_status(statuses, k)) for k, request in enumerate(requests)]

    @classmethod
    def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:  # noqa: N802
        """Whether all are complete."""
        return cls.testall(requests, statuses)[0]

    @classmethod
    def _any(cls, requests: Sequence[Request], status: Status | None, polls: bool) -> tuple[int, bool, Any]:
        """Return the place of one that is complete, whether there is one, and its object."""
        operations = [request._operation for request in requests if request._operation is not None]
        if not operations:
            return UNDEFINED, True, None
        rank = current_rank()
        if polls and not rank.test(operations, every=False):
            return UNDEFINED, False, None
        if not polls:
            rank.wait(operations, every=False)
        place = next(
            k
            for k, request in enumerate(requests)
            if request._operation is not None and request._operation.end is not None
        )
        return place, True, requests[place]._end(status)

    @classmethod
    def waitany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, Any]:
        """Wait for one; return its place and the object that has come."""
        place, _, result = cls._any(requests, status, False)
        return place, result

    @classmethod
    def Waitany(cls, requests: Sequence[Request], status: Status | None = None) -> int:  # noqa: N802
        """Wait for one, and return its place."""
        return cls._any(requests, status, False)[0]

    @classmethod
    def testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool, Any]:
        """Return the place of one that is complete, whether there is one, and its object."""
        return cls._any(requests, status, True)

    @classmethod
    def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:  # noqa: N802
        """Return the place of one that is complete, and whether there is one."""
        return cls._any(requests, status, True)[:2]

    @classmethod
    def waitsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> tuple[Any, Any]:
        """Wait for one at least; return the places and objects of all that are complete."""
        operations = [request._operation for request in requests if request._operation is not None]
        if not operations:
            return None, None
        current_rank().wait(operations, every=False)
        places = _complete(requests)
        return places, [requests[k]._end(_status(statuses, n)) for n, k in enumerate(places)]

    @classmethod
    def testsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> tuple[Any, Any]:
        """Return the places and objects of all that are complete; None where none was begun."""
        operations = [request._operation for request in requests if request._operation is not None]
        if not operations:
            return None, None
        places = _complete(requests) if current_rank().test(operations, every=False) else []
        return places, [requests[k]._end(_status(statuses, n)) for n, k in enumerate(places)]

    @classmethod
    def Testsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> Any:  # noqa: N802
        """Return the places of all that are complete; None where none was begun."""
        return cls.testsome(requests, statuses)[0]

    @classmethod
    def Waitsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> Any:  # noqa: N802
        """Wait for one at least; return the places of all that are complete."""
        return cls.waitsome(requests, statuses)[0]


class Prequest(Request):
    """A call that can be begun again and again.

    Parameters
    ----------
    start : callable
        Function that begins it, and returns its request.
    """

    def __init__(self, start: Callable[[], Request]) -> None:
        super().__init__()
        self._start = start

    def Start(self) -> None:  # noqa: N802
        """Begin."""
        begun = self._start()
        vars(self).update(vars(begun))

    @classmethod
    def Startall(cls, requests: Sequence[Prequest]) -> None:  # noqa: N802
        """Begin all."""
        for request in requests:
            request.Start()


def _complete(requests: Sequence[Request]) -> list[int]:
    """Return the places of those that are complete, and not ended."""
    return [
        k for k, request in enumerate(requests) if request._operation is not None and request._operation.end is not None
    ]


def _status(statuses: list[Status] | None, number: int) -> Status | None:
    if statuses is None:
        return None
    while len(statuses) <= number:
        statuses.append(Status())
    return statuses[number]


REQUEST_NULL = Request()
