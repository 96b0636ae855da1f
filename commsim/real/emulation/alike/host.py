"""The rank that runs: its virtual GPU, the groups that its program makes, its collectives, and what it spent."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError

from .compute import Compute, Spent
from .network_times import Group, NetworkTimes
from .streams import Exchange, Moment, Stream, VirtualGpu, site_of_program


@dataclass(slots=True)
class Host:
    """State of the rank whose program runs, the first; all others are taken as alike.

    Parameters
    ----------
    n_ranks : int
        Ranks of the emulated world.
    compute : Compute
        Where the time of operators comes from.
    network : NetworkTimes
        Times of collectives.
    script : Path
        Program that runs.
    """

    n_ranks: int
    compute: Compute
    network: NetworkTimes
    script: Path
    gpu: VirtualGpu = field(init=False)
    spent: Spent = field(default_factory=Spent)
    told: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    steps: list[Moment] = field(default_factory=list)
    _streams: dict[Group, Stream] = field(default_factory=dict)
    _pending: dict[int, tuple[Any, Moment]] = field(default_factory=dict)
    _skipped: tuple[str, ...] = ()
    _unknown: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        import torch

        self.gpu = VirtualGpu(self.network)
        root = Path(__file__).resolve().parents[3]
        folders = (root, Path(torch.__file__).parent, Path(os.__file__).parent)
        self._skipped = tuple(f"{folder}{os.sep}" for folder in folders)

    def site(self) -> str:
        """Line of the program that is being executed."""
        return site_of_program(self._skipped, sys._getframe(1))

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
        costs = self.network.of(operation, size, self._alike(ranks))
        end = self.gpu.exchange(self._streams[ranks], Exchange(costs, operation, size, len(ranks), self.site()))
        for tensor in writes:
            storage = tensor.untyped_storage()
            self._pending[storage._cdata] = (storage, end)
        return end

    def await_pending(self, tensors: list[Any]) -> None:
        """Let the current stream wait for the collectives that write what an operator touches."""
        for tensor in tensors if self._pending else ():
            found = self._pending.pop(tensor.untyped_storage()._cdata, None)
            if found is not None:
                self.gpu.wait(found[1])

    def await_end(self, end: Moment, tensors: list[Any]) -> None:
        """Let the current stream wait for one collective, which its program asked for."""
        self.gpu.wait(end)
        for tensor in tensors:
            key = tensor.untyped_storage()._cdata
            if key in self._pending and self._pending[key][1] is end:
                del self._pending[key]

    def _alike(self, ranks: Group) -> tuple[Group, ...]:
        """Return the groups that do the same at the same time: made beside this one, as large, without common ranks."""
        if len(ranks) == self.n_ranks or ranks not in self.groups:
            return (ranks,)
        at = len(self.groups) - 1 - self.groups[::-1].index(ranks)
        found, taken = [ranks], set(ranks)
        for others in (self.groups[at + 1 :], self.groups[:at][::-1]):
            for group in others:
                if len(group) != len(ranks) or taken.intersection(group):
                    break
                found.append(group)
                taken.update(group)
        return tuple(sorted(found))

    def remarks(self) -> list[str]:
        """Return what was assumed, left out or not known."""
        said = [
            f"rank 0 of {self.n_ranks} ran, the others are taken as alike: they call the same collectives at the same "
            "times; tensors have no data",
            "the host launches kernels in no time; kernels of collectives take no multiprocessors from computation",
            *self.compute.told(), *self.network.told, *self.told.values(),
        ]  # fmt: skip
        if self._unknown:
            names = ", ".join(f"{name} ({n} calls)" for name, n in self._unknown.most_common(5))
            said.append(f"operators without a time, taken as 0: {names}")
        return said


def refused(call: str, site: str, why: str) -> InputError:
    """Return the error of a call that an emulated rank of many cannot do."""
    return InputError(f"{site}: {call} {why}")
