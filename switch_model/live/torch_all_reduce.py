"""``switch_all_reduce(tensor, group)`` for torch through the live switch, and a hook for DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from commsim.core.errors import InputError

from .worker import SwitchGroup

T = TypeVar("T")


def switch_all_reduce(tensor: T, group: SwitchGroup) -> T:
    """Replace a tensor by its sum over all workers of a group, and return it.

    Parameters
    ----------
    tensor : NumPy array or torch tensor, int32 or float32
        Changed in place. A tensor that is not in the processor's memory, or not contiguous, is copied there and back.
    group : SwitchGroup
        Workers of the job.

    Raises
    ------
    InputError
        If it is something else; and as :meth:`SwitchGroup.all_reduce`.
    BackendError
        If a worker or the switch has failed.
    """
    if isinstance(tensor, np.ndarray):
        _reduce_array(tensor, group)
        return tensor
    if not hasattr(tensor, "detach"):
        raise InputError(f"expected a NumPy array or a torch tensor, got {type(tensor).__name__}")
    _reduce_torch(tensor, group)
    return tensor


def _reduce_array(array: np.ndarray[Any, Any], group: SwitchGroup) -> None:
    if array.flags.c_contiguous:
        group.all_reduce(array, out=array)
    elif not array.flags.writeable:
        raise InputError("an array that is reduced in place must be writeable")
    else:
        array[...] = group.all_reduce(array)


def _reduce_torch(tensor: Any, group: SwitchGroup) -> None:
    values = tensor.detach()
    if values.device.type == "cpu" and values.is_contiguous():
        array = values.numpy()
        group.all_reduce(array, out=array)
    else:
        import torch

        values.copy_(torch.from_numpy(group.all_reduce(values.cpu().numpy())))


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
