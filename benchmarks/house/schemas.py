"""The JSON Schema of every verb's ``--json``, from what examples write and what ``schema_keys.toml`` says of the keys.

    python -m benchmarks.house.schemas           write commsim/cli/schemas
    python -m benchmarks.house.schemas VERB...   of these verbs only, such as "switch simulate"

A property is required where all examples have it. Keys may be added to an answer under the same ``schema`` number, so
no object is closed. A key without a meaning is an error.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from commsim.cli import main as commsim

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "commsim" / "cli" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
COMMENT = "Written by `python -m benchmarks.house.schemas` from benchmarks/house/schema_keys.toml: change that file."
ANSWERS = ROOT / "tests" / "answers"  # holds the files that examples read
TYPES = {str: "string", bool: "boolean", type(None): "null"}


@cache
def description() -> dict[str, dict[str, Any]]:
    """Return the tables ``examples``, ``keys`` and ``by_name``."""
    return tomllib.loads((Path(__file__).parent / "schema_keys.toml").read_text(encoding="utf-8"))


def file_of(verb: str) -> Path:
    """Return the file of a verb."""
    return SCHEMAS / f"{verb.replace(' ', '_')}.json"


def answer_of(line: str) -> dict[str, Any]:
    """Run an example in an empty folder beside its inputs, and return what it writes as JSON.

    Raises
    ------
    ValueError
        If it fails.
    """
    out, err = io.StringIO(), io.StringIO()
    *before, last = [one.split() for one in line.split(" && ")]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("inputs").symlink_to(ANSWERS / "inputs")
        shutil.copytree(ANSWERS / "files_0_1", "files_0_1")  # some are gone on with
        at = last.index("--") if "--" in last else len(last)  # behind it are words of a program
        for words in (*before, [*last[:at], "--json", "-", *last[at:]]):
            out.seek(0), out.truncate()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = commsim(words)
            if code not in (0, 1):
                raise ValueError(f"{line}: {err.getvalue()}")
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def schema_of(verb: str, answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of a verb that has given these answers."""
    tree = _schema(verb, [{k: v for k, v in one.items() if k not in ("schema", "config")} for one in answers], ())
    config = {
        "type": "object",
        "description": "flags of the command by name, null where not given, and the version of commsim",
        "properties": {"version": {"type": "string"}},
    }
    first = {"schema": {"const": 1, "description": description()["keys"]["schema"]}, "config": config}
    return {
        "$schema": DRAFT,
        "$comment": COMMENT,
        "title": f"commsim {verb} --json",
        "type": "object",
        "required": ["schema", "config", *tree.get("required", ())],
        "properties": {**first, **tree["properties"]},
    }


def _of_remarks() -> dict[str, Any]:
    """Return the schema of the remarks of an answer, which is the same of all verbs."""
    types = {"effect": ["null", "number"], "needed": "boolean"}
    properties = {
        name: {"description": meaning, "type": types.get(name, "string")}
        for name, meaning in description()["remark"].items()
    }
    return {
        "type": "array",
        "items": {"type": "object", "required": ["code", "effect", "text"], "properties": properties},
    }


def _schema(verb: str, values: Sequence[Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a schema that all values have."""
    if path == ("remarks",):
        return _of_remarks()
    kinds = {_type(value) for value in values}
    if path and "null" in _meaning(verb, path).split():  # where no example happens to have none
        kinds.add("null")
    schema: dict[str, Any] = {}
    if kinds - {"null"}:  # where examples have only null, the type of a value is not known
        schema["type"] = sorted(kinds) if len(kinds) > 1 else next(iter(kinds))
    items = [item for value in values if isinstance(value, list) for item in value]
    if "array" in kinds and items:
        schema["items"] = _schema(verb, items, path)
    objects = [value for value in values if isinstance(value, dict)]
    if objects and _is_by_name(path):
        inner = [value for one in objects for value in one.values()]
        schema["additionalProperties"] = _schema(verb, inner, (*path, "*"))
    elif objects:
        names = list(dict.fromkeys(name for one in objects for name in one))
        every = [name for name in names if all(name in one for one in objects)]
        if every:
            schema["required"] = every
        schema["properties"] = {
            name: {"description": _meaning(verb, (*path, name))}
            | _schema(verb, [one[name] for one in objects if name in one], (*path, name))
            for name in names
        }
    return schema


def _type(value: Any) -> str:
    """Return the type of a value; a whole number is a number, since what is one today may be a mean tomorrow."""
    other = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "number"
    return TYPES.get(type(value), other)


def _is_by_name(path: tuple[str, ...]) -> bool:
    by_name = description()["by_name"]
    return bool(path) and ("*" not in path) and (path[-1] in by_name or ".".join(path[-2:]) in by_name)


def _meaning(verb: str, path: tuple[str, ...]) -> str:
    """Return what a key means.

    Raises
    ------
    ValueError
        If no table says it.
    """
    for table, key in (("by_name", ".".join(path[-2:])), ("keys", f"{verb}.{path[-1]}"), ("keys", path[-1]),
                       ("by_name", path[-1])):  # fmt: skip
        if key in description()[table]:
            return str(description()[table][key])
    if "*" in path[-2:]:
        return ""
    raise ValueError(
        f"benchmarks/house/schema_keys.toml does not say what {path[-1]!r} of {verb} is ({'.'.join(path)})"
    )


def main(verbs: Iterable[str] = ()) -> int:
    """Write the files."""
    wrong = []
    for verb in verbs or description()["examples"]:
        try:
            tree = schema_of(verb, [answer_of(line) for line in description()["examples"][verb]])
            file_of(verb).write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
        except ValueError as error:
            wrong.append(str(error))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
