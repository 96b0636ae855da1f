"""A rank that runs for others: its virtual GPU, the groups that its program makes, its collectives, what it spent."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from commsim.core.errors import InputError

from .compute import Compute, Spent
from .network_times import Group
from .queued_work import Moment
from .stage_gpu import StageGpu, Stages
from .virtual_gpu import VirtualGpu

_NOT_ALIKE = (
    "between ranks {} and {}: ranks that are taken as alike send to no single others; divide them into stages with "
    "--stages N, or emulate up to 16 ranks with --compute measured"
)
_UNLIKE = "between ranks {} and {}: a rank of a stage sends to the rank at the same place of another stage"


@dataclass(slots=True)
class Host:
    """State of a rank whose program runs, the first of a stage or of all; the others of it are taken as alike.

    Parameters
    ----------
    n_ranks : int
        Ranks of the emulated world.
    compute : Compute
        Where the time of operators comes from.
    gpu : VirtualGpu or StageGpu
        Streams of the rank.
    stages : Stages
        How ranks are divided; one stage where all are alike.
    """

    n_ranks: int
    compute: Compute
    gpu: VirtualGpu | StageGpu
    stages: Stages
    spent: Spent = field(default_factory=Spent)
    remark_texts: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    steps: list[Moment] = field(default_factory=list)
    _streams: dict[Group, Any] = field(default_factory=dict)
    _pending: dict[int, tuple[Any, Moment]] = field(default_factory=dict)
    _skipped: tuple[str, ...] = ()
    _unknown: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        root = Path(__file__).resolve().parents[2]
        folders = (root, Path(torch.__file__).parent, Path(os.__file__).parent)
        self._skipped = tuple(f"{folder}{os.sep}" for folder in folders)

    def site(self) -> str:
        """Line of the program that is being executed: the innermost frame that is not in a library."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            path = frame.f_code.co_filename
            if not path.startswith(self._skipped) and not path.startswith("<"):
                return f"{path.rsplit('/', 1)[-1]}:{frame.f_lineno}"
            frame = frame.f_back
        return "unknown"

    @property
    def rank(self) -> int:
        """World rank."""
        return self.stages.own * self.stages.size

    def count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Put the time of an operator on the current stream."""
        cost = self.compute.cost(func, args, kwargs, out)
        name = func.overloadpacket.__name__
        if cost.bound == "unknown":
            self._unknown[name] += 1
        else:
            self.spent.add(name, cost)
        self.gpu.compute(cost.seconds, "computation")

    def collective(self, operation: str, size: float, ranks: Group, writes: list[Any]) -> Moment:
        """Start a collective on the stream of its group; return its end.

        Parameters
        ----------
        operation, size
            Operation, and its size as nccl-tests counts it.
        ranks : tuple of int
            Group that calls it.
        writes : list of torch.Tensor
            Tensors that it writes; the next operator that touches them waits for it.
        """
        if ranks not in self._streams:
            label = "all ranks" if len(ranks) == self.n_ranks else f"group of {len(ranks)}"
            self._streams[ranks] = self.gpu.stream(f"{label} {len(self._streams)}")
        end = self.gpu.collective(self._streams[ranks], operation, size, self._alike(ranks), self.site())
        if len(self.stages.of(ranks)) > 1 and any(
            write.numel() and not isinstance(write, FakeTensor) for write in writes
        ):
            self.remark_texts.setdefault(
                "across", f"{self.site()}: values of a collective of several stages are the caller's"
            )
        self._write(writes, end)
        return end

    def send(self, to: int, key: Any, tensor: Any) -> Moment:
        """Send a tensor to a rank of another stage; return when it has left."""
        values = None
        if not isinstance(tensor, FakeTensor):
            values = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        gpu = self._stage_gpu("send", to)
        return gpu.send(to // self.stages.size, key, _bytes_of(tensor), values, self.site())

    def receive(self, source: int, key: Any, tensor: Any) -> Moment:
        """Receive a tensor of a rank of another stage; return when it has come."""
        end = self._stage_gpu("recv", source).receive(source // self.stages.size, key, _bytes_of(tensor), self.site())
        self._write([tensor], end)
        return end

    def received(self, end: Moment, tensor: Any) -> None:
        """Let the host wait for the values of a tensor that has some."""
        if isinstance(self.gpu, StageGpu) and not isinstance(tensor, FakeTensor):
            self.gpu.synchronize(end)
            payload = self.gpu.payloads.pop(end, None)
            if payload is None:
                self.remark_texts.setdefault("value", f"{self.site()}: what was received has no values")
            else:
                values = torch.frombuffer(bytearray(payload), dtype=torch.uint8).view(tensor.dtype)
                tensor.copy_(values.view(tensor.shape))

    def _stage_gpu(self, call: str, other: int) -> StageGpu:
        """Return the GPU that can send to another stage; refuse messages between ranks that are taken as alike."""
        if isinstance(self.gpu, StageGpu) and self.stages.of((other,)) != (self.stages.own,):
            if other % self.stages.size == 0:
                return self.gpu
            raise refused(call, self.site(), _UNLIKE.format(self.rank, other))
        raise refused(call, self.site(), _NOT_ALIKE.format(self.rank, other))

    def _write(self, tensors: list[Any], end: Moment) -> None:
        """Let the next operator that touches tensors wait for a moment."""
        for tensor in tensors:
            storage = tensor.untyped_storage()
            self._pending[storage._cdata] = (storage, end)

    def await_pending(self, tensors: list[Any]) -> None:
        """Let the current stream wait for the collectives that write what an operator touches."""
        for tensor in tensors if self._pending else ():
            work = self._pending.pop(tensor.untyped_storage()._cdata, None)
            if work is not None:
                self.gpu.wait(work[1])

    def await_end(self, end: Moment, tensors: list[Any]) -> None:
        """Let the current stream wait for one collective, which its program asked for."""
        self.gpu.wait(end)
        for tensor in tensors:
            key = tensor.untyped_storage()._cdata
            if key in self._pending and self._pending[key][1] is end:
                del self._pending[key]

    def _alike(self, ranks: Group) -> tuple[Group, ...]:
        """Return the groups that do the same at the same time: made beside this one, as large, without common ranks.

        They belong to the same stages.
        """
        if len(ranks) == self.n_ranks or ranks not in self.groups:
            return (ranks,)
        at = len(self.groups) - 1 - self.groups[::-1].index(ranks)
        groups, taken = [ranks], set(ranks)
        for others in (self.groups[at + 1 :], self.groups[:at][::-1]):
            for group in others:
                unlike = len(group) != len(ranks) or self.stages.of(group) != self.stages.of(ranks)
                if unlike or taken.intersection(group):
                    break
                groups.append(group)
                taken.update(group)
        return tuple(sorted(groups))

    def remarks(self) -> list[str]:
        """Return what was assumed, left out or not known."""
        lines = list(self.remark_texts.values())
        if self._unknown:
            names = ", ".join(f"{name} ({n} calls)" for name, n in self._unknown.most_common(5))
            lines.append(f"operators without a time, taken as 0: {names}")
        return lines


def _bytes_of(tensor: Any) -> float:
    return float(tensor.numel() * tensor.element_size())


def refused(call: str, site: str, why: str) -> InputError:
    """Return the error of a call that an emulated rank of many cannot do."""
    return InputError(f"{site}: {call} {why}")
