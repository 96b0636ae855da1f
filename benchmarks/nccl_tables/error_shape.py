"""Errors of NCCL's predictions as ``commsim/nccl/errors.toml`` has them: distributions by class, and their likeness.

A class is a kind of machines, their span (one, few, many), and a range of sizes; its rows, and the slowest middles of
its tables, by which a log is judged (:func:`commsim.diagnosis.check_log.least_middle`), have a distribution each. It is
what a new operator has whose class has the operators that are known: normal with an unknown middle and an unknown
width, so that the answer is Student's t (Gelman et al., Bayesian Data Analysis, section 3.3, the conjugate prior). What
is known beforehand is the middle and the width of all kinds inside of machines, or between them, worth some operators.
Of more machines than eight few operators are known, and what they differ by there is mostly what they differ by below:
beforehand their class has what the class of fewer machines of the kind is expected to have, worth its operators too.
An operator counts once, whatever the number of its rows. How many it is worth matters little (of 1 to 8 for each of the
two, the likelihood of operators left out is within 5 % of the best for 3 and 8, and false alarms are the same).

How alike the errors of one table are, and how wide they are on how many operators, is found with the likelihood that
``compare`` uses, each row beside the class of the other operators. The share of each width is its posterior mean by
expectation maximisation with the same weight for each operator (Kiefer and Wolfowitz, Annals of Mathematical
Statistics 27, 1956, for a mixture over a grid), with the four widths independent, and one operator beforehand that has
each width of a part as often. The octaves are those with which operators left out are most likely.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from commsim.core.errors import InputError
from commsim.diagnosis.causes.likelihood import disturbances, log_densities
from commsim.diagnosis.causes.rows import Rows
from commsim.diagnosis.check_log import least_middle
from commsim.nccl.error_model import (
    ERROR_SIZES,
    FEW,
    INSIDE,
    MANY,
    OCTAVES,
    SHAPE,
    WIDTH_KEYS,
    ClassErrors,
    Classes,
    Likeness,
    Width,
    error_class,
    errors_of,
    span_of,
)
from commsim.nccl.intervals import EVERY

# Operators that all kinds together are worth: for the width of a class, and for its middle.
WORTH_OF_WIDTH, WORTH_OF_MIDDLE = 3.0, 8.0
# Distances in octaves that are tried, and widths that an operator may have: of what sizes have in common and of what
# near sizes have, in units of the class; and noise of the logarithm of a row, below and from 16 MiB.
OCTAVE_VALUES = (1.0, 1.5, 2.0, 2.5, 3.0)
GRIDS = ((0.07, 0.3, 1.0), (0.18, 0.35, 0.7, 1.4), (0.03, 0.08, 0.2), (0.01, 0.03, 0.09))
# Operators that all widths alike are worth, and rounds after which no share moves by more than 0.001.
WORTH_OF_WIDTHS, N_ROUNDS = 1.0, 60
# Rows of a table that are used, as of a log: others say little that these do not.
MOST_ROWS = 24
HEAD = """\
# Logarithm of measured over predicted time of an operator that nothing is known of: Student's t, by kind of machines,
# their span (inside: one machine or NVLink domain; few: up to 8; many), rows or slowest middles of tables, and size
# (small: below 64 KiB, middle: below 64 MiB, large): middle, scale, degrees of freedom; tables and operators that it is
# made of. `every_kind` is for machines without tables. `shape`: what sizes have in common, and near sizes within some
# octaves, in units of the scale, and noise of rows below and from 16 MiB: [standard deviation, share of operators].
# Written by `python -m benchmarks.nccl_tables.intervals` from healthy public tables that nothing was fitted on.
"""


class Score(NamedTuple):
    """A row: who measured it, its table, kind and size class, logarithm of measured over predicted, bytes, machines."""

    operator: str
    table: str
    kind: str
    size: str
    log: float
    n_bytes: float = 1.0
    n_machines: int = 1


class _Operators:
    """What is known of operators: values of each, of which all have the same weight."""

    def __init__(self, values: Sequence[tuple[str, str, float]]) -> None:
        by_operator = defaultdict[str, list[float]](list)
        for operator, _, value in values:
            by_operator[operator].append(value)
        self.n, self.n_tables = len(by_operator), len({table for _, table, _ in values})
        means = [np.mean(own) for own in by_operator.values()]
        self.middle = float(np.mean(means)) if means else 0.0
        squares = [np.mean((np.array(own) - self.middle) ** 2) for own in by_operator.values()]
        self.square = float(np.mean(squares)) if squares else 0.0

    @property
    def variance(self) -> float:
        """Variance of a new operator, of several that are known."""
        return self.square * self.n / max(1, self.n - 1)


class _Before(NamedTuple):
    """What is known of a class beforehand: middle and variance, and the operators that each of the two is worth."""

    middle: float
    variance: float
    worth_of_middle: float = WORTH_OF_MIDDLE
    worth_of_width: float = WORTH_OF_WIDTH


def classes_of(scores: Sequence[Score]) -> dict[tuple[str, str, str, str], ClassErrors]:
    """Return the errors of all classes, and of all kinds together by span.

    Parameters
    ----------
    scores : sequence of Score
        Rows of several operators.
    """
    values = defaultdict[tuple[str, str, str, str], list[tuple[str, str, float]]](list)
    for what, some in (("rows", scores), ("middles", middles_of(scores))):
        for score in some:
            values[score.kind, span_of(score.n_machines), what, error_class(score.n_bytes)].append(
                (score.operator, score.table, score.log)
            )
    spans, sizes = {span_of(n): None for n in (1, 2, 2**20)}, [name for _, name in ERROR_SIZES]
    found = {}
    for span, what, size in itertools.product(spans, ("rows", "middles"), sizes):
        own = {key: one for key, one in values.items() if key[1:] == (span, what, size)}
        near = [key for key in values if key[2:] == (what, size) and (key[1] == INSIDE) is (span == INSIDE)]
        around = _Operators([value for key in near for value in values[key]])
        every = _Before(around.middle, around.variance)
        found[EVERY, span, what, size] = _expected(_Operators([]), every)._replace(
            n_tables=around.n_tables, n_operators=around.n
        )
        for key, one in own.items():
            few = found.get((key[0], FEW, what, size)) if span == MANY else None
            found[key] = _expected(_Operators(one), every if few is None else _before_of(few))
    return found


def _before_of(few: ClassErrors) -> _Before:
    """Return what is known of many machines by few of their kind."""
    worth = WORTH_OF_MIDDLE + few.n_operators
    return _Before(few.middle, few.scale**2 / (1 + 1 / worth), worth, few.degrees)


def _expected(own: _Operators, before: _Before) -> ClassErrors:
    """Return what a new operator is expected to have: the posterior predictive of a normal distribution."""
    worth, degrees = before.worth_of_middle + own.n, before.worth_of_width + own.n
    middle = (before.worth_of_middle * before.middle + own.n * own.middle) / worth
    apart = before.worth_of_middle * own.n / worth * (own.middle - before.middle) ** 2
    squares = before.worth_of_width * before.variance + own.n * own.square + apart * bool(own.n)
    return ClassErrors(middle, math.sqrt(squares / degrees * (1 + 1 / worth)), degrees, own.n_tables, own.n)


def errors_at(classes: Classes, score: Score, what: str = "rows") -> ClassErrors:
    """Return the errors of the class of a row; of all kinds where it has none."""
    return errors_of(classes, score.kind, score.n_machines, what, error_class(score.n_bytes))


def middles_of(scores: Sequence[Score]) -> list[Score]:
    """Return the slowest middle of each class in each table, as a log is judged; its bytes are the largest size."""
    groups = defaultdict[tuple[str, str, str], list[Score]](list)
    for row in scores:
        groups[row.operator, row.table, error_class(row.n_bytes)].append(row)
    return [
        max(own, key=lambda row: row.n_bytes)._replace(log=-least_middle({row.n_bytes: -row.log for row in own}))
        for own in groups.values()
    ]  # fmt: skip


def each_left_out(scores: Sequence[Score]) -> Iterator[tuple[list[Score], Classes]]:
    """Yield the rows of each operator, and the errors of all others."""
    for name in sorted({score.operator for score in scores}):
        own = [score for score in scores if score.operator == name]
        yield own, classes_of([score for score in scores if score.operator != name])


def likeness_of(scores: Sequence[Score]) -> Likeness:
    """Return how alike the errors of one table are, and how wide they are on which part of the operators.

    Parameters
    ----------
    scores : sequence of Score
        Rows of several operators.

    Raises
    ------
    InputError
        If no table has two rows.
    """
    tables = _tables(scores)
    if all(len(table.rows.sizes) < 2 for table in tables):
        raise InputError("no table has two rows: nothing tells how alike their errors are")
    found = [_fitted(tables, octaves) for octaves in OCTAVE_VALUES]
    return max(found, key=lambda one: one[0])[1]


class _ErrorTable(NamedTuple):
    """Rows of a table, its errors and scales by the other operators, what disturbs rows, and its operator."""

    rows: Rows
    residual: np.ndarray
    scale: np.ndarray
    disturbed: np.ndarray
    operator: str


def _tables(scores: Sequence[Score]) -> list[_ErrorTable]:
    """Return all tables, each beside the classes of the other operators."""
    rows = defaultdict[tuple[str, str], dict[float, tuple[float, float, float]]](dict)
    for own, classes in each_left_out(scores):
        for score in own:
            errors = errors_at(classes, score)
            rows[score.operator, score.table][score.n_bytes] = (score.log, errors.middle, errors.scale)
    return [_table(operator, by_size) for (operator, _), by_size in rows.items()]


def _table(operator: str, by_size: Mapping[float, tuple[float, float, float]]) -> _ErrorTable:
    every = np.array([(size, *values) for size, values in sorted(by_size.items())])
    kept = np.unique(np.linspace(0, len(every) - 1, min(len(every), MOST_ROWS)).round().astype(int))
    sizes, logs, middles, scales = every[kept].T
    slow = np.ones(len(sizes), np.bool_)
    rows = Rows(sizes, np.exp(logs), slow, ~slow)
    return _ErrorTable(rows, logs - middles, scales, disturbances(rows, np.ones(len(sizes))), operator)


def _fitted(tables: Sequence[_ErrorTable], octaves: float) -> tuple[float, Likeness]:
    """Return the log-likelihood of operators left out, and the likeness with the shares of all."""
    widths = [tuple(Width(scale, 1 / len(grid)) for scale in grid) for grid in GRIDS]
    likeness = Likeness(octaves, *widths)
    logs = np.array([
        log_densities(one.rows, one.residual, one.scale, likeness, [np.diag(one.disturbed**2)])[..., 0]
        for one in tables
    ])  # fmt: skip
    operators = np.array([one.operator for one in tables])
    n_tables = Counter(operators.tolist())
    weights = np.array([1 / n_tables[operator] for operator in operators.tolist()])
    value = 0.0
    for operator in n_tables:
        own = operators == operator
        shares = _product(_shares(logs[~own], weights[~own]))
        value += float(weights[own] @ np.logaddexp.reduce((logs[own] + np.log(shares)).reshape(own.sum(), -1), axis=1))
    found = _shares(logs, weights)
    return value, Likeness(octaves, *(
        tuple(Width(scale, round(float(share), 3)) for scale, share in zip(grid, own, strict=True))
        for grid, own in zip(GRIDS, found, strict=True)
    ))  # fmt: skip


def _shares(logs: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """Return the share of each width of each part, of the logarithms of densities of tables with each combination."""
    axes = range(1, logs.ndim)
    densities = np.exp(logs - logs.max(tuple(axes), keepdims=True))
    shares = [np.full(n, 1 / n) for n in logs.shape[1:]]
    for _ in range(N_ROUNDS):
        belongs = densities * _product(shares)
        belongs = np.tensordot(weights, belongs / belongs.sum(tuple(axes), keepdims=True), 1)
        counts = [
            belongs.sum(tuple(other for other in range(belongs.ndim) if other != axis)) for axis in range(len(shares))
        ]
        shares = [
            (count + WORTH_OF_WIDTHS / len(count)) / (weights.sum() + WORTH_OF_WIDTHS) for count in counts
        ]  # fmt: skip
    return shares


def _product(shares: Sequence[np.ndarray]) -> np.ndarray:
    """Return the share of each combination."""
    return functools.reduce(np.multiply.outer, shares)


def written_errors(classes: Classes, likeness: Likeness) -> str:
    """Return the text of the file."""
    parts, sections = [HEAD], dict[tuple[str, str, str], list[tuple[str, ClassErrors]]]()
    for (kind, span, what, size), one in classes.items():
        sections.setdefault((kind, span, what), []).append((size, one))
    for names, sizes in sorted(sections.items()):
        lines = [
            f"{size} = [{one.middle:.3f}, {one.scale:.3f}, {one.degrees:g}, {one.n_tables}, {one.n_operators}]\n"
            for size, one in sizes
        ]
        parts.append(f"[{'.'.join(names)}]\n" + "".join(lines))
    lines = [f"{OCTAVES} = {likeness.octaves:g}\n"]
    for key, widths in zip(WIDTH_KEYS, likeness[1:], strict=True):
        lines.append(f"{key} = [{', '.join(f'[{one.scale:g}, {one.share:g}]' for one in widths)}]\n")
    parts.append(f"[{SHAPE}]\n" + "".join(lines))
    return "\n".join(parts)
