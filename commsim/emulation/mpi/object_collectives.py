"""Collectives of MPI on objects, the lower-case calls: pickled, their lengths first, as mpi4py sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commsim.emulation.rank_calls import Collective

from .buffer_collectives import BufferCollectives
from .communicator import packed, unpacked
from .reductions import OPERATORS, Op
from .requests import Request

# Bytes of a length, MPI's count.
LENGTH = 8
SUM = OPERATORS["SUM"]
__all__ = ["ObjectCollectives"]


class ObjectCollectives(BufferCollectives):
    """A communicator as far as collectives on objects go."""

    def _done(self, operation: str, n_bytes: float, data: Any, **more: Any) -> Any:
        """Run a collective whose data is moved in any case: lengths, and objects that decide what a program does."""
        begun = self._post(Collective(operation, self.members, (self.key, "collective"), float(n_bytes), data, **more))
        Request(begun).wait()
        return begun.result

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast an object."""
        self._world(root, "root")
        is_root = self.rank == root
        data = packed(obj) if is_root else None
        length = self._done("broadcast", LENGTH, None if data is None else len(data), root=root)
        result = self._done("broadcast", length, data, root=root)
        return obj if is_root else unpacked(result)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather objects of all to all."""
        data = packed(sendobj)
        lengths = self._done("all_gather", LENGTH * self.size, len(data))
        return [unpacked(one) for one in self._done("all_gather_v", sum(lengths), data, counts=tuple(lengths))]

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Gather objects to one rank."""
        self._world(root, "root")
        data, rank = packed(sendobj), self.rank
        self._done("gather", LENGTH * self.size, len(data), root=root)
        if rank != root:
            Request(self._send(root, 0, data, len(data), kind="gather")).wait()
            return None
        begun = [self._receive(k, 0, kind="gather") for k in range(self.size) if k != root]
        Request.waitall([Request(call) for call in begun])
        found = [call.result.data for call in begun if call is not None]
        found.insert(root, data)
        return [unpacked(one) for one in found]

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Scatter objects from one rank."""
        self._world(root, "root")
        rank, size = self.rank, self.size
        if rank != root:
            self._done("scatter", LENGTH * size, None, root=root)
            begun = self._receive(root, 0, kind="scatter")
            Request(begun).wait()
            return unpacked(begun.result.data) if begun is not None else None
        objects = list(sendobj or ())
        if len(objects) != size:
            raise ValueError(f"scatter: {size} objects are needed, got {len(objects)}")
        parts = [packed(one) for one in objects]
        self._done("scatter", LENGTH * size, [len(part) for part in parts], root=root)
        Request.waitall([
            Request(self._send(k, 0, part, len(part), kind="scatter")) for k, part in enumerate(parts) if k != root
        ])  # fmt: skip
        return unpacked(parts[root])

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Send an object from each to each."""
        objects = list(sendobj)
        if len(objects) != self.size:
            raise ValueError(f"alltoall: {self.size} objects are needed, got {len(objects)}")
        parts = [packed(one) for one in objects]
        counts = tuple(map(len, parts))
        self._done("all_to_all", LENGTH * self.size, list(counts))
        found = self._done("all_to_all_v", sum(counts), parts, counts=counts)
        return [unpacked(one) for one in found]

    def reduce(self, sendobj: Any, op: Op = SUM, root: int = 0) -> Any:
        """Reduce objects to one rank, over a binomial tree, as mpi4py does."""
        self._world(root, "root")
        rank, size, held = self.rank, self.size, sendobj
        mask = 1
        while mask < size:
            if rank & mask:
                self._to(rank - mask, held)
                break
            if rank + mask < size:
                held = op(held, self._from(rank + mask))
            mask *= 2
        if root and rank == 0:
            self._to(root, held)
        elif root and rank == root:
            return self._from(0)
        return held if rank == root else None

    def allreduce(self, sendobj: Any, op: Op = SUM) -> Any:
        """Reduce objects to all: to rank 0, which broadcasts, as mpi4py does."""
        return self.bcast(self.reduce(sendobj, op, 0), 0)

    def scan(self, sendobj: Any, op: Op = SUM) -> Any:
        """Reduce objects of all ranks up to this one."""
        return self._objects_scanned(sendobj, op)[0]

    def exscan(self, sendobj: Any, op: Op = SUM) -> Any:
        """Reduce objects of all ranks before this one; None at the first."""
        return self._objects_scanned(sendobj, op)[1]

    def _objects_scanned(self, sendobj: Any, op: Op) -> tuple[Any, Any]:
        rank, size = self.rank, self.size
        partial, with_own, before, is_first, mask = sendobj, sendobj, None, True, 1
        while mask < size:
            peer = rank ^ mask
            if peer < size:
                received, sent = self._receive(peer, 0, kind="scan"), packed(partial)
                Request.waitall([Request(received), Request(self._send(peer, 0, sent, len(sent), kind="scan"))])
                assert received is not None
                part = unpacked(received.result.data)
                if rank > peer:
                    partial, with_own = op(part, partial), op(part, with_own)
                    before, is_first = (part if is_first else op(part, before)), False
                else:
                    partial = op(partial, part)
            mask *= 2
        return with_own, before

    def _to(self, rank: int, obj: Any) -> None:
        data = packed(obj)
        Request(self._send(rank, 0, data, len(data), kind="reduce")).wait()

    def _from(self, rank: int) -> Any:
        begun = self._receive(rank, 0, kind="reduce")
        assert begun is not None
        Request(begun).wait()
        return unpacked(begun.result.data)
