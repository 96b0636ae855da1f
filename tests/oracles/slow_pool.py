"""One switch with values in its registers: it carries out at once what the rule of aggregation says.

Slow and plain. The live switch is compared with it, and tests and worked examples are driven through it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from switch_model.arithmetic_kernel import add, add_saturating, overwrite, round_to_bfloat16
from switch_model.slot_kernel import (
    ADD,
    COLLISION,
    DUPLICATE,
    MAX_CHILDREN,
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


class Packet(NamedTuple):
    """A packet that leaves the switch.

    Parameters
    ----------
    destination : int
        A child, or PARENT.
    values : int32[k] or float32[k]
        Its values.
    exponent : int
        The largest of those that contributed.
    children : int
        Bits of the workers whose values it holds, where slots are shared; else 0.
    collided : bool
        Whether its slot belonged to another fragment.
    """

    destination: int
    values: NDArray[Any]
    exponent: int
    children: int = 0
    collided: bool = False


class Pool:
    """Slots of one switch, for one job when they are reserved, for all jobs when they are shared.

    Parameters
    ----------
    system : System
        Elements of a packet, slots, versions, arithmetic.
    fan_in : int
        Children; with shared slots they are the workers 0..fan_in-1 unless `everyone` says otherwise.
    has_parent : bool
        Whether sums go up, or are results. Always up where sums end at a parameter server.
    everyone : int, optional
        Bits of the workers below this switch, for shared slots.

    Attributes
    ----------
    slots : SLOT_ROW[pool_size * versions]
        State; the two versions of a slot stand side by side.
    registers : int32[len(slots), k] or float32[len(slots), k]
        Sums.
    exponents : int32[len(slots)]
        The largest of each round.
    action : int
        What the rule said about the last packet.
    """

    def __init__(self, system: System, fan_in: int, has_parent: bool = False, everyone: int | None = None) -> None:
        if not 1 <= fan_in <= MAX_CHILDREN:
            raise InputError(f"a switch has 1 to {MAX_CHILDREN} children, got {fan_in}")
        n = system.pool_size * system.versions
        self.system, self.fan_in, self.has_parent = system, fan_in, has_parent or system.server
        self.everyone = (1 << fan_in) - 1 if everyone is None else everyone
        self.slots = np.zeros(n, SLOT_ROW)
        self.registers = np.zeros((n, system.elements), np.float32 if system.arithmetic == "float" else np.int32)
        self.exponents = np.zeros(n, np.int32)
        self.action = 0

    def contribution(self, slot: int, version: int, child: int, values: ArrayLike, exponent: int = 0) -> list[Packet]:
        """Handle a child's packet in a reserved slot; return what leaves the switch.

        Raises
        ------
        InputError
            If slot, version or child do not exist, or the values are of another type or too many.
        """
        at, shadow = self._place(slot, version)
        if not 0 <= child < self.fan_in:
            raise InputError(f"a child is 0 to {self.fan_in - 1}, got {child}")
        values = self._checked(values)
        self.action = contribute(self.slots, at, shadow, child, self.fan_in, self.has_parent)
        return self._carry_out(at, values, exponent, child)

    def result(self, slot: int, version: int, values: ArrayLike, exponent: int = 0) -> list[Packet]:
        """Handle a packet from the parent in a reserved slot; return one packet for each child."""
        at, _ = self._place(slot, version)
        values = self._checked(values)
        self.action = take_result(self.slots, at)
        return self._carry_out(at, values, exponent, 0)

    def claim(self, slot: int, key: int, children: int, values: ArrayLike, resent: bool = False) -> list[Packet]:
        """Handle a packet of fragment `key`, with the values of the workers `children`, in a shared slot."""
        at, _ = self._place(slot, 0)
        values = self._checked(values)
        if key < 1:
            raise InputError(f"the key of a fragment is positive, got {key}")
        row = self.slots[at]
        union = children | (int(row["seen"]) if row["key"] == key else 0)
        self.action = claim(self.slots, at, key, np.uint64(children), np.uint64(self.everyone), resent)
        if self.action & (OVERWRITE | ADD | DUPLICATE):
            return [packet._replace(children=union) for packet in self._carry_out(at, values, 0, 0)]
        return [Packet(PARENT, values, 0, children, bool(self.action & COLLISION))]

    def acknowledge(self, slot: int, key: int, values: ArrayLike) -> list[Packet]:
        """Handle a fragment's result on its way down, which frees its slot; return one packet for each child."""
        at, _ = self._place(slot, 0)
        values = self._checked(values)
        self.action = release(self.slots, at, key)
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
        if not 0 <= slot < self.system.pool_size or not 0 <= version < versions:
            raise InputError(f"{self.system.name} has slots 0 to {self.system.pool_size - 1} in {versions} versions, "
                             f"got slot {slot}, version {version}")  # fmt: skip
        at = slot * versions + version
        return at, slot * versions + (version + 1) % versions

    def _checked(self, values: ArrayLike) -> NDArray[Any]:
        array = np.asarray(values)
        if array.ndim != 1 or len(array) > self.system.elements:
            raise InputError(f"a packet has at most {self.system.elements} values, got {list(array.shape)}")
        if array.dtype != self.registers.dtype:
            raise InputError(f"registers hold {self.registers.dtype}, got {array.dtype}")
        return array
