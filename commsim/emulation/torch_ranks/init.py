"""``init_process_group`` of a rank: whatever backend the program names, it gets the emulated network."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from torch import distributed
from torch.distributed import distributed_c10d

from commsim.core.errors import InputError
from commsim.emulation.current import current_rank
from commsim.emulation.rank import ProcessRank
from commsim.emulation.torch_ranks.named_group import NAME

from .group import EmulatedGroup

ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
__all__ = ["replace_init"]


def replace_init() -> Callable[[], None]:
    """Register the backend, and let every ``init_process_group`` of the program use it; return what takes it back."""
    original = distributed_c10d.init_process_group
    distributed.Backend.register_backend(NAME, _create, devices=["cpu"])
    for name, value in ADDRESS.items():
        os.environ.setdefault(name, value)

    def init_process_group(backend: Any = None, *_: Any, **given: Any) -> None:  # noqa: ARG001 - any backend
        from torch.optim.optimizer import register_optimizer_step_post_hook  # torch is whole by now

        rank = current_rank()
        if not isinstance(rank, ProcessRank):
            raise InputError("torch.distributed has one rank for each process: use --ranks-as processes")
        for name, own in (("rank", rank.number), ("world_size", rank.n_ranks)):
            if given.get(name, -1) not in (-1, own):
                raise InputError(
                    f"init_process_group has {name}={given[name]}, but this is rank {rank.number} of {rank.n_ranks}"
                )
        original(NAME, store=distributed.HashStore(), rank=rank.number, world_size=rank.n_ranks)
        register_optimizer_step_post_hook(lambda *_: rank.end_step())

    def put(function: Any) -> None:
        for module in (distributed, distributed_c10d, sys.modules.get("torch.distributed.device_mesh")):
            if module is not None and hasattr(module, "init_process_group"):
                setattr(module, "init_process_group", function)  # noqa: B010 - not in torch's types

    put(init_process_group)
    return lambda: put(original)


def _create(store: Any, rank: int, size: int, timeout: Any) -> EmulatedGroup:  # noqa: ARG001 - the interface of torch
    return EmulatedGroup(rank, size)
