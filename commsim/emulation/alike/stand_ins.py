"""What stands in for a GPU while a program runs: streams, events, clocks, and functions that ask for devices."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import distributed
from torch.distributed import device_mesh, distributed_c10d
from torch.optim.optimizer import register_optimizer_step_post_hook

from commsim.emulation.program_clock import ProgramClock
from commsim.emulation.torch_ranks.named_group import NAME

from .fused import fused_rms_norm
from .group import make_group
from .host import Host
from .queued_work import Moment
from .tensors import GPU, stand_in_device

# What makes groups at the moment: torch keeps the first backend of a name for ever.
_current: list[Callable[..., Any]] = []
ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def _streams_of(host: Host) -> dict[str, Any]:
    """Classes and functions of a module of devices, as ``torch.cuda``, on the virtual GPU."""
    gpu: Any = host.gpu  # streams of the two kinds of GPU differ

    class Stream:
        """A stream of the virtual GPU."""

        def __init__(self, *_: Any, **given: Any) -> None:
            self.queue = given["of"] if "of" in given else gpu.stream()
            self.cuda_stream, self.device, self.priority = id(self.queue), torch.device("cpu"), 0

        def wait_stream(self, other: Any) -> None:
            gpu.wait(gpu.record(other.queue), self.queue)

        def wait_event(self, event: Any) -> None:
            event.wait(self)

        def record_event(self, event: Any = None) -> Any:
            event = event or Event()
            event.record(self)
            return event

        def synchronize(self) -> None:
            gpu.synchronize(gpu.record(self.queue))

        def query(self) -> bool:
            return bool(gpu.is_idle(self.queue))

        def __enter__(self) -> Any:
            self._before, gpu.current = gpu.current, self.queue
            return self

        def __exit__(self, *_: object) -> None:
            gpu.current = self._before

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Stream) and other.queue is self.queue

        def __hash__(self) -> int:
            return id(self.queue)

    class Event:
        """A point of a stream."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self.moment: Moment | None = None

        def record(self, stream: Any = None) -> None:
            self.moment = gpu.record(None if stream is None else stream.queue)

        def wait(self, stream: Any = None) -> None:
            if self.moment is not None:
                gpu.wait(self.moment, None if stream is None else stream.queue)

        def synchronize(self) -> None:
            if self.moment is not None:
                gpu.synchronize(self.moment)

        def query(self) -> bool:
            return self.moment is None or self.moment.time is not None

        def elapsed_time(self, end: Any) -> float:
            """Milliseconds between two events."""
            return float(1e3 * (gpu.synchronize(end.moment) - gpu.synchronize(self.moment)))

    @contextlib.contextmanager
    def stream(one: Any) -> Iterator[Any]:
        if one is None:
            yield None
        else:
            with one:
                yield one

    made: dict[int, Any] = {}

    def current_stream(_: Any = None) -> Any:
        return made.setdefault(id(gpu.current), Stream(of=gpu.current))

    def default_stream(_: Any = None) -> Any:
        return made.setdefault(id(gpu.default), Stream(of=gpu.default))

    def synchronize(_: Any = None) -> None:
        gpu.synchronize()

    return {
        "Stream": Stream, "Event": Event, "stream": stream, "StreamContext": stream, "current_stream": current_stream,
        "default_stream": default_stream, "synchronize": synchronize,
    }  # fmt: skip


def _device_functions(n_devices: int, name: str) -> dict[str, Callable[..., Any]]:
    """Functions of ``torch.cuda`` that ask for devices and their memory."""

    def nothing(*_: Any, **__: Any) -> None:
        """Do nothing."""

    zeros = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "current_device")
    ignored = (
        "set_device", "empty_cache", "reset_peak_memory_stats", "manual_seed", "manual_seed_all", "init", "ipc_collect",
    )  # fmt: skip
    return {
        "is_available": lambda: True, "is_initialized": lambda: True, "device_count": lambda: n_devices,
        "get_device_name": lambda *_: name, "is_bf16_supported": lambda *_, **__: True,
        "get_rng_state": lambda *_: torch.get_rng_state(), "set_rng_state": nothing,
        "memory_stats": lambda *_: {}, **dict.fromkeys(ignored, nothing),
        **{zero: lambda *_, **__: 0 for zero in zeros},
    }  # fmt: skip


@contextlib.contextmanager
def stand_ins(host: Host, n_local: int, clock: str) -> Iterator[None]:
    """Replace GPUs, clocks and process groups for as long as a program runs.

    Parameters
    ----------
    host : Host
        Emulated rank.
    n_local : int
        Ranks of one machine.
    clock : str
        Clock that the program reads, a name of ``CLOCKS`` in :mod:`commsim.emulation.program_clock`.
    """
    name = host.compute.gpu.summary if host.compute.gpu is not None else "emulated GPU"
    env = {
        "RANK": f"{host.rank}", "WORLD_SIZE": f"{host.n_ranks}", "LOCAL_RANK": f"{host.rank % n_local}",
        "LOCAL_WORLD_SIZE": f"{n_local}", "GROUP_RANK": f"{host.rank // n_local}", **ADDRESS,
    }  # fmt: skip
    gpu: Any = host.gpu
    streams = _streams_of(host)
    with contextlib.ExitStack() as patches:
        patches.enter_context(mock.patch.dict(os.environ, env))

        def replace(where: Any, **names: Any) -> None:
            for key, value in names.items():
                patches.enter_context(mock.patch.object(where, key, value, create=True))

        replace(torch.cuda, **streams, **_device_functions(n_local, name))
        replace(torch.cpu, **streams)
        replace(torch.nn.functional, rms_norm=fused_rms_norm(host, torch.nn.functional.rms_norm))
        replace(torch.nn.Module, _apply=_applied)
        replace(torch, compile=_not_compiled(host))
        replace(torch.amp.autocast_mode.autocast, __init__=_autocast(torch.amp.autocast_mode.autocast.__init__))
        replace(distributed, init_process_group=_init(host))
        replace(distributed_c10d, init_process_group=distributed.init_process_group)
        replace(device_mesh, init_process_group=distributed.init_process_group)
        replace(
            distributed_c10d,
            _new_process_group_helper=_keeping_groups(host, distributed_c10d._new_process_group_helper),
        )
        replace(device_mesh, init_device_mesh=_mesh(device_mesh.init_device_mesh))
        replace(distributed, init_device_mesh=device_mesh.init_device_mesh)
        if clock == "virtual":
            patches.enter_context(ProgramClock(lambda: host.gpu.clock))
        hook = register_optimizer_step_post_hook(lambda *_: host.steps.append(gpu.record(gpu.default)))
        try:
            yield
        finally:
            hook.remove()
            if distributed.is_initialized():
                distributed.destroy_process_group()


def _applied(module: Any, function: Callable[[Any], Any], recurse: bool = True) -> Any:
    """Convert parameters and buffers of a module; torch would swap their data, of which there is none."""
    known: dict[int, Any] = {}
    for one in module.modules() if recurse else [module]:
        for key, value in one._parameters.items():
            if value is not None:
                with torch.no_grad():
                    result = function(value)
                same = known.setdefault(
                    id(value), value if result is value else torch.nn.Parameter(result, value.requires_grad)
                )
                one._parameters[key] = same
        for key, value in one._buffers.items():
            if value is not None:
                one._buffers[key] = function(value)
    return module


def _init(host: Host) -> Callable[..., None]:
    original = distributed_c10d.init_process_group
    if NAME not in distributed.Backend._plugins:
        distributed.Backend.register_backend(NAME, lambda *given: _current[0](*given), devices=["cpu", GPU])
    _current[:] = [make_group(host)]

    def init_process_group(backend: Any = None, *_: Any, **given: Any) -> None:  # noqa: ARG001 - any backend
        world = given.get("world_size", -1)
        if world not in (-1, host.n_ranks):
            from commsim.core.errors import InputError

            raise InputError(
                f"{host.site()}: init_process_group has world_size={world}, emulated are {host.n_ranks} ranks"
            )
        original(NAME, store=distributed.HashStore(), rank=host.rank, world_size=host.n_ranks)

    return init_process_group


def _keeping_groups(host: Host, original: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the ranks of each group that the program makes, of other ranks too."""

    def new_process_group(size: int, rank: int, ranks: Any, *rest: Any, **given: Any) -> Any:
        if ranks:
            host.groups.append(tuple(ranks))
        return original(size, rank, ranks, *rest, **given)

    return new_process_group


def _mesh(original: Callable[..., Any]) -> Callable[..., Any]:
    def init_device_mesh(device_type: str, *shape: Any, **names: Any) -> Any:
        return original(stand_in_device(device_type), *shape, **names)

    return init_device_mesh


def _autocast(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, device_type: str, *given: Any, **more: Any) -> None:
        original(self, stand_in_device(device_type), *given, **more)

    return init


def _not_compiled(host: Host) -> Callable[..., Any]:
    def compile_nothing(model: Any = None, **_: Any) -> Any:
        host.remark_texts.setdefault(
            "compile", f"{host.site()}: torch.compile is not applied; operators are those of eager mode"
        )
        return model if model is not None else lambda function: function

    return compile_nothing
