"""A process group of torch whose collectives run on the emulated network, with real data.

Tensors travel as arrays; a work that is waited for lets the rank's virtual clock go on, and then fills the tensors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import distributed
from torch.futures import Future

from commsim.core.errors import InputError

from ..current import current_rank
from ..rank_calls import ANY, Collective, Operation, Receive, Send

NAME = "commsim"
_OWN = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).resolve().parents[3], Path(torch.__file__).parent))
_IN_BACKWARD = "commsim_works_in_backward"


def _maximum(target: Any, part: Any) -> None:
    np.maximum(target, part, out=target)


def _minimum(target: Any, part: Any) -> None:
    np.minimum(target, part, out=target)


def _product(target: Any, part: Any) -> None:
    target *= part


_OPERATORS: tuple[tuple[Any, Callable[[Any, Any], None] | None], ...] = (
    (distributed.ReduceOp.SUM, None), (distributed.ReduceOp.AVG, None), (distributed.ReduceOp.MAX, _maximum),
    (distributed.ReduceOp.MIN, _minimum), (distributed.ReduceOp.PRODUCT, _product),
)  # fmt: skip


class EmulatedWork(distributed.Work):  # type: ignore[misc,unused-ignore]
    """Calls under way.

    Parameters
    ----------
    begun : sequence of (Operation, callable)
        Calls, each with the function of its result that fills the tensors.
    made : list of torch.Tensor
        Tensors that are filled.
    """

    def __init__(self, begun: Sequence[tuple[Operation, Callable[[Any], None]]], made: list[Any]) -> None:
        super().__init__()
        self._begun, self._made = list(begun), made
        self._future: Future[list[Any]] | None = None

    def wait(self, timeout: Any = None) -> bool:  # noqa: ARG002 - the interface of torch
        """Let the rank wait until all calls are complete, and fill the tensors."""
        if self._begun:
            current_rank().wait([operation for operation, _ in self._begun])
            begun, self._begun = self._begun, []
            with torch.no_grad():
                for operation, fill in begun:
                    fill(operation.result)
            if self._future is not None:
                self._future.set_result(self._made)
        return True

    def is_completed(self) -> bool:
        """Whether all calls are complete at the rank's time; the tensors are filled then."""
        if self._begun and current_rank().test([operation for operation, _ in self._begun]):
            self.wait()
        return not self._begun

    def is_success(self) -> bool:
        """Nothing fails."""
        return True

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def result(self) -> list[Any]:
        """Return the tensors."""
        return self._made

    def get_future(self) -> Future[list[Any]]:
        """Return a future: in a backward pass it is complete at its end, where DDP waits for it, else now."""
        if self._future is None:
            self._future = Future()
            if not self._begun:
                self._future.set_result(self._made)
            elif not _at_end_of_backward(self):
                self.wait()
        return self._future


def _at_end_of_backward(work: EmulatedWork) -> bool:
    """Wait for a work at the end of the backward pass; return False where there is none."""
    kept = current_rank().kept.setdefault(_IN_BACKWARD, [])
    if not kept:

        def complete() -> None:
            works, kept[:] = list(kept), []
            for one in works:
                one.wait()

        try:
            torch.autograd.Variable._execution_engine.queue_callback(complete)
        except RuntimeError:
            return False
    kept.append(work)
    return True


class EmulatedGroup(distributed.ProcessGroup):  # type: ignore[misc,unused-ignore]
    """Collectives of a group of emulated ranks.

    Parameters
    ----------
    rank, size : int
        Rank in the group, and its size.
    """

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._own, self._n = rank, size

    def getBackendName(self) -> str:  # noqa: N802 - the interface of torch
        """Name of the backend."""
        return NAME

    @property
    def pg_name(self) -> str:
        """Name under which torch knows the group."""
        return str(distributed.distributed_c10d._world.pg_names[self])

    @property
    def group_name(self) -> str:
        """Name under which functional collectives find the group."""
        return self.pg_name

    def _members(self) -> tuple[int, ...]:
        known = distributed.distributed_c10d._world.pg_group_ranks
        return tuple(known[self]) if self in known else tuple(range(self._n))

    def _begin(
        self, operation: str, n_bytes: float, data: Any, fill: Callable[[Any], None], **more: Any
    ) -> tuple[Operation, Callable[[Any], None]]:
        call = Collective(
            operation, self._members(), f"torch {self.pg_name}", float(n_bytes), data, site=_site(), library="usual", **more
        )
        return current_rank().post(call), fill

    def allreduce(self, tensors: Any, opts: Any = None) -> EmulatedWork:
        """All-reduce."""
        operator = getattr(opts, "reduceOp", distributed.ReduceOp.SUM)
        begun = [
            self._begin("all_reduce", _bytes(one), _numbers(one), self._reduced(one, operator), reduce=_reduce_of(operator))
            for one in tensors
        ]
        return EmulatedWork(begun, list(tensors))

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> EmulatedWork:
        """All-reduce of several tensors."""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any) -> EmulatedWork:
        """Reduce to a root."""
        one, operator = tensors[0], opts.reduceOp
        fill = self._reduced(one, operator) if self._own == opts.rootRank else _nothing
        return EmulatedWork(
            [self._begin("reduce", _bytes(one), _numbers(one), fill, root=opts.rootRank, reduce=_reduce_of(operator))],
            list(tensors),
        )

    def broadcast(self, tensors: Any, opts: Any) -> EmulatedWork:
        """Broadcast from a root."""
        is_root = self._own == opts.rootRank
        begun = [
            self._begin("broadcast", _bytes(one), _raw(one) if is_root else None, _fill(one), root=opts.rootRank)
            for one in tensors
        ]
        return EmulatedWork(begun, list(tensors))

    def all_gather_single(self, output: Any, given: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """All-gather into one tensor."""
        return EmulatedWork([self._gather(list(output.view(-1).chunk(self._n)), given)], [output])

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """All-gather into lists of tensors."""
        begun = [self._gather(list(made), one) for made, one in zip(outputs, inputs, strict=True)]
        return EmulatedWork(begun, [one for made in outputs for one in made])

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """Several all-gathers."""
        begun = [self._gather(list(o.view(-1).chunk(self._n)), i) for o, i in zip(outputs, inputs, strict=True)]
        return EmulatedWork(begun, list(outputs))

    def _gather(self, parts: list[Any], given: Any) -> tuple[Operation, Callable[[Any], None]]:
        return self._begin("all_gather", _bytes(given) * self._n, _raw(given), _fill_each(parts))

    def reduce_scatter_single(self, output: Any, given: Any, opts: Any = None) -> EmulatedWork:
        """Reduce-scatter of one tensor."""
        return EmulatedWork([self._scatter_sum(output, given, opts)], [output])

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:
        """Reduce-scatter of lists of tensors."""
        begun = [
            self._scatter_sum(out, torch.cat([one.reshape(-1) for one in given]), opts)
            for out, given in zip(outputs, inputs, strict=True)
        ]
        return EmulatedWork(begun, list(outputs))

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:
        """Several reduce-scatters."""
        begun = [self._scatter_sum(out, given, opts) for out, given in zip(outputs, inputs, strict=True)]
        return EmulatedWork(begun, list(outputs))

    def _scatter_sum(self, output: Any, given: Any, opts: Any) -> tuple[Operation, Callable[[Any], None]]:
        operator = getattr(opts, "reduceOp", distributed.ReduceOp.SUM)
        fill = self._reduced(output, operator)
        return self._begin("reduce_scatter", _bytes(given), _numbers(given), fill, reduce=_reduce_of(operator))

    def all_to_all_single(
        self, output: Any, given: Any, output_sizes: Any = None, input_sizes: Any = None, opts: Any = None
    ) -> EmulatedWork:  # noqa: ARG002
        """All-to-all of one tensor, in equal parts or in parts of given sizes."""
        ins = list(given.split(list(input_sizes)) if input_sizes else given.chunk(self._n))
        outs = list(output.split(list(output_sizes)) if output_sizes else output.chunk(self._n))
        return self.alltoall(outs, ins)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """All-to-all of lists of tensors."""
        sizes = [_bytes(one) for one in inputs]
        data, fill = [_raw(one) for one in inputs], _fill_each(list(outputs))
        if len(set(sizes)) == 1 and sizes[0] == _bytes(outputs[0]):
            begun = self._begin("all_to_all", sum(sizes), data, fill)
        else:
            begun = self._begin("all_to_all_v", sum(sizes), data, fill, counts=tuple(map(int, sizes)))
        return EmulatedWork([begun], list(outputs))

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> EmulatedWork:
        """Gather at a root."""
        fill = _fill_each(list(outputs[0])) if self._own == opts.rootRank else _nothing
        size = _bytes(inputs[0]) * self._n
        return EmulatedWork([self._begin("gather", size, _raw(inputs[0]), fill, root=opts.rootRank)], list(inputs))

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> EmulatedWork:
        """Scatter from a root."""
        data = [_raw(one) for one in inputs[0]] if self._own == opts.rootRank else None
        size = _bytes(outputs[0]) * self._n
        return EmulatedWork([self._begin("scatter", size, data, _fill(outputs[0]), root=opts.rootRank)], list(outputs))

    def barrier(self, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """Barrier."""
        return EmulatedWork([self._begin("barrier", 0.0, None, _nothing)], [])

    def send(self, tensors: Any, peer: int, tag: int = 0) -> EmulatedWork:
        """Send a tensor to a rank of the group."""
        one = tensors[0]
        call = Send(self._members()[peer], tag, f"torch {self.pg_name}", float(_bytes(one)), _raw(one), site=_site())
        return EmulatedWork([(current_rank().post(call), _nothing)], list(tensors))

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> EmulatedWork:
        """Receive a tensor from a rank of the group."""
        return self._receive(tensors, self._members()[peer], tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> EmulatedWork:
        """Receive a tensor from any rank."""
        return self._receive(tensors, ANY, tag)

    def _receive(self, tensors: Any, source: int, tag: int) -> EmulatedWork:
        fill = _fill(tensors[0])
        operation = current_rank().post(Receive(source, tag, f"torch {self.pg_name}", site=_site()))
        return EmulatedWork([(operation, lambda sent: fill(sent.data))], list(tensors))

    def monitored_barrier(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise InputError(f"{_site()}: monitored_barrier is not emulated; use barrier")

    def _reduced(self, tensor: Any, operator: Any) -> Callable[[Any], None]:
        """Return what fills a tensor with a reduction; a mean is the sum over the number of ranks."""

        def fill(values: Any) -> None:
            tensor.copy_(torch.from_numpy(np.array(values)).view_as(tensor))
            if operator == distributed.ReduceOp.AVG:
                tensor.div_(self._n)

        return fill

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single


def _reduce_of(operator: Any) -> Callable[[Any, Any], None] | None:
    for known, reduce in _OPERATORS:
        if operator == known:
            return reduce
    raise InputError(f"{_site()}: reductions are SUM, AVG, MAX, MIN or PRODUCT here, got {operator}")


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _numbers(tensor: Any) -> Any:
    """Return a copy of the values that can be reduced, in one dimension."""
    if tensor.dtype is torch.bfloat16:
        raise InputError(f"{_site()}: a reduction of bfloat16 is not emulated with data; reduce in float32 or float16")
    return tensor.detach().reshape(-1).numpy().copy()


def _raw(tensor: Any) -> Any:
    """Return a copy of the bytes of a tensor of any type."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().copy()


def _fill(tensor: Any) -> Callable[[Any], None]:
    def fill(raw: Any) -> None:
        values = torch.from_numpy(np.array(raw)).view(tensor.dtype)
        tensor.copy_(values.view(tensor.shape))

    return fill


def _fill_each(tensors: list[Any]) -> Callable[[Any], None]:
    fills = [_fill(one) for one in tensors]

    def fill(parts: Any) -> None:
        for one, raw in zip(fills, parts, strict=True):
            one(raw)

    return fill


def _nothing(_: Any) -> None:
    """Fill nothing."""


def _site() -> str:
    """Line of the program that called: the innermost that is neither ours nor torch's."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_OWN, "<")):
            return f"{Path(path).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
