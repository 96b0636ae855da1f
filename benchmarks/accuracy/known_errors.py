"""Comparisons as the files that commsim ships: see :mod:`commsim.auto.known_error`, which reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from commsim.auto.known_error import LABELS, ErrorSample

NUMBERS = ("oversubscription", "unevenness", "near", "ranks", "size", "rate", "product", "overhead")


def to_tree(some: Iterable[ErrorSample]) -> dict[str, Any]:
    """Return comparisons as JSON has them: a table for each set of words, with a row of numbers and the error."""
    tables: dict[tuple[str, ...], list[list[float]]] = {}
    for one in some:
        words = (one.engine, one.against, *(getattr(one.case, name) for name in LABELS))
        numbers = [float(f"{getattr(one.case, name):.7g}") for name in NUMBERS]
        tables.setdefault(words, []).append([*numbers, round(one.error, 6)])
    heads = ("engine", "against", *LABELS)
    rows = [dict(zip(heads, words, strict=True)) | {"rows": sorted(tables[words])} for words in sorted(tables)]
    return {"schema": 2, "columns": [*NUMBERS, "error"], "tables": rows}
