"""A communication hook with which torch's DistributedDataParallel sums its gradients in the live switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .all_reduce import switch_all_reduce
from .worker import SwitchGroup


def switch_hook(group: SwitchGroup) -> Callable[[Any, Any], Any]:
    """Return a hook: ``model.register_comm_hook(None, switch_hook(group))``.

    Parameters
    ----------
    group : SwitchGroup
        The same ranks as the model's process group, which still carries what is not gradients.

    Returns
    -------
    function of (state, bucket)
        Gives a future of the bucket's mean over the workers, which is there at once: the switch has been waited for.
    """

    def hook(_: object, bucket: Any) -> Any:
        import torch

        gradients = switch_all_reduce(bucket.buffer(), group)
        future = torch.futures.Future()
        future.set_result(gradients.div_(group.lease.n_workers))
        return future

    hook.__annotations__.clear()  # torch reads them, and takes only its own
    return hook
