"""Which of the known kinds of JSON a file of measurements is: ours, nccl-tests', the inspector's, or a profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.formats.bounded import read_text
from commsim.core.formats.files import parse_json

from .kineto import is_kineto, kineto_tree
from .measured import MAX_BYTES, Asked, Measured


def read_json_rows(path: Path, asked: Asked) -> Sequence[Measured]:
    """Read the measurements of a JSON file.

    Raises
    ------
    InputError
        If it is not well formed, or of no known kind.
    """
    text = read_text(path, MAX_BYTES)
    try:
        tree = kineto_tree(text) if is_kineto(text) else parse_json(text)
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":  # one table to a line
            from .nccl_inspector import read_lines

            return read_lines(text, path, asked)
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    return _by_kind(tree, path, asked)


def _by_kind(tree: dict[str, Any], path: Path, asked: Asked) -> Sequence[Measured]:
    if "coll_perf" in tree:
        from .nccl_inspector import read_lines

        return read_lines(json.dumps(tree), path, asked)
    if "traceEvents" in tree or "entries" in tree:
        from .calls import measured_calls
        from .profile_rows import calls_of_tree

        return measured_calls(calls_of_tree(tree, path, asked.notes), path, asked)
    if "schema" in tree or tree.get("kind") == "result":
        from .own_rows import read_own

        return read_own(tree, path, asked)
    if "results" in tree and "config" in tree:
        from .nccl_tests_json import read_nccl_tests_json

        return read_nccl_tests_json(tree, path, asked)
    known = "results of commsim or nccl-tests, NCCL inspector's lines, a flight recorder or a Kineto trace"
    raise InputError(f"{path}: JSON of no known kind; expected {known}, got the keys {', '.join(map(str, tree))[:80]}")
