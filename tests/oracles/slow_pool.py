"""One switch with values in its registers: it carries out at once what the rule of aggregation says.

Slow and plain. The live switch is compared with it, and tests and worked examples are driven through it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from switch_model.arithmetic_kernel import add, add_saturating, overwrite, round_to_bfloat16
from switch_model.slot_kernel import (
    ADD,
    COLLISION,
    DUPLICATE,
    OVERWRITE,
    READ,
    SENDER,
    SLOT_ROW,
    UP,
    claim,
    contribute,
    release,
    take_result,
)  # fmt: skip
from switch_model.system import System

PARENT = -1
N_WORDS = 2  # of 64 workers each


def set_of(workers: int) -> NDArray[np.uint64]:
    """Return a set of workers, given as bits, as the rule keeps it."""
    return np.frombuffer(workers.to_bytes(8 * N_WORDS, "little"), "<u8")


class Packet(NamedTuple):
    """A packet to a child or PARENT: int32[k] or float32[k], and with shared slots the workers' bits it holds."""

    destination: int
    values: NDArray[Any]
    exponent: int  # the largest of those that contributed
    children: int = 0
    collided: bool = False  # its slot belonged to another fragment


class Pool:
    """Slots of one switch, for one job when they are reserved, for all jobs when they are shared.

    `slots` is SLOT_ROW[pool_size * versions], the versions of a slot side by side; `registers` are int32 or
    float32[len(slots), k], `exponents` the largest of each round, `action` what the rule said about the last packet.
    `everyone` are the bits of the workers below, for shared slots; sums go up to a parent or a server, or are results.
    """

    def __init__(self, system: System, fan_in: int, has_parent: bool = False, everyone: int | None = None) -> None:
        n = system.pool_size * system.versions
        self.system, self.fan_in, self.has_parent = system, fan_in, has_parent or system.server
        self.everyone = (1 << fan_in) - 1 if everyone is None else everyone
        self.slots = np.zeros(n, SLOT_ROW)
        self.workers = np.zeros((n + 2, N_WORDS), np.uint64)  # of each slot, of a packet, and all below
        self.workers[n + 1] = set_of(self.everyone)
        self.registers = np.zeros((n, system.elements), np.float32 if system.arithmetic == "float" else np.int32)
        self.exponents = np.zeros(n, np.int32)
        self.action = 0

    def contribution(self, slot: int, version: int, child: int, values: ArrayLike, exponent: int = 0) -> list[Packet]:
        """Handle a child's packet in a reserved slot; return what leaves the switch."""
        at, shadow = self._place(slot, version)
        values = np.asarray(values)
        self.action = contribute(self.slots, at, shadow, child, self.fan_in, self.has_parent)
        return self._carry_out(at, values, exponent, child)

    def result(self, slot: int, version: int, values: ArrayLike, exponent: int = 0) -> list[Packet]:
        """Handle a packet from the parent in a reserved slot; return one packet for each child."""
        at, _ = self._place(slot, version)
        values = np.asarray(values)
        self.action = take_result(self.slots, at)
        return self._carry_out(at, values, exponent, 0)

    def claim(self, slot: int, key: int, children: int, values: ArrayLike, resent: bool = False) -> list[Packet]:
        """Handle a packet of fragment `key`, with the values of the workers `children`, in a shared slot."""
        at, _ = self._place(slot, 0)
        values = np.asarray(values)
        self.workers[len(self.slots)] = set_of(children)
        held, packet, everyone = at, len(self.slots), len(self.slots) + 1
        self.action = claim(self.slots, at, key, self.workers, held, packet, everyone, resent)
        union = int.from_bytes(self.workers[packet].astype("<u8").tobytes(), "little")
        if self.action & (OVERWRITE | ADD | DUPLICATE):
            return [packet._replace(children=union) for packet in self._carry_out(at, values, 0, 0)]
        return [Packet(PARENT, values, 0, children, bool(self.action & COLLISION))]

    def acknowledge(self, slot: int, key: int, values: ArrayLike) -> list[Packet]:
        """Handle a fragment's result on its way down, which frees its slot; return one packet for each child."""
        at, _ = self._place(slot, 0)
        values = np.asarray(values)
        self.action = release(self.slots, at, key, self.workers, at)
        return [Packet(child, values.copy(), 0, self.everyone) for child in range(self.fan_in)]

    def _carry_out(self, at: int, values: NDArray[Any], exponent: int, child: int) -> list[Packet]:
        if self.action & OVERWRITE:
            overwrite(self.registers[at], values)
            self.exponents[at] = exponent
        elif self.action & ADD:
            with np.errstate(over="ignore"):  # uncompiled, NumPy would warn of integers that wrap around
                (add_saturating if self.system.arithmetic == "saturate" else add)(self.registers[at], values)
            self.exponents[at] = max(self.exponents[at], exponent)
        if not self.action & READ:
            return []
        sums = self.registers[at].copy()
        if sums.dtype == np.float32 and self.system.element_bytes == 2:
            round_to_bfloat16(sums.view(np.uint32))
        to = [child] if self.action & SENDER else [PARENT] if self.action & UP else list(range(self.fan_in))
        return [Packet(where, sums.copy(), int(self.exponents[at])) for where in to]

    def _place(self, slot: int, version: int) -> tuple[int, int]:
        versions = self.system.versions
        at = slot * versions + version
        return at, slot * versions + (version + 1) % versions
