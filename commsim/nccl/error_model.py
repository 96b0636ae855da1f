"""How far measured times of healthy machines lie from predicted ones: the distribution, and how alike near sizes are.

The logarithm of measured over predicted time is Student's t, by kind of machines, their number and the size
(``errors.toml``). It is what an operator that nothing is known of is expected to have, given those that are known:
each counts once, whatever the number of its rows, and the fewer there are the wider are the tails. A kind with few
operators leans on the others, inside of machines or between them, and many machines on few of the kind. The
distribution has its own middle, since slow and fast errors need not be alike, and a floor is made of its slow side.

Errors of two sizes of one table are alike. The sizes whose time is mostly latency have a factor in common, those whose
time is mostly bytes another one; what is left is alike for near sizes, and the less so the more octaves lie between.
How wide the two are, and how noisy the runs, differs from operator to operator: some are within 2 % of the prediction,
others 25 % off. Each width is therefore unknown, with the shares that it has among operators (:class:`Likeness`).
`python -m benchmarks.nccl_tables.intervals` finds these numbers.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .intervals import EVERY, intervals, size_class

PATH = Path(__file__).parent / "errors.toml"
# Sizes whose errors are stated apart: the first limit that a size is below names its class. From 64 MiB on a time is
# bytes over a rate on all machines that are known, and operators differ least.
ERROR_SIZES = ((2**16, "small"), (2**26, "middle"), (float("inf"), "large"))
# Machines that share no link: one, or an NVLink domain; few: as many as a leaf switch of 64 ports holds with a NIC for
# each of eight GPUs, so that there are no uplinks; many.
INSIDE, FEW, MANY, MOST_OF_FEW = "inside", "few", "many", 8
# Nine machines are not another kind than eight: over an octave beyond those of few the errors go over to those of many.
LEAST_OF_MANY = 2 * MOST_OF_FEW
# Sizes of one class from which on their middle has lighter tails than one of them.
SEVERAL = 3
# Size from which on a time is taken to be mostly bytes.
BYTES_FROM = 2.0**20
# Size from which on runs differ least, and from which on the noise of their rows is stated apart.
STEADY_FROM = 2.0**24
# What all kinds share: how alike the errors of a table are, and how often each width of them is met.
SHAPE, OCTAVES, WIDTH_KEYS = "shape", "octaves", ("common", "near", "small", "large")
# Angles at which the distribution is summed up: quantiles are then right to six digits.
N_ANGLES = 20_001


class ClassErrors(NamedTuple):
    """Distribution of the errors of one class: of rows, or of the middles of tables.

    Parameters
    ----------
    middle, scale, degrees : float
        Student's t of the logarithm of measured over predicted time.
    n_tables, n_operators : int
        Tables and operators of the class that it is made of; 0 where only others of its span are.
    """

    middle: float
    scale: float
    degrees: float
    n_tables: int = 0
    n_operators: int = 0

    def exceeded(self, share: float) -> float:
        """Return the logarithm that a share exceeds."""
        return self.middle + self.scale * t_quantile(share, self.degrees)

    def share_slower(self, log: float) -> float:
        """Return the share that is slower than a logarithm of the ratio."""
        return t_share((log - self.middle) / self.scale, self.degrees)

    def towards(self, other: ClassErrors, part: float) -> ClassErrors:
        """Return errors that lie a part of the way to others, and are made of the tables of these."""
        rest, square = 1 - part, (1 - part) * self.scale**2 + part * other.scale**2
        middle, degrees = rest * self.middle + part * other.middle, rest * self.degrees + part * other.degrees
        return ClassErrors(middle, math.sqrt(square), degrees, other.n_tables, other.n_operators)


class Width(NamedTuple):
    """A width that errors may have.

    Parameters
    ----------
    scale : float
        Standard deviation.
    share : float
        Part of the operators that have it.
    """

    scale: float
    share: float


Widths = tuple[Width, ...]


class Likeness(NamedTuple):
    """How alike the errors of one table are, and how wide each part of them may be.

    The logarithms of one table are normal around the middle of the class; the covariance of sizes ``i`` and ``j`` is::

        scale_i scale_j (common^2 [same side] + near^2 exp(-(octaves between / octaves)^2 / 2)) + noise_i^2 [i = j]

    where ``scale`` is that of the class. Which ``common``, ``near`` and ``noise`` an operator has is not known, so that
    the density is the mean over all of them, each weighted with the product of its shares.

    Parameters
    ----------
    octaves : float
        Distance of two sizes, in powers of two, at which what near sizes have in common has fallen by ``exp(-1/2)``.
    common : tuple of Width
        What sizes on the same side of ``BYTES_FROM`` have in common, in units of the scale of the class.
    near : tuple of Width
        What near sizes have in common, in the same units.
    small, large : tuple of Width
        Noise of each row below and from ``STEADY_FROM``.
    """

    octaves: float
    common: Widths
    near: Widths
    small: Widths
    large: Widths

    def parts(self, sizes: Sequence[float] | NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the correlations of the two parts for sizes in bytes, float64[n, n] each: in common, and of near ones.

        Two rows of the same size are of the same machines, so that they have both in common.
        """
        at = np.log2(np.maximum(np.asarray(sizes, np.float64), 1.0))
        bytes_count = at >= math.log2(BYTES_FROM)
        apart = at[:, None] - at[None, :]
        return (bytes_count[:, None] == bytes_count[None, :]).astype(float), np.exp(-((apart / self.octaves) ** 2) / 2)

    @property
    def log_shares(self) -> NDArray[np.float64]:
        """Logarithm of the share of each combination, float64[n_common, n_near, n_small, n_large]."""
        common, near, small, large = (np.log([one.share for one in widths]) for widths in self[1:])
        found: NDArray[np.float64] = common[:, None, None, None] + near[:, None, None] + small[:, None] + large
        return found


Classes = Mapping[tuple[str, str, str, str], ClassErrors]


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """Distribution of the logarithm of measured over predicted time, on healthy machines that nothing was fitted on.

    Parameters
    ----------
    kind : str
        Kind of machines whose tables it is of; that of all kinds where `is_of_kind` is false.
    is_of_kind : bool
        Whether there is an interval of this kind. Where there is none, that of all kinds is taken.
    span : str
        How many machines: ``inside``, ``few`` or ``many``.
    rows, middles : mapping of str to ClassErrors
        By class of sizes: errors of a size, and of the slowest middle of a table's sizes of the class.
    likeness : Likeness
        How alike the errors of one table are.
    """

    kind: str
    is_of_kind: bool
    span: str
    rows: Mapping[str, ClassErrors]
    middles: Mapping[str, ClassErrors]
    likeness: Likeness

    def ends(self, size: float) -> tuple[float, float]:
        """Return the logarithms between which 80 % of the rows of a size in bytes lie."""
        low, high = intervals()[self.kind if self.is_of_kind else EVERY, size_class(size)]
        return math.log(low), math.log(high)

    def of(self, size: float) -> ClassErrors:
        """Return the errors of the rows of a size in bytes."""
        return self.rows[error_class(size)]

    def middle_of(self, sizes: Sequence[float]) -> ClassErrors:
        """Return the errors of the slowest middle of sizes in bytes of one class; those of a row of few sizes."""
        return (self.middles if len(sizes) >= SEVERAL else self.rows)[error_class(sizes[0])]


def error_class(size: float) -> str:
    """Return the class of a size in bytes whose errors are stated apart."""
    return next(name for limit, name in ERROR_SIZES if size < limit)


def span_of(n_machines: int) -> str:
    """Return how many machines or NVLink domains a communicator is on, in words."""
    return INSIDE if n_machines == 1 else FEW if n_machines <= MOST_OF_FEW else MANY


def error_model(kind: str, n_machines: int) -> ErrorModel:
    """Return the errors of a kind of machines.

    Parameters
    ----------
    kind : str
        As :func:`commsim.nccl.intervals.kind_of` says, or ``rccl``.
    n_machines : int
        Machines, or NVLink domains.
    """
    return _of_machines(kind, min(n_machines, LEAST_OF_MANY))


@functools.cache
def _of_machines(kind: str, n_machines: int) -> ErrorModel:
    classes, likeness = read_errors(PATH.read_text(encoding="utf-8"))
    names = [name for _, name in ERROR_SIZES]
    rows, middles = (
        {size: errors_of(classes, kind, n_machines, what, size) for size in names} for what in ("rows", "middles")
    )
    is_of_kind = any(kind == known for known, _ in intervals())
    return ErrorModel(kind, is_of_kind, span_of(n_machines), rows, middles, likeness)


def errors_of(classes: Classes, kind: str, n_machines: int, what: str, size: str) -> ClassErrors:
    """Return the errors of a kind and a number of machines; those of all kinds where there are none of the kind.

    Parameters
    ----------
    classes : mapping of (str, str, str, str) to ClassErrors
        As :func:`read_errors` returns them.
    kind, n_machines
        Same as in :func:`error_model`.
    what, size : str
        ``rows`` or ``middles``, and a class of sizes.
    """

    def of(span: str) -> ClassErrors:
        return classes.get((kind, span, what, size)) or classes[EVERY, span, what, size]

    if n_machines <= MOST_OF_FEW:
        return of(span_of(n_machines))
    return of(FEW).towards(of(MANY), min(1.0, math.log2(n_machines / MOST_OF_FEW)))


def read_errors(text: str) -> tuple[Classes, Likeness]:
    """Read a file of errors.

    Parameters
    ----------
    text : str
        TOML, as ``errors.toml``.

    Returns
    -------
    mapping of (str, str, str, str) to ClassErrors, and Likeness
        By kind, span, ``rows`` or ``middles``, and class of sizes.
    """
    tree = tomllib.loads(text)
    shape = tree[SHAPE]
    widths = (tuple(Width(*pair) for pair in shape[key]) for key in WIDTH_KEYS)
    likeness = Likeness(float(shape[OCTAVES]), *widths)
    kinds = {kind: spans for kind, spans in tree.items() if kind != SHAPE}
    return {
        (kind, span, what, size): ClassErrors(*values)
        for kind, spans in kinds.items() for span, both in spans.items()
        for what, sizes in both.items() for size, values in sizes.items()
    }, likeness  # fmt: skip


@functools.lru_cache(256)
def t_quantile(share: float, degrees: float) -> float:
    """Return what a share of Student's t exceeds.

    Parameters
    ----------
    share : float
        Share, between 0 and 1.
    degrees : float
        Degrees of freedom.

    Raises
    ------
    InputError
        If the share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError(f"a share must be between 0 and 1, got {share:g}")
    angles, below = _sums(degrees)
    return math.sqrt(degrees) * math.tan(float(np.interp(1 - share, below, angles)))


def t_share(value: float, degrees: float) -> float:
    """Return the share of Student's t that exceeds a value."""
    angles, below = _sums(degrees)
    return 1 - float(np.interp(math.atan(value / math.sqrt(degrees)), angles, below))


@functools.lru_cache(8)
def _sums(degrees: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return angles, and the share of Student's t below the tangent of each times the root of the degrees."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, N_ANGLES)
    density = np.cos(angles).clip(0) ** (degrees - 1)
    sums = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return angles, sums / sums[-1]
