"""Two functions of Numba's that it calls very often, in quicker versions: the same answers."""

from __future__ import annotations

from typing import Any

from numba.core import ir
from numba.core.base import BaseContext

# Kinds of values within an instruction that hold no variable, as they are met.
_without: set[type] = set()
_sizes: dict[tuple[int, str], int] = {}


def list_vars_within(self: ir.Inst, value: Any) -> list[ir.Var]:  # noqa: ARG001 - a method
    """List the variables of an instruction in order; Numba's makes a list for each value, and asks five kinds of each."""
    found: list[ir.Var] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[ir.Var]) -> None:
    kind = type(value)
    if kind in _without:
        return
    if kind is ir.Var:
        found.append(value)
    elif isinstance(value, ir.Var):
        found.append(value)
    elif isinstance(value, ir.Inst):
        found += value.list_vars()
    elif isinstance(value, list | tuple):
        for one in value:
            _collect(one, found)
    elif isinstance(value, dict):
        for one in value.values():
            _collect(one, found)
    else:
        _without.add(kind)


def abi_size(self: Any, kind: Any) -> int:
    """Return the size of a type of LLVM in bytes; Numba's has LLVM read a module for each question."""
    key = id(self), str(kind)
    found = _sizes.get(key)
    if found is None:
        found = _sizes[key] = _usual_abi_size(self, kind)
    return found


_usual_abi_size = BaseContext.get_abi_sizeof


def install() -> None:
    """Replace Numba's."""
    ir.Inst._rec_list_vars = list_vars_within  # type: ignore[method-assign]
    BaseContext.get_abi_sizeof = abi_size  # type: ignore[method-assign]
