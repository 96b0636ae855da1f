"""What is wrong with the body of a request, on one line: as the command line says it of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commsim.core.errors import InputError, printable, shorten
from commsim.core.files.fields import TableFields
from commsim.placement.evaluation import LOOPS
from commsim.placement.ranked_placements import RANKINGS

from .limits import MAX_CANDIDATES, MAX_SEED
from .models import Jobs, Search
from .state import JobRecord, read_known_jobs

SOURCE = "request"  # what messages name in place of a file
MAX_SHOWN = 80  # letters of what came
# Types of pydantic's errors, and what a value must be.
_KINDS = {
    "list_type": "a list",
    "string_type": "text",
    "dict_type": "a table of values by name",
    "model_type": "a table of fields",
    "model_attributes_type": "a table of fields",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
}
# The same of a value of the right kind, with what the model allows.
_RANGES = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "too_short": "at least {min_length} of them, got {actual_length}",
    "too_long": "at most {max_length} of them, got {actual_length}",
    "string_too_short": "text of at least {min_length} letters",
    "string_too_long": "text of at most {max_length} letters",
    "literal_error": "one of {expected}",
}


def said_by_readers(body: Mapping[str, Any], *, is_search: bool, known: Mapping[str, JobRecord]) -> str | None:
    """Say what is wrong with a body as the command line says it of a file; None where its readers find nothing."""
    fields = TableFields(body, SOURCE)
    try:
        fields.only(*(Search if is_search else Jobs).model_fields)
        if not isinstance(rows := fields.raw("jobs"), list) or not rows:
            names = ", or of names of known jobs" if is_search else ""
            fields.refuse("jobs", f"a list of jobs{names}, at least one")
        read_known_jobs(rows, SOURCE, ("jobs",), known if is_search else None)
        fields.whole("candidates", 1, MAX_CANDIDATES, 1)
        fields.whole("seed", 0, MAX_SEED, 0)
        fields.one_of("rank_by", RANKINGS, RANKINGS[0])
        fields.one_of("loops", LOOPS, LOOPS[0])
        fields.truth("check", default=False)
    except InputError as error:
        return printable(str(error))
    return None


def said_of(errors: Sequence[Mapping[str, Any]], body: object = None, known: Sequence[str] = ()) -> str:
    """Write the first of pydantic's errors on one line: ``request: Pod.metadata must be a table of fields, got 1``.

    Parameters
    ----------
    errors : sequence of mapping
        As pydantic lists them.
    body : object
        Body of the request.
    known : sequence of str
        Its fields.
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        said, at = f"request: {first['msg']}: {first['ctx']['error']}", first["loc"][-1]
        if not (isinstance(body, str) and isinstance(at, int)):
            return said
        line, start = body.count("\n", 0, at) + 1, body.rfind("\n", 0, at) + 1
        return f"{said} at line {line}, column {at - start + 1}"
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"][1:]).lstrip(".")
    where, text = where[:MAX_SHOWN], first["input"]
    if isinstance(text, bytes):  # what FastAPI does not read as JSON
        return printable(f"{SOURCE}: {first['msg']}; is its Content-Type application/json?")
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 2 and known:
        try:
            TableFields({where: None}, SOURCE).only(*known)
        except InputError as error:
            return printable(str(error))
    came = "a list" if isinstance(text, list) else "a table" if isinstance(text, dict) else shorten(repr(text))
    if (wrong := _wrong(first, came)) is not None:
        return printable(f"{SOURCE}: {where or 'the body'} {wrong}")
    got = "" if isinstance(text, list | dict) else f", got {came}"
    return printable(": ".join(filter(None, (SOURCE, where, first["msg"].removeprefix("Value error, ") + got))))


def _wrong(error: Mapping[str, Any], came: str) -> str | None:
    """Say what a field must be, and what came; None where only pydantic knows."""
    kind = error["type"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is not a field here"
    if kind in ("too_short", "too_long"):
        return f"must have {_RANGES[kind].format(**error['ctx'])}"
    if (wanted := _KINDS.get(kind) or _RANGES.get(kind)) is not None:
        return f"must be {wanted.format(**error.get('ctx', {}))}, got {came}"
    return None
