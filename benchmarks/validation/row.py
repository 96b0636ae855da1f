"""One row of the matrix, and rows as JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.auto.case import PredictionCase
from commsim.core.errors import InputError

KINDS = {
    "closed_form": "closed forms against the engines",
    "real": "real runs in the testbed",
    "published": "published numbers",
    "engines": "one engine against another",
}
# Absolute error from which a row is called a miss.
MISS = {"closed_form": 0.02, "real": 0.05, "published": 0.05, "engines": 0.05}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one model says, beside what it was compared with.

    Parameters
    ----------
    id : str
        Unique in the matrix.
    kind : str
        One of KINDS.
    against : str
        What the reference is, in a word or two: "closed form", "measured", "packet engine".
    model, engine, operation : str
        What is modelled, what predicts it, and the operation that it is about.
    reference, ours : float
        In `unit`; the reference is not 0.
    unit : str
        Of both.
    source : str
        Which formula, which publication and where in it, or which run.
    ranks : int
        Participants; 0 where there are none to count.
    network : str
        On which topology.
    size : float or None, bytes
        Of the operation; None where none was said, as for a steady rate.
    note : str
        Why it misses, where it does, and what else should be known.
    spread : float or None
        Of repeated measurements, relative to their median.
    valid : bool
        False for a measurement that something else than the network decided; it counts nowhere.
    fitted : bool
        Whether a constant was fitted to this very reference: then it is shown, and counts nowhere.
    case : PredictionCase or None
        Conditions by which ``--engine auto`` looks it up; None for what it does not look up.

    Raises
    ------
    InputError
        If the kind is unknown, or the numbers have no relative error.
    """

    id: str
    kind: str
    against: str
    model: str
    engine: str
    operation: str
    reference: float
    ours: float
    unit: str
    source: str
    ranks: int = 0
    network: str = ""
    size: float | None = None
    note: str = ""
    spread: float | None = None
    valid: bool = True
    fitted: bool = False
    case: PredictionCase | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"row {self.id}: kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if not (math.isfinite(self.reference) and math.isfinite(self.ours) and self.reference):
            wanted = "a finite prediction and a finite reference other than 0"
            raise InputError(f"row {self.id}: wanted {wanted}, got {self.ours} and {self.reference}")

    @property
    def error(self) -> float:
        """Relative to the reference."""
        return float(self.ours / self.reference - 1)

    @property
    def counts(self) -> bool:
        """Whether it enters statistics."""
        return self.valid and not self.fitted

    @property
    def missed(self) -> bool:
        """Whether it counts and is off by more than its kind may be."""
        return self.counts and abs(self.error) > MISS[self.kind]

    def json(self) -> dict[str, Any]:
        """Return all fields, and the error."""
        return dataclasses.asdict(self) | {"error": self.error}


def row_from_json(tree: Mapping[str, Any], path: str) -> Row:
    """Return the row that :meth:`Row.json` wrote.

    Raises
    ------
    InputError
        Naming the file, the row and the field that is missing, unknown or of a wrong type.
    """
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a row must be a table, got {type(tree).__name__}")
    of = f"{path}: row {tree.get('id', '?')!r}"
    found: dict[str, Any] = {}
    for field in dataclasses.fields(Row):
        if field.name not in tree:
            if field.default is dataclasses.MISSING:
                raise InputError(f"{of}: {field.name} is missing")
            continue
        value, what = tree[field.name], f"{of}: {field.name}"
        found[field.name] = _case(value, what) if field.name == "case" else _typed(value, str(field.type), what)
    if unknown := set(tree) - {field.name for field in dataclasses.fields(Row)} - {"error"}:
        raise InputError(f"{of}: unknown field {min(unknown)}")
    return Row(**found)


def _case(value: Any, what: str) -> PredictionCase | None:
    """Return what asdict made of a case."""
    if value is None:
        return None
    fields = {field.name: str(field.type) for field in dataclasses.fields(PredictionCase)}
    if not isinstance(value, dict) or set(value) != set(fields):
        raise InputError(f"{what} must be a table with {', '.join(fields)}, got {value!r}")
    return PredictionCase(**{name: _typed(value[name], kind, f"{what}.{name}") for name, kind in fields.items()})


def _typed(value: Any, wanted: str, what: str) -> Any:
    number = (int, float)
    kinds = {"str": (str,), "bool": (bool,), "int": (int,), "float": number, "float | None": (*number, type(None))}
    if not isinstance(value, kinds[wanted]) or (isinstance(value, bool) and wanted != "bool"):
        raise InputError(f"{what} must be {wanted.replace(' | ', ' or ')}, got {value!r}")
    return value
