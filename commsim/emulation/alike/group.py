"""The process group of ranks that are alike: collectives go on the streams of a virtual GPU.

Real values are those of all ranks: a sum is the number of ranks times the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed
from torch.futures import Future
from torch.utils._pytree import tree_leaves

from commsim.emulation.torch_ranks.named_group import NamedGroup

from .host import Host
from .queued_work import Moment


class AlikeWork(distributed.Work):  # type: ignore[misc,unused-ignore]
    """A collective that was started.

    Parameters
    ----------
    host : Host
        Emulated rank.
    end : Moment
        End of the collective.
    result : list of torch.Tensor
        What it writes.
    """

    def __init__(self, host: Host, end: Moment, result: list[Any]) -> None:
        super().__init__()
        self._host, self._end, self._result = host, end, result
        self._future: Future[list[Any]] = Future()
        self._future.set_result(result)

    def wait(self, timeout: Any = None) -> bool:  # noqa: ARG002 - the interface of torch
        """Let the current stream wait, as NCCL's works do."""
        self._host.await_end(self._end, self._result)
        return True

    def is_completed(self) -> bool:
        """Whether it has ended in virtual time."""
        return self._end.time is not None

    def is_success(self) -> bool:
        """Nothing fails."""
        return True

    def synchronize(self) -> None:
        """Let the current stream wait."""
        self.wait()

    def result(self) -> list[Any]:
        """Return what it wrote."""
        return self._result

    def get_future(self) -> Future[list[Any]]:
        """Future that has been completed: who touches its tensors waits in virtual time."""
        return self._future


class ReceivedWork(AlikeWork):
    """A receive that was started."""

    def wait(self, timeout: Any = None) -> bool:
        """Let the current stream wait; the host waits for a tensor with values."""
        super().wait(timeout)
        self._host.received(self._end, self._result[0])
        return True


class AlikeGroup(NamedGroup):
    """Collectives of ranks that are alike; parameters as torch gives them to a backend."""

    def __init__(self, host: Host, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._host = host

    def _start(self, operation: str, whole: Any, writes: Any) -> AlikeWork:
        whole, made = tree_leaves(whole), tree_leaves(writes)
        size = float(sum(tensor.numel() * tensor.element_size() for tensor in whole))
        end = self._host.collective(
            operation, size, self._members(), [tensor for tensor in made if isinstance(tensor, torch.Tensor)]
        )
        return AlikeWork(self._host, end, made)

    def _fill(self, outputs: Any, value: Any) -> None:
        """Copy values that are real to all that ranks alike would send."""
        with torch.no_grad():
            for out in tree_leaves(outputs):
                if _is_real(out) and _is_real(value):
                    out.copy_(value)

    def allreduce(self, tensors: Any, opts: Any = None) -> AlikeWork:
        """All-reduce; real values of ranks alike are summed by multiplication."""
        self._sum(tensors, opts)
        return self._start("all_reduce", tensors, tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> AlikeWork:
        """All-reduce of several tensors as one."""
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Broadcast: all have the root's values already."""
        return self._start("broadcast", tensors, tensors)

    def reduce(self, tensors: Any, opts: Any = None) -> AlikeWork:
        """Reduce to a root."""
        self._sum(tensors, opts)
        return self._start("reduce", tensors, tensors)

    def _sum(self, tensors: Any, opts: Any) -> None:
        """Sum real values of ranks that are alike."""
        if getattr(opts, "reduceOp", distributed.ReduceOp.SUM) == distributed.ReduceOp.SUM:
            for tensor in filter(_is_real, tensors):
                tensor.mul_(self._n)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """All-gather into lists of tensors."""
        for outputs_of_rank, one in zip(outputs, inputs, strict=True):
            self._fill(outputs_of_rank, one)
        return self._start("all_gather", outputs, outputs)

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """All-gather into one tensor."""
        if _is_real(output) and _is_real(tensor):
            output.view(self._n, -1).copy_(tensor.reshape(1, -1).expand(self._n, -1))
        return self._start("all_gather", [output], [output])

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Reduce-scatter of one tensor."""
        if _is_real(output) and _is_real(tensor):
            output.copy_(tensor.reshape(-1)[: output.numel()].view_as(output) * self._n)
        return self._start("reduce_scatter", [tensor], [output])

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Reduce-scatter of lists of tensors."""
        return self._start("reduce_scatter", inputs, outputs)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Several all-gathers as one."""
        return self._start("all_gather", outputs, outputs)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Several reduce-scatters as one."""
        return self._start("reduce_scatter", inputs, outputs)

    def all_to_all_single(self, output: Any, tensor: Any, *sizes: Any) -> AlikeWork:  # noqa: ARG002
        """All-to-all of one tensor; parts of other sizes count with their sum."""
        if _is_real(output) and _is_real(tensor) and output.shape == tensor.shape:
            output.copy_(tensor)
        return self._start("all_to_all", [tensor], [output])

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """All-to-all of lists of tensors."""
        return self._start("all_to_all", inputs, outputs)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Gather at a root."""
        if outputs:
            self._fill(outputs, inputs[0])
        return self._start("gather", list(inputs) * self._n, outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Scatter from a root."""
        if inputs:
            self._fill(outputs, inputs[0][0])
        return self._start("scatter", list(outputs) * self._n, outputs)

    def barrier(self, opts: Any = None) -> AlikeWork:  # noqa: ARG002
        """Barrier, for which the host waits."""
        work = self._start("barrier", [], [])
        self._host.gpu.synchronize(work._end)
        return work

    def send(self, tensors: Any, peer: int, tag: int = 0) -> AlikeWork:
        """Send a tensor to the rank at the same place of another stage."""
        end = self._host.send(self._members()[peer], (self.pg_name, tag), tensors[0])
        return AlikeWork(self._host, end, [])

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> AlikeWork:
        """Receive a tensor of the rank at the same place of another stage."""
        end = self._host.receive(self._members()[peer], (self.pg_name, tag), tensors[0])
        return ReceivedWork(self._host, end, list(tensors))

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single


def _is_real(tensor: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, torch.Tensor) and not isinstance(tensor, FakeTensor)


def make_group(host: Host) -> Callable[..., AlikeGroup]:
    """Return what torch calls to make a group of the backend."""

    def create(store: Any, rank: int, size: int, timeout: Any) -> AlikeGroup:  # noqa: ARG001 - the interface of torch
        return AlikeGroup(host, rank, size)

    return create
