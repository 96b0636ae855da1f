"""Gradients in the order in which a backward pass makes them: sizes and ready times, from a model or a CSV trace."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.csv_rows import read_rows, write_rows
from commsim.core.units import microseconds
from commsim.core.value import Value, freeze

# Forward time of a layer over its backward time unless measured: one product of matrices where backward has two.
FORWARD_SHARE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class BackwardTrace(Value):
    """Gradients of one iteration, the last layer's first.

    Parameters
    ----------
    n_bytes : float64[n_tensors], bytes
        Size of each.
    ready : float64[n_tensors], s
        Time at which each gradient is ready, from the start of the backward pass; the last one ends it.
    forward : float64[n_tensors], s
        How long the forward pass needs the tensor's layer; it comes to the last tensor first.
    names : tuple of str
        What they are called; by default their numbers.
    update : float64[n_tensors], s
        How long the optimiser needs to update the tensor's parameters; by default nothing, and then it is part of the
        forward times.
    density : float64[n_tensors]
        Share of each that is not zero, of blocks where a collective sends blocks; by default 1.

    Raises
    ------
    InputError
        Without a tensor, or if a number is negative or not finite, a density is above 1, or ready times fall.
    """

    n_bytes: NDArray[np.float64]
    ready: NDArray[np.float64]
    forward: NDArray[np.float64]
    names: tuple[str, ...] = ()
    update: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    density: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        n = np.size(self.n_bytes)
        if not np.size(self.update):
            object.__setattr__(self, "update", np.zeros(n))
        if not np.size(self.density):
            object.__setattr__(self, "density", np.ones(n))
        if not n:
            raise InputError("a backward pass has at least one tensor, got none")
        for name in ("n_bytes", "ready", "forward", "update", "density"):
            values = freeze(getattr(self, name), np.float64, (n,), name)
            if not ((values >= 0) & np.isfinite(values)).all():
                raise InputError(f"{name} must be 0 or more and finite, got {values.min()}..{values.max()}")
            object.__setattr__(self, name, values)
        if (self.density > 1).any():
            raise InputError(f"a density is 0..1, got {self.density.max():g}")
        if (np.diff(self.ready) < 0).any():
            raise InputError("tensors must be in the order in which they become ready")
        if self.names and len(self.names) != n:
            raise InputError(f"names must be those of {n} tensors, got {len(self.names)}")

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Seconds of the backward pass for each tensor, float64[n_tensors]."""
        return np.diff(self.ready, prepend=0.0)

    @property
    def backward_time(self) -> float:
        """Seconds of the backward pass."""
        return float(self.ready[-1])

    @property
    def compute_time(self) -> float:
        """Seconds of one iteration's computation."""
        return self.backward_time + float(self.forward.sum()) + self.update_time

    @property
    def update_time(self) -> float:
        """Seconds of the optimiser."""
        return float(self.update.sum())

    def name(self, tensor: int) -> str:
        """Return what a tensor is called."""
        return self.names[tensor] if self.names else str(tensor)

    def with_compute_time(self, seconds: float) -> BackwardTrace:
        """Return the same backward pass in an iteration whose computation takes `seconds`.

        The forward pass, with all that is neither backward nor the optimiser's, takes what is left, in its layers'
        proportions.

        Raises
        ------
        InputError
            If the backward pass takes longer.
        """
        known = self.backward_time + self.update_time
        rest, forward = seconds - known, self.forward
        if not 0 <= rest < math.inf:
            what = "pass and the optimiser take" if self.update_time else "pass takes"
            raise InputError(f"the backward {what} {known:.6g} s, an iteration at least that, got {seconds} s")
        if not forward.sum():
            forward = np.ones_like(forward)
        return dataclasses.replace(self, forward=forward * (rest / forward.sum()))

    def with_density(self, density: Sequence[float]) -> BackwardTrace:
        """Return the same passes with other densities: one for all tensors, or one for each.

        Raises
        ------
        InputError
            If there are neither one nor as many as tensors, or one is not in 0..1.
        """
        n = len(self.n_bytes)
        if len(density) not in (1, n):
            raise InputError(f"densities are one for all tensors or one for each of {n}, got {len(density)}")
        return dataclasses.replace(self, density=np.broadcast_to(np.asarray(density, np.float64), n))

    def parts(self, tensors: Iterable[int], n_bytes: float) -> tuple[tuple[float, float], ...]:
        """Bytes and density of each tensor in an array of `n_bytes` that is made of them; nothing where all are dense.

        Parameters
        ----------
        tensors : iterable of int
            Tensors in the order of the array.
        n_bytes : float, bytes
            Size of the array, which each tensor has its share of.
        """
        chosen = list(tensors)
        whole = float(self.n_bytes[chosen].sum()) if chosen else 0.0
        if not whole or (self.density[chosen] == 1).all():
            return ()
        return tuple((float(self.n_bytes[t]) * n_bytes / whole, float(self.density[t])) for t in chosen)

    def with_update_time(self, seconds: float) -> BackwardTrace:
        """Return the same passes with an optimiser that takes `seconds`, shared among the tensors by their bytes.

        Raises
        ------
        InputError
            If it takes less than nothing.
        """
        if not 0 <= seconds < math.inf:
            raise InputError(f"an optimiser takes 0 s or more, got {seconds}")
        n = len(self.n_bytes)
        share = self.n_bytes / self.n_bytes.sum() if self.n_bytes.any() else np.full(n, 1 / n)
        return dataclasses.replace(self, update=seconds * share)

    def slowed(self, factor: float) -> BackwardTrace:
        """Return the trace of a worker that takes `factor` times as long for everything."""
        times = {name: getattr(self, name) * factor for name in ("ready", "forward", "update")}
        return dataclasses.replace(self, **times)


def trace_from_gaps(
    n_bytes: NDArray[np.float64],
    gaps: NDArray[np.float64],
    forward: NDArray[np.float64] | None = None,
    names: Sequence[str] = (),
    update: NDArray[np.float64] | None = None,
) -> BackwardTrace:
    """Trace from the seconds between each tensor and the one before it, with the usual share of forward time."""
    forward = FORWARD_SHARE * np.asarray(gaps) if forward is None else forward
    return BackwardTrace(n_bytes, np.cumsum(gaps), forward, tuple(names), np.zeros(0) if update is None else update)


def read_backward_trace(path: str | Path, value_bytes: int = 4) -> BackwardTrace:
    """Read a CSV file with a heading and the columns ``numel`` and ``gap_us``, or ``nbytes`` and ``wait_us``.

    Parameters
    ----------
    path : str or Path
        The file. Where it has the columns ``tensor``, ``forward_us``, ``update_us`` (of the optimiser) and ``density``
        they are read too; others are not looked at.
    value_bytes : int
        Bytes of an element, for ``numel``.

    Raises
    ------
    InputError
        Naming the file, the line and what is wrong with it.
    """
    rows = list(read_rows(path, ()))
    if not rows:
        raise InputError(f"{path}: holds no tensor")
    names = rows[0].columns
    if {"numel", "gap_us"} <= set(names):
        columns, factor = ["numel", "gap_us"], float(value_bytes)
    elif {"nbytes", "wait_us"} <= set(names):
        columns, factor = ["nbytes", "wait_us"], 1.0
    else:
        raise InputError(f"{path}: needs the columns numel and gap_us, or nbytes and wait_us, got {', '.join(names)}")
    columns += [name for name in ("forward_us", "update_us") if name in names]
    values = np.array([[row.non_negative(column) for column in columns] for row in rows])
    more = dict(zip(columns[2:], values.T[2:] * 1e-6, strict=True))
    density = [row.non_negative("density") for row in rows] if "density" in names else [1.0]
    tensors = [row.text("tensor") for row in rows] if "tensor" in names else []
    trace = trace_from_gaps(
        values[:, 0] * factor, values[:, 1] * 1e-6, more.get("forward_us"), tensors, more.get("update_us")
    )
    try:
        return trace.with_density(density)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_backward_trace(path: str | Path, trace: BackwardTrace) -> None:
    """Write ``tensor``, ``nbytes``, ``wait_us``, ``forward_us`` and, if known, ``update_us``; whole or not at all."""
    columns = {"wait_us": trace.gaps, "forward_us": trace.forward}
    columns |= {"update_us": trace.update} if trace.update_time else {}
    rows = (
        (trace.name(i), f"{n:.0f}", *(microseconds(seconds[i], 3) for seconds in columns.values()))
        for i, n in enumerate(trace.n_bytes)
    )
    write_rows(path, (("tensor", "nbytes", *columns), *rows))
