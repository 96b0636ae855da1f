"""torch.distributed: gloo on hosts, NCCL where every rank has a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError
from commsim.core.extras import needs

from .huge_pages import huge_zeros
from .rendezvous import Rendezvous, meet
from .transport import Array, Native


def load_torch() -> Any:
    """Import torch with torch.distributed.

    Raises
    ------
    BackendError
        If torch is missing, or was built without torch.distributed.
    """
    try:
        import torch
        import torch.distributed
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackendError(needs(f"torch cannot be loaded ({reason})", "torch")) from None
    if not torch.distributed.is_available():
        raise BackendError(f"torch {torch.__version__} was built without torch.distributed")
    return torch


class GlooTransport:
    """Messages and collectives of gloo; see :class:`commsim.real.transport.RankTransport`.

    Raises
    ------
    BackendError
        If torch is missing or the ranks cannot meet.
    """

    name = "gloo"
    look_ahead = 8
    acknowledges = False
    wait_some = None

    def __init__(self) -> None:
        self._torch = load_torch()
        self._distributed = self._torch.distributed
        self.library = f"torch {self._torch.__version__}"
        if not self._distributed.is_backend_available(self.name):
            raise BackendError(f"torch {self._torch.__version__} has no {self.name}")
        meeting = meet(self._distributed)
        self.rank, self.size, self.ranks_per_host = meeting.rank, meeting.size, meeting.ranks_per_host
        self._device = self._choose_device(meeting)
        if self.ranks_per_host > 1:
            self._torch.set_num_threads(1)  # the ranks are the parallelism; pools of threads would fight for cores
        self._distributed.init_process_group(self.name, store=meeting.store, rank=self.rank, world_size=self.size)

    def _choose_device(self, meeting: Rendezvous) -> str:  # noqa: ARG002 - NCCL needs it
        return "cpu"

    def empty(self, n_elements: int, dtype: str) -> Array:
        """Memory, written once so that its pages exist: huge ones on a host, as :mod:`.huge_pages` says."""
        if self._device == "cpu":
            return self._torch.from_numpy(huge_zeros(n_elements, dtype))
        return self._torch.zeros(n_elements, dtype=getattr(self._torch, dtype), device=self._device)

    def load(self, target: Array, values: NDArray[Any]) -> None:
        """Copy values in."""
        target.copy_(self._torch.from_numpy(np.require(values, requirements=("C", "W"))))

    def values(self, array: Array) -> NDArray[Any]:
        """Return the contents, which share memory with a tensor on the host."""
        out: NDArray[Any] = array.cpu().numpy()
        return out

    def isend(self, array: Array, peer: int, tag: int) -> Any:
        """Start to send."""
        return self._distributed.isend(array, peer, tag=tag)

    def irecv(self, array: Array, peer: int, tag: int) -> Any:
        """Start to receive."""
        return self._distributed.irecv(array, peer, tag=tag)

    def wait(self, handle: Any) -> None:
        """Return when complete."""
        handle.wait()

    def synchronize(self) -> None:
        """Nothing is left running after `wait`."""

    def barrier(self) -> None:
        """Return when every rank has called it."""
        self._distributed.barrier()

    def max_over_ranks(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Largest value of any rank, element by element."""
        largest = self._torch.from_numpy(values.copy()).to(self._device)
        self._distributed.all_reduce(largest, op=self._distributed.ReduceOp.MAX)
        out: NDArray[np.float64] = largest.cpu().numpy()
        return out

    def native(self, operation: str, n_elements: int, root: int, dtype: str, source: NDArray[Any]) -> Native:
        """Bind the library's own collective.

        Raises
        ------
        BackendError
            If this operation is not offered.
        """
        memory, other = self.empty(n_elements, dtype), self.empty(n_elements, dtype)
        self.load(memory, source)
        block = n_elements // self.size
        own_block = slice(self.rank * block, (self.rank + 1) * block)
        d = self._distributed
        # Renamed in torch 2.13; the old names warn there.
        scatter = getattr(d, "reduce_scatter_single", None) or d.reduce_scatter_tensor
        gather = getattr(d, "all_gather_single", None) or d.all_gather_into_tensor
        offers: dict[str, tuple[Callable[[], Any], Array]] = {
            "all_reduce": (lambda: d.all_reduce(memory), memory),
            "reduce_scatter": (lambda: scatter(other[:block], memory), other[:block]),
            "all_gather": (lambda: gather(other, memory[own_block]), other),
            "broadcast": (lambda: d.broadcast(memory, root), memory),
            "reduce": (lambda: d.reduce(memory, root), memory),
            "all_to_all": (lambda: d.all_to_all_single(other, memory), other),
        }
        if operation not in offers:
            raise BackendError(f"{self.name} is not asked for {operation}")
        run, result = offers[operation]
        return Native(run, lambda: self.load(memory, source), result)

    def abort(self) -> None:
        """End this process at once; the others see the connection break."""
        import os

        os._exit(1)

    def close(self) -> None:
        """Leave the process group."""
        self._distributed.destroy_process_group()


class NCCLTransport(GlooTransport):
    """NCCL: messages are posted in groups, each as large as what lies between two waits.

    Operations of NCCL run in the order of a stream, so a receive that was started by itself would keep a send behind it
    from starting; in a group they run at once. No receive is posted ahead of its turn: then whatever is in an
    earlier group has a smaller number in the program, and the argument of execute.py holds.
    """

    name = "nccl"
    look_ahead = 0

    def __init__(self) -> None:
        self._posted: list[tuple[_Message, Any]] = []
        super().__init__()

    def _choose_device(self, meeting: Rendezvous) -> str:
        n_devices = self._torch.cuda.device_count()
        if meeting.ranks_per_host > n_devices:
            raise BackendError(f"nccl needs a GPU for each rank: {meeting.ranks_per_host} ranks, {n_devices} GPUs here")
        self._torch.cuda.set_device(meeting.local_rank)
        return f"cuda:{meeting.local_rank}"

    def isend(self, array: Array, peer: int, tag: int) -> Any:
        """Put a send into the group."""
        return self._post(self._distributed.isend, array, peer, tag)

    def irecv(self, array: Array, peer: int, tag: int) -> Any:
        """Put a receive into the group."""
        return self._post(self._distributed.irecv, array, peer, tag)

    def _post(self, call: Any, array: Array, peer: int, tag: int) -> _Message:
        message = _Message()
        self._posted.append((message, self._distributed.P2POp(call, array, peer, tag=tag)))
        return message

    def wait(self, handle: Any) -> None:
        """Start the group of the message, if it has not started, and wait for it."""
        if handle.works is None:
            works = self._distributed.batch_isend_irecv([operation for _, operation in self._posted])
            # NCCL gives one work for the whole group; others give one for each message.
            for k, (message, _) in enumerate(self._posted):
                message.works = works if len(works) != len(self._posted) else works[k : k + 1]
            self._posted = []
        for work in handle.works:
            work.wait()

    def synchronize(self) -> None:
        """Return when the device is idle."""
        if self._device != "cpu":
            self._torch.cuda.synchronize()


class _Message:
    """A message that has been posted; `works` once its group has started."""

    __slots__ = ("works",)

    def __init__(self) -> None:
        self.works: list[Any] | None = None
