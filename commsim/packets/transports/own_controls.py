"""Congestion control of a user's file: a function that sets window or rate of a message, which the engine calls.

It is told what happens to the message, one event a call: an answer, a loss, and if it asks for them packets that are
sent, notifications of marks, and timers of its own.

To add one, write a file with a function decorated by :func:`congestion_control`, and name it, ``--transport FILE.py``;
or put that file beside this one, and its name is a transport. See ``docs/howto_extend.md``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.own_files import blamed, resolve
from commsim.core.jit import Kernel
from commsim.core.registry import Registry
from commsim.core.spec import OWN_FILE, OwnFile, is_own_file, read_arguments

# Numbers of its own that a function may keep for each message, 0 at first.
N_MEMORY = 8
N_TIMERS = 4
# What a function is told of, its `event`.
ACKED, LOST, NOTIFIED, SENT, TIMER = range(5)
TOLD_ROW = np.dtype(
    [
        ("now", np.float64),  # s: of the event
        ("event", np.int64),  # ACKED, ...
        ("timer", np.int64),  # which one fires, or -1
        ("delay", np.float64),  # s: that the packet which is answered queued; of a lost one, of the last before it
        ("rtt", np.float64),  # s: with that delay,
        ("base_rtt", np.float64),  # and without any
        ("acked", np.float64),  # bytes that arrived since the last answer
        ("marked", np.float64),  # 1 if a switch marked the packet
        ("lost", np.float64),  # 1 if it was lost or trimmed
        ("sent", np.float64),  # bytes on the wire of the packet that is being sent
        ("in_flight", np.float64),  # bytes
        ("packet", np.float64),  # bytes on the wire of a full packet, the least window
        ("line_rate", np.float64),  # bytes/s: of the hosts' links
        ("window", np.float64),  # bytes: what the function sets,
        ("rate", np.float64),  # bytes/s: or this, where it paces
        ("memory", np.float64, (N_MEMORY,)),
        ("timers", np.float64, (N_TIMERS,)),  # s: when each fires, infinity for never; the function sets them
    ],
    align=True,
)

# Row of TOLD_ROW.
Flow: TypeAlias = np.void
Control: TypeAlias = Callable[..., None]
CONTROLS: Registry[None] = Registry("congestion control", "commsim.packets.transports")
# Compiled functions, whose addresses kernels have.
_KEPT: list[Any] = []


@dataclass(frozen=True, slots=True)
class Own:
    """A function that sets windows or rates, and its constants.

    Parameters
    ----------
    function : callable
        Function of a row of ``TOLD_ROW``, and of the constants.
    constants : tuple of float
        In the order of its parameters.
    path : Path
        Its file, for messages.
    paces, sent, like
        Same as in :func:`congestion_control`.
    """

    function: Control
    constants: tuple[float, ...]
    path: Path
    paces: bool = False
    sent: bool = False
    like: str = ""


@overload
def congestion_control(function: Control) -> Control: ...
@overload
def congestion_control(*, paces: bool = ..., sent: bool = ..., like: str = ...) -> Callable[[Control], Control]: ...
def congestion_control(
    function: Control | None = None, *, paces: bool = False, sent: bool = False, like: str = ""
) -> Control | Callable[[Control], Control]:
    """Register a function that sets the window of a message, or its rate, under its own name.

    Parameters
    ----------
    function : callable
        It is given a row of ``TOLD_ROW`` for each acknowledgement and each loss, and sets ``flow["window"]``. Further
        parameters are constants, which have annotations. Numba compiles it: arithmetic, ``if``, loops, ``math``.
    paces : bool
        Whether it sets ``flow["rate"]``: a message then begins at the rate of its host's link, without a window.
    sent : bool
        Whether it is told of each packet that the message sends, before that goes.
    like : str
        Built-in transport that all else is as in, ``NAME:key=value,...``: whether a rate is set, acknowledgements,
        usual queues and paths. Of ``dcqcn``, notifications that the receiver's NIC sends of marks.
    """
    register = functools.partial(_register, paces=paces, sent=sent, like=like)
    return register if function is None else register(function)


def _register(function: Control, **metadata: bool | str) -> Control:
    CONTROLS.add(function, **metadata)
    return function


def own_control(text: str) -> Own | None:
    """Read a transport that is a file, or one that was registered; None where the name is none of these.

    Raises
    ------
    InputError
        If the text may not be executed, the file is wrong, or a constant is.
    """
    if not is_own_file(text):
        return _read(text, None) if text.split(":")[0] in CONTROLS else None
    match = OWN_FILE.fullmatch(text)
    if match is None or not isinstance(text, OwnFile):  # which `resolve` refuses
        return _read.__wrapped__(text, None)
    with contextlib.suppress(OSError):
        state = os.stat(match[1])  # noqa: PTH116 - a file that has changed is executed again
        return _read(text, (str(Path(match[1]).resolve()), state.st_mtime_ns, state.st_size))
    return _read.__wrapped__(text, None)


@functools.lru_cache(maxsize=64)
def _read(text: str, _state: tuple[str, int, int] | None) -> Own:
    entry, raw = resolve(CONTROLS, text)
    first = next(iter(entry.parameters), "flow")
    values = read_arguments(entry.build, raw, (first,), name=entry.name)
    names = [name for name in entry.parameters if name != first]
    constants = [values.get(name, entry.parameters[name].default) for name in names]
    if wrong := [name for name, value in zip(names, constants, strict=True) if not isinstance(value, int | float)]:
        raise InputError(f"{text}: {wrong[0]} must be a number")
    function = inspect.unwrap(entry.build)
    return Own(function, tuple(map(float, constants)), Path(function.__code__.co_filename), **entry.metadata)


@functools.lru_cache(maxsize=64)
def address_of(own: Own) -> int:
    """Compile a function, and return its address for :func:`commsim.core.jit.call_at`.

    Raises
    ------
    InputError
        If Numba cannot compile it; names the file.
    """
    function, constants = own.function, own.constants
    numba = importlib.import_module("numba")
    if numba.config.DISABLE_JIT:
        address = len(Kernel.functions) + 1
    else:
        carray, compiled = numba.carray, numba.njit(error_model="numpy")(function)

        def entry(pointer: Any) -> None:
            compiled(carray(pointer, 1)[0], *constants)

        with blamed(own.path):
            kind = numba.types.void(numba.types.CPointer(numba.from_dtype(TOLD_ROW)))
            _KEPT.append(numba.cfunc(kind)(entry))
        address = int(_KEPT[-1].address)
    Kernel.functions[address] = lambda row: function(row, *constants)
    return address
