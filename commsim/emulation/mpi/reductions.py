"""Operators of MPI: on arrays, element by element, and on objects."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .datatypes import Datatype, memory_of
from .refusals import Refusing

__all__ = ["OPERATORS", "Op"]


class Op(metaclass=Refusing):
    """An operator.

    Parameters
    ----------
    name : str
        MPI's name, without ``MPI_``; empty for one of the user's.
    of_objects : callable
        Function of two objects; for one of the user's, MPI's function of two buffers and a datatype.
    of_arrays : callable, optional
        Function of (target, part) that reduces in place.
    commutes : bool
        Whether the order of ranks does not matter.
    """

    def __init__(
        self,
        name: str,
        of_objects: Callable[..., Any],
        of_arrays: Callable[[Any, Any], None] | None = None,
        commutes: bool = True,
    ) -> None:
        self.name, self.of_objects, self.of_arrays, self.commutes = name, of_objects, of_arrays, commutes

    @classmethod
    def Create(cls, function: Callable[..., Any], commute: bool = False) -> Op:  # noqa: N802
        """Return an operator of the user's: a function of (in, inout, datatype)."""
        return cls("", function, commutes=commute)

    def Free(self) -> None:  # noqa: N802
        """Do nothing: memory is Python's."""

    def Is_commutative(self) -> bool:  # noqa: N802
        """Whether the order of ranks does not matter."""
        return self.commutes

    def Is_predefined(self) -> bool:  # noqa: N802
        """Whether it is MPI's."""
        return bool(self.name)

    is_commutative, is_predefined = property(Is_commutative), property(Is_predefined)

    def __call__(self, left: Any, right: Any) -> Any:
        """Reduce two objects."""
        return self.of_objects(left, right) if self.name else self.of_objects(left, right, None)

    def Reduce_local(self, inbuf: Any, inoutbuf: Any) -> None:  # noqa: N802
        """Reduce (inbuf op inoutbuf) into the second, without a message."""
        part, target = memory_of(inbuf), memory_of(inoutbuf)
        self.apply(target.whole, part.whole, target.datatype)

    def apply(self, target: Any, part: Any, datatype: Datatype) -> None:
        """Reduce (part op target) into the target, arrays of a datatype."""
        if self.of_arrays is not None:
            self.of_arrays(target, part)
        else:
            self.of_objects(memoryview(part.view(np.uint8)), memoryview(target.view(np.uint8)), datatype)


def _in_place(ufunc: np.ufunc, target: Any, part: Any) -> None:
    ufunc(target, part, out=target)


def _by(ufunc: np.ufunc) -> Callable[[Any, Any], None]:
    """Return the function that reduces arrays in place element by element, which a process can be sent."""
    return functools.partial(_in_place, ufunc)


def _first_of(is_better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """Return the choice of MAXLOC or MINLOC: of equal values that with the smaller place."""

    def choose(left: Any, right: Any) -> Any:
        (a, i), (b, j) = left, right
        if is_better(a, b):
            return a, i
        return (b, j) if is_better(b, a) else (a, min(i, j))

    return choose


OPERATORS = {
    op.name: op
    for op in (
        Op("SUM", operator.add, _by(np.add)),
        Op("PROD", operator.mul, _by(np.multiply)),
        Op("MAX", lambda left, right: right if right > left else left, _by(np.maximum)),
        Op("MIN", lambda left, right: right if right < left else left, _by(np.minimum)),
        Op("LAND", lambda left, right: bool(left) and bool(right), _by(np.logical_and)),
        Op("LOR", lambda left, right: bool(left) or bool(right), _by(np.logical_or)),
        Op("LXOR", lambda left, right: bool(left) != bool(right), _by(np.logical_xor)),
        Op("BAND", operator.and_, _by(np.bitwise_and)),
        Op("BOR", operator.or_, _by(np.bitwise_or)),
        Op("BXOR", operator.xor, _by(np.bitwise_xor)),
        Op("MAXLOC", _first_of(operator.gt)),
        Op("MINLOC", _first_of(operator.lt)),
    )
}
