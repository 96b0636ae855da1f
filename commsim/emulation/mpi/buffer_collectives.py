"""Collectives of MPI on memory, the upper-case calls; with a leading I they only begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from commsim.emulation.rank_calls import Collective, PendingCall
from commsim.emulation.settings import SETTINGS

from .communicator import MessageCalls
from .constants import MPIError
from .datatypes import CallBuffer, counts_in_bytes, is_in_place, memory_of
from .reductions import OPERATORS, Op
from .requests import Request, Status

SUM = OPERATORS["SUM"]
__all__ = ["BufferCollectives"]


class BufferCollectives(MessageCalls):
    """A communicator as far as collectives on memory go."""

    def _collective(
        self, operation: str, n_bytes: float, data: Any, put: Callable[[Any], None] | None = None, **more: Any
    ) -> Request:
        """Begin a collective; `put` takes the result of this rank to where it belongs."""
        moves = SETTINGS.moves_data

        def deliver(result: Any) -> None:
            if result is not None and put is not None:
                put(result)

        call = Collective(
            operation, self.members, (self.key, "collective"), float(n_bytes), data if moves else None,
            deliver=deliver if moves and put is not None else None, **more,
        )  # fmt: skip
        return Request(self._post(call), _nothing)

    def Ibarrier(self) -> Request:  # noqa: N802
        """Begin a barrier."""
        return self._collective("barrier", 0.0, None)

    def Ibcast(self, buf: Any, root: int = 0) -> Request:  # noqa: N802
        """Begin a broadcast."""
        memory = memory_of(buf)
        self._world(root, "root")
        is_root = self.rank == root
        data = memory.whole.copy() if is_root and SETTINGS.moves_data else None
        return self._collective("broadcast", memory.n_bytes, data, None if is_root else _into(memory), root=root)

    def _given(self, sendbuf: Any, recvbuf: Any, n_blocks: int = 1) -> tuple[CallBuffer, CallBuffer]:
        """Return memory of a call whose input and output have the same blocks."""
        recv = memory_of(recvbuf, n_blocks, of_one=n_blocks > 1)
        return (recv if is_in_place(sendbuf) else memory_of(sendbuf, n_blocks, of_one=n_blocks > 1)), recv

    def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:  # noqa: N802
        """Begin an all-reduce."""
        send, recv = self._given(sendbuf, recvbuf)
        return self._collective(
            "all_reduce", send.n_bytes, _copied(send), _into(recv), reduce=_reduce(op, "Iallreduce")
        )

    def Ireduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Request:  # noqa: N802
        """Begin a reduction to one rank."""
        self._world(root, "root")
        is_root = self.rank == root
        send = memory_of(recvbuf if is_in_place(sendbuf) else sendbuf)
        put = _into(memory_of(recvbuf)) if is_root else None
        return self._collective("reduce", send.n_bytes, _copied(send), put, root=root, reduce=_reduce(op, "Ireduce"))

    def Ireduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:  # noqa: N802
        """Begin a reduction of which each rank gets a block."""
        send, recv = memory_of(recvbuf if is_in_place(sendbuf) else sendbuf), memory_of(recvbuf)
        if is_in_place(sendbuf):
            recv = memory_of([recv.values, len(recv.whole) // self.size, recv.datatype])
        _require_length(len(send.whole), len(recv.whole) * self.size, "Reduce_scatter_block: sendbuf")
        reduce = _reduce(op, "Ireduce_scatter_block")
        return self._collective("reduce_scatter", send.n_bytes, _copied(send), _into(recv), reduce=reduce)

    def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:  # noqa: N802
        """Begin an all-gather."""
        recv = memory_of(recvbuf, self.size, of_one=True)
        block = recv.block(self.rank) if is_in_place(sendbuf) else memory_of(sendbuf).whole
        _require_length(block.nbytes, recv.n_bytes // self.size, "Allgather: bytes of sendbuf")
        data = block.copy() if SETTINGS.moves_data else None
        return self._collective("all_gather", recv.n_bytes, data, _into_blocks(recv))

    def Iallgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:  # noqa: N802
        """Begin an all-gather of unequal blocks."""
        recv = memory_of(recvbuf, self.size, of_one=True, vector=True)
        block = recv.block(self.rank) if is_in_place(sendbuf) else memory_of(sendbuf).whole
        counts = counts_in_bytes(recv)
        _require_length(block.nbytes, counts[self.rank], "Allgatherv: bytes of sendbuf")
        data = block.copy() if SETTINGS.moves_data else None
        return self._collective("all_gather_v", recv.n_bytes, data, _into_blocks(recv), counts=counts)

    def Ialltoall(self, sendbuf: Any, recvbuf: Any) -> Request:  # noqa: N802
        """Begin an all-to-all."""
        send, recv = self._given(sendbuf, recvbuf, self.size)
        return self._collective("all_to_all", send.n_bytes, _blocks(send), _into_blocks(recv))

    def Ialltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:  # noqa: N802
        """Begin an all-to-all of unequal blocks."""
        recv = memory_of(recvbuf, self.size, of_one=True, vector=True)
        send = recv if is_in_place(sendbuf) else memory_of(sendbuf, self.size, of_one=True, vector=True)
        counts = counts_in_bytes(send)
        return self._collective("all_to_all_v", send.n_bytes, _blocks(send), _into_blocks(recv), counts=counts)

    def Igather(self, sendbuf: Any, recvbuf: Any = None, root: int = 0) -> Request:  # noqa: N802
        """Begin a gather."""
        self._world(root, "root")
        is_root = self.rank == root
        recv = memory_of(recvbuf, self.size, of_one=True) if is_root else None
        in_place = recv is not None and is_in_place(sendbuf)
        block = recv.block(root) if recv is not None and in_place else memory_of(sendbuf).whole
        data = block.copy() if SETTINGS.moves_data else None
        return self._collective(
            "gather", block.nbytes * self.size, data, None if recv is None else _into_blocks(recv), root=root
        )

    def Iscatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:  # noqa: N802
        """Begin a scatter."""
        self._world(root, "root")
        send = memory_of(sendbuf, self.size, of_one=True) if self.rank == root else None
        recv = None if is_in_place(recvbuf) else memory_of(recvbuf)
        n_bytes = send.n_bytes if send is not None else recv.n_bytes * self.size if recv is not None else 0
        data = None if send is None else _blocks(send)
        return self._collective("scatter", n_bytes, data, None if recv is None else _into(recv), root=root)

    def Gatherv(self, sendbuf: Any, recvbuf: Any = None, root: int = 0) -> None:  # noqa: N802
        """Gather unequal blocks: each rank sends one message to the root."""
        self._world(root, "root")
        rank = self.rank
        if rank != root:
            send = memory_of(sendbuf)
            Request(self._send(root, 0, _bytes(send.whole), send.n_bytes, kind="gatherv")).wait()
            return
        recv = memory_of(recvbuf, self.size, of_one=True, vector=True)
        if not is_in_place(sendbuf) and SETTINGS.moves_data:
            recv.put(rank, memory_of(sendbuf).whole)
        Request.waitall([
            Request(self._receive(k, 0, kind="gatherv"), _into_block(recv, k)) for k in range(self.size) if k != rank
        ])  # fmt: skip

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:  # noqa: N802
        """Scatter unequal blocks: the root sends one message to each rank."""
        self._world(root, "root")
        rank = self.rank
        if rank != root:
            recv = memory_of(recvbuf)
            Request(self._receive(root, 0, kind="scatterv"), _into_block(recv, 0)).wait()
            return
        send = memory_of(sendbuf, self.size, of_one=True, vector=True)
        sizes = counts_in_bytes(send)
        Request.waitall([
            Request(self._send(k, 0, _bytes(send.block(k)), sizes[k], kind="scatterv"))
            for k in range(self.size) if k != rank
        ])  # fmt: skip
        if not is_in_place(recvbuf) and SETTINGS.moves_data:
            memory_of(recvbuf).put(0, send.block(rank))

    def Barrier(self) -> None:  # noqa: N802
        """Wait for all."""
        self.Ibarrier().wait()

    barrier = Barrier

    def Bcast(self, buf: Any, root: int = 0) -> None:  # noqa: N802
        """Broadcast memory."""
        self.Ibcast(buf, root).wait()

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:  # noqa: N802
        """Reduce memory to all; an operator of the user's over a tree of messages."""
        if op.of_arrays is None:
            self.Reduce(sendbuf, recvbuf, op, 0)
            self.Bcast(recvbuf, 0)
        else:
            self.Iallreduce(sendbuf, recvbuf, op).wait()

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:  # noqa: N802
        """Reduce memory to one rank; an operator of the user's over a tree of messages."""
        if op.of_arrays is not None:
            self.Ireduce(sendbuf, recvbuf, op, root).wait()
            return
        send = memory_of(recvbuf if is_in_place(sendbuf) else sendbuf)
        found = self._over_tree(send, op, root)
        if found is not None:
            memory_of(recvbuf).put(0, found)

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:  # noqa: N802
        """Reduce memory, of which each rank gets a block."""
        self.Ireduce_scatter_block(sendbuf, recvbuf, op).wait()

    def Reduce_scatter(  # noqa: N802
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: Op = SUM
    ) -> None:
        """Reduce memory, of which each rank gets a block; unequal ones are reduced to rank 0, which scatters them."""
        if recvcounts is None or len(set(recvcounts)) == 1:
            self.Reduce_scatter_block(sendbuf, recvbuf, op)
            return
        send = memory_of(recvbuf if is_in_place(sendbuf) else sendbuf)
        whole = np.empty_like(send.whole) if self.rank == 0 else None
        self.Reduce(send.whole.copy(), whole, op, 0)
        mine = memory_of(recvbuf)
        self.Scatterv([whole, list(recvcounts)], [mine.values, recvcounts[self.rank], mine.datatype], 0)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Gather memory of all to all."""
        self.Iallgather(sendbuf, recvbuf).wait()

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Gather unequal blocks of all to all."""
        self.Iallgatherv(sendbuf, recvbuf).wait()

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Send a block from each to each."""
        self.Ialltoall(sendbuf, recvbuf).wait()

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        """Send unequal blocks from each to each."""
        self.Ialltoallv(sendbuf, recvbuf).wait()

    def Gather(self, sendbuf: Any, recvbuf: Any = None, root: int = 0) -> None:  # noqa: N802
        """Gather memory to one rank."""
        self.Igather(sendbuf, recvbuf, root).wait()

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:  # noqa: N802
        """Scatter memory from one rank."""
        self.Iscatter(sendbuf, recvbuf, root).wait()

    def Scan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:  # noqa: N802
        """Reduce memory of all ranks up to this one."""
        self._scanned(sendbuf, recvbuf, op, with_own=True)

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:  # noqa: N802
        """Reduce memory of all ranks before this one."""
        self._scanned(sendbuf, recvbuf, op, with_own=False)

    def _over_tree(self, send: CallBuffer, op: Op, root: int) -> Any:
        """Reduce over a binomial tree in the order of ranks; return it at the root."""
        rank, size, held = self.rank, self.size, send.whole.copy()
        mask = 1
        while mask < size:
            if rank & mask:
                self._exchange(rank - mask, None, held)
                break
            if rank + mask < size:
                part = self._exchange(None, rank + mask, held)
                held = self._combined(op, held, part, send)
            mask *= 2
        if root and rank == 0:
            self._exchange(root, None, held)
        elif root and rank == root:
            return self._exchange(None, 0, held)
        return held if rank == root else None

    def _scanned(self, sendbuf: Any, recvbuf: Any, op: Op, with_own: bool) -> None:
        send = memory_of(recvbuf if is_in_place(sendbuf) else sendbuf)
        rank, size, partial = self.rank, self.size, send.whole.copy()
        result = partial.copy() if with_own else None
        mask = 1
        while mask < size:
            peer = rank ^ mask
            if peer < size:
                part = self._exchange(peer, peer, partial)
                if rank > peer:
                    partial = self._combined(op, part, partial, send)
                    result = part if result is None else self._combined(op, part, result, send)
                else:
                    partial = self._combined(op, partial, part, send)
            mask *= 2
        if result is not None:
            memory_of(recvbuf).put(0, result)

    def _exchange(self, to: int | None, source: int | None, data: Any) -> Any:
        """Send an array, receive one like it, or both."""
        begun = [] if source is None else [self._receive(source, 0, kind="tree")]
        sent = (
            None
            if to is None
            else self._send(to, 0, data.copy() if SETTINGS.moves_data else None, data.nbytes, kind="tree")
        )
        requests = [Request(one, _data) for one in begun]
        found = Request.waitall([*requests, Request(sent)])
        return np.frombuffer(found[0], data.dtype) if requests and found[0] is not None else data

    def _combined(self, op: Op, left: Any, right: Any, like: CallBuffer) -> Any:
        into = right.copy()
        op.apply(into, left, like.datatype)
        return into


def _nothing(operation: PendingCall, status: Status) -> None:
    """Leave what a collective brought: it is where it belongs."""


def _data(operation: PendingCall, status: Status) -> Any:  # noqa: ARG001
    return operation.result.data


def _into(memory: CallBuffer) -> Callable[[Any], None]:
    return lambda result: memory.put(0, result)


def _into_blocks(memory: CallBuffer) -> Callable[[Any], None]:
    def put(result: Any) -> None:
        for number, block in enumerate(result):
            memory.put(number, block)

    return put


def _into_block(memory: CallBuffer, number: int) -> Callable[[PendingCall, Status], None]:
    return lambda operation, status: memory.put(number, operation.result.data)  # noqa: ARG005


def _bytes(values: Any) -> bytes | None:
    return values.tobytes() if SETTINGS.moves_data else None


def _copied(memory: CallBuffer) -> Any:
    return memory.whole.copy() if SETTINGS.moves_data else None


def _blocks(memory: CallBuffer) -> list[Any] | None:
    """Return copies of all blocks."""
    return [memory.block(k).copy() for k in range(len(memory.counts))] if SETTINGS.moves_data else None


def _reduce(op: Op, call: str) -> Any:
    if op.of_arrays is None:
        raise MPIError(9, f"commsim emulate has no {call} with MPI_{op.name or 'Op.Create'}; Allreduce and Reduce have")
    return op.of_arrays


def _require_length(got: int, wanted: int, what: str) -> None:
    if got != wanted:
        raise MPIError(2, f"{what} must be {wanted}, got {got}")
