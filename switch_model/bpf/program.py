"""The kernel's program as text, written for a system, and the records that it shares with us, as NumPy types.

References
----------
`aggregate.bpf.c.in` beside this file, whose structures these are.

From the program's text to the file that the kernel's loader reads.
"""

from __future__ import annotations

import platform
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import BackendError, InputError
from switch_model import slot_kernel
from switch_model.live import frame_fields_kernel
from switch_model.live.data_plane import MAX_WORKERS
from switch_model.live.frame_fields_kernel import COUNTERS
from switch_model.live.frames import HEADER_BYTES, MAX_SLOTS, type_and_size
from switch_model.system import System

from .commands import output_of

MAX_JOBS = 256  # numbers that fit in a frame
MAPS = ("config", "sources", "jobs", "members", "slots", "counters")
# Of IPv4, UDP and SwitchML: what a port's MTU must hold beside the values.
PACKET_HEADERS = 20 + 8 + HEADER_BYTES
# A probability is a number below this one in the kernel, which knows no fractions.
ALL_CHANCES = 1 << 32

CONFIG = np.dtype(
    [("address", ">u4"), ("port", ">u2"), ("_", np.uint16), ("drop_in", np.uint32), ("drop_out", np.uint32)]
)
SOURCE = np.dtype([("address", ">u4"), ("port", ">u2"), ("_", np.uint16)])
JOB = np.dtype([("fan_in", np.uint32), ("first_slot", np.uint32), ("n_slots", np.uint32)])
MEMBER = np.dtype(
    [("address", ">u4"), ("port", ">u2"), ("_", np.uint16), ("interface", np.uint32), ("to", "u1", 6),
     ("from", "u1", 6)]
)  # fmt: skip

_ACTIONS = ("OVERWRITE", "ADD", "READ", "ALL", "SENDER", "DUPLICATE")
_COUNTED = ("PACKETS_IN", "PACKETS_OUT", "FIRST", "ADDED", "DUPLICATES", "COMPLETE", "ANSWERED", "WRONG_LENGTH",
            "UNKNOWN_SOURCE", "WRONG_TYPE", "WRONG_JOB", "NO_SUCH_SLOT", "OUT_OF_SEQUENCE", "INJECTED_IN",
            "INJECTED_OUT", "NOT_SENT", "WRONG_TAG")  # fmt: skip


def slot_type(elements: int) -> np.dtype[Any]:
    """Return the record of a slot: both versions of it, under one lock."""
    return np.dtype(
        [("lock", np.uint32), ("seen", np.uint32, 2), ("left", np.uint32, 2), ("tsi", np.uint32, 2),
         ("exponents", np.int8, (2, 2)), ("values", np.uint32, (2, elements))]
    )  # fmt: skip


def value_types(elements: int) -> dict[str, np.dtype[Any]]:
    """Return the record that each map holds."""
    number = np.dtype(np.uint32)
    counters = np.dtype((np.uint64, len(COUNTERS)))
    types = (CONFIG, number, JOB, MEMBER, slot_type(elements), counters)
    return dict(zip(MAPS, types, strict=True))


def source_for(system: System) -> str:
    """Write the program for a system.

    Parameters
    ----------
    system : System
        Its elements per packet and its pool are the program's; the program has two versions of each reserved slot, sums
        that wrap around, and packets that are messages.

    Returns
    -------
    str
        C.

    Raises
    ------
    InputError
        If the system is of another kind, or too large.
    """
    kind = system.versions, system.shared, system.arithmetic, system.element_bytes, system.packets_per_message
    if kind != (2, False, "wrap", 4, 1) or system.server:
        raise InputError(
            f"the kernel's switch has reserved slots of int32 in two versions and one packet a message, "
            f"as switchml_udp; got {system.name}"
        )
    if system.pool_size > MAX_SLOTS:
        raise InputError(f"a pool has 1 to {MAX_SLOTS} slots, got {system.pool_size}")
    template = files(__package__).joinpath("aggregate.bpf.c.in").read_text()
    return template.replace("@PARAMETERS@", "\n".join(f"#define {n} {v}" for n, v in _parameters(system).items()))


def _parameters(system: System) -> dict[str, int]:
    facts = {"ELEMENTS": system.elements, "POOL_SIZE": system.pool_size, "MAX_WORKERS": MAX_WORKERS,
             "MAX_JOBS": MAX_JOBS, "TYPE_AND_SIZE": type_and_size(system.elements)}  # fmt: skip
    actions = {name: getattr(slot_kernel, name) for name in _ACTIONS}
    counted = {name: getattr(frame_fields_kernel, name) for name in _COUNTED}
    return {**facts, **actions, **counted, "N_COUNTERS": len(COUNTERS)}


def build(system: System, folder: Path) -> Path:
    """Compile the program for a system.

    Parameters
    ----------
    system : System
        See `program.source_for`.
    folder : Path
        Exists; gets the source and the object file.

    Returns
    -------
    Path
        The object file.

    Raises
    ------
    BackendError
        If clang or the headers of the kernel and of libbpf are missing.
    """
    source, target = folder / "aggregate.bpf.c", folder / "aggregate.bpf.o"
    source.write_text(source_for(system))
    if shutil.which("clang") is None:
        raise BackendError("no clang here (packages clang, llvm, libbpf-dev)")
    # the kernel's headers of this machine's own kind are not found for the target bpf otherwise
    include = f"-I/usr/include/{platform.machine()}-linux-gnu"
    output_of(["clang", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", include, "-c", str(source),
               "-o", str(target)])  # fmt: skip
    return target
