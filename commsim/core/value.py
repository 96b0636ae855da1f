"""What the four values share: frozen arrays, comparison by content, and names of nodes in runs, written when read."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from commsim.extensions import house

from .errors import InputError

DIGITS = frozenset("0123456789")
# Names are all written out once one in so many was read: one by one they take twenty times as long.
PART_READ = 16
# Names of more nodes are not written out when a network is built.
MANY_NAMES = 1 << 16


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


class NumberedNames(Sequence[str]):
    """Names in runs, such as ``h0, h1, …`` and ``m0.gpu0, m0.gpu1, m1.gpu0, …``; equal to the tuple of them.

    A million machines' names are some hundred megabytes as text and few are read, so they are made on demand.

    Parameters
    ----------
    runs : sequence of (str, int, tuple of str)
        Prefix, how many numbers from 0 on, and what follows a number: one name for each.
    """

    __slots__ = ("_all", "_ends", "_n_read", "runs")

    def __init__(self, runs: Sequence[tuple[str, int, tuple[str, ...]]]) -> None:
        self.runs = tuple((prefix, n, suffixes) for prefix, n, suffixes in runs if n > 0 and suffixes)
        self._ends = tuple(itertools.accumulate(n * len(suffixes) for _, n, suffixes in self.runs))
        self._all: tuple[str, ...] | None = None
        self._n_read = 0

    @property
    def differ(self) -> bool:
        """Whether it is plain that all are different and printable; else they have to be compared.

        The first digit of a name then begins its number, and the number's last digit ends it, so that a name says of
        which prefix, number and suffix it is.
        """
        parts = [(prefix, suffix) for prefix, _, suffixes in self.runs for suffix in suffixes]
        return len(set(parts)) == len(parts) and all(
            prefix.isprintable() and suffix.isprintable() and not DIGITS & set(prefix) and suffix[:1] not in DIGITS
            for prefix, suffix in parts
        )

    def after(self, n: int) -> NumberedNames | None:
        """Return all but the first `n`; None where no run begins there."""
        if n not in (0, *self._ends):
            return None
        return NumberedNames(self.runs[bisect.bisect_right(self._ends, n) :])

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            return tuple(map(self.__getitem__, range(*at.indices(len(self)))))
        self._n_read += 1
        if self._all is not None or self._n_read > len(self) // PART_READ:
            return self._written[at]
        i = range(len(self))[at]  # counts from the end, and refuses what is beyond
        run = bisect.bisect_right(self._ends, i)
        prefix, _, suffixes = self.runs[run]
        number, which = divmod(i - (self._ends[run - 1] if run else 0), len(suffixes))
        return f"{prefix}{number}{suffixes[which]}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __contains__(self, name: object) -> bool:
        return name in self._written

    def index(self, name: Any, *bounds: int) -> int:
        """Return the place of a name, as a tuple does."""
        return self._written.index(name, *bounds)

    def __add__(self, other: Sequence[str]) -> Sequence[str]:
        if isinstance(other, NumberedNames):
            return NumberedNames((*self.runs, *other.runs))
        return self._written + tuple(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return self.runs == other.runs or (len(self) == len(other) and self._written == other._written)
        return self._written == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._written)

    def __repr__(self) -> str:
        return repr(self._written)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.runs,)

    @property
    def _written(self) -> tuple[str, ...]:
        if self._all is None:
            parts = [[f"{prefix}{i}{suffix}" for i in range(n) for suffix in suffixes]
                     for prefix, n, suffixes in self.runs]  # fmt: skip
            self._all = tuple(itertools.chain.from_iterable(parts))
        return self._all


class PickedNames(Sequence[str]):
    """Some of numbered names, which are written when they are read, as those are.

    Parameters
    ----------
    names : NumberedNames
        All of them.
    places : int[n]
        Places of those that are picked, in rising order.
    """

    __slots__ = ("names", "places")

    def __init__(self, names: NumberedNames, places: NDArray[np.integer[Any]]) -> None:
        self.names, self.places = names, places

    @property
    def differ(self) -> bool:
        """Whether it is plain that all are different and printable."""
        return self.names.differ

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            return tuple(self.names[i] for i in self.places[at].tolist())
        return self.names[int(self.places[at])]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


def picked_names(names: Sequence[str], places: NDArray[np.integer[Any]]) -> Sequence[str]:
    """Return the names at some places in rising order; of numbered names, which may be many, none is written."""
    if isinstance(names, NumberedNames):
        return PickedNames(names, places)
    return tuple(map(names.__getitem__, places.tolist()))


def node_names(**counts: int) -> Sequence[str]:
    """Names ``h0, h1, …, leaf0, …`` from ``node_names(h=16, leaf=4)``, in that order; a tuple of up to MANY_NAMES."""
    if sum(counts.values()) > MANY_NAMES:
        return NumberedNames([(prefix, n, ("",)) for prefix, n in counts.items()])
    return tuple([f"{prefix}{i}" for prefix, n in counts.items() for i in range(n)])  # faster than one by one


def wrong_name(names: Sequence[Any]) -> str:
    """Say which name is no printable text of some length, or stands there twice; nothing where all are good."""
    if isinstance(names, NumberedNames | PickedNames) and names.differ:
        return ""
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            return f"a node name is printable text, got {name!r}"
    if len(set(names)) == len(names):
        return ""
    seen: set[str] = set()
    twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return f"node name {twice!r} is used twice"
