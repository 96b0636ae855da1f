"""A process group of torch whose collectives run on the emulated network, with real data.

A work that is waited for lets the rank's virtual clock go on, and then fills the tensors with arrays of other ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch
from torch import distributed

from commsim.core.errors import InputError
from commsim.emulation.current import current_rank
from commsim.emulation.rank_calls import ANY, Collective, PendingCall, Receive, Send
from commsim.emulation.torch_ranks.named_group import NamedGroup

from .arrays import bytes_of, filling, filling_each, nothing, numbers_of, raw_of, site_of_call
from .works import EmulatedWork


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


class EmulatedGroup(NamedGroup):
    """Collectives of a group of emulated ranks."""

    def _begin(
        self, operation: str, n_bytes: float, data: Any, fill: Callable[[Any], None], **more: Any
    ) -> tuple[PendingCall, Callable[[Any], None]]:
        call = Collective(
            operation,
            self._members(),
            f"torch {self.pg_name}",
            float(n_bytes),
            data,
            site=site_of_call(),
            library="usual",
            in_order=True,
            **more,
        )
        return current_rank().post(call), fill

    def allreduce(self, tensors: Any, opts: Any = None) -> EmulatedWork:
        """All-reduce."""
        operator = getattr(opts, "reduceOp", distributed.ReduceOp.SUM)
        begun = [
            self._begin(
                "all_reduce",
                bytes_of(tensor),
                numbers_of(tensor),
                self._reduced(tensor, operator),
                reduce=_reduce_of(operator),
            )
            for tensor in tensors
        ]
        return EmulatedWork(begun, list(tensors))

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> EmulatedWork:
        """All-reduce of several tensors."""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any) -> EmulatedWork:
        """Reduce to a root."""
        tensor, operator = tensors[0], opts.reduceOp
        fill = self._reduced(tensor, operator) if self._own == opts.rootRank else nothing
        more = {"root": opts.rootRank, "reduce": _reduce_of(operator)}
        return EmulatedWork([self._begin("reduce", bytes_of(tensor), numbers_of(tensor), fill, **more)], list(tensors))

    def broadcast(self, tensors: Any, opts: Any) -> EmulatedWork:
        """Broadcast from a root."""
        is_root = self._own == opts.rootRank
        begun = [
            self._begin(
                "broadcast", bytes_of(tensor), raw_of(tensor) if is_root else None, filling(tensor), root=opts.rootRank
            )
            for tensor in tensors
        ]
        return EmulatedWork(begun, list(tensors))

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """All-gather into one tensor."""
        return EmulatedWork([self._gather(list(output.view(-1).chunk(self._n)), tensor)], [output])

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """All-gather into lists of tensors."""
        begun = [self._gather(list(outputs_of_rank), one) for outputs_of_rank, one in zip(outputs, inputs, strict=True)]
        return EmulatedWork(begun, [tensor for outputs_of_rank in outputs for tensor in outputs_of_rank])

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """Several all-gathers."""
        begun = [self._gather(list(o.view(-1).chunk(self._n)), i) for o, i in zip(outputs, inputs, strict=True)]
        return EmulatedWork(begun, list(outputs))

    def _gather(self, parts: list[Any], tensors: Any) -> tuple[PendingCall, Callable[[Any], None]]:
        return self._begin("all_gather", bytes_of(tensors) * self._n, raw_of(tensors), filling_each(parts))

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> EmulatedWork:
        """Reduce-scatter of one tensor."""
        return EmulatedWork([self._scatter_sum(output, tensor, opts)], [output])

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:
        """Reduce-scatter of lists of tensors."""
        begun = [
            self._scatter_sum(out, torch.cat([tensor.reshape(-1) for tensor in tensor]), opts)
            for out, tensor in zip(outputs, inputs, strict=True)
        ]
        return EmulatedWork(begun, list(outputs))

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:
        """Several reduce-scatters."""
        begun = [self._scatter_sum(out, tensor, opts) for out, tensor in zip(outputs, inputs, strict=True)]
        return EmulatedWork(begun, list(outputs))

    def _scatter_sum(self, output: Any, given: Any, opts: Any) -> tuple[PendingCall, Callable[[Any], None]]:
        operator = getattr(opts, "reduceOp", distributed.ReduceOp.SUM)
        fill = self._reduced(output, operator)
        return self._begin("reduce_scatter", bytes_of(given), numbers_of(given), fill, reduce=_reduce_of(operator))

    def all_to_all_single(
        self, output: Any, tensor: Any, output_sizes: Any = None, input_sizes: Any = None, *_: Any
    ) -> EmulatedWork:
        """All-to-all of one tensor, in equal parts or in parts of given sizes."""
        ins = list(tensor.split(list(input_sizes)) if input_sizes else tensor.chunk(self._n))
        outs = list(output.split(list(output_sizes)) if output_sizes else output.chunk(self._n))
        return self.alltoall(outs, ins)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """All-to-all of lists of tensors."""
        sizes = [bytes_of(one) for one in inputs]
        data, fill = [raw_of(one) for one in inputs], filling_each(list(outputs))
        if len(set(sizes)) == 1 and sizes[0] == bytes_of(outputs[0]):
            begun = self._begin("all_to_all", sum(sizes), data, fill)
        else:
            begun = self._begin("all_to_all_v", sum(sizes), data, fill, counts=tuple(map(int, sizes)))
        return EmulatedWork([begun], list(outputs))

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> EmulatedWork:
        """Gather at a root."""
        fill = filling_each(list(outputs[0])) if self._own == opts.rootRank else nothing
        size = bytes_of(inputs[0]) * self._n
        return EmulatedWork([self._begin("gather", size, raw_of(inputs[0]), fill, root=opts.rootRank)], list(inputs))

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> EmulatedWork:
        """Scatter from a root."""
        data = [raw_of(tensor) for tensor in inputs[0]] if self._own == opts.rootRank else None
        size = bytes_of(outputs[0]) * self._n
        begun = self._begin("scatter", size, data, filling(outputs[0]), root=opts.rootRank)
        return EmulatedWork([begun], list(outputs))

    def barrier(self, opts: Any = None) -> EmulatedWork:  # noqa: ARG002
        """Barrier."""
        return EmulatedWork([self._begin("barrier", 0.0, None, nothing)], [])

    def send(self, tensors: Any, peer: int, tag: int = 0) -> EmulatedWork:
        """Send a tensor to a rank of the group."""
        tensor = tensors[0]
        to, size = self._members()[peer], float(bytes_of(tensor))
        call = Send(to, tag, f"torch {self.pg_name}", size, raw_of(tensor), site=site_of_call())
        return EmulatedWork([(current_rank().post(call), nothing)], list(tensors))

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> EmulatedWork:
        """Receive a tensor from a rank of the group."""
        return self._receive(tensors, self._members()[peer], tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> EmulatedWork:
        """Receive a tensor from any rank."""
        return self._receive(tensors, ANY, tag)

    def _receive(self, tensors: Any, source: int, tag: int) -> EmulatedWork:
        fill = filling(tensors[0])
        operation = current_rank().post(Receive(source, tag, f"torch {self.pg_name}", site=site_of_call()))
        return EmulatedWork([(operation, lambda sent: fill(sent.data))], list(tensors))

    def monitored_barrier(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise InputError(f"{site_of_call()}: monitored_barrier is not emulated; use barrier")

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
    raise InputError(f"{site_of_call()}: reductions are SUM, AVG, MAX, MIN or PRODUCT here, got {operator}")
