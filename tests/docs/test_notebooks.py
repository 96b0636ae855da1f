"""The cells of the notebooks run from the first to the last, in a namespace of their own."""

import ast
import json
from pathlib import Path

import pytest

import commsim

NOTEBOOKS = sorted((Path(commsim.__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run_and_show_something(path, tmp_path, monkeypatch):
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert all(not cell.get("outputs") for cell in notebook["cells"])  # kept without outputs
    monkeypatch.chdir(tmp_path)
    names, shown = {"__name__": "__main__"}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert any("<table" in one for one in shown) or "figure" in path.stem
    assert shown


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 2
