"""The system call bpf(2): maps of the kernel read and written, and a program run on a packet of ours."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from pathlib import Path

from commsim.core.errors import BackendError

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_CREATE, _LOOKUP, _UPDATE, _DELETE, _RUN, _PROGRAM_BY_ID, _MAP_BY_ID = 0, 1, 2, 3, 10, 13, 14
_ATTRIBUTE_BYTES = 128
WITH_LOCK = 4


def available() -> bool:
    """Whether we know the call's number on this machine."""
    return platform.machine() in _NUMBERS


class KernelObject:
    """An object of the kernel that stays as long as a process has it open."""

    def __init__(self, command: int, number: int) -> None:
        self._descriptor = _call(command, struct.pack("=I", number))

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Map(KernelObject):
    """A map of the kernel, found by its number.

    Parameters
    ----------
    number : int
        Number of the map.
    value_bytes : int
        Size of one processor's value.
    per_cpu : bool
        Whether each processor has its own values.
    """

    def __init__(self, number: int, value_bytes: int, per_cpu: bool = False) -> None:
        super().__init__(_MAP_BY_ID, number)
        self.value_bytes = -(-value_bytes // 8) * 8 * possible_cpus() if per_cpu else value_bytes

    def read(self, key: bytes, flags: int = 0) -> bytes:
        """Return a value; of all processors, one after another, if each has its own."""
        value = ctypes.create_string_buffer(self.value_bytes)
        self._call(_LOOKUP, key, value, flags)
        return value.raw

    def write(self, key: bytes, value: bytes, flags: int = 0) -> None:
        """Set a value."""
        self._call(_UPDATE, key, ctypes.create_string_buffer(value, len(value)), flags)

    def remove(self, key: bytes) -> None:
        """Remove an entry, which must exist."""
        self._call(_DELETE, key, None, 0)

    def _call(self, command: int, key: bytes, value: ctypes.Array[ctypes.c_char] | None, flags: int) -> None:
        name = ctypes.create_string_buffer(key, len(key))
        where = ctypes.addressof(value) if value is not None else 0
        _call(command, struct.pack("=IxxxxQQQ", self._descriptor, ctypes.addressof(name), where, flags))


class BpfProgram(KernelObject):
    """A loaded program, found by its number."""

    def __init__(self, number: int) -> None:
        super().__init__(_PROGRAM_BY_ID, number)

    def run(self, packet: bytes) -> tuple[int, bytes]:
        """Run it on a packet as if it had come in on the loopback device; return what it said, and the packet after."""
        came = ctypes.create_string_buffer(packet, len(packet))
        left = ctypes.create_string_buffer(len(packet) + 256)
        attribute = struct.pack("=IIIIQQI", self._descriptor, 0, len(packet), len(left), ctypes.addressof(came),
                                ctypes.addressof(left), 1)  # fmt: skip
        words = ctypes.create_string_buffer(attribute, _ATTRIBUTE_BYTES)
        _call(_RUN, words)
        verdict, _, n = struct.unpack_from("=iII", words, 4)
        return verdict, left.raw[:n]


def try_to_make_a_map() -> None:
    """Make a map of one number, and forget it.

    Raises
    ------
    BackendError
        If the kernel does not let us.
    """
    array, key_bytes, value_bytes, entries = 2, 4, 8, 1
    os.close(_call(_CREATE, struct.pack("=IIII", array, key_bytes, value_bytes, entries)))


def possible_cpus() -> int:
    """Return how many processors a map has values for."""
    last = Path("/sys/devices/system/cpu/possible").read_text().strip().split(",")[-1]
    return int(last.split("-")[-1]) + 1


def _call(command: int, attribute: bytes | ctypes.Array[ctypes.c_char]) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise BackendError(f"the number of the system call bpf is not known on {platform.machine()}")
    words = attribute
    if isinstance(words, bytes):
        words = ctypes.create_string_buffer(words, _ATTRIBUTE_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(number), command, words, _ATTRIBUTE_BYTES))
    if result < 0:
        raise BackendError(f"the kernel refuses bpf({command}): {os.strerror(ctypes.get_errno())}")
    return result
