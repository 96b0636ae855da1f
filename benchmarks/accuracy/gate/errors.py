"""Errors of a class of predictions, and how they compare with those of another version."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from commsim.core.errors import InputError

# Figures that may not become worse, and the decimals that are kept: 0.01 percentage points.
FIGURES = ("median", "p90")
DECIMALS, SAME = 4, 0.00005
RESAMPLES, SEED = 400, 1  # of the bootstrap


@dataclass(frozen=True, slots=True)
class Errors:
    """Sizes of the relative errors of one class.

    Parameters
    ----------
    rows : int
        Predictions that were compared.
    median, p90, largest : float
        Relative errors without sign: 0.05 is 5 %.
    noise : mapping of str to float
        By how much `median` and `p90` of the same version differ between two runs; empty where predictions and
        references are the same in each run.
    peers : mapping of str to (float, float)
        By name of another estimate: its median error, and ours on the rows that it predicts.
    """

    rows: int
    median: float
    p90: float
    largest: float
    noise: Mapping[str, float] = field(default_factory=dict)
    peers: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return the fields that are not empty."""
        return {key: value for key, value in dataclasses.asdict(self).items() if value != {}}


def sum_up(
    errors: Iterable[float], *, measured_now: bool = False, peers: Mapping[str, tuple[float, float]] | None = None
) -> Errors:
    """Sum up relative errors.

    Parameters
    ----------
    errors : iterable of float
        With sign or without.
    measured_now : bool
        Whether the references are measured anew in each run; then `noise` is the half width of 80 % of the medians
        (and 90th percentiles) of resampled rows, drawn with a seed.
    peers : mapping, optional
        As in :class:`Errors`.

    Raises
    ------
    InputError
        If there is no row, or an error is not finite.
    """
    sizes = np.abs(np.fromiter(errors, float))
    if not len(sizes) or not np.isfinite(sizes).all():
        raise InputError(f"a class needs rows with finite errors, got {sizes[:3]}")

    def figures(some: np.ndarray) -> np.ndarray:
        return np.array([np.median(some), np.quantile(some, 0.9)])

    noise: dict[str, float] = {}
    if measured_now:
        draw = np.random.default_rng(SEED)
        drawn = [figures(draw.choice(sizes, len(sizes))) for _ in range(RESAMPLES)]
        low, high = np.quantile(drawn, (0.1, 0.9), axis=0)
        noise = {name: _kept(half) for name, half in zip(FIGURES, (high - low) / 2, strict=True)}
    median, p90 = figures(sizes)
    told = {name: (_kept(theirs), _kept(ours)) for name, (theirs, ours) in (peers or {}).items()}
    return Errors(len(sizes), _kept(median), _kept(p90), _kept(sizes.max()), noise, told)


def _kept(value: float) -> float:
    return round(float(value), DECIMALS)


def read_errors(tree: Mapping[str, Any], path: str) -> dict[str, Errors]:
    """Return the classes of a file that the gate wrote.

    Raises
    ------
    InputError
        If it has no classes, or one lacks a figure.
    """
    classes = tree.get("classes")
    if not isinstance(classes, dict):
        raise InputError(f"{path}: classes must be a table by name")
    found = {}
    for name, fields in classes.items():
        try:
            peers = {peer: (float(theirs), float(ours)) for peer, (theirs, ours) in fields.pop("peers", {}).items()}
            found[name] = Errors(**fields, peers=peers)
        except (TypeError, ValueError, AttributeError):
            raise InputError(
                f"{path}: class {name!r} must have rows, median, p90, largest, and may have noise and peers"
            ) from None
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one class that is not what it was."""

    name: str
    figure: str
    before: float
    now: float
    noise: float

    @property
    def is_worse(self) -> bool:
        """Whether the error grew by more than the noise, or rows are gone."""
        grew = self.before - self.now if self.figure == "rows" else self.now - self.before
        return grew > self.noise + SAME

    def text(self) -> str:
        """Return one line."""
        if self.figure == "rows":
            return f"{self.name}: {self.before:.0f} rows before, now {self.now:.0f}"
        noise = f" (noise {self.noise:.2%})" if self.noise else ""
        return f"{self.name}: {self.figure} {self.before:.2%} before, now {self.now:.2%}{noise}"


def compare(before: Mapping[str, Errors], now: Mapping[str, Errors]) -> tuple[list[Change], list[Change]]:
    """Compare the classes that both have.

    Returns
    -------
    worse, other : list of Change
        Figures that are worse by more than their noise, and the other ones that changed: better, or more rows.
    """
    worse, other = list[Change](), list[Change]()
    for name in before.keys() & now.keys():
        old, new = before[name], now[name]
        for figure in ("rows", *FIGURES):
            a, b = getattr(old, figure), getattr(new, figure)
            noise = max(old.noise.get(figure, 0.0), new.noise.get(figure, 0.0))
            if abs(a - b) > max(noise, SAME):
                change = Change(name, figure, a, b, noise)
                (worse if change.is_worse else other).append(change)

    def order(change: Change) -> tuple[str, str]:
        return change.name, change.figure

    return sorted(worse, key=order), sorted(other, key=order)


def merged(before: Mapping[str, Errors], now: Mapping[str, Errors]) -> dict[str, Errors]:
    """Return what is kept in the file: what was made now, and what could not be made here as it was.

    A measured class that did not become better by more than its noise stays as it was, so that the file does not
    follow the noise.
    """
    kept = {}
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old is not None and new is not None and new.noise and new.rows == old.rows:
            worse, other = compare({name: old}, {name: new})
            new = new if worse or other else old
        if found := new or old:
            kept[name] = found
    return kept
