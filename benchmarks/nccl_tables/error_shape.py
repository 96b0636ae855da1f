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

How alike the errors of one table are is found with the largest likelihood, too: each row in units of the distribution
of the other operators.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.nccl_tables.intervals import Score
from commsim.core.errors import InputError
from commsim.diagnosis.check_log import least_middle
from commsim.nccl.error_model import (
    ERROR_SIZES,
    FEW,
    INSIDE,
    MANY,
    SHAPE,
    ClassErrors,
    Classes,
    Likeness,
    error_class,
    errors_of,
    span_of,
)
from commsim.nccl.intervals import EVERY

# Operators that all kinds together are worth: for the width of a class, and for its middle.
WORTH_OF_WIDTH, WORTH_OF_MIDDLE = 3.0, 8.0
# Values that are tried for the likeness.
DEGREES, FACTORS, NEARS, OCTAVES = (
    (1.5, 2, 3, 4, 6, 8, 12),
    np.arange(0, 0.7, 0.1),
    np.arange(0.1, 1, 0.1),
    (1, 2, 3, 4),
)
LEAST_OF_ONE = 0.05
HEAD = """\
# Logarithm of measured over predicted time of an operator that nothing is known of: Student's t, by kind of machines,
# their span (inside: one machine or NVLink domain; few: up to 8; many), rows or slowest middles of tables, and size
# (small: below 64 KiB, middle: below 64 MiB, large): middle, scale, degrees of freedom; tables and operators that it is
# made of. `every_kind` is for machines without tables. `shape`: how alike the errors of one table are. Written by
# `python -m benchmarks.nccl_tables.intervals` from healthy public tables that nothing was fitted on.
"""


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
    """Return how alike the errors of one table are.

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
    if not tables:
        raise InputError("no table has two rows: nothing tells how alike their errors are")
    best, found = -math.inf, Likeness(0, 0, 0, 0)
    for factor, near, octaves in itertools.product(FACTORS, NEARS, OCTAVES):
        if factor + near > 1 - LEAST_OF_ONE + 1e-9:
            continue
        likeness = Likeness(0, round(float(factor), 2), round(float(near), 2), octaves)
        terms = [_far(values, likeness.correlations(sizes)) for sizes, values, _ in tables]
        for degrees in DEGREES:
            value = sum(w * _density(*term, degrees) for term, (_, _, w) in zip(terms, tables, strict=True))
            if value > best:
                best, found = value, likeness._replace(degrees=degrees)
    return found


def _tables(scores: Sequence[Score]) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Return sizes, errors in units of the other operators' and weight of each table with several rows."""
    rows = defaultdict[tuple[str, str], dict[float, float]](dict)
    for own, classes in each_left_out(scores):
        for score in own:
            errors = errors_at(classes, score)
            rows[score.operator, score.table][score.n_bytes] = (score.log - errors.middle) / errors.scale
    several = {key: dict(sorted(own.items())) for key, own in rows.items() if len(own) > 1}
    n_tables = defaultdict[str, int](int)
    for operator, _ in several:
        n_tables[operator] += 1
    return [
        (np.array([*own]), np.array([*own.values()]), 1 / n_tables[operator] / len(own))
        for (operator, _), own in several.items()
    ]  # fmt: skip


def _far(values: np.ndarray, correlations: np.ndarray) -> tuple[int, float, float]:
    """Return the number of values, their square distance, and the logarithm of the determinant's root."""
    lower = np.linalg.cholesky(correlations)
    return len(values), float((np.linalg.solve(lower, values) ** 2).sum()), float(np.log(np.diag(lower)).sum())


def _density(n: int, far: float, root: float, degrees: float) -> float:
    """Return the logarithm of the density of a multivariate Student's t."""
    constant = math.lgamma((degrees + n) / 2) - math.lgamma(degrees / 2) - n / 2 * math.log(degrees * math.pi)
    return constant - root - (degrees + n) / 2 * math.log1p(far / degrees)


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
    shape: Mapping[str, float] = likeness._asdict()
    parts.append(f"[{SHAPE}]\n" + "".join(f"{key} = {value:g}\n" for key, value in shape.items()))
    return "\n".join(parts)
