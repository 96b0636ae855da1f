"""A module that is named by a string is an import too: no string names a higher package."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import commsim

ROOT = Path(commsim.__file__).parent.parent
NAME = re.compile(r"(?:commsim\.\w+|collectives|topologies|switch_model)(?:\.\w+)*(?::\w+)?")
# Most files have none: they are not parsed.
QUOTED = re.compile(r"[\"'](?:commsim\.|collectives|topologies|switch_model)")


def layers():
    """Level of each package, the lowest 0."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = config["tool"]["importlinter"]["contracts"][0]["layers"]
    return {name: i for i, line in enumerate(reversed(listed)) for name in re.split(r"\s*[|:]\s*", line)}


def docstrings(tree):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body[0] for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    return {id(first.value) for first in bodies if isinstance(first, ast.Expr)}


def upward(path, levels):
    """Return the strings of a file that name a module of a higher package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    own = levels.get(".".join(parts[:2]) if parts[0] == "commsim" else parts[0])
    if own is None:
        return []
    text = path.read_text()
    if not QUOTED.search(text):
        return []
    tree = ast.parse(text)
    prose = docstrings(tree)
    found = []
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        match = NAME.fullmatch(node.value) if is_text else None
        if match is not None:
            words = match[0].partition(":")[0].split(".")
            package = ".".join(words[:2]) if words[0] == "commsim" else words[0]
            if levels.get(package, -1) > own:
                found.append(f"{path}:{node.lineno}: {node.value}")
    return found


@pytest.mark.slow
def test_no_string_names_a_higher_package():
    levels = layers()
    files = [p for top in ("commsim", "collectives", "topologies", "switch_model") for p in (ROOT / top).rglob("*.py")]
    assert [line for path in files for line in upward(path, levels)] == []


def test_a_planted_name_is_found(tmp_path):
    assert NAME.fullmatch("commsim.nccl.tuner_and_graph_files:read_tuner")
    assert not NAME.fullmatch("commsim run: error")
    levels = layers()
    assert levels["commsim.core"] < levels["commsim.prediction"] < levels["commsim.cli"]
