"""Works of torch: calls of an emulated rank that are under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import distributed
from torch.futures import Future

from commsim.emulation.current import current_rank
from commsim.emulation.rank_calls import PendingCall

_IN_BACKWARD = "commsim_works_in_backward"


class EmulatedWork(distributed.Work):  # type: ignore[misc,unused-ignore]
    """Calls under way.

    Parameters
    ----------
    begun : sequence of (PendingCall, callable)
        Calls, each with the function of its result that fills the tensors.
    made : list of torch.Tensor
        Tensors that are filled.
    """

    def __init__(self, begun: Sequence[tuple[PendingCall, Callable[[Any], None]]], outputs: list[Any]) -> None:
        super().__init__()
        self._begun, self._made = list(begun), outputs
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
    kept = current_rank().cache.setdefault(_IN_BACKWARD, [])
    if not kept:

        def complete() -> None:
            works, kept[:] = list(kept), []
            for work in works:
                work.wait()

        try:
            torch.autograd.Variable._execution_engine.queue_callback(complete)
        except RuntimeError:
            return False
    kept.append(work)
    return True
