"""Texts of remarks in the source, with sample values, fit on the line that an answer has for them."""

import ast
from pathlib import Path

import pytest

import commsim
from commsim.core.remark import MAX_TEXT, Remark

FILES = sorted(Path(commsim.__path__[0]).rglob("*.py"))
VALUE, NUMBER, DEEPEST = "x" * 8, "0" * 6, 6


def longest(node, known, depth=0):
    """Return the longest text that an expression may have; names stand for what is assigned to them."""
    inside = depth + 1
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(longest(part, known, inside) for part in parts)
        case ast.FormattedValue(format_spec=spec) if spec is not None:
            return NUMBER
        case ast.FormattedValue(value=value):
            return longest(value, known, inside)
        case ast.Name(id=name) if depth < DEEPEST:
            return max((longest(one, known, inside) for one in known.get(name, [])), key=len, default=VALUE)
        case ast.IfExp(body=a, orelse=b) | ast.BinOp(left=a, op=ast.Mult(), right=b):
            return max(longest(a, known, inside), longest(b, known, inside), key=len)
        case ast.BinOp(left=a, op=ast.Add(), right=b):
            return longest(a, known, inside) + longest(b, known, inside)
    return VALUE


def texts(tree):
    """Yield line and longest text of each remark that a module makes."""
    for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
        known = {}
        for one in (*tree.body, *ast.walk(function)):
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                known.setdefault(one.targets[0].id, []).append(one.value)
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Remark" and len(call.args) > 1:
                yield call.lineno, longest(call.args[1], known)


def test_texts_of_remarks_fit():
    making = [(path, text) for path in FILES if "Remark(" in (text := path.read_text())]
    every = [(f"{path}:{line}", text) for path, code in making for line, text in texts(ast.parse(code))]
    assert len(every) > 200
    assert [(where, text) for where, text in every if len(text) > MAX_TEXT] == []


@pytest.mark.parametrize("code", ["seed-unused", "size-unused", "option-unused"])
def test_what_has_no_effect_is_always_shown(code):
    assert Remark(code, "seed: no effect").is_shown


def test_a_text_with_long_names_is_cut_between_words():
    one = Remark("code", "word " * 40)
    assert one.text.removesuffix(" ...").split() == ["word"] * 19
    assert len(one.text) <= MAX_TEXT
