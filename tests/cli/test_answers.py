"""Verbs return answers: none prints, writes its own JSON, or calls the functions of tables."""

import ast
from pathlib import Path

import pytest

import commsim.cli
from commsim.core.remark import Remark
from commsim.report.answer import Answer, Facts, Lines, Remarks, Table, remarks, show, tree_of
from commsim.report.terminal import announce, show_step

PACKAGE = Path(commsim.cli.__file__).parents[1]
FUNCTIONS = {
    "print", "print_table", "print_facts", "show", "write_answer", "write_rows",
}  # fmt: skip
METHODS = {"stdout.write", "stderr.write"}


def calls(tree):
    """Return which of the functions and methods a module calls."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & FUNCTIONS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            found |= {f"{name}.{node.func.attr}"} & METHODS
    return found


def test_no_verb_prints_and_one_place_shows_answers():
    found = {
        str(path.relative_to(PACKAGE)): printing
        for path in [*PACKAGE.glob("cli/**/*.py"), *PACKAGE.glob("*/cli/**/*.py")]
        if (printing := calls(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == {"cli/__init__.py": {"show"}}


@pytest.mark.parametrize("text", ["print('x')", "sys.stdout.write('x')", "print_table([], [])", "show(answer, {})"])
def test_a_call_that_prints_is_found(text):
    assert len(calls(ast.parse(text))) == 1
    assert calls(ast.parse("write_json('FILE', {})")) == set()  # another file than the answer


def test_what_cannot_wait_for_the_answer_is_shown_by_the_renderer(capsys, monkeypatch):
    announce("serving on 127.0.0.1")
    show_step("nobody sees it: no terminal")
    assert capsys.readouterr() == ("# serving on 127.0.0.1\n", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show_step("trees 1/2")
    show_step()
    assert capsys.readouterr().err == "\r\033[K# trees 1/2\r\033[K"


ANSWER = Answer(
    [
        Remarks([Remark("drawn", "drawn", needed=True)]),
        Table(["size(B)", "time(us)"], [["1024", "<5"]], "a title"),
        Facts({"name": "star"}),
        Lines(["as it is"]),
        *remarks([Remark("drawn", "drawn", needed=True), Remark("assumed", "assumed")]),
    ],
    [{"size_B": 1024, "why": {"how": "flow"}}],
    {"topology": "star"},
    {"extra": 1},
)


def test_an_answer_is_shown_in_order_and_its_remarks_are_in_the_json_once(capsys):
    shown = ["# a title", "size(B)  time(us)", "   1024        <5", "name  star", "as it is", "# drawn"]
    show(ANSWER, {}, verbose=True)
    assert capsys.readouterr().out.splitlines() == ["# drawn", *shown, "# assumed"]
    show(ANSWER, {})
    assert capsys.readouterr().out.splitlines() == shown
    tree = tree_of(ANSWER, {"not": "these"})
    assert tree["config"].pop("version")
    assert tree == {"schema": 1, "config": {"topology": "star"}, "results": [{"size_B": 1024, "why": {"how": "flow"}}],
                    "extra": 1, "remarks": [{"code": "drawn", "effect": None, "text": "drawn", "needed": True},
                                            {"code": "assumed", "effect": None, "text": "assumed"}]}  # fmt: skip


def test_rows_may_have_another_name_or_none_in_the_json_and_be_others_in_the_csv(capsys):
    rows = [{"a": 1}]
    assert tree_of(Answer((), rows, key="candidates"), {})["candidates"] == rows
    assert "results" not in tree_of(Answer((), rows, more={"a": 1}, key=None), {})
    show(Answer((), rows, lines=[{"b": 2}, {"b": 3}]), {}, csv="-")
    assert capsys.readouterr().out == "b\n2\n3\n"


def test_an_answer_without_rows_writes_no_json(tmp_path):
    show(Answer([Lines(["x"])]), {}, json=str(tmp_path / "x.json"))
    assert not (tmp_path / "x.json").exists()
