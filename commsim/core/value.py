"""What the four values share: frozen arrays, names in runs, and comparison by content."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from commsim.extensions import house

from .errors import InputError


def freeze(
    array: Any, dtype: Any, shape: tuple[int, ...] | None = None, name: str = "an array", *, repeats: bool = False
) -> np.ndarray[Any, Any]:
    """Return a read-only copy of `array` as `dtype`, broadcast to `shape` when given.

    Parameters
    ----------
    array : array_like
        Numbers.
    dtype : dtype
        Data type of the result.
    shape : tuple of int, optional
        Shape of the result; a scalar is repeated.
    name : str
        Name used in messages.
    repeats : bool
        Whether a scalar is repeated without memory, by strides of 0: for columns of millions that are mostly constant,
        and that no kernel takes, since it would be compiled once more for them.

    Raises
    ------
    InputError
        If `array` holds no numbers, a number that `dtype` would change, or does not broadcast to `shape`.
    """
    values = np.asarray(array)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers, got {values.dtype} {_shortened(array)}")
    fits = values.dtype == dtype and values.flags.c_contiguous and shape in (None, values.shape)
    if fits and values is array and values.base is None and not values.flags.writeable:
        own: np.ndarray[Any, Any] = values
        return own  # of a value that is made anew with other fields: links are hundreds of megabytes
    if repeats and values.shape == shape and values.size and not any(values.strides):
        values = values.flat[0]  # repeated already
    with np.errstate(invalid="ignore"):
        out = np.array(values, dtype=dtype, copy=True, order="C")
    if out.dtype.kind in "biu" and not np.array_equal(out, values):
        bad = values[out != values].flat[0]
        raise InputError(f"{name} must hold values that fit {out.dtype.name}, got {bad}")
    if shape is not None and out.shape != shape:
        if out.ndim and out.shape != (1,) * out.ndim:
            raise InputError(f"{name} must have the shape {shape}, got {out.shape}")
        value = out.reshape(-1)[0]
        if repeats:
            return np.broadcast_to(value, shape)
        # fresh zeros take no memory as long as they are only read
        out = np.full(shape, value) if any(value.tobytes()) else np.zeros(shape, dtype)
    out.setflags(write=False)
    return out


class Shown:
    """Mixin of what a notebook shows as tables and pictures."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return what a notebook shows; packages above this one draw it, and are imported then."""
        shown: str = house().services["html of a value"](self)
        return shown


class Value(Shown):
    """Mixin of a frozen dataclass that may hold arrays: equal when every field is equal that is compared at all."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self._compared())

    def __hash__(self) -> int:
        return hash(tuple(_hashable(getattr(self, name)) for name in self._compared()))

    def _compared(self) -> list[str]:
        return [f.name for f in fields(self) if f.compare]  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, because arrays come out of a pickle (and of copy.copy) writeable.
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)  # type: ignore[arg-type]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


def _hashable(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return tuple(sorted(x.items())) if isinstance(x, dict) else x
    if x.dtype.names:  # field by field, because the padding between fields is no part of the value
        return tuple(x[name].tobytes() for name in x.dtype.names)
    return (x + 0.0 if x.dtype.kind == "f" else x).tobytes()  # -0.0 equals 0.0, so both must hash alike


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
